import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.metrics import MaskRows, get_metric
from spacy_pll.plan import Plan, group_contexts
from spacy_pll.wordpieces import Context

MASK = 99
METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r"]


def make_context(ids, word, scored=None):
    ids = np.array([1, *ids, 2], dtype=np.int32)
    scored = np.ones(len(word), dtype=bool) if scored is None else np.array(scored, dtype=bool)
    return Context(ids, 1, np.array(word), scored, 0, 0)


@st.composite
def contexts(draw):
    n = draw(st.integers(1, 8))
    word = np.cumsum([0] + draw(st.lists(st.integers(0, 1), min_size=n - 1, max_size=n - 1)))
    ids = draw(st.lists(st.integers(3, 6), min_size=n, max_size=n))
    return make_context(ids, word, draw(st.lists(st.booleans(), min_size=n, max_size=n)))


def fake_model(ids, position, target):
    """An answer that depends on the whole masked context, the position and the target."""
    return -float((np.arange(1, len(ids) + 1) * ids).sum() * 31 + position * 7 + target) / 1000


def answer(plan, **limits):
    answers = np.full(plan.n_questions, np.nan)
    for batch in plan.batches(**limits):
        for row, position, target, question in zip(batch.row, batch.position, batch.target, batch.question):
            assert np.isnan(answers[question])  # each is asked once
            answers[question] = fake_model(batch.ids[row, : batch.lengths[row]], position, target)
    return answers


def brute_force(context, metric):
    out = np.zeros(len(context.word))
    rows = get_metric(metric)(context.word)
    for target, masked in zip(rows.target, rows.masked):
        ids = context.ids.copy()
        ids[1:-1][masked] = MASK
        if context.scored[target]:
            out[target] += fake_model(ids, target + 1, context.ids[target + 1])
    return out


@given(
    contexts=st.lists(contexts(), max_size=6),
    names=st.lists(st.sampled_from(METRICS), min_size=1, max_size=4, unique=True),
    max_tokens=st.integers(1, 60),
    max_targets=st.integers(1, 10),
    pad=st.booleans(),
)
def test_scores_are_those_of_one_pass_a_target(contexts, names, max_tokens, max_targets, pad):
    plan = Plan(contexts, [get_metric(name) for name in names], MASK)
    limits = dict(max_tokens=max_tokens, max_targets=max_targets, pad_id=0, pad=pad)
    scores = plan.scores(answer(plan, **limits))
    if not contexts:
        return
    assert len(scores) == len(contexts)
    for context, found in zip(contexts, scores):
        np.testing.assert_allclose(found, [brute_force(context, name) for name in names])
    longest = np.inf
    for batch in plan.batches(**limits):
        assert len(batch.ids) == 1 or batch.ids.size <= max_tokens
        assert len(batch.ids) == 1 or len(batch.question) <= max_targets
        assert pad or len(set(batch.lengths)) == 1
        assert batch.lengths.max() == batch.ids.shape[1] <= longest
        longest = batch.ids.shape[1]
        for ids, length in zip(batch.ids, batch.lengths):
            assert (ids[length:] == 0).all()


def test_equal_masked_contexts_are_computed_once():
    metrics = [get_metric(name) for name in ("word_l2r", "original", "whole_word")]
    one_piece_words = make_context([10, 11, 12], [0, 1, 2])
    assert Plan([one_piece_words], metrics, MASK).n_rows == 3
    two_piece_word = make_context([10, 11, 12], [0, 1, 1])
    # the first word; original: 2 rows; word_l2r adds [MASK MASK]; whole_word asks for that one too
    assert Plan([two_piece_word], metrics, MASK).n_rows == 4
    # A minimal pair shares the row in which the word that differs is masked.
    pair = [make_context([10, 11, 12], [0, 1, 2]), make_context([10, 13, 12], [0, 1, 2])]
    plan = Plan(pair, metrics[:1], MASK)
    assert (plan.n_rows, plan.n_questions) == (5, 6)


def test_a_metric_may_average_over_several_rows_a_target():
    def both_neighbours(word):
        n = len(word)
        eye = np.eye(n, dtype=bool)
        masked = np.concatenate([eye | np.roll(eye, 1, axis=1), eye | np.roll(eye, -1, axis=1)])
        return MaskRows(np.tile(np.arange(n), 2), masked, np.full(2 * n, 0.5))

    context = make_context([10, 11, 12, 13], [0, 1, 2, 3])
    plan = Plan([context], [both_neighbours], MASK)
    [scores] = plan.scores(answer(plan, max_tokens=100, max_targets=100, pad_id=0))
    expected = []
    for t in range(4):
        values = []
        for other in ((t + 1) % 4, (t - 1) % 4):
            ids = context.ids.copy()
            ids[[t + 1, other + 1]] = MASK
            values.append(fake_model(ids, t + 1, context.ids[t + 1]))
        expected.append(np.mean(values))
    np.testing.assert_allclose(scores[0], expected)


@pytest.mark.parametrize("limit", [1, 20, 50, 10_000])
@pytest.mark.parametrize("n_metrics", [1, 3])
def test_groups_are_bounded_and_complete(limit, n_metrics):
    contexts = [make_context([5] * n, range(n)) for n in (3, 9, 1, 4, 4, 7)]
    seen = [np.zeros(len(context.word), dtype=int) for context in contexts]
    for group in group_contexts(contexts, n_metrics, limit):
        cost = sum(len(part) * n_metrics * part.scored.sum() for _, part in group)
        assert cost <= limit or (len(group) == 1 and group[0][1].scored.sum() == 1)
        for i, part in group:
            assert (part.ids == contexts[i].ids).all()
            seen[i] += part.scored
    assert all((counts == 1).all() for counts in seen)
