"""Texts that differ, and are the same to a tokenizer: said with counts, never an error, and never said of others."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, Option, Pair, choices, get_scorer, minimal_pairs, rescore, score_suite
from spacy_pll.evaluation.acceptability import Acceptability
from spacy_pll.evaluation.choices import ChoiceSuite
from spacy_pll.evaluation.suites import check_suite

from ..conftest import ALL_ARCHITECTURES, get_tokenizer, odd_text
from ..reference import encode

BARE, SPACED = "The traveler lost it.", "The  traveler  lost it."
LEFT = "The traveler left."
UNKNOWN = "One \u4e00.", "One \u4e8c."


def said(function, *arguments):
    """What is said of texts that are alike."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = function(*arguments)
    return found, [str(one.message) for one in caught if "same wordpieces" in str(one.message)]


def test_pairs_are_counted(make_nlp):
    pairs = [(BARE, LEFT), Pair(BARE, SPACED, {"id": 7}), UNKNOWN, (f"{BARE} ", BARE)]
    found, (message,) = said(minimal_pairs, make_nlp("bert"), pairs)
    assert message.startswith(
        f"Pair 2: both sentences differ, {BARE!r} and {SPACED!r}, but to the tokenizer of the model"
    )
    assert "as in 2 of 4 pairs" in message  # the last one is equal, of which another warning tells
    assert [set(one) for one in zip(*(found.suite.outcomes(one) for one in found.scores.values()))][1:] == [{0.5}] * 3
    found, (message,) = said(minimal_pairs, make_nlp("bert"), [UNKNOWN] * 2)  # all of them are no error
    assert "as in 2 of 2 pairs" in message and found.measurements()[0].value == 0.5


def test_a_tokenizer_that_keeps_what_differs_has_nothing_to_say(make_nlp):
    assert said(minimal_pairs, make_nlp("roberta"), [(BARE, LEFT), (BARE, SPACED), UNKNOWN])[1] == []


def test_options_and_their_contexts(make_nlp):
    nlp, before = make_nlp("bert"), "She said it again and again, on her way home, at work, and in her sleep. "
    items = [
        Choice([Option(LEFT, "One."), Option(BARE, "One."), Option(SPACED, "One.")]),  # of wrong ones as well
        Choice([Option(BARE, "One."), Option(BARE, LEFT)]),
        Choice([Option(BARE, f"{before}{UNKNOWN[0]}"), Option(BARE, f"{before}{UNKNOWN[1]}")]),
        Choice([Option("One", "The", after="a. "), Option("The", "", after="One a.")]),  # other pieces are scored
    ]
    (message,) = said(choices, nlp, items)[1]
    assert message.startswith("Choice 1: two options differ") and "as in 2 of 4 choices" in message
    (message,) = said(choices, nlp, items[2:])[1]
    assert message.startswith("Choice 1: two options differ, '…") and all(f"{one}'" in message for one in UNKNOWN)
    assert said(choices, nlp, items[3:])[1] == []


def test_texts_of_other_suites(make_nlp):
    suite = Acceptability([BARE, LEFT, SPACED, *UNKNOWN, LEFT], [True, False, True, False, True, False])
    found, (message,) = said(score_suite, make_nlp("bert"), suite)
    assert message.startswith(f"Two texts differ, {BARE!r} and {SPACED!r}, but") and "as in 2 of 5 texts" in message
    assert {one.measure for one in found.measurements()} > {"AUC"}


def test_hypotheses_need_not_differ(make_nlp):
    hypotheses = [{"text": text, "score": -1.0} for text in (BARE, SPACED)]
    assert said(rescore, make_nlp("bert"), [{"hypotheses": hypotheses}], 0.5)[1] == []


@pytest.mark.parametrize("architecture", ["bert", "roberta", "deberta-v2"])
def test_it_is_said_where_the_tokenizer_gives_the_same_ids(make_nlp, architecture):
    scorer, tokenizer = get_scorer(make_nlp(architecture)), get_tokenizer(ALL_ARCHITECTURES[architecture][3])
    changes = [
        ("", ""),
        (" ", "  "),
        (" ", "\n"),
        ("e", "E"),
        ("t", "\u4e00"),
        ("\u4e00", "\u4e8c"),
        ("o", "\u00f6"),
        (".", "\u200b."),
    ]

    @given(odd_text, st.sampled_from([BARE, "One \u4e00.", "a"]), st.sampled_from(changes))
    def of_any(odd, text, change):
        two = [text + odd, text.replace(*change) + odd]
        _, messages = said(check_suite, scorer, ChoiceSuite([Choice(list(map(Option, two)))]))
        ids = [encode(tokenizer, one).ids for one in two]
        assert len(messages) == (ids[0] == ids[1] and two[0].strip() != two[1].strip())

    of_any()
