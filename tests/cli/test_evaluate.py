"""spaCy's own commands show the figures of the component's `score`."""

import json
import re
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc, DocBin
from spacy.training.loggers import console_logger

from .conftest import run_spacy

TEXTS = ["The traveler lost it.", "A souvenir"]


@pytest.mark.parametrize("options", [(), ("--per-component",)])
def test_spacy_evaluate_writes_the_figures(make_nlp, tmp_path, options):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    nlp.to_disk(tmp_path / "pipeline")
    DocBin(docs=map(nlp.make_doc, TEXTS)).to_disk(tmp_path / "dev.spacy")
    paths = [str(tmp_path / name) for name in ("pipeline", "dev.spacy", "out.json")]
    output = run_spacy("evaluate", *paths[:2], "--output", paths[2], *options)
    assert "pll" not in output.lower().replace(str(tmp_path).lower(), "")  # only spaCy's own are printed
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf8"))
    found = found["pll"] if options else found
    docs = list(nlp.pipe(TEXTS))
    for name in ("pll", "pll_original"):
        assert found[f"{name}_mean"] == pytest.approx(sum(doc._.get(name) for doc in docs) / len(docs))
        assert found[f"{name}_pppl"] > 1


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="there is no /dev/stdout")
def test_spacy_evaluate_prints_the_figures(make_nlp, tmp_path, capfd):
    nlp = make_nlp("bert")
    nlp.to_disk(tmp_path / "pipeline")
    DocBin(docs=map(nlp.make_doc, TEXTS)).to_disk(tmp_path / "dev.spacy")
    printed = run_spacy("evaluate", tmp_path / "pipeline", tmp_path / "dev.spacy", "--output", "/dev/stdout")
    figures = capfd.readouterr().out
    (mean,) = re.findall(r'"pll_mean":(\S+),', figures)
    assert float(mean) == pytest.approx(sum(doc._.pll for doc in nlp.pipe(TEXTS)) / len(TEXTS))
    assert "SPEED" in printed and '"pll_pppl":' in figures


@pytest.mark.parametrize("weight", [None, 0.0])
def test_a_training_log_shows_what_has_a_weight(tmp_path, capsys, weight):
    """The console logger leaves out what has the weight null, as the figures have until the config says otherwise."""
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")
    nlp.add_pipe("pll")
    weights = nlp.config["training"]["score_weights"]
    assert weights["pll_pppl"] is None and weights["pll_mean"] is None
    nlp.config = nlp.config.merge({"training": {"score_weights": {"pll_pppl": weight}}})
    doc = Doc(nlp.vocab, words=["A", "souvenir"], tags=["D", "N"])
    examples = [spacy.training.Example(nlp.make_doc(doc.text), doc)]
    nlp.initialize(lambda: examples)
    log, finalize = console_logger(progress_bar=False)(nlp)
    scores = nlp.evaluate(examples)
    log({"step": 0, "epoch": 0, "score": 1.0, "other_scores": scores, "losses": {"tagger": 0.0}})
    finalize()
    assert ("PLL_PPPL" in capsys.readouterr().out) == (weight is not None)
