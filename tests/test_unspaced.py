import pytest

from spacy_pll.unspaced import DIVIDED, UNSPACED, UNSPACED_CHARACTER, language_that_divides, script_of

LETTERS = {"字": "Chinese", "𠀀": "Chinese", "の": "Japanese", "ก": "Thai", "ກ": "Lao", "ཀ": "Tibetan", "က": "Burmese",
           "ក": "Khmer"}  # fmt: skip


@pytest.mark.parametrize("letter", LETTERS)
def test_the_script_of_a_letter(letter):
    assert UNSPACED_CHARACTER.fullmatch(letter) and script_of(f"It is {letter}.") == LETTERS[letter]
    lang = UNSPACED[LETTERS[letter]][1]
    assert (f"`lang={lang!r}`" in language_that_divides(letter)) is bool(lang) and DIVIDED == {"ja", "th", "zh"}


def test_japanese_has_letters_of_chinese_too():
    assert script_of("本のの") == script_of("の本") == "Japanese" and script_of("本") == "Chinese"
    assert not any(map(UNSPACED_CHARACTER.match, "aéя한ب. 1"))
