from functools import cached_property

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.arrays import Groups, begins, distinct, inverse, lazy, spread, up_to
from spacy_pll.language_model.running.group_attention import GroupAttention
from spacy_pll.scoring.groups import GroupBatch
from spacy_pll.scoring.passes import Batch

pytestmark = pytest.mark.core


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_numbers_from_each_first_one_on(ranges):
    first, count = (np.array([one[i] for one in ranges], dtype=int) for i in (0, 1))
    assert spread(first, count).tolist() == [number for a, n in ranges for number in range(a, a + n)]


@given(st.lists(st.integers(0, 4)))
def test_where_groups_begin_and_the_last_one_ends(count):
    assert up_to(np.array(count, dtype=int)).tolist() == [sum(count[:i]) for i in range(len(count) + 1)]


@given(st.lists(st.integers(0, 4)), st.data())
def test_groups_of_elements(lengths, data):
    parts, n = [], 0
    for length in lengths:
        parts.append(list(range(n, n + length)))
        n += length
    owner = [g for g, part in enumerate(parts) for _ in part]
    for groups in (
        Groups(np.array(lengths, dtype=int)),
        Groups.of(parts),
        Groups.by(np.array(owner, int), len(lengths)),
    ):
        assert len(groups) == len(lengths) and groups.lengths.tolist() == lengths
        assert (
            groups.edges.tolist() == [*groups.starts.tolist(), n] and groups.ends.tolist() == groups.edges[1:].tolist()
        )
        assert groups.owner.tolist() == owner
        assert groups.within.tolist() == [i for part in parts for i, _ in enumerate(part)]
        assert [list(range(n))[own] for own in groups] == parts
        assert [list(range(n))[groups[g]] for g in range(len(parts))] == parts
    some = data.draw(st.lists(st.integers(0, len(parts) - 1))) if parts else []
    assert groups.take(np.array(some, dtype=int)).tolist() == [i for g in some for i in parts[g]]
    first = np.array([i == 0 for part in parts for i, _ in enumerate(part)], dtype=bool)
    assert Groups.beginning(first).lengths.tolist() == [length for length in lengths if length]


def test_a_forked_process_waits_for_no_lock_of_a_thread_that_scores():
    """Before Python 3.12, `cached_property` has a lock, which a process that is forked meanwhile never gets."""
    for of in (Groups, Batch, GroupBatch, GroupAttention):
        assert not [name for name, one in vars(of).items() if type(one) is cached_property]


def test_what_is_computed_once():
    groups = Groups(np.array([1, 2]))
    assert groups.owner is groups.owner and isinstance(Groups.owner, lazy)


@given(st.permutations(range(6)))
def test_where_each_element_is_in_a_new_order(order):
    assert inverse(np.array(order))[order].tolist() == list(range(6))


@given(st.lists(st.integers(0, 2)))
def test_where_another_number_begins(numbers):
    expected = [i == 0 or numbers[i - 1] != number for i, number in enumerate(numbers)]
    assert begins(np.array(numbers, dtype=int)).tolist() == expected


@given(st.lists(st.integers(-3, 3)))
def test_which_numbers_there_are(numbers):
    first, index = distinct(np.array(numbers, dtype=int))
    assert [numbers[i] for i in first] == sorted(set(numbers))
    assert first.tolist() == [numbers.index(number) for number in sorted(set(numbers))]
    assert index.tolist() == [sorted(set(numbers)).index(number) for number in numbers]
