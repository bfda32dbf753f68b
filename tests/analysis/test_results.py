"""`spacy_pll.score`: from texts to typed results."""

import dataclasses

import numpy as np
import pytest

import spacy_pll
from spacy_pll import to_dataframe

from ..conftest import SENTENCES

TEXTS = [*SENTENCES[:3], " ", ""]


@pytest.fixture
def model(model_folder):
    return str(model_folder("bert"))


@pytest.mark.parametrize("metrics", [None, ["original"], ["word_l2r", "original"]])
def test_results_are_what_the_docs_have(model, make_nlp, metrics):
    nlp = make_nlp("bert", metrics=metrics or ["word_l2r"])
    results = spacy_pll.score(iter(TEXTS), model, metrics, batch_size=2)
    for doc, result in zip(nlp.pipe(TEXTS), results, strict=True):
        assert (result.text, result.pieces) == (doc.text, doc._.pll_pieces or 0)
        assert list(result.scores) == (metrics or ["word_l2r"]) and result.score == next(iter(result.scores.values()))
        if result.pieces:
            assert result.score == pytest.approx(doc._.pll, abs=1e-5) and result.pppl == pytest.approx(doc._.pppl)
            assert result.score == pytest.approx(sum(token.score for token in result.tokens if token.pieces))
        else:
            assert result.score is result.pppl is None and not any(result.scores.values())
        for token, found in zip(doc, result.tokens, strict=True):
            assert (found.text, found.start, found.pieces) == (token.text, token.idx, token._.pll_pieces)
            if metrics and len(metrics) > 1:
                assert found.scores["original"] == (
                    pytest.approx(token._.pll_original, abs=1e-5) if found.pieces else None
                )
    assert list(results) == []  # read once


def test_results_are_read_as_they_are_asked_for(model):
    read = []

    def texts():
        for text in SENTENCES * 3:
            read.append(text)
            yield text

    results = spacy_pll.score(texts(), model, batch_size=2)
    assert not read
    first = next(results)
    assert first.text == SENTENCES[0] and len(read) < len(SENTENCES) * 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.text = "another"


def test_a_data_frame_of_texts_or_of_tokens(model, make_nlp):
    frame = spacy_pll.score(TEXTS, model, ["word_l2r", "original"]).to_dataframe()
    assert list(frame.columns) == ["text", "pll_word_l2r", "pll_original", "pll_pieces", "pppl"]
    assert list(frame["text"]) == TEXTS
    assert list(map(str, frame.dtypes[1:])) == ["float64", "float64", "int64", "float64"]
    assert frame["pll_original"].isna().tolist() == [False] * 3 + [True] * 2
    docs = list(make_nlp("bert").pipe(TEXTS))
    np.testing.assert_allclose(frame["pll_word_l2r"][:3], [doc._.pll for doc in docs[:3]], atol=1e-5)
    tokens = spacy_pll.score(TEXTS, model).to_dataframe(tokens=True)
    np.testing.assert_allclose(tokens["pll_word_l2r"], to_dataframe(docs)["pll_word_l2r"], atol=1e-5)
    assert spacy_pll.score([], model).to_dataframe().shape == (0, 4)


def test_a_single_text_and_a_single_metric_and_other_settings(model, make_nlp):
    [result] = spacy_pll.score("The travelers can't.", model, "original", words="whitespace")
    doc = make_nlp("bert", metrics=["original"], words="whitespace")("The travelers can't.")
    assert result.score == pytest.approx(doc._.pll, abs=1e-5)
    with pytest.raises(TypeError, match="Unknown setting 'mask_margn'. The settings are: words, .*, mask_margin, "):
        spacy_pll.score([], model, mask_margn=0)
    with pytest.raises(ValueError, match="Unknown PLL metric 'nonesuch'"):
        spacy_pll.score([], model, "nonesuch")
