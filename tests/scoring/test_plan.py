import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.metrics import MaskRows, Metric, get_metric

from .planned import MASK, fake_model, make_context, make_limits, plan_of, plans_of, scores_of

pytestmark = pytest.mark.core

METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r", "word_r2l", "word_any_order"]
WITHIN_WORDS = [name for name in METRICS if name != "sentence_l2r"]


@st.composite
def contexts(draw):
    n = draw(st.integers(1, 8))
    word = np.cumsum([0] + draw(st.lists(st.integers(0, 1), min_size=n - 1, max_size=n - 1)))
    ids = draw(st.lists(st.integers(3, 6), min_size=n, max_size=n))
    return make_context(ids, word, draw(st.lists(st.booleans(), min_size=n, max_size=n)))


def brute_force(context, metric):
    out = np.zeros(len(context.word))
    rows = get_metric(metric).mask_rows(context.word)
    for target, masked, weight in zip(rows.target, rows.masked, rows.weight):
        ids = context.ids.copy()
        ids[1:-1][masked] = MASK
        if context.scored[target]:
            out[target] += weight * fake_model(ids, target + 1, context.ids[target + 1])
    return out


@given(
    contexts=st.lists(contexts(), max_size=6),
    names=st.lists(st.sampled_from(METRICS), min_size=1, max_size=4, unique=True),
    max_tokens=st.integers(1, 60),
    max_targets=st.integers(1, 10),
    pad=st.booleans(),
)
def test_scores_are_those_of_one_pass_a_target(contexts, names, max_tokens, max_targets, pad):
    metrics = [get_metric(name) for name in names]
    limits = make_limits(max_tokens, max_targets, pads=pad)
    plans = plans_of(contexts, metrics, limits)
    assert len(plans) == any(context.scored.any() for context in contexts)
    for context, found in zip(contexts, scores_of(plans, contexts, len(names))):
        np.testing.assert_allclose(found, [brute_force(context, name) for name in names])
    if not plans:
        return
    [plan] = plans
    longest = np.inf
    assert plan.n_rows == plan_of(contexts, metrics).n_rows  # limits divide rows among passes, and no more
    for batch, following in zip(plan.batches, plan.batches[1:]):  # one more row would be too many, or is shorter
        assert (
            (batch.n_rows + 1) * batch.ids.shape[1] > max_tokens
            or len(batch.target) + (following.row == 0).sum() > max_targets
            or following.lengths[0] < batch.lengths[-1]
        )
    for batch in plan.batches:
        assert len(batch.ids) == 1 or batch.ids.size <= max_tokens
        assert len(batch.ids) == 1 or len(batch.target) <= max_targets
        assert pad or len(set(batch.lengths)) == 1
        assert batch.lengths.max() == batch.ids.shape[1] <= longest
        longest = batch.ids.shape[1]
        for ids, length in zip(batch.ids, batch.lengths):
            assert (ids[length:] == 0).all()


def test_equal_masked_contexts_are_computed_once():
    metrics = [get_metric(name) for name in ("word_l2r", "original", "whole_word")]
    one_piece_words = make_context([10, 11, 12], [0, 1, 2])
    assert plan_of([one_piece_words], metrics).n_rows == 3
    two_piece_word = make_context([10, 11, 12], [0, 1, 1])
    # the first word; original: 2 rows; word_l2r adds [MASK MASK]; whole_word asks for that one too
    assert plan_of([two_piece_word], metrics).n_rows == 4
    # A minimal pair shares the row in which the word that differs is masked.
    pair = [make_context([10, 11, 12], [0, 1, 2]), make_context([10, 13, 12], [0, 1, 2])]
    plan = plan_of(pair, metrics[:1])
    assert (plan.n_rows, plan.n_targets) == (5, 6)


def test_a_metric_may_average_over_several_rows_a_target():
    def both_neighbours(word):
        n = len(word)
        eye = np.eye(n, dtype=bool)
        masked = np.concatenate([eye | np.roll(eye, 1, axis=1), eye | np.roll(eye, -1, axis=1)])
        return MaskRows(np.tile(np.arange(n), 2), masked, np.full(2 * n, 0.5))

    context = make_context([10, 11, 12, 13], [0, 1, 2, 3])
    [scores] = scores_of([plan_of([context], [Metric(both_neighbours)])], [context], 1)
    expected = []
    for t in range(4):
        values = []
        for other in ((t + 1) % 4, (t - 1) % 4):
            ids = context.ids.copy()
            ids[[t + 1, other + 1]] = MASK
            values.append(fake_model(ids, t + 1, context.ids[t + 1]))
        expected.append(np.mean(values))
    np.testing.assert_allclose(scores[0], expected)


@given(
    contexts=st.lists(contexts(), max_size=5),
    names=st.lists(st.sampled_from(METRICS), min_size=1, max_size=3, unique=True),
    mask_spacing=st.none() | st.integers(1, 4),
    max_ids=st.integers(1, 400),
)
def test_plans_are_bounded_and_their_sums_are_those_of_one_plan(contexts, names, mask_spacing, max_ids):
    if mask_spacing is not None:
        names = [name for name in names if name in WITHIN_WORDS] or ["original"]
    metrics = [get_metric(name) for name in names]
    small = plans_of(contexts, metrics, mask_spacing=mask_spacing, max_ids=max_ids)
    if mask_spacing is None and set(names) <= {"original", "whole_word", "word_l2r", "word_r2l", "sentence_l2r"}:
        for plan in small:  # a word is not divided
            assert plan.n_ids <= max(max_ids, 8 * 10 * len(names))
    whole = scores_of(plans_of(contexts, metrics, mask_spacing=mask_spacing), contexts, len(metrics))
    for found, expected in zip(scores_of(small, contexts, len(metrics)), whole):
        np.testing.assert_allclose(found, expected)


def test_a_plan_is_filled_to_its_bound():
    contexts = [make_context([10 + i, 11, 12], [0, 1, 2]) for i in range(4)]  # three rows each, of five ids
    for max_ids, expected in [(60, [12]), (59, [11, 1]), (30, [6, 6]), (29, [5, 5, 2])]:
        plans = plans_of(contexts, [get_metric("original")], max_ids=max_ids)
        assert [plan.n_targets for plan in plans] == expected


def test_the_longest_contexts_are_planned_first():
    contexts = [make_context(np.arange(10, 10 + n), np.arange(n)) for n in (1, 4, 2)]
    plans = plans_of(contexts, [get_metric("original")], max_ids=30)
    assert [plan.n_ids for plan in plans] == [28, 7]


@pytest.mark.parametrize("names", [["word_l2r"], ["word_l2r", "original", "whole_word"]])
def test_metrics_share_rows_in_contexts_that_need_several_plans(names):
    context = make_context(np.arange(5, 65), np.arange(60) // 2)
    metrics = [get_metric(name) for name in names]
    plans = plans_of([context], metrics, max_ids=62 * 12)
    assert len(plans) > 4
    assert sum(plan.n_rows for plan in plans) == 60 * (1 + 0.5 * (len(names) > 1))
