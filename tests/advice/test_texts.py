import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.advice.giving import FIRST
from spacy_pll.advice.texts import MANY, path_as_text, single_words
from spacy_pll.corpus.inputs import read_all

from ..corpus.reading import read_input

BLANK = spacy.blank("en")


@example([("said", {"n": 1})] * 18 + [("said", {})] * 2, False)
@given(st.lists(st.sampled_from([("said", {"n": 1}), ("said", {}), ("He said", {"n": 1})]), max_size=60), st.booleans())
def test_nearly_all_texts_are_one_word(texts, as_docs):
    single = texts.count(("said", {"n": 1}))
    message = single_words([(BLANK(text), fields) if as_docs else (text, fields) for text, fields in texts])
    assert bool(message) == (len(texts) >= MANY and single > 0.9 * len(texts))
    assert not message or message.startswith(f"{single} of {len(texts)} texts are one word each, ")


@pytest.mark.parametrize("text", ["猫は眠る", "two words", "", "a" * 26, "ฉันอ่าน"])
def test_what_is_no_single_word(text):
    assert single_words([(text, {"n": 1})] * MANY) is None and single_words([(" said\n", {"n": 1})] * MANY)


def test_of_a_longer_input_the_first_texts_tell(tmp_path):
    """And no more are kept."""
    path = tmp_path / "a.csv"
    path.write_text("text,n\n" + "said,1\n" * FIRST + "He said,1\n" * FIRST * 2)
    with pytest.warns(UserWarning, match="^1,000 of the first 1,000 texts are one word each, "):
        assert max(read_all(read_input(path, vocab=BLANK.vocab))) == FIRST * 3
    path.write_text("text,n\n" + "He said,1\n" * FIRST + "said,1\n" * FIRST * 20)
    assert max(read_all(read_input(path, vocab=BLANK.vocab))) == FIRST * 21


def test_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts.csv").write_text("text\n")
    assert path_as_text("texts.csv").startswith("'texts.csv' is read as a text, and is the path of a file or folder. ")
    assert path_as_text(BLANK("texts.csv")) is path_as_text("other.csv") is None
