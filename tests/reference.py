"""The plainest possible scorer, to check the fast one against: one forward pass a target, full logits, Python loops.

What is read is the text of the span `doc[:]`: white space after the last token is no part of it.

Written from Kauf & Ivanova (2023), section 3.1, without looking at how spacy_pll does it.
"""

import torch


def piece_tokens(doc, offsets):
    """The index of the token that each piece belongs to: by its first character that is not white space."""
    text = doc[:].text
    token_at = {}
    for token in doc:
        for position in range(token.idx, token.idx + len(token)):
            token_at[position] = token.i
    visible = [position for position in range(len(text)) if not text[position].isspace()]
    out, so_far = [], 0
    for start, _ in offsets:
        start = so_far = max(so_far, start)
        following = [position for position in visible if position >= start]
        out.append(token_at[(following or visible[-1:] or [0])[0]])
    return out


def units(doc, offsets, segments):
    """Number the words: segments (lists of character positions) that a piece touches together are one word."""
    text = doc[:].text
    of = {position: s for s, positions in enumerate(segments) for position in positions}
    parent = list(range(len(segments)))
    visible = [position for position in range(len(text)) if not text[position].isspace()]
    touched, so_far = [], 0
    for start, end in offsets:
        start = so_far = max(so_far, start)
        mine = [of[position] for position in visible if start <= position < end]
        if not mine:
            following = [position for position in visible if position >= start]
            mine = [of.get((following or visible[-1:] or [0])[0], 0)]
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
        "whole_word": word[i] == word[target],
        "sentence_l2r": i >= target,
    }[metric]


@torch.inference_mode()
def score(doc, transformer, tokenizer, metric, words):
    """The score of each piece and the token that each belongs to."""
    encoding = tokenizer.backend_tokenizer.encode(doc[:].text)
    kept = [i for i, special in enumerate(encoding.special_tokens_mask) if not special]
    word = word_of_pieces(doc, encoding, words)
    out = []
    for target in range(len(kept)):
        ids = list(encoding.ids)
        for i in range(len(kept)):
            if is_masked(metric, i, target, word):
                ids[kept[i]] = tokenizer.mask_token_id
        logits = transformer(input_ids=torch.tensor([ids])).logits[0, kept[target]].double()
        out.append(logits.log_softmax(-1)[encoding.ids[kept[target]]].item())
    return out, piece_tokens(doc, [encoding.offsets[i] for i in kept])
