"""`spacy_pll.score`: from texts to typed results."""

import os
import signal

import numpy as np
import pytest
import spacy
from spacy.language import Language

import spacy_pll
from spacy_pll import to_dataframe

from ..columns import added
from ..conftest import ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer

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


def test_results_are_kept(model):
    results = spacy_pll.score(iter(TEXTS), model, batch_size=2)
    assert len(results) == len(TEXTS) and list(results) == list(results)
    assert results[0].text == TEXTS[0] and results[-1].text == "" and [one.text for one in results[1:3]] == TEXTS[1:3]
    assert [doc.text for doc in results.docs] == TEXTS and results[0] in results
    assert list(results[1:].to_dataframe()["text"]) == TEXTS[1:]
    with pytest.raises(IndexError):
        results[len(TEXTS)]
    with pytest.raises(AttributeError):
        results[0].text = "another"


def test_results_are_printed_as_a_short_table(model):
    lines = repr(spacy_pll.score([*TEXTS, "a\nb", "the cat sleeps " * 9], model, ["word_l2r", "original"])).splitlines()
    assert lines[0].split() == ["text", *added("word_l2r", "original")]
    assert [len(lines), lines[5].split()[0], lines[6].split()[0]] == [9, "␣", "0"]
    assert lines[7].startswith("a b ") and "the cat sleeps the cat sleeps the cat s…   " in lines[8]
    assert str(spacy_pll.score(TEXTS * 3, model)).splitlines()[12:] == ["... and 5 more"]
    assert "pll_word_l2r" in repr(spacy_pll.score([], model))


def test_a_data_frame_of_texts_or_of_tokens(model, make_nlp):
    frame = spacy_pll.score(TEXTS, model, ["word_l2r", "original"]).to_dataframe()
    assert list(frame.columns) == ["text", *added("word_l2r", "original")]
    assert list(frame["text"]) == TEXTS
    types = {"pll_word_l2r": "float64", "pll_original": "float64", "pll_pieces": "Int64", "pppl": "float64"}
    assert {name: str(frame.dtypes[name]) for name in types} == types
    assert frame["pll_original"].isna().tolist() == [False] * 3 + [True] * 2
    docs = list(make_nlp("bert").pipe(TEXTS))
    np.testing.assert_allclose(frame["pll_word_l2r"][:3], [doc._.pll for doc in docs[:3]], atol=1e-5)
    tokens = spacy_pll.score(TEXTS, model).to_dataframe(tokens=True)
    np.testing.assert_allclose(tokens["pll_word_l2r"], to_dataframe(docs)["pll_word_l2r"], atol=1e-5)
    assert spacy_pll.score([], model).to_dataframe().shape == (0, 1 + len(added()))


def test_a_single_text_and_a_single_metric_and_other_settings(model, make_nlp):
    [result] = spacy_pll.score("The travelers can't.", model, "original", words="whitespace")
    doc = make_nlp("bert", metrics=["original"], words="whitespace")("The travelers can't.")
    assert result.score == pytest.approx(doc._.pll, abs=1e-5)
    [of_doc] = spacy_pll.score(doc, model, "original")
    assert of_doc.text == doc.text
    with pytest.raises(
        TypeError, match="Unknown setting 'mask_margn'. Similar: mask_margin, .*are: model, .*, mask_margin, "
    ):
        spacy_pll.score([], model, mask_margn=0)
    with pytest.raises(ValueError, match="Unknown PLL metric 'nonesuch'"):
        spacy_pll.score([], model, "nonesuch")


def test_every_setting_of_the_component(model, make_nlp):
    nlp = make_nlp("bert")
    doc = nlp.make_doc("The traveler lost the souvenir.")
    doc.spans["phrase"] = [doc[3:5]]
    [result] = spacy_pll.score([doc.copy()], model, units="phrase", targets="phrase", max_batch_tokens=9, attr="mine")
    expected = make_nlp("bert", units="phrase", targets="phrase", attr="other")(doc)
    assert result.score == pytest.approx(expected._.other, abs=1e-5)
    assert [token.pieces > 0 for token in result.tokens] == [token.i in (3, 4) for token in doc]
    assert "mine_word_l2r" in spacy_pll.score([], model, attr="mine").to_dataframe()


def test_a_pipeline_scores_and_stays_as_it_is(make_nlp):
    nlp = make_nlp("bert", metrics=["original"])
    make_nlp("roberta", nlp=nlp, name="second", attr="other")
    before = nlp.config.to_str()
    expected = nlp(SENTENCES[0])
    assert spacy_pll.score([SENTENCES[0]], nlp)[0].scores == {"original": pytest.approx(expected._.pll, abs=1e-5)}
    [second] = spacy_pll.score([SENTENCES[0]], nlp, component="second").docs
    assert second._.other == pytest.approx(expected._.other, abs=1e-5) and second._.pll is None
    [changed] = spacy_pll.score([SENTENCES[0]], nlp, ["whole_word"], words="whitespace")
    whole = make_nlp("bert", metrics=["whole_word"], words="whitespace", attr="whole")(SENTENCES[0])
    assert changed.score == pytest.approx(whole._.whole, abs=1e-5)
    assert nlp.config.to_str() == before and nlp.pipe_names == ["pll", "second"]
    assert nlp(SENTENCES[0])._.pll == expected._.pll
    with pytest.raises(ValueError, match="`lang` is 'de'.* loaded already"):
        spacy_pll.score([], nlp, lang="de")
    with pytest.raises(ValueError, match="no `pll` component 'third'"):
        spacy_pll.score([], nlp, component="third")
    with pytest.raises(ValueError, match="no `pll` component, only"):
        spacy_pll.score([], spacy.blank("en"))


def test_a_folder_may_be_a_path(model_folder, model):
    of_path, of_text = (spacy_pll.score(SENTENCES[:1], folder) for folder in (model_folder("bert"), model))
    assert list(of_path) == list(of_text)


def test_a_model_in_memory(model):
    tokenizer = get_tokenizer(ARCHITECTURES["bert"][3])
    loaded = build_transformer("bert", tokenizer)
    found = spacy_pll.score(SENTENCES, (loaded, tokenizer), ["word_l2r", "original"], mask_margin=0)
    assert list(found) == list(spacy_pll.score(SENTENCES, model, ["word_l2r", "original"], mask_margin=0))


def test_progress_is_shown_on_request(model, capsys):
    spacy_pll.score(SENTENCES, model)
    assert capsys.readouterr().err == ""
    spacy_pll.score(SENTENCES, model, show_progress=True)
    assert f"{len(SENTENCES)}/{len(SENTENCES)} texts" in capsys.readouterr().err


@Language.component("test_killed")
def killed(doc):
    if doc.text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return doc


def test_a_worker_that_is_killed_is_an_error(make_nlp):
    nlp = make_nlp("bert")
    nlp.add_pipe("test_killed")
    expected = list(spacy_pll.score(SENTENCES, nlp, batch_size=1))
    assert list(spacy_pll.score(SENTENCES, nlp, batch_size=1, n_process=2)) == expected
    with pytest.raises(ChildProcessError, match="stopped by the signal SIGKILL"):
        spacy_pll.score([*SENTENCES, "die"], nlp, batch_size=1, n_process=2)
