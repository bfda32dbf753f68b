import warnings

from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.advice.words import FIRST_WORDS, WordAdvice

KNOWN, UNKNOWN, NUMBER = ("the", -3.0), ("und", None), ("747", None)


@example([[KNOWN] * 40 + [UNKNOWN] * 5, [KNOWN] * 5])
@given(st.lists(st.lists(st.sampled_from([KNOWN] * 6 + [UNKNOWN, NUMBER]), max_size=30), max_size=8))
def test_the_first_words_tell_the_language(docs):
    """Whole docs are counted, until there are so many words with a letter."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        advice = WordAdvice()
        for doc in docs:
            advice.of_english(doc)
    counted = []
    for doc in docs:
        if len(counted) < FIRST_WORDS:
            counted += [word for word in doc if word != NUMBER]
    unknown = counted.count(UNKNOWN)
    assert [str(one.message).partition(" words")[0] for one in caught] == [f"{unknown} of the first {len(counted)}"] * (
        len(counted) >= FIRST_WORDS and unknown > len(counted) / 10
    )
