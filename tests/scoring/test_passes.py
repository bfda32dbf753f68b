import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.scoring.passes import divide

from .planned import make_limits, plans_of
from .test_plan import METRICS, contexts

pytestmark = pytest.mark.core


@given(
    rows=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=30),
    max_tokens=st.integers(1, 300),
    max_targets=st.integers(1, 20),
    pass_cost=st.integers(0, 100),
)
def test_passes_cost_no_more_than_others_that_are_full_or_end_before_shorter_rows(
    rows, max_tokens, max_targets, pass_cost
):
    length, n_targets = (np.array(column) for column in zip(*sorted(rows, reverse=True)))
    first_target = np.append(0, np.cumsum(n_targets))
    passes = divide(length, first_target, make_limits(max_tokens, max_targets, pass_cost=pass_cost))

    def cost(begin, end):
        return length[begin] * (end - begin) + pass_cost

    def fits(begin, end):
        n = first_target[end] - first_target[begin]
        return end - begin == 1 or (length[begin] * (end - begin) <= max_tokens and n <= max_targets)

    cheapest = {len(rows): 0}
    for begin in reversed(range(len(rows))):
        ends = [end for end in range(begin + 1, len(rows) + 1) if fits(begin, end)]
        ends = [end for end in ends if end == ends[-1] or length[end] < length[end - 1]]
        cheapest[begin] = min(cost(begin, end) + cheapest[end] for end in ends)
    assert [0, *(end for _, end in passes)] == [*(begin for begin, _ in passes), len(rows)]
    assert all(fits(begin, end) for begin, end in passes)
    assert sum(cost(begin, end) for begin, end in passes) == cheapest[0]


def test_a_pass_ends_early_where_padding_would_cost_more_than_another_pass():
    length = np.array([300] * 3 + [20] * 10)
    assert divide(length, np.arange(14), make_limits(2048, 100)) == [(0, 3), (3, 13)]
    assert divide(np.array([30] * 3 + [20] * 9), np.arange(13), make_limits(2048, 100)) == [(0, 12)]


@given(contexts=st.lists(contexts(), min_size=1, max_size=5), names=st.lists(st.sampled_from(METRICS), min_size=1))
def test_halves_of_a_pass_have_the_same_targets(contexts, names):
    def targets(batch):
        for row, position, target in zip(batch.row, batch.position, batch.target, strict=True):
            yield target, position, batch.ids[row, : batch.lengths[row]].tolist()

    def quarters(batch):
        if not batch.can_be_halved:
            return [batch]
        first, second = batch.halves()
        assert max(first.n_rows, second.n_rows) < batch.n_rows or batch.n_rows == 1
        assert min(first.n_targets, second.n_targets) > 0
        return [*quarters(first), *quarters(second)]

    for plan in plans_of(contexts, dict.fromkeys(names)):
        for batch in plan.batches:
            parts = quarters(batch)
            assert [each for part in parts for each in targets(part)] == list(targets(batch))
            assert all(part.ids.shape == (1, part.lengths[0]) and len(part.target) == 1 for part in parts)
