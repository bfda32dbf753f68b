import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.advice import giving


def said(function, *arguments, **more):
    """What a function returns, or gives one by one, and the warnings; each with the number of items before it."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        places = []
        for item in function(*arguments, **more) or ():
            found.append(item)
            places += [len(found) - 1] * (len(caught) - len(places))
        places += [len(found)] * (len(caught) - len(places))
    return found, [(str(one.message), place) for one, place in zip(caught, places, strict=True)]


def test_messages_that_are_there():
    assert said(giving.advise, None, "a", "", "b") == ([], [("a", 0), ("b", 0)]) and said(giving.advise) == ([], [])


@given(st.lists(st.booleans(), max_size=8), st.integers(1, 5))
def test_the_first_of_a_stream(odd, n):
    """All items come, and the guess is asked once, of the first ones."""
    asked = []

    def guess(first):
        asked.append([*first])
        return f"{sum(first)} of {len(first)}" if any(first) else None

    items, messages = said(giving.advised, iter(odd), guess, n)
    assert items == odd and asked == [odd[:n]]
    expected = (f"{sum(odd[:n])} of {len(odd[:n])}", n - 1 if n <= len(odd) else len(odd))
    assert messages == [expected] * any(odd[:n])


@given(st.lists(st.booleans(), max_size=8))
def test_each_of_a_stream(odd):
    """The first that looks odd has a warning before it, and others are not asked about."""
    asked = []
    items, messages = said(giving.advised_of_each, odd, lambda one: asked.append(one) or "odd" * one or None)
    first = odd.index(True) if True in odd else len(odd)
    assert items == odd and messages == [("odd", first)] * any(odd) and asked == odd[: first + 1]
    once, asked = giving.Once(), []
    for number, one in enumerate(odd):
        _, messages = said(once.advise, lambda one=one: asked.append(one) or "odd" * one or None)
        assert messages == [("odd", 0)] * (number == first)
    assert asked == odd[: first + 1]


@pytest.mark.parametrize(
    "watched",
    [
        lambda items: giving.advised(items, lambda first: None),
        lambda items: giving.advised_of_each(items, lambda one: None),
    ],
)
def test_a_stream_is_closed_with_what_reads_it(watched):
    closed = []

    def items():
        try:
            yield from range(giving.FIRST + 5)
        finally:
            closed.append(True)

    stream = watched(items())
    assert next(stream) == 0
    stream.close()
    assert closed


def test_a_guess_neither_warns_nor_fails():
    """What is made of its message is said in one module."""
    modules = {path.stem: path.read_text(encoding="utf8") for path in Path(giving.__file__).parent.glob("*.py")}
    assert len(modules) > 8
    assert [name for name, source in modules.items() if "user_warnings" in source] == ["giving"]
    assert [name for name, source in modules.items() if "raise " in source] == []
