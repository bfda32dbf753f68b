"""Warnings where a model was not trained on such text."""

import warnings
from dataclasses import replace

import pytest
import spacy
from spacy.tokens import Doc
from spacy.vocab import Vocab

from spacy_pll import compare
from spacy_pll.language_model.protocol import Description

from .conftest import SENTENCES

ARABIC = "مرحبا بالعالم الواسع"


def warned(nlp, texts, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = list(nlp.pipe(texts, **options))
    assert all(doc._.pll is not None for doc in docs)
    return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]


@pytest.mark.parametrize("lang", ["en", "xx"])
def test_no_warning_where_the_language_fits_or_is_not_known(lang):
    nlp = spacy.blank(lang)
    nlp.add_pipe("pll")
    assert warned(nlp, ["the cat sleeps"]) == []
    assert warned(nlp, [Doc(Vocab(), words=["cat"])]) == []  # of no language


def test_the_languages_of_other_models_are_not_known(make_nlp):
    assert warned(make_nlp("roberta", nlp=spacy.blank("de")), ["die Katze"]) == []


def test_the_built_in_model_is_for_english():
    english, arabic = spacy.blank("en"), spacy.blank("ar")
    for nlp in (english, arabic):
        nlp.add_pipe("pll")
    assert warned(english, SENTENCES[:4]) == warned(english, ["Café! 😀 The naïve café sells crème brûlée."]) == []
    language, unknown = warned(arabic, [ARABIC])
    assert "language of the pipeline is 'ar'" in language and "that of the built-in model is 'en'" in language
    assert "3 of 3 wordpieces are unknown to the tokenizer of the built-in model" in unknown
    assert "such as 'مرحبا'" in unknown and "Give a `model`" in unknown
    assert warned(arabic, [ARABIC]) == []


def test_warnings_are_short_and_point_at_the_line_that_scores(make_nlp):
    ways = [
        lambda nlp: nlp("x" * 9999),
        lambda nlp: list(nlp.pipe(["x" * 9999])),
        lambda nlp: compare(nlp, "字", "字"),
    ]
    for way in ways:
        with pytest.warns(UserWarning, match="wordpieces are unknown") as caught:
            way(make_nlp("bert"))
        assert [warning.filename for warning in caught] == [__file__] and len(str(caught[0].message)) < 400


@pytest.mark.parametrize(("n_known", "n_messages"), [(8, 1), (9, 0)])
def test_more_than_a_tenth_of_a_batch(make_nlp, n_known, n_messages):
    nlp = make_nlp("bert")
    texts = ["a"] * n_known + ["字"]
    messages = warned(nlp, texts)
    assert len(messages) == n_messages and all(f"1 of {n_known + 1} wordpieces" in message for message in messages)


def test_a_tokenizer_that_knows_every_byte(make_nlp):
    nlp = make_nlp("roberta")
    nlp.initialize()
    assert nlp.get_pipe("pll").model.load().unknown_id is not None
    assert warned(nlp, [ARABIC, *SENTENCES]) == []


def test_a_model_with_neither_languages_nor_an_unknown_piece(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    monkeypatch.setattr(model, "describe", lambda: Description("a model"))
    assert len(warned(nlp, [ARABIC])) == 1
    nlp.get_pipe("pll").predictor.warnings.warned.clear()
    model.loaded = replace(model.loaded, unknown_id=None)
    assert warned(nlp, [ARABIC]) == []


def test_a_character_that_is_unknown_again_and_again_however_many_pieces_there_are():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    text = "We saw it on the way home, and nobody knew why it was there 🙂."
    assert warned(nlp, [text] * 9, batch_size=4) == []
    [message] = warned(nlp, [text])
    assert "'🙂' (U+1F642) is unknown to the tokenizer of the built-in model" in message and "10 wordpieces" in message
    assert warned(nlp, [text] * 20) == []  # once
    # Of a word, it is the letter. Its other letters are known.
    [message] = warned(nlp, ["The people of Łódź have known it for more than a hundred years, and say so."] * 10)
    assert "'ź' (U+017A)" in message


def test_not_all_characters_are_warned_of():
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    texts = [f"We saw it on the way home, and nobody knew why it was there {chr(0x1F600 + i)}." for i in range(30)]
    assert len(warned(nlp, texts * 11)) == 10


@pytest.mark.parametrize("has_units", [False, True])
def test_a_text_that_is_one_long_word_is_warned_of_unless_its_words_are_given(make_nlp, has_units):
    nlp = make_nlp("bert", units="units")
    doc = nlp.make_doc("ven" * 31)
    doc.spans["units"] = [doc[:]] if has_units else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        nlp(doc)
    assert any("wordpieces is one word" in str(one.message) for one in caught) is not has_units
