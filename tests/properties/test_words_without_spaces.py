"""Figures by word, of text in scripts without spaces: whatever counts a clause as a word says so."""

import warnings

import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_pll import WordTable, make_pipeline, normalise, perplexity, score_words, to_dataframe, window_perplexities

CHINESE = "我们今天去学校上课"
LETTERS = "字𠀀のกກ"
texts = st.lists(st.sampled_from([*LETTERS, "字" * 7, "a", "é", " ", "word", ". "]), max_size=20).map("".join)


def make(model_folder, lang="en", **settings):
    # A metric to which it does not matter what is a word.
    folder = str(model_folder("roberta"))
    return make_pipeline(folder, metrics=["original"], mask_margin=0, keep_pieces=True, lang=lang, **settings)


@pytest.fixture(scope="module")
def nlp(model_folder):
    return make(model_folder)


def warned(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in caught if "counts as one word" in str(one.message)]


def table(doc, unit="spacy"):
    return to_dataframe(doc, words=WordTable(unit, log_frequency=False))


FIGURES = {
    "perplexity": (lambda nlp, text: perplexity(nlp, [text]), "perplexities per word"),
    "windows": (lambda nlp, text: window_perplexities(nlp, [text], 2), "windows"),
    "per_word": (lambda nlp, text: normalise(nlp(text), "per_word"), "`per_word`"),
    "tokens": (lambda nlp, text: table(nlp(text)), "the table"),
    "white space": (lambda nlp, text: table(nlp(text), "whitespace"), "the table"),
    "rows": (
        lambda nlp, text: score_words([{"word": one} for one in text.split()], nlp, log_frequency=False),
        "the table",
    ),
}


@pytest.mark.parametrize("way", FIGURES)
@example("word " + "字" * 8)
@example("字" * 7 + ". " + "字" * 7)
@given(texts)
def test_a_clause_is_warned_of_once_and_nothing_else_is(nlp, way, text):
    """A word with eight letters of such scripts; under byte-level BPE, each has several wordpieces."""
    run, figures = FIGURES[way]
    tokens = [token.text for token in nlp.make_doc(text)]
    words = tokens if way in ("perplexity", "per_word", "tokens") else text.split()
    has_clause = any(sum(letter in LETTERS for letter in word) >= 8 for word in words)
    found = warned(lambda: run(nlp, f"Ja {text}"))
    assert len(found) == has_clause and all(f" counts as one word in {figures}, since " in one for one in found)


@pytest.mark.parametrize("way", FIGURES)
def test_what_is_advised(nlp, model_folder, way):
    [message] = warned(lambda: FIGURES[way][0](nlp, f"He said {CHINESE} and left."))
    what = "A clause" if way == "per_word" else repr(CHINESE)
    assert (
        message.startswith(f"{what} counts as one word in ")
        and "since Chinese has no spaces between words. " in message
    )
    setting = "Set `lang='zh'` (spacy.blank('zh'), by character)"
    assert (setting in message) is (way not in ("rows", "windows"))
    # That text which is divided so has no warning.
    chinese = make(model_folder, "zh")
    if way == "white space":
        assert f"{setting} and `unit='spacy'`, or give each word a row of its own, with `score_words`." in message
        assert (
            warned(lambda: table(chinese(CHINESE))) == []
            and len(warned(lambda: table(chinese(CHINESE), "whitespace"))) == 1
        )
    elif way in ("windows", "rows"):
        assert warned(lambda: FIGURES[way][0](nlp, " ".join(CHINESE))) == []
    else:
        assert warned(lambda: FIGURES[way][0](chinese, CHINESE)) == []


def test_scripts_that_spacy_does_not_divide_and_other_units(nlp, model_folder):
    [message] = warned(lambda: perplexity(nlp, ["ຂ້ອຍອ່ານປຶ້ມສອງເທື່ອ"]))
    assert message.endswith("since Lao has no spaces between words. Compare values per wordpiece or per byte.")
    by_space = make(model_folder, words="whitespace")
    [message] = warned(lambda: perplexity(by_space, ["a", CHINESE, CHINESE * 2]))  # once
    assert message.endswith(
        "Set `lang='zh'` (spacy.blank('zh'), by character) and `words='spacy'`, or compare values per wordpiece or "
        "per byte."
    )
    assert warned(lambda: perplexity(make(model_folder, words="piece"), [CHINESE])) == []
    doc = Doc(spacy.blank("zh").vocab, words=[CHINESE])  # whoever divided it knows words
    assert warned(lambda: normalise(nlp(doc), "per_word")) == []


def test_texts_without_a_score_are_passed_over(nlp):
    assert warned(lambda: perplexity(nlp, ["", " \n", "a"])) == []
