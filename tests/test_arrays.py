import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.arrays import begins, bounds, distinct, spread

pytestmark = pytest.mark.core


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_numbers_from_each_first_one_on(ranges):
    first, count = (np.array([one[i] for one in ranges], dtype=int) for i in (0, 1))
    assert spread(first, count).tolist() == [number for a, n in ranges for number in range(a, a + n)]


@given(st.lists(st.integers(0, 4)))
def test_where_groups_begin_and_the_last_one_ends(count):
    assert bounds(np.array(count, dtype=int)).tolist() == [sum(count[:i]) for i in range(len(count) + 1)]


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
