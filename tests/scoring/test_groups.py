"""Groups beside the content: who is in them, where they stand, and that nothing is lost when a pass is split."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.metrics import Metric, get_metric
from spacy_pll.scoring.groups import BLOCK, GroupBatch, filled, near_runs
from spacy_pll.scoring.masks import HIDDEN, MASKED, REACH, SEEN, runs_of
from spacy_pll.scoring.passes import Batch
from spacy_pll.scoring.windows import Context

from .planned import MASK, make_limits, plan_of_groups, plans_of

pytestmark = pytest.mark.core
NO_LIMITS = make_limits(10**6, 10**6)
METRICS = ["word_l2r", "original", "word_any_order"]


@st.composite
def contexts(draw):
    out = []
    for _ in range(draw(st.integers(1, 4))):
        lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=30))
        lengths += draw(st.lists(st.sampled_from([14, 25]), max_size=1))
        word = np.repeat(np.arange(len(lengths)), lengths)
        ids = np.array(draw(st.lists(st.integers(5, 40), min_size=len(word), max_size=len(word))), dtype=np.int32)
        scored = np.array(draw(st.lists(st.booleans(), min_size=len(word), max_size=len(word))))
        out.append(Context(np.array([1, *ids, 2], dtype=np.int32), 1, word, scored))
    return out


@given(st.integers(1, 12), st.integers(0, 14), st.randoms())
def test_a_group_has_what_is_masked_and_its_neighbours(length, margin, random):
    rows = [[random.choice([SEEN, SEEN, SEEN, MASKED, HIDDEN]) for _ in range(length)] for _ in range(3)]
    if random.random() < 0.5:
        rows = [[kind % HIDDEN for kind in row] for row in rows]
    masked = np.array(rows) == MASKED
    expected = [
        [
            any(
                row[j] == MASKED and abs(i - j) <= margin and HIDDEN not in row[min(i, j) : max(i, j) + 1]
                for j in range(length)
            )
            for i in range(length)
        ]
        for row in rows
    ]
    row, begin, end, hidden = runs_of(np.array(rows, dtype=np.int8))
    near_begin, near_end, near_row, holder = near_runs(row, begin, end, hidden, np.full(3, length), margin)
    row, begin, end = row[~hidden], begin[~hidden], end[~hidden]
    found = np.zeros(masked.shape, dtype=bool)
    for r, b, e in zip(near_row, near_begin, near_end):
        assert not found[r, b:e].any()
        found[r, b:e] = True
    np.testing.assert_array_equal(found, expected)
    assert (near_row[holder] == row).all() and (near_begin[holder] <= begin).all() and (end <= near_end[holder]).all()


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=1, max_size=40), st.integers(1, 20))
def test_containers_are_filled_one_after_the_other(things, capacity):
    expected, held = [], 0
    for i, (weight, of_next) in enumerate(things):
        new = i == 0 or of_next or held + weight > capacity
        expected.append(new)
        held = weight if new else held + weight
    weight, begins = (np.array(column) for column in zip(*things))
    begins[0] = True
    assert filled(weight, begins, capacity).tolist() == expected


def true_of(batch):
    return batch.read(np, batch.flat)[1]


def group_of(batch):
    return batch.read(np, batch.flat)[2]


def answer(batch):
    """What a model would say, if it said what is read and asked: a number for content, group and target."""
    out, (ids, true, groups, hidden), lengths = [], batch.read(np, batch.flat), batch.lengths
    for row, position, target in zip(batch.row, batch.position, batch.target):
        content, in_slots, group = ids[row, : lengths[row]], ids[row, lengths[row] :], groups[row]
        slots = np.flatnonzero(group == group[position - lengths[row]])
        # A group lies in one block, in the order of its positions, whole.
        assert len(set((slots // batch.block).tolist())) == 1
        members = true[row, lengths[row] + slots]
        assert (np.diff(members) > 0).all() and (np.diff(slots) == 1).all()
        assert ids[row, position] == MASK and content[true[row, position]] == target
        said = [*content, *members, *in_slots[slots], true[row, position], target]
        out_of_sight = [] if hidden is None else np.flatnonzero(hidden[row, group[slots[0]]]).tolist()
        assert not {*out_of_sight} & {*members.tolist()}
        out.append(hash(tuple(int(x) for x in [*said, len(said), *out_of_sight])) % 1_000_003 / 1000)
    return np.array(out)


@given(contexts(), st.integers(0, 5), st.integers(1, 400), st.integers(1, 50), st.booleans())
def test_scores_do_not_depend_on_how_groups_are_laid_out(contexts, margin, max_tokens, max_targets, pad):
    metrics = [get_metric(name) for name in METRICS]
    if not any(context.scored.any() for context in contexts):
        return
    limits = make_limits(max_tokens, max_targets, one_row=not pad)
    scores = plan_of_groups(contexts, metrics, margin, limits, reach=REACH).scores(answer)
    ends = np.cumsum([len(context.word) for context in contexts])
    found = np.split(scores, ends[:-1], axis=1)
    for c, context in enumerate(contexts):
        if not context.scored.any():
            assert not found[c].any()
            continue
        alone = plan_of_groups([context], metrics, margin, NO_LIMITS, reach=REACH).scores(answer)
        np.testing.assert_allclose(found[c], alone)


@given(contexts(), st.integers(0, 5))
def test_halves_ask_the_same(contexts, margin):
    if not any(context.scored.any() for context in contexts):
        return
    for batch in plan_of_groups(contexts, [get_metric("word_l2r")], margin, NO_LIMITS, reach=REACH).batches:
        parts, whole = [batch], answer(batch)
        while any(part.can_be_halved for part in parts):
            parts = [half for part in parts for half in (part.halves() if part.can_be_halved else (part,))]
            np.testing.assert_array_equal(np.concatenate([answer(part) for part in parts]), whole)
        assert all(group_of(part).shape == (1, part.block) for part in parts)


@given(contexts(), st.integers(0, 5))
@example([Context(np.array([1, *[5] * 30, 2], dtype=np.int32), 1, np.arange(30) // 15, np.ones(30, dtype=bool))], 0)
def test_groups_of_a_half_are_no_more_than_its_ids(contexts, margin):
    """A model may count something for each group (ESM its masks), in an array as long as a row."""
    if not any(context.scored.any() for context in contexts):
        return
    parts = plan_of_groups(contexts, [get_metric(name) for name in METRICS], margin, NO_LIMITS, reach=REACH).batches
    while parts:
        assert all(group_of(part).max() < part.width for part in parts)
        parts = [half for part in parts if part.can_be_halved for half in part.halves()]


def test_a_row_with_fewer_blocks_than_the_longest_one_is_halved():
    ids = [np.array([1, *[5] * n, 2], dtype=np.int32) for n in (23, 11)]
    long = Context(ids[0], 1, np.arange(23), np.arange(23) == 22)
    short = Context(ids[1], 1, np.repeat([0, 1, 2, 3], [1, 2, 4, 4]), np.array([0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1]) == 1)
    test_halves_ask_the_same.hypothesis.inner_test([long, short], 1)


def test_a_row_holds_the_context_once_and_equal_sets_are_one_group():
    context = Context(np.array([1, 7, 8, 9, 2], dtype=np.int32), 1, np.array([0, 1, 1]), np.ones(3, dtype=bool))
    metrics = [get_metric("word_l2r"), get_metric("original")]
    (batch,) = plan_of_groups([context], metrics, 0, NO_LIMITS).batches
    # word_l2r: [7], [8 9], [9]; original: [7], [8], [9].
    groups = {tuple(true_of(batch)[0, 5:][group_of(batch)[0] == g].tolist()) for g in range(group_of(batch).max() + 1)}
    assert groups == {(1,), (2, 3), (2,), (3,)}
    assert batch.ids[0, :5].tolist() == [1, 7, 8, 9, 2] and set(batch.ids[0, 5:].tolist()) == {MASK}
    assert batch.n_ids == batch.ids.size == 10 and batch.block == 5 <= BLOCK


def test_groups_of_many_texts_are_those_of_each_text():
    """With the sets of one text, the numbers of texts must not be taken for those of sets."""
    ids = [np.array([1, 5 + n // 40, 5 + n % 40, 7, 2], dtype=np.int32) for n in range(400)]
    contexts = [Context(one, 1, np.arange(3), np.ones(3, dtype=bool)) for one in ids]
    batches = plan_of_groups(contexts, [get_metric("original")], 0, make_limits(1000, 1000)).batches
    assert sum(len(batch.flat.member[batch.runs]) for batch in batches) == 3 * len(ids)


def test_a_group_that_is_the_whole_context_is_a_plain_row():
    n = 9
    context = Context(np.arange(10, 12 + n, dtype=np.int32), 1, np.arange(n), np.ones(n, dtype=bool))
    word_l2r = [get_metric("word_l2r")]
    sizes = {}
    for margin in (0, 5, 8, 9, 1000):
        plans = plans_of([context], word_l2r, mask_margin=margin)
        sizes[margin] = {plan.kind: plan.n_targets for plan in plans}
    assert sizes[0] == {GroupBatch: n}
    assert sizes[5] == {Batch: 1, GroupBatch: n - 1}  # the one in the middle sees five on each side, and all of it
    assert sizes[9] == sizes[1000] == {Batch: n}
    assert sizes[8][GroupBatch] == 2


def test_rows_and_groups_have_limits_of_their_own():
    contexts = [Context(np.arange(m, m + 11), 1, np.arange(9), np.ones(9, dtype=bool)) for m in (10, 30, 50, 70)]
    one_row = NO_LIMITS._replace(one_row=True)
    for limits, of_groups, expected in (
        (one_row, NO_LIMITS, {Batch: 4, GroupBatch: 1}),
        (NO_LIMITS, one_row, {Batch: 1, GroupBatch: 4}),
    ):
        plans = plans_of(contexts, [get_metric("word_l2r")], limits, of_groups, mask_margin=5)
        assert {plan.kind: len(plan.batches) for plan in plans} == expected


@given(
    contexts(), st.integers(0, 3), st.sampled_from(["word_l2r", "word_r2l", "original", "whole_word", "word_any_order"])
)
def test_a_metric_that_does_not_say_that_it_masks_within_words_has_the_same_groups(contexts, margin, name):
    """Its rows are made context by context. There, too, the masks of a long word do not reach further."""
    if not any(context.scored.any() for context in contexts):
        return

    def asked(metric):
        return plan_of_groups(contexts, [metric], margin, NO_LIMITS, reach=REACH).scores(answer)

    own = get_metric(name)
    np.testing.assert_allclose(asked(Metric(lambda word: own.function(word))), asked(own))
