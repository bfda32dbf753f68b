"""The plainest possible scorer, to check the fast one against: one forward pass a target, full logits, Python loops.

What is read is the text, without a U+FEFF at its beginning, and without the white space and U+FEFF at its end.

Written from Kauf & Ivanova (2023), section 3.1, without looking at how spacy_pll does it.
"""

import re
from bisect import bisect_left
from functools import cache, lru_cache
from itertools import count, permutations
from types import SimpleNamespace

import torch


@cache
def load_model(folder, **settings):
    """The transformer and the tokenizer in a folder, by transformers alone."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    # transformers 5 computes in the dtype of the file, which may be float16
    return AutoModelForMaskedLM.from_pretrained(folder, **settings).float().eval(), AutoTokenizer.from_pretrained(
        folder
    )


def bounds(text):
    """Where what is read of a text begins and ends."""
    begin, end = 0, len(text)
    while begin < end and text[begin] == "\ufeff":
        begin += 1
    while begin < end and (text[end - 1].isspace() or text[end - 1] == "\ufeff"):
        end -= 1
    return begin, end


def encode(tokenizer, text):
    """What the tokenizer makes of what is read of a text. Offsets are those in the whole text."""
    begin, end = bounds(text)
    made = tokenizer.backend_tokenizer.encode(text[begin:end])
    offsets = [(a + begin, b + begin) for a, b in made.offsets]
    kept = {name: getattr(made, name) for name in ("ids", "tokens", "special_tokens_mask", "word_ids")}
    return SimpleNamespace(offsets=offsets, **kept)


def first_from(visible, start):
    """The first of these positions that is not before `start`; the last one where there is none."""
    return visible[min(bisect_left(visible, start), len(visible) - 1)] if visible else 0


def piece_tokens(doc, offsets):
    """The index of the token that each piece belongs to: by its first character that is not white space."""
    text = doc.text[: bounds(doc.text)[1]]
    token_at = {}
    for token in doc:
        for position in range(token.idx, token.idx + len(token)):
            token_at[position] = token.i
    visible = [position for position in range(len(text)) if not text[position].isspace()]
    out, so_far = [], 0
    for start, _ in offsets:
        start = so_far = max(so_far, start)
        out.append(token_at[first_from(visible, start)])
    return out


def units(doc, offsets, segments):
    """Number the words: segments (lists of character positions) that a piece touches together are one word."""
    text = doc.text[: bounds(doc.text)[1]]
    of = {position: s for s, positions in enumerate(segments) for position in positions}
    parent = list(range(len(segments)))
    visible = [position for position in range(len(text)) if not text[position].isspace()]
    touched, so_far = [], 0
    for start, end in offsets:
        start = so_far = max(so_far, start)
        mine = [of[position] for position in visible[bisect_left(visible, start) : bisect_left(visible, end)]]
        if not mine:
            mine = [of.get(first_from(visible, start), 0)]
        touched.append(mine[0])
        for segment in range(min(mine), max(mine) + 1):
            parent[segment] = min(parent[segment], parent[min(mine)])

    def root(segment):
        while parent[segment] != segment:
            segment = parent[segment]
        return segment

    return [root(segment) for segment in touched]


def word_of_pieces(doc, encoding, words):
    text = doc[:].text
    kept = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    offsets = [encoding.offsets[i] for i in kept]
    if words == "tokenizer":
        ids = [encoding.word_ids[i] for i in kept]
        out, number = [], -1
        for i, word in enumerate(ids):
            if i == 0 or word is None or word != ids[i - 1]:
                number += 1
            out.append(number)
        return out
    if words == "piece":
        return list(range(len(kept)))
    if words == "spacy":
        return units(doc, offsets, [list(range(t.idx, t.idx + len(t))) for t in doc])
    runs, before = [], " "
    for position, character in enumerate(text):
        if not character.isspace():
            if before.isspace():
                runs.append([])
            runs[-1].append(position)
        before = character
    return units(doc, offsets, runs or [[0]])


def is_masked(metric, i, target, word):
    return {
        "original": i == target,
        "word_l2r": word[i] == word[target] and i >= target,
        "word_r2l": word[i] == word[target] and i <= target,
        "whole_word": word[i] == word[target],
        "sentence_l2r": i >= target,
        "unmasked": False,
    }[metric]


def read(doc, tokenizer, words, spans=()):
    """spans: The words that reach into one of these are one word."""
    encoding = encode(tokenizer, doc.text)
    kept = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    tokens = piece_tokens(doc, [encoding.offsets[i] for i in kept])
    word = word_of_pieces(doc, encoding, words)
    for span in spans:
        offsets = [encoding.offsets[i] for i in kept]
        reached = [w for w, (start, end) in zip(word, offsets) if start < span.end_char and end > span.start_char]
        word = [reached[0] if reached[0] <= w <= reached[-1] else w for w in word]
    return list(encoding.ids), kept, word, tokens


def log_probabilities(transformer, tokenizer, ids, positions):
    """The natural-log probability of the true id at every position, with those at `positions` masked."""
    masked = [tokenizer.mask_token_id if i in positions else id for i, id in enumerate(ids)]
    return _log_probabilities(transformer, tuple(masked), tuple(ids))


@lru_cache(maxsize=10_000)  # metrics and word units share many of their masked texts
def _log_probabilities(transformer, masked, ids):
    distributions = predict(transformer, masked)
    return [distributions[i, id].item() for i, id in enumerate(ids)]


def windows(word, size):
    """Where a long text is cut: each window has the whole words that fit, and the next one begins half a window on, or
    where the word after this one fits in.
    """
    begins = [i for i in range(len(word)) if i == 0 or word[i] != word[i - 1]]
    ends = [*begins[1:], len(word)]
    out, start = [], 0
    while True:
        end = max(end for end in ends if end <= start + size)
        out.append((start, end))
        if end == len(word):
            return out
        next_end = min(e for e in ends if e > end)
        start = min(b for b in begins if (b >= start + size // 2 or b == end) and next_end - b <= size)


def window_of(target, word, size, lookahead):
    """The window that scores a piece: with the most context on the poorer side of its word; where a score depends on no
    more than `lookahead` of the pieces that follow, with those and the most context before it.
    """
    mine = [i for i in range(len(word)) if word[i] == word[target]]

    def context(window):
        left, right = mine[0] - window[0], window[1] - 1 - mine[-1]
        return sorted((left, right)) if lookahead is None else (min(right, lookahead), left)

    return max((w for w in windows(word, size) if w[0] <= mine[0] and mine[-1] < w[1]), key=context)


@torch.inference_mode()
def predict(transformer, ids):
    """The natural-log probability of every id of the vocabulary at every position."""
    return transformer(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)


def score(doc, transformer, tokenizer, metric, words, spans=()):
    """The score of each piece and the token that each belongs to."""
    ids, kept, word, tokens = read(doc, tokenizer, words, spans)
    out = []
    for target in range(len(kept)):
        masked = {kept[i] for i in range(len(kept)) if is_masked(metric, i, target, word)}
        out.append(log_probabilities(transformer, tokenizer, ids, masked)[kept[target]])
    return out, tokens


def expect(doc, transformer, tokenizer, metric, words):
    """For each piece its id, and the natural-log probability of every id in its place: one pass per piece."""
    ids, kept, word, _ = read(doc, tokenizer, words)
    out = []
    for target in range(len(kept)):
        hidden = {kept[i] for i in range(len(kept)) if is_masked(metric, i, target, word)}
        masked = [tokenizer.mask_token_id if i in hidden else id for i, id in enumerate(ids)]
        out.append(predict(transformer, masked)[kept[target]].numpy())
    return [ids[i] for i in kept], out


def score_any_order(doc, transformer, tokenizer, words):
    """The same for `word_any_order`, by going through all k! orders of each word's k pieces."""
    ids, kept, word, tokens = read(doc, tokenizer, words)
    out = [0.0] * len(kept)

    @cache
    def answers(masked):
        return log_probabilities(transformer, tokenizer, ids, masked)

    for unit in sorted(set(word)):
        pieces = [i for i in range(len(kept)) if word[i] == unit]
        orders = list(permutations(pieces))
        for order in orders:
            for n, target in enumerate(order):
                still_masked = frozenset(kept[i] for i in order[n:])
                out[target] += answers(still_masked)[kept[target]] / len(orders)
    return out, tokens


def score_spaced(doc, transformer, tokenizer, metric, words, spacing):
    """The same with masked sets of different words in one pass, where they are `spacing` apart; and the passes.

    From left to right, each set joins the pass that has been open to it for longest.
    """
    ids, kept, word, tokens = read(doc, tokenizer, words)
    n = len(kept)
    sets = {}
    for target in range(n):
        masked = tuple(i for i in range(n) if is_masked(metric, i, target, word))
        sets.setdefault(masked, []).append(target)
    passes = []
    for masked in sorted(sets, key=lambda masked: (masked[0], masked[-1])):

        def opens(other, masked=masked):
            """The first piece from which a set of this one's word or a later one may be masked with another."""
            word_end = max(i for i in range(n) if word[i] == word[other[-1]]) + 1
            return max(other[-1] + spacing, word_end)

        open_ones = [one for one in passes if all(opens(other) <= masked[0] for other in one)]
        if open_ones:
            min(open_ones, key=lambda one: max(opens(other) for other in one)).append(masked)
        else:
            passes.append([masked])
    out = [0.0] * n
    for one in passes:
        union = {kept[i] for masked in one for i in masked}
        answers = log_probabilities(transformer, tokenizer, ids, union)
        for masked in one:
            for target in sets[masked]:
                out[target] = answers[kept[target]]
    return out, tokens, len(passes)


def score_grouped(doc, transformer, tokenizer, metric, words, margin, first_position=0, reach=10**6):
    """The same with a group for each masked set, by itself beside the unmasked text: ids, positions and a mask are
    given to transformers.

    first_position: What the model's position ids begin with.
    reach: Of what is masked so many pieces from the target or further, the group has nothing, and does not see it
        in the text; nor has it what stands behind that.
    """
    ids, kept, word, tokens = read(doc, tokenizer, words)
    n = len(ids)
    out = []
    for target in range(len(kept)):
        masked = {kept[i] for i in range(len(kept)) if is_masked(metric, i, target, word)}
        far = {i for i in masked if abs(i - kept[target]) >= reach}
        if metric == "whole_word" or len(masked) <= 16:  # which scores all of them with the same masks; or is short
            far = set()
        masked -= far
        beside = {
            i for m in masked for i in range(m - margin, m + margin + 1) if not far & {*range(i, m), *range(m, i)}
        }
        group = sorted(beside - far & set(range(n)))
        positions = [*range(n), *group]
        members = [tokenizer.mask_token_id if i in masked else ids[i] for i in group]
        sees = torch.zeros(len(positions), len(positions))
        for a in range(len(positions)):
            for b in range(len(positions)):
                if a < n:
                    sees[a, b] = b < n
                else:
                    sees[a, b] = b >= n or b not in {*group} | far
        slot = n + group.index(kept[target])
        logits = _with_mask(transformer, [*ids, *members], [p + first_position for p in positions], sees)[slot]
        out.append(logits.double().log_softmax(-1)[ids[kept[target]]].item())
    return out, tokens


@torch.inference_mode()
def _with_mask(transformer, ids, positions, sees):
    from transformers import __version__

    new = int(__version__.split(".")[0]) >= 5
    mask = torch.where(sees.bool(), 0.0, torch.finfo(torch.float32).min)[None, None] if new else sees[None]
    inputs = {"input_ids": torch.tensor([ids]), "position_ids": torch.tensor([positions]), "attention_mask": mask}
    return transformer(**inputs, token_type_ids=torch.zeros(1, len(ids), dtype=torch.long)).logits[0]


def score_by_states(doc, transformer, tokenizer, metric, words, margin, max_length, every=1):
    """The same of any architecture and of every so many pieces, in windows of `max_length` ids, with passes over one
    plain text alone.

    First the unmasked window is read, and the input of each attention is kept. Then the masked window is read, and at
    each attention the inputs outside the group are replaced by those. So the group attends to itself and to the
    unmasked text beside it: by the model's own code, masks and positions.
    """
    ids, kept, word, tokens = read(doc, tokenizer, words)
    before, pieces, after = ids[: kept[0]], [ids[i] for i in kept], ids[kept[-1] + 1 :]
    size = max_length - len(before) - len(after)
    contents, out = {}, []
    for target in range(0, len(kept), every):
        start, end = window = window_of(target, word, size, None)
        text = [*before, *pieces[start:end], *after]
        if window not in contents:
            contents[window] = states = []
            _with_states(transformer, text, lambda call, state, states=states: states.append(state))
        place = {i: len(before) + i - start for i in range(start, end)}
        masked = {place[i] for i in place if is_masked(metric, i, target, word)}
        group = [i for i in range(len(text)) if any(abs(i - m) <= margin for m in masked)]

        def put_in(call, state, states=contents[window], group=group):
            new = states[call].clone()
            new[:, group] = state[:, group]
            return new

        asked = [tokenizer.mask_token_id if i in masked else id for i, id in enumerate(text)]
        logits = _with_states(transformer, asked, put_in)[place[target]]
        out.append(logits.double().log_softmax(-1)[pieces[target]].item())
    return out, tokens


@torch.inference_mode()
def _with_states(transformer, ids, replace):
    """The logits, where each attention reads what `replace` returns instead of its input; as it is for None."""
    calls = count()

    def hook(module, args, kwargs):
        state = next(x for x in (*args, *kwargs.values()) if getattr(x, "shape", ())[:2] == (1, len(ids)))
        new = replace(next(calls), state)
        if new is not None:
            args = tuple(new if x is state else x for x in args)
            kwargs = {name: new if x is state else x for name, x in kwargs.items()}
        return args, kwargs

    attentions = {name: m for name, m in transformer.named_modules() if re.search("Attention$", type(m).__name__)}
    outer = [m for name, m in attentions.items() if not any(name.startswith(f"{other}.") for other in attentions)]
    hooks = [module.register_forward_pre_hook(hook, with_kwargs=True) for module in outer]
    try:
        return transformer(input_ids=torch.tensor([ids])).logits[0]
    finally:
        for hook in hooks:
            hook.remove()
