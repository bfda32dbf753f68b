"""What the fuzzer (scripts/checks/fuzz.py) and the seeded run (tests/properties/test_fuzz.py) both do with some bytes.

The first bytes choose tokenizer, word unit, window, batch limits, metrics and spans; the rest is the text. Alignment is
held against the plain reference, the plan against one pass a target.
"""

import warnings

import numpy as np
import spacy

from spacy_pll.scoring.windows import Context

from .conftest import TINY_TOKENIZERS, UNITS, get_tokenizer
from .scoring.planned import MASK, fake_model, make_limits, metrics_of, plans_of, scores_of
from .scoring.reading import read
from .scoring.test_wordpieces import check_alignment
from .test_metrics import METRICS

CHOICES = 12  # how many bytes choose the settings
nlp = spacy.blank("en")


def check(data: bytes):
    """RAISES (AssertionError, or any other): A defect."""
    with nlp.memory_zone():  # the vocabulary would keep the words of all these texts
        _check(data)


def _check(data: bytes):
    choice = [*data[:CHOICES], *[0] * (CHOICES - len(data))]
    doc = nlp.make_doc(data[CHOICES:].decode("utf8", "ignore"))
    if not len(doc):
        return
    tokenizer = get_tokenizer([*TINY_TOKENIZERS][choice[0] % len(TINY_TOKENIZERS)])
    unit = UNITS[choice[1] % len(UNITS)]
    check_alignment(doc, tokenizer, unit)
    spans = _spans(doc, choice[2:6])
    wanted = None if choice[6] % 2 else np.arange(len(doc)) % (1 + choice[6] // 2) == 0
    max_length = 3 + choice[7]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of words that are longer than the window
        wordpieces, contexts, covered = read(doc, spans, tokenizer.backend_tokenizer, unit, wanted, max_length)
    check_contexts(doc, spans, wordpieces, wanted, max_length, contexts, covered)
    metrics = [metric for i, metric in enumerate(METRICS) if choice[8] >> i & 1] or METRICS[:1]
    check_plan(contexts, metrics, 1 + 8 * choice[9], 1 + choice[10], bool(choice[11] % 2), 200 + 400 * choice[9])


def _spans(doc, choice):
    """The whole doc, or overlapping windows of tokens."""
    if choice[0] % 2:
        return [doc[:]]
    size, step = 1 + choice[1] % 40, 1 + choice[2] % 40
    begin = choice[3] % len(doc)
    return [doc[start : start + size] for start in range(begin, len(doc), step)]


def check_contexts(doc, spans, wordpieces, wanted, max_length, contexts, covered):
    seen = [np.zeros(pieces.n, dtype=int) for pieces in wordpieces]
    for context in contexts:
        pieces = wordpieces[context.span]
        assert context.length <= max_length and context.scored.any()
        own = slice(context.offset, context.offset + len(context.word))
        assert [*pieces.prefix, *pieces.ids[own], *pieces.suffix] == context.ids.tolist()
        seen[context.span][context.offset + np.flatnonzero(context.scored)] += 1
    inside = np.zeros(len(doc), dtype=bool)
    for span in spans:
        inside[span.start : span.end] = True
    assert (covered == (inside if wanted is None else inside & wanted)).all()
    assert all((counts <= 1).all() for counts in seen)
    # A token's pieces are all scored in one span, and in one only.
    for token in range(len(doc)):
        # White space before the targets is context.
        own = [(pieces.token == token) & ((pieces.end > pieces.start) | (wanted is None)) for pieces in wordpieces]
        scored_in = [i for i, mine in enumerate(own) if seen[i][mine].any()]
        holding = [i for i, mine in enumerate(own) if mine.any()]
        assert len(scored_in) <= (1 if covered[token] else 0)
        for i in scored_in:
            assert (seen[i][own[i]] == 1).all()
        if covered[token] and len(spans) == 1:
            assert scored_in == holding


def check_plan(contexts, names, max_tokens, max_targets, pad, max_ids):
    contexts = [Context(c.ids, c.first, c.word, c.scored, c.to_score) for c in contexts]
    plans = plans_of(contexts, names, make_limits(max_tokens, max_targets, pads=pad), max_ids=max_ids)
    for batch in (batch for plan in plans for batch in plan.batches):
        assert batch.n_rows == 1 or batch.size <= max_tokens and batch.n_targets <= max_targets
    for context, scores in zip(contexts, scores_of(plans, contexts, len(names)), strict=True):
        for name, metric, values in zip(names, metrics_of(names), scores):
            expected = np.zeros(len(context.word))
            n, asked = len(context.word), np.flatnonzero(context.to_score | (not metric.shows_what_follows))
            rows = metric.mask_rows(context.word[asked])
            masked = np.zeros((len(rows.masked), n + rows.masked.shape[1] - len(asked)), dtype=bool)
            masked[:, [*asked, *range(n, masked.shape[1])]] = rows.masked
            rows = rows._replace(target=asked[rows.target], masked=masked)
            removed = np.zeros((len(rows.masked), n), dtype=bool) if rows.removed is None else rows.removed
            before, pieces, behind = np.split(context.ids, [context.first, context.first + n])
            for target, masked, weight, gone in zip(*rows[:3], removed):
                kept = np.where(masked[:n], MASK, pieces)[~gone]
                ids = np.concatenate([before, kept, np.full(masked[n:].sum(), MASK), behind]).astype(context.ids.dtype)
                position = context.first + int((~gone[:target]).sum())
                if context.scored[target]:
                    expected[target] += weight * fake_model(ids, position, pieces[target])
            np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-9, err_msg=name)
