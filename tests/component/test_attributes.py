"""The attributes that a doc has after the component: of which metrics, words, targets and spans."""

import warnings

import numpy as np
import pytest
import spacy

from ..conftest import PARAGRAPH, SENTENCES, scores

pytestmark = pytest.mark.usefixtures("real_english")


def test_words_of_english_have_the_scores_of_their_pieces(make_nlp):
    """spaCy divides them by its exceptions, at other places than the model's tokenizer."""
    nlp = make_nlp("bert", keep_pieces=True)
    doc = nlp("I'm gonna say y'all shouldn't've gone at 7pm, 'cause it wasn't Mr. O'Neil's.")
    assert {"gon", "na", "y'", "all", "'ve", "7", "pm", "'cause", "Mr."} <= {token.text for token in doc}
    record = doc._.pll_data
    for token in doc:
        own = [score for i, score in zip(record["token"], record["scores"]["word_l2r"], strict=True) if i == token.i]
        assert token._.pll == pytest.approx(sum(own)) and token._.pll_pieces == len(own)
    assert doc._.pll == pytest.approx(sum(record["scores"]["word_l2r"]))


def test_attributes(make_nlp):
    nlp = make_nlp(keep_pieces=True)
    doc = nlp("The traveler lost  the souvenir.")
    values = [token._.pll for token in doc]
    assert all(type(value) is float for value in values) and all(type(token._.pll_pieces) is int for token in doc)
    assert doc._.pll == pytest.approx(sum(values)) and doc._.pll < 0
    assert doc[4:6]._.pll == pytest.approx(values[4] + values[5])
    white_space = doc[3]
    assert white_space.is_space and white_space._.pll == 0.0 and white_space._.pll_pieces == 0
    data = doc._.pll_data
    assert doc._.pll_pieces == len(data["pieces"]) == len(data["token"])
    assert sum(data["scores"]["word_l2r"]) == pytest.approx(doc._.pll)
    assert doc._.pppl == pytest.approx(np.exp(-doc._.pll / doc._.pll_pieces))
    assert doc[4:6]._.pppl == pytest.approx(np.exp(-doc[4:6]._.pll / doc[4:6]._.pll_pieces))
    for piece, start, end, token in zip(data["pieces"], data["start"], data["end"], data["token"]):
        assert piece.removeprefix("##") == doc.text[start:end] or piece == "[UNK]"
        assert doc[token].idx <= start < doc[token].idx + len(doc[token])
    for part in (doc, doc[4:6], doc[4]):
        assert part._.pll_word_l2r == part._.pll


def test_several_metrics_each_have_a_name_and_the_first_is_primary(make_nlp):
    doc = make_nlp(metrics=["original", "word_l2r"])(SENTENCES[0])
    alone = make_nlp(metrics=["word_l2r"], attr="alone")(SENTENCES[0])
    for token, other in zip(doc, alone):
        assert token._.pll == token._.pll_original
        assert token._.pll_word_l2r == pytest.approx(other._.alone, abs=1e-5)
    assert doc._.pll == doc._.pll_original
    assert doc._.pll_word_l2r == pytest.approx(alone._.alone, abs=1e-4)
    assert doc[2:4]._.pll_word_l2r == pytest.approx(alone[2:4]._.alone, abs=1e-4)
    assert alone._.alone_pppl > 1 and alone._.alone_pieces == doc._.pll_pieces


def test_word_units_change_what_is_masked(make_nlp):
    # whitespace: "souvenir." is one word; tokenizer: "." is one of its own; spacy: "can't" is one word, else two
    text = "I can't lose the souvenir."
    found = {words: make_nlp(words=words)(text)._.pll for words in ("spacy", "tokenizer", "whitespace")}
    assert len({round(value, 4) for value in found.values()}) == 3


def test_targets_are_scored_and_the_rest_is_context(make_nlp):
    nlp = make_nlp(targets="here")
    whole = make_nlp()(SENTENCES[0])
    docs = [nlp.make_doc(SENTENCES[0]) for _ in range(2)]
    docs[0].spans["here"] = [docs[0][1:2], docs[0][4:5], docs[0][4:6]]
    with pytest.warns(UserWarning, match="no spans under `targets`, doc.spans\\['here'\\].*keys: none"):
        chosen, nothing = nlp.pipe(docs)
    for token, expected in zip(chosen, whole):
        if token.i in (1, 4, 5):
            assert token._.pll == pytest.approx(expected._.pll, abs=1e-5)
        else:
            assert token._.pll is None and token._.pll_pieces is None
    assert chosen._.pll == pytest.approx(sum(whole[i]._.pll for i in (1, 4, 5)), abs=1e-4)
    assert nothing._.pll is None and nothing[0:2]._.pppl is None


def test_two_components_in_one_pipeline(make_nlp):
    nlp = make_nlp("bert")
    make_nlp("roberta", nlp=nlp, name="pll2", attr="other")
    doc = nlp(SENTENCES[0])
    assert doc._.pll == pytest.approx(make_nlp("bert")(SENTENCES[0])._.pll, abs=1e-5)
    assert doc._.other != doc._.pll
    with pytest.raises(ValueError, match="component 'pll' already writes the attribute _.pll.*pll_2"):
        make_nlp("bert", nlp=nlp, name="pll3")
    assert nlp.pipe_names == ["pll", "pll2"]
    nlp.replace_pipe("pll2", "pll", config={"attr": "other"})


def test_a_long_doc_is_scored_whole(make_nlp):
    nlp = make_nlp(keep_pieces=True)
    doc = nlp(" ".join(SENTENCES[:4] * 10))
    assert all(token._.pll is not None for token in doc)
    tokenizer = nlp.get_pipe("pll").model.load().tokenizer
    encoding = tokenizer.encode(doc.text)
    assert doc._.pll_data["pieces"] == encoding.tokens[1:-1] and len(encoding.ids) > 3 * 128


def test_spans_of_sentences_and_strides(make_nlp):
    sentences = {"@span_getters": "spacy-pll.sent_spans.v1"}
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    doc = make_nlp(nlp=nlp, get_spans=sentences)(PARAGRAPH)
    separate = make_nlp()
    for sentence in doc.sents:
        assert sentence._.pll == pytest.approx(separate(sentence.text)._.pll, abs=1e-4)
    strided = make_nlp(get_spans={"@span_getters": "spacy-pll.strided_spans.v1", "window": 12, "stride": 6})
    doc = strided(PARAGRAPH)
    assert doc._.pll_pieces == separate(PARAGRAPH)._.pll_pieces
    assert all(token._.pll is not None for token in doc)


def test_a_doc_that_is_scored_again_keeps_nothing_of_before(make_nlp):
    doc = make_nlp(keep_pieces=True, distribution=True, metrics=["original"])(SENTENCES[0])
    again, other = make_nlp("roberta")(doc), make_nlp("roberta")(SENTENCES[0])
    assert again._.pll_data.keys() == other._.pll_data.keys() and len(again.user_data) == 1
    assert again._.pll_data["token"] == other._.pll_data["token"]
    assert scores(again) == pytest.approx(scores(other), abs=1e-4)
    assert again._.pll_original is again[0]._.pll_rank is None


def test_each_piece_may_be_a_word(make_nlp):
    """Then all metrics that mask within words are equal."""
    nlp = make_nlp(metrics=["word_l2r", "whole_word", "original"], words="piece", keep_pieces=True)
    scores = nlp(SENTENCES[0])._.pll_data["scores"]
    assert scores["word_l2r"] == scores["whole_word"] == scores["original"]
    assert scores["original"] != make_nlp(keep_pieces=True)(SENTENCES[0])._.pll_data["scores"]["word_l2r"]


def test_a_text_that_is_one_long_word_is_warned_of(make_nlp):
    text = "souvenir" * 12
    with pytest.warns(UserWarning, match="wordpieces is one word, so under word_l2r .* set `words` to 'piece'"):
        make_nlp(metrics=["original", "word_l2r"])(text)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "A text of")
        make_nlp(metrics=["original"])(text)
        make_nlp(words="piece")(text)
        make_nlp()("souvenir " * 40)
        unit = make_nlp(units="all")
        doc = unit.make_doc("souvenir " * 40)
        doc.spans["all"] = [doc[:]]
        unit(doc)
