import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.distillation.labels import MaskedSets, check_can_be_distilled, make_examples
from spacy_pll.metrics import get_metric, mask_nothing
from spacy_pll.scoring.plan import make_plans
from spacy_pll.scoring.windows import Context

pytestmark = pytest.mark.core

MASK, PAD = 1, 0
METRICS = ["original", "word_l2r", "word_r2l", "whole_word"]
lengths = st.lists(st.integers(1, 7), min_size=1, max_size=25)


def make_context(lengths):
    word = np.repeat(np.arange(len(lengths)), lengths)
    ids = np.concatenate([[2], 10 + np.arange(len(word)), [3]]).astype(np.int32)
    return Context(ids, 1, word, np.ones(len(word), dtype=bool), 0, 0)


def examples(contexts, metric="word_l2r", mask_spacing=None, seed=0, **more):
    few = dict(distance=4, passes=2, max_targets=10_000, mask_id=MASK, pad_id=PAD, rng=np.random.default_rng(seed))
    return make_examples(contexts, metric, mask_spacing, **{**few, **more})


@given(lengths, st.sampled_from(METRICS))
def test_the_sets_are_those_of_the_metric(lengths, metric):
    context = make_context(lengths)
    sets, rows = MaskedSets(metric, context.word), get_metric(metric)(context.word)
    for t in range(len(context.word)):
        ids = context.ids.copy()
        sets.mask(ids, 1, [t], MASK)
        masked = np.flatnonzero(ids == MASK) - 1
        np.testing.assert_array_equal(masked, np.flatnonzero(rows.masked[t]))
        assert (sets.first[t], sets.last[t]) == (masked[0], masked[-1])


@given(
    st.lists(lengths, min_size=1, max_size=4),
    st.sampled_from(METRICS),
    st.integers(1, 12),
    st.integers(1, 3),
    st.data(),
)
def test_what_is_masked_for_the_teacher_and_what_the_student_reads(texts, metric, distance, passes, data):
    contexts = [make_context(text) for text in texts]
    found = examples(contexts, metric, distance=distance, passes=passes, seed=data.draw(st.integers(0, 1000)))
    for row, context in enumerate(contexts):
        n = len(context)
        np.testing.assert_array_equal(found.student_ids[row, :n], context.ids)
        assert (found.student_ids[row, n:] == PAD).all() and found.student_lengths[row] == n
        masks = get_metric(metric)(context.word).masked
        for teacher_row in range(row * passes, (row + 1) * passes):
            mine = found.teacher_row == teacher_row
            assert mine.any() and (found.student_row[mine] == row).all()
            targets = found.position[mine] - context.first
            np.testing.assert_array_equal(found.target[mine], context.ids[found.position[mine]])
            ids = found.teacher_ids[teacher_row]
            assert found.teacher_lengths[teacher_row] == n and (ids[n:] == PAD).all()
            np.testing.assert_array_equal(
                np.flatnonzero(ids[1 : n - 1] == MASK), np.flatnonzero(masks[targets].any(axis=0))
            )
            # No two share a word, and masks of different words are apart.
            assert len(set(context.word[targets])) == len(targets)
            ends = [np.flatnonzero(masks[t])[[0, -1]] for t in targets]
            assert all(after[0] - before[1] >= distance for before, after in zip(ends, ends[1:]))


@given(lengths, st.sampled_from(METRICS), st.integers(1, 8), st.integers(0, 1000))
def test_a_few_pass_student_reads_one_of_the_passes_of_mask_spacing(lengths, metric, spacing, seed):
    context = make_context(lengths)
    found = examples([context], metric, spacing, seed)
    (plan,) = make_plans([context], [get_metric(metric)], MASK, spacing)
    passes = {
        batch.ids[row, : batch.lengths[row]].tobytes(): set(batch.position[batch.row == row])
        for batch in plan.batches(10_000, 10_000, PAD)
        for row in range(len(batch.ids))
    }
    student = found.student_ids[0].tobytes()
    assert student in passes and set(found.position) <= passes[student]


def test_the_plan_of_a_one_pass_student_is_what_it_was_trained_on():
    context = make_context([1, 3, 2])
    (plan,) = make_plans([context], [mask_nothing], MASK)
    (batch,) = plan.batches(10_000, 10_000, PAD)
    np.testing.assert_array_equal(batch.ids, examples([context]).student_ids)


def test_all_pieces_are_drawn_about_equally_often():
    context = make_context([1] * 60)
    counts = np.zeros(60)
    for seed in range(3000):
        np.add.at(counts, examples([context], distance=8, passes=1, seed=seed).position - 1, 1)
    # On average one piece in 12 is drawn: eight, and half as many more.
    assert counts.sum() / 3000 / 60 == pytest.approx(1 / 11.5, rel=0.1)
    assert counts.min() > 0.8 * counts.mean() and counts.max() < 1.2 * counts.mean()


def test_the_number_of_targets_is_limited():
    contexts = [make_context([2] * 30) for _ in range(4)]
    everything, some = examples(contexts, passes=4), examples(contexts, passes=4, max_targets=7)
    assert len(some.target) == 7 < len(everything.target)
    assert {*zip(some.teacher_row, some.position)} <= {*zip(everything.teacher_row, everything.position)}
    np.testing.assert_array_equal(some.target, contexts[0].ids[some.position])


@pytest.mark.parametrize("metric", ["sentence_l2r", "word_any_order", "causal"])
def test_metrics_that_cannot_be_distilled(metric):
    able = ", ".join(sorted(METRICS))
    with pytest.raises(ValueError, match=f"{metric}' cannot be distilled.*Give one of these: {able}"):
        check_can_be_distilled(metric)
    for one in METRICS:
        check_can_be_distilled(one)
