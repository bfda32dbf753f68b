from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.advice.items import (
    SEVERAL,
    begun_apart,
    copies,
    ended_apart,
    equal_options,
    judged_options,
    judged_sentences,
)
from spacy_pll.evaluation.items import Fields
from spacy_pll.stream.contexts import TextInContext

texts = st.sampled_from(["A cat.", "A cat", " A cat.", "*A cats", "?? A cats.", 'He said "no."', "*"])
options = st.builds(
    TextInContext, texts, st.sampled_from(["", "", "So: ", " So:"]), after=st.sampled_from(["", "", "!"])
)
choices = st.lists(st.lists(options, min_size=2, max_size=3), min_size=1, max_size=15)


def begins_with_space(option):
    return (option.context + option.text).startswith(" ")


@given(choices, st.data())
def test_choices_that_differ_in_what_was_perhaps_not_meant(choices, data):
    """By brute force; each message counts them, and names the first."""
    places, n = ([f"Choice {i}" for i in range(1, len(choices) + 1)], "choices"), len(choices)
    right = [data.draw(st.integers(0, len(of_one) - 1)) for of_one in choices]

    def differ(of_one, has):
        return len({has(option) for option in of_one}) > 1

    stops = [[one for one in of_one if not one.after] for of_one in choices]
    marked = [[one.text.startswith(("*A", "?? ")) for one in of_one] for of_one in choices]
    odd = {
        begun_apart: [differ(of_one, begins_with_space) for of_one in choices],
        ended_apart: [differ(of_one, lambda one: one.text.endswith((".", '"'))) and n >= SEVERAL for of_one in stops],
        judged_options: [any(of_one) and not of_one[k] for of_one, k in zip(marked, right)],
    }
    for guess, of_choices in odd.items():
        message = guess(choices, right, *places) if guess is judged_options else guess(choices, *places)
        assert bool(message) == any(of_choices)
        if message:
            assert message.startswith(f"Choice {of_choices.index(True) + 1}: ")
            share = "all" if guess is judged_options and all(of_choices) else f"{sum(of_choices)} of {n}"
            assert f"in {share} choices. " in message


def test_of_few_choices_all_may_be_meant_to_end_apart():
    choices = [[TextInContext("A cat."), TextInContext("A cat")]] * SEVERAL
    found = [ended_apart(choices[:n], ["line 1"] * n, "choices") for n in (SEVERAL - 1, SEVERAL)]
    assert found[0] is None and f"in {SEVERAL} of {SEVERAL} choices" in found[1]


@given(st.lists(texts, max_size=5), st.lists(texts, max_size=5))
def test_sentences_with_marks(bad, good):
    """None that is acceptable has one: then it is no judgment."""
    marked = [text.startswith(("*A", "?? ")) for text in bad]
    message = judged_sentences(bad, good, [f"line {i}" for i in range(len(bad))])
    assert bool(message) == (any(marked) and not any(text.startswith(("*A", "?? ")) for text in good))
    assert not message or message.startswith(f"line {marked.index(True)}: a mark such as * stands only before ")


@example(200, {1, 7})
@given(st.integers(1, 400), st.sets(st.integers(0, 399), max_size=6))
def test_choices_with_their_right_option_twice(n, equal):
    equal = sorted(i for i in equal if i < n)
    message = equal_options({i: f"two are equal, {i}" for i in equal}, [f"line {i}" for i in range(n)], "choices")
    assert bool(message) == (len(equal) > n / 100)
    if message:
        of = f"line {equal[0]}: two are equal, {equal[0]}, as in {len(equal)} of {n} choices. These are ties"
        assert message.startswith(of)


@given(st.dictionaries(st.sampled_from(["a.csv", "b.csv", "a.json", "c.tsv"]), st.sets(st.integers(0, 3), min_size=1)))
def test_files_with_the_same_items(files):
    items = [(Fields(f"{name}, line {i}", {}), number) for name, own in files.items() for i, number in enumerate(own)]
    named = {
        tuple(message.split(", so it")[0].removeprefix("All that is in ").split(" is also in "))
        for message in copies(items)
    }
    pairs = {(a, b) for a in files for b in files if a != b and a[-4:] != b[-4:] and files[a] <= files[b]}
    assert {frozenset(pair) for pair in named} == {frozenset(pair) for pair in pairs} and named <= pairs
    assert [*copies([({}, 1), ({}, 1)])] == []
