import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.metrics import MaskRows, Metric, get_metric, original
from spacy_pll.scoring import masks
from spacy_pll.scoring.windows import Context, Contexts

from ..test_metrics import WITHIN_WORDS
from .planned import MASK, make_context, plan_of, plans_of, scores_of

pytestmark = pytest.mark.core

lengths = st.lists(st.integers(1, 7), min_size=1, max_size=25)
spacings = st.integers(1, 12)


def words_of(lengths):
    return np.repeat(np.arange(len(lengths)), lengths)


def contexts_of(lengths, data):
    word = words_of(lengths)
    scored = data.draw(st.lists(st.booleans(), min_size=len(word), max_size=len(word)))
    return make_context(np.arange(len(word)) + 5, word, scored)


@given(lengths=lengths, spacing=spacings, data=st.data())
def test_passes_keep_their_distance_and_are_as_few_as_can_be(lengths, spacing, data):
    word = words_of(lengths)
    ends = np.cumsum(lengths)[word]
    first = np.array(data.draw(st.lists(st.integers(0, len(word) - 1), max_size=40)), dtype=int)
    last = np.array([data.draw(st.integers(i, int(ends[i]) - 1)) for i in first], dtype=int)
    passes = masks.share_passes(first, last, ends[first], spacing)
    for number in range(passes.max(initial=-1) + 1):
        mine = np.flatnonzero(passes == number)
        mine = mine[np.argsort(first[mine])]
        assert len(mine)
        assert (np.diff(word[first[mine]]) > 0).all()
        assert (first[mine][1:] - last[mine][:-1] >= spacing).all()
    blocked_until = np.maximum(last + spacing, ends[first])
    crowd = [((first <= i) & (i < blocked_until)).sum() for i in range(len(word))]
    assert passes.max(initial=-1) + 1 == max(crowd)


@given(lengths=lengths, spacing=spacings, data=st.data())
@pytest.mark.parametrize("name", WITHIN_WORDS)
def test_merged_rows_ask_everything_once_and_mask_nothing_else(name, lengths, spacing, data):
    context = contexts_of(lengths, data)
    exact = get_metric(name).mask_rows(context.word)
    expected = sorted(
        (int(t), tuple(np.flatnonzero(masked)), weight)
        for t, masked, weight in zip(exact.target, exact.masked, exact.weight)
        if context.scored[t]
    )
    found = []
    rows = masks.masked_rows(Contexts.of([context]), [get_metric(name)], spacing, MASK)
    for r in range(len(rows.source)):
        runs, mine = rows.run_row == r, rows.entries.row == r
        masked = np.zeros(len(context.word), dtype=bool)
        for begin, end in zip(rows.begin[runs] - 1, rows.end[runs] - 1):
            masked[begin:end] = True
        union = np.zeros(len(masked), dtype=bool)
        for t, weight in zip(rows.entries.piece[mine], rows.entries.weight[mine]):
            own = masked & (context.word == context.word[t])  # what is masked of the target's word
            union |= own
            found.append((int(t), tuple(np.flatnonzero(own)), weight))
        assert (masked == union).all()
        places = np.flatnonzero(masked)
        apart = np.diff(context.word[places]) > 0
        assert (np.diff(places)[apart] >= spacing).all()
    assert sorted(found) == expected


@given(lengths=lengths, spacing=spacings)
@pytest.mark.parametrize("name", ["original", "word_l2r", "word_r2l", "whole_word"])
def test_the_number_of_passes_does_not_grow_with_the_context(name, lengths, spacing):
    word = words_of(lengths)
    n_rows = plan_of([make_context(np.arange(len(word)) + 5, word)], [get_metric(name)], mask_spacing=spacing).n_rows
    assert n_rows <= spacing + 2 * (max(lengths) - 1)


def test_one_piece_words_take_as_many_passes_as_the_spacing_says():
    context = make_context(np.arange(400) + 5, np.arange(400))
    for name in WITHIN_WORDS:
        plans = [plan_of([context], [get_metric(name)], mask_spacing=n) for n in (1, 4, 8, 400)]
        assert [plan.n_rows for plan in plans] == [1, 4, 8, 400]
    several = [get_metric(name) for name in WITHIN_WORDS]
    assert plan_of([context], several, mask_spacing=8).n_rows == 8  # they ask for the same rows


def test_a_spacing_wider_than_the_context_is_exact():
    context = make_context(np.arange(12) + 5, words_of([1, 3, 2, 1, 5]))
    for name in WITHIN_WORDS:
        metrics = [get_metric(name)]
        exact, spaced = (scores_of([plan_of([context], metrics, mask_spacing=n)], [context], 1) for n in (None, 12))
        np.testing.assert_allclose(exact, spaced)


@pytest.mark.slow
@given(many=st.lists(lengths, min_size=1, max_size=4), spacing=spacings, max_ids=st.integers(1, 2000), data=st.data())
@pytest.mark.parametrize("name", WITHIN_WORDS)
def test_what_is_merged_depends_on_the_context_and_the_metric_alone(name, many, spacing, max_ids, data):
    contexts = [contexts_of(lengths, data) for lengths in many]
    names = [name, *data.draw(st.lists(st.sampled_from(WITHIN_WORDS), max_size=2))]
    plans = plans_of(contexts, [get_metric(name) for name in names], mask_spacing=spacing, max_ids=max_ids)
    together = scores_of(plans, contexts, len(names))
    for context, found in zip(contexts, together):
        [alone] = scores_of(plans_of([context], [get_metric(name)], mask_spacing=spacing), [context], 1)
        np.testing.assert_allclose(found[0], alone[0])


class Counted(np.ndarray):
    """Counts the elements that are looked at."""

    looked_at = 0

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        plain = [x.view(np.ndarray) if isinstance(x, Counted) else x for x in inputs]
        Counted.looked_at += max(map(np.size, plain))
        options = {name: value for name, value in options.items() if name != "out"}
        return getattr(ufunc, method)(*plain, **options)


def test_passes_of_many_contexts_are_shared_in_time_in_proportion():
    """The rows of each context were looked for among those of all."""
    counts = []
    for n in (50, 400):
        contexts = Contexts.of([make_context(np.arange(3) + 5, np.arange(3)) for _ in range(n)])
        metric = get_metric("word_l2r")
        rows = masks._rows_of_words(contexts, [(0, metric)])
        rows = replace(rows, source=rows.source.view(Counted))
        Counted.looked_at = 0
        assert len(masks._merge(contexts, metric, rows, 2)) == 2 * n
        counts.append(Counted.looked_at)
    assert 0 < counts[1] <= 10 * counts[0]


def test_a_long_context_is_planned_in_little_memory():
    word = words_of([1, 2, 1, 3] * 2_000)  # 14,000 pieces: a mask for each, as booleans, would be 196 MB
    context = make_context(np.arange(len(word)) % 1000 + 5, word)
    tracemalloc.start()
    try:
        plan = plan_of([context], [get_metric("word_l2r"), get_metric("word_any_order")], mask_spacing=8)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert plan.n_rows < 40
    assert peak < 50e6, peak


def of_another_package(masked_of, within_words=None):
    def metric(word):
        n = len(word)
        return MaskRows(np.arange(n), masked_of(word, n), np.ones(n))

    if within_words is not None:
        metric.within_words = within_words
    return Metric(metric)


def test_a_metric_that_does_not_say_what_it_masks_is_looked_at():
    context = make_context(np.arange(9) + 5, words_of([2, 3, 1, 3]))
    unknown = of_another_package(lambda word, n: np.triu(word[:, None] == word))
    own = get_metric("word_l2r")
    scores = [scores_of([plan_of([context], [m], mask_spacing=3)], [context], 1) for m in (unknown, own)]
    np.testing.assert_allclose(*scores)
    for masked_of in (
        lambda word, n: np.eye(n, dtype=bool) | np.eye(n, k=1, dtype=bool),  # of the next word too
        lambda word, n: np.zeros((n, n), dtype=bool),  # nothing
        lambda word, n: (word[:, None] == word) & ~np.eye(n, dtype=bool),  # all but the target
    ):
        with pytest.raises(ValueError, match="'metric' does not mask each scored piece.*Leave out `mask_spacing`"):
            plan_of([context], [of_another_package(masked_of)], mask_spacing=3)


@pytest.mark.parametrize("margin", [None, 0, 1])
def test_a_claim_of_a_metric_that_leaves_its_target_in_sight_is_found_out(margin):
    """With a margin it would be scored at a place of another group, or nowhere."""
    contexts = [make_context(np.arange(9) + 5, words_of([2, 3, 1, 3]))]
    for masked_of in (
        lambda word, n: np.zeros((n, n), dtype=bool),  # nothing is masked
        lambda word, n: (word[:, None] == word) & ~np.eye(n, dtype=bool),  # all but the target
    ):
        with pytest.raises(ValueError, match="'metric' says .* it has a row that does not mask the piece .* to False"):
            plans_of(contexts, [of_another_package(masked_of, within_words=True)], mask_margin=margin)
        assert plans_of(contexts, [of_another_package(masked_of, within_words=False)])


@pytest.mark.parametrize("spacing", [None, 3])
def test_an_untrue_claim_is_found_out(spacing):
    context = make_context(np.arange(9) + 5, words_of([2, 3, 1, 3]))
    for masked_of in (
        lambda word, n: np.triu(np.ones((n, n), dtype=bool)),
        lambda word, n: np.triu(word[:, None] == word) if n > 6 else np.eye(n, dtype=bool),  # depends on the context
        lambda word, n: np.eye(n, n if n > 6 else n + 1, dtype=bool),  # as long as the context, or longer
    ):
        metric = of_another_package(masked_of, within_words=True)
        with pytest.raises(ValueError, match="'metric' says that it masks within words, but .* to False"):
            plan_of([context], [metric], mask_spacing=spacing)


@pytest.mark.parametrize("k", range(1, 7))
def test_any_order_costs_a_pass_a_subset(k):
    context = make_context(np.arange(k) + 5, np.zeros(k, dtype=int))
    assert plan_of([context], [get_metric("word_any_order")]).n_rows == 2**k - 1


def test_a_metric_that_masks_nothing_is_one_row():
    n = 700
    context = Context(np.arange(n + 2), 1, np.arange(n), np.random.default_rng(0).random(n) < 0.7)
    rows = masks.masked_rows(Contexts.of([context]), [get_metric("causal")], None, MASK)
    assert rows.entries.piece.tolist() == np.flatnonzero(context.scored).tolist()
    assert rows.source.tolist() == [0] and not len(rows.run_row) and not rows.entries.row.any()


def test_what_is_not_wanted_stays_in_sight():
    """Of a word that lies partly in the context alone, and under metrics of whole contexts."""
    word, wanted = words_of([1, 3, 1, 2]), np.array([0, 0, 1, 1, 1, 0, 0], dtype=bool)
    context = Context(np.arange(5, 14), 1, word, wanted, wanted)
    for name in ("whole_word", "word_r2l", "word_any_order", "sentence_any_order", "original", "word_l2r"):
        [batch] = plan_of([context], [get_metric(name)]).batches
        masked = batch.ids == MASK
        assert masked.any() and not masked[:, 1:-1][:, ~wanted].any() and not masked[:, [0, -1]].any()
        if name == "whole_word":
            assert masked[:, 3:5].all(axis=1).any()
        if name == "sentence_any_order":  # all orders of the three pieces
            assert batch.n_rows == 2**3 - 1
    for name in ("sentence_l2r", "left_context"):  # hide what follows
        [batch] = plan_of([context], [get_metric(name)]).batches
        assert (batch.ids[batch.row, batch.lengths[batch.row] - 2] == MASK).all()


@pytest.mark.parametrize("name", WITHIN_WORDS)
def test_wanted_pieces_with_others_between_them(name):
    """They are masked as if the others were not there."""
    wanted, metric = np.array([1, 0, 1, 1, 0, 1], dtype=bool), get_metric(name)
    context = Context(np.arange(5, 13), 1, np.zeros(6, dtype=int), wanted, wanted)
    rows, place = metric.mask_rows(np.zeros(4, dtype=int)), 1 + np.flatnonzero(wanted)
    expected = {(int(place[t]), tuple(place[masked])) for t, masked in zip(rows.target, rows.masked)}
    found = set()
    for batch in plan_of([context], [metric]).batches:
        masked = [tuple(np.flatnonzero(ids == MASK)) for ids in batch.ids]
        found |= {(int(t), masked[row]) for row, t in zip(batch.row, batch.position)}
    assert found == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda rows: MaskRows(*(column[:-1] for column in rows[:3])),
            "'broken' has no row for piece 59 of a context of 60",
        ),
        (
            lambda rows: MaskRows(*(column[1:] for column in rows[:3])),
            "'broken' has no row for piece 0 of a context of 60",
        ),
        (lambda rows: rows._replace(weight=rows.weight / 2), "weights that sum to 0.5 for piece 0"),
        (lambda rows: rows._replace(weight=rows.weight * np.nan), "weights that sum to nan for piece 0"),
        (lambda rows: rows._replace(target=rows.target + 1), "a row for piece 60 of a context of 60"),
        (lambda rows: rows._replace(target=rows.target - 1), "a row for piece -1 of a context of 60"),
        (lambda rows: rows._replace(target=rows.target * 2), "a row for piece 60 of a context of 60"),
        (lambda rows: rows._replace(target=rows.target[1:]), r"int array `target`.*int64\(59,\), bool\(60, 60\)"),
        (
            lambda rows: rows._replace(target=rows.target[[0, 1, 2, 2]]),
            r"int array `target`.*int64\(4,\), bool\(60, 60\)",
        ),
        (lambda rows: rows._replace(weight=rows.weight[1:]), r"float array `weight`.*float64\(59,\)"),
        (lambda rows: rows._replace(weight=rows.weight[[0, 1, 2, 2]]), r"float array `weight`.*float64\(4,\)"),
        (lambda rows: rows._replace(masked=rows.masked[1:]), r"bool array `masked` \(rows, 60\).*bool\(59, 60\)"),
        (lambda rows: rows._replace(masked=rows.masked[[0, 1, 2, 2]]), r"bool array `masked`.*bool\(4, 60\)"),
        (lambda rows: rows._replace(masked=rows.masked[:, [0, 1, 2, 2]]), r"bool array `masked`.*bool\(60, 4\)"),
        (lambda rows: rows._replace(masked=rows.masked[:, 1:]), r"bool array `masked` \(rows, 60\).*bool\(60, 59\)"),
        (lambda rows: rows._replace(masked=rows.masked.astype(int)), r"bool array `masked`.*int64\(60, 60\)"),
        (lambda rows: rows._replace(target=rows.target + 0.0), r"int array `target`.*float64\(60,\)"),
    ],
)
def test_mask_rows_of_another_package_are_checked(change, problem):
    def broken(word):
        return change(original(word))

    with pytest.raises(ValueError, match=problem):
        plans_of([make_context([5, 6, 7], [0, 0, 1])], [Metric(broken)])
