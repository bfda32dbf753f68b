import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.language_model.reading.text_alignment import align

from ...conftest import odd_text


def cut(text, places):
    return [text[start:end] for start, end in places]


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("The cat  sat.", ["The", "c", "at", "sat", "."], ["The", "c", "at", "sat", "."]),
        ("L'Été était", ["l", "'", "ete", "et", "ait"], ["L", "'", "Été", "ét", "ait"]),
        ("e\u0301te\u0301", ["é", "t", "é"], ["e\u0301", "t", "e\u0301"]),  # composed, as NFKC does
        ("e\u0301te\u0301", ["e", "te"], ["e", "te"]),
        ("ﬁne ½", ["f", "ine", "1", "⁄", "2"], ["ﬁ", "ﬁne", "½", "½", "½"]),
        ("ＡＢ１", ["ab", "1"], ["ＡＢ", "１"]),
        ("Straße İI", ["strasse", "i̇", "i"], ["Straße", "İ", "I"]),
        ("a\x00b\u200b c", ["a", "b", "c"], ["a", "b", "c"]),  # what has no shape is left out
        ("a\x00b", ["a", "\x00", "b"], ["a", "\x00", "b"]),  # or is not
        ("“Oui” … non–non", ['"', "oui", '"', ".", "..", "non", "-", "non"],
         ["“", "Oui", "”", "…", "…", "non", "–", "non"]),
        # Moses puts the full stop before the quotation mark: the two are one place for both.
        ('the "end". So', ["the", '"', "end", '."', "so"], ["the", '"', "end", '".', "So"]),
        ('the "end". So', ["the", '"', "end", ".", '"', "so"], ["the", '"', "end", '".', '".', "So"]),
        ("10\u00a0000", ["10", ".", "000"], ["10", "", "000"]),  # what was added has no place of its own
        ("--a", ["a"], ["a"]),
        ("", [], []),
        (" ", [], []),
        ("a", ["", "a", ""], ["", "a", ""]),
    ],
)  # fmt: skip
def test_places(text, pieces, expected):
    places = align(text, pieces)
    assert cut(text, places) == expected
    assert [start for start, _ in places] == sorted(start for start, _ in places)


@pytest.mark.parametrize(
    ("text", "pieces", "where"),
    [
        ("See www.example.org now", ["see", "HTTPURL", "now"], "See www.example.org now"),
        ("one two three four five six", ["one", "two", "three", "four", "five"], "our five six"),
        ("one", ["one", "two"], "'one'"),
        ("犬も", ["犬"], "犬も"),
    ],
)
def test_other_letters_are_an_error_that_shows_where(text, pieces, where):
    with pytest.raises(ValueError, match="it has other letters at") as raised:
        align(text, pieces)
    assert where in str(raised.value)


@given(odd_text, st.randoms(use_true_random=False), st.sampled_from(["", "NFC", "NFD", "NFKC", "lower", "bare"]))
def test_whatever_is_removed_the_places_are_right(text, draw, form):
    """Of pieces that were cut from a text after it was rewritten: each stands where its own characters came from."""
    rewritten, origins = [], []
    for i, character in enumerate(text):
        if form in ("NFC", ""):
            new = unicodedata.normalize("NFC", character) if form else character
        elif form == "bare":
            bare = unicodedata.normalize("NFD", character.lower())
            new = "".join(c for c in bare if unicodedata.category(c)[0] not in "MC" and c != "\ufffd")
        else:
            new = character.lower() if form == "lower" else unicodedata.normalize(form, character)
        rewritten += new
        origins += [i] * len(new)
    pieces, expected, i = [], [], 0
    while i < len(rewritten):
        n = draw.randint(1, 4)
        kept = [j for j in range(i, min(i + n, len(rewritten))) if not rewritten[j].isspace()]
        if kept:
            pieces.append("".join(rewritten[j] for j in kept))
            expected.append((origins[kept[0]], origins[kept[-1]] + 1))
        i += n
    assert align(text, pieces) == expected
