"""A model whose class is in no package: a Python file registers it, and settings name the file (`code`)."""

import importlib
import json
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys

import catalogue
import pytest
import spacy
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from spacy_pll import PipelineSettings, PLLError, make_pipeline
from spacy_pll.corpus.runs import make_manifest
from spacy_pll.metrics import pll_metrics
from spacy_pll.user_code import ImportedCode, import_code

from .. import reference
from ..conftest import SENTENCES, get_tokenizer
from ..corpus.running import make_run
from ..doc_examples import ROOT

# The file that docs/models.md names.
CODE = (ROOT / "examples" / "gpt_bert.py").read_text(encoding="utf8")


def make_folder(path, shift):
    """The file, and a tiny model that is trained by masked prediction on random ids: it learns to say what it sees. No
    model is registered yet, as if another process had trained it.
    """
    (path / "gpt_bert.py").write_text(CODE)
    tokenizer = get_tokenizer("wordpiece")
    with pytest.MonkeyPatch.context() as patch:
        for auto in (AutoConfig, AutoModelForMaskedLM):
            patch.setattr(auto, "register", lambda *_: None)
        patch.syspath_prepend(path)
        own = importlib.import_module("gpt_bert")
        del sys.modules["gpt_bert"]
    n, mask, size = len(tokenizer), tokenizer.mask_token_id, dict(width=64, layers=2, heads=4, inner=64, buckets=8)
    torch.manual_seed(0)
    model = own.GPTBert(own.GPTBertConfig(n, **size, longest=128, pad_token_id=0, initializer_range=0.1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(250):
        ids = torch.randint(n, (8, 24))
        chance = torch.rand(ids.shape)
        seen = torch.where(chance < 0.5, ids, torch.where(chance < 0.9, mask, torch.randint(n, ids.shape)))
        logits = model(seen).logits[:, : 24 - shift]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, shift:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(path / "model")
    tokenizer.save_pretrained(path / "model")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_folder(tmp_path_factory.mktemp("gpt-bert"), shift=1)


FRESH = """
import json, os, sys
from spacy.cli._util import app
from typer.testing import CliRunner
import spacy_pll.cli, spacy_pll.language_model.base
for arguments in json.loads(sys.argv[1]):
    if os.fork():
        os.wait()
        continue
    result = CliRunner().invoke(app, ["pll", *arguments])
    print(json.dumps([result.exit_code, " ".join((result.stdout + result.stderr).split())]))
    sys.exit()
"""


def fresh(*commands):
    """Run commands, each in a process that does not know the class. RETURNS: Of each its exit code and what it says."""
    command = [sys.executable, "-c", FRESH, json.dumps(commands, default=str)]
    out = subprocess.run(command, check=True, capture_output=True, text=True)
    return [*map(json.loads, out.stdout.splitlines())]


@pytest.mark.slow
def test_from_a_file_to_scores(folder, caplog):
    """It is found out that the model predicts a piece one position before it."""
    with caplog.at_level(logging.INFO, logger="spacy_pll"):
        nlp = make_pipeline(str(folder / "model"), ["word_l2r", "original"], code=str(folder / "gpt_bert.py"))
        nlp(SENTENCES[0])
    assert "predicts a masked piece one position before it" in caplog.text
    assert "Texts of different lengths share forward passes" in caplog.text and "all at all pieces" in caplog.text
    transformer = nlp.get_pipe("pll").model.loaded.checkpoint.transformer
    assert type(transformer).__name__ == "GPTBert"
    tokenizer = get_tokenizer("wordpiece")
    for doc in nlp.pipe(SENTENCES):
        ids, kept, word, _ = reference.read(doc, tokenizer, "spacy")
        for metric in ("word_l2r", "original"):
            expected = 0.0
            for t, position in enumerate(kept):
                hidden = {kept[i] for i in range(len(kept)) if reference.is_masked(metric, i, t, word)}
                row = [tokenizer.mask_token_id if i in hidden else one for i, one in enumerate(ids)]
                expected += reference.predict(transformer, tuple(row))[position - 1, ids[position]].item()
            assert doc._.get(f"pll_{metric}") == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_a_model_that_predicts_a_piece_where_it_is(tmp_path):
    folder = make_folder(tmp_path, shift=0)
    model, code = str(folder / "model"), str(folder / "gpt_bert.py")
    tried = make_pipeline(model, code=code)(SENTENCES[0])._.pll
    for shift in (0, 1):
        nlp = spacy.blank("en")
        nlp.add_pipe("pll", config={"model": {"name": model, "shift": shift}})
        assert (nlp(SENTENCES[0])._.pll == pytest.approx(tried)) == (shift == 0)


def test_what_the_page_says_of_the_class(folder):
    model, code = str(folder / "model"), str(folder / "gpt_bert.py")
    nlp = make_pipeline(model, code=code)
    nlp(SENTENCES[0])
    loaded = nlp.get_pipe("pll").model.loaded
    assert loaded.forward.capabilities.narrowing is None and loaded.rows.pads
    with pytest.raises(PLLError, match="A GPTBert, such as .* cannot read all masks in one pass"):
        make_pipeline(model, mask_margin=1, code=code)


def test_a_file_with_a_metric_is_imported_once_for_each_state_of_it(tmp_path, monkeypatch):
    """Also where two scorers name it. A pipeline that is loaded already can have the metric."""
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())  # other tests list the metrics
    code = tmp_path / "own_metric.py"
    text = (
        f"open({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        "import numpy as np\nfrom spacy_pll import MaskRows, register_metric\n"
        "@register_metric('own_metric', within_words=True)\n"
        "def own_metric(word):\n"
        "    return MaskRows(np.arange(len(word)), np.eye(len(word), dtype=bool), np.ones(len(word)))\n"
    )
    code.write_text(text)
    first = make_pipeline(None, ["own_metric"], code=str(code))
    again = make_pipeline(make_pipeline(None), ["own_metric", "original"], code=str(code))
    assert again(SENTENCES[0])._.pll == first(SENTENCES[0])._.pll == again(SENTENCES[0])._.pll_original
    assert (tmp_path / "runs").read_text() == "x"
    code.write_text(text.replace("np.eye(len(word), dtype=bool)", "word[:, None] == word"))
    os.utime(code, (1, 1))  # another time than that of the first state
    make_pipeline(None, code=str(code))
    assert (tmp_path / "runs").read_text() == "xx"
    # The pipelines that are there take the metric that has the name now.
    assert first(SENTENCES[0])._.pll != again(SENTENCES[0])._.pll_original


def test_a_file_with_a_metric_of_a_name_that_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())
    code = tmp_path / "taken.py"
    code.write_text(
        "from spacy_pll import metrics\n"
        "@metrics.register_metric('word_l2r', within_words=False)\n"
        "def mine(word):\n    return metrics.one_row_per_piece(word[:, None] <= word[None, :])\n"
    )
    with pytest.raises(PLLError, match=r"Several metrics have the name 'word_l2r': .*python_code\w*\.mine"):
        make_pipeline(code=str(code))


def modules_of(sent):
    return [one.__module__ for one in pickle.loads(sent)[1:]]


def test_a_process_that_is_started_anew_imports_the_files(tmp_path, monkeypatch):
    """As workers are where they are not forked: two files, one after the other, and a function of one of them. This one
    was forked before the files were there.
    """
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())
    names, worker = ["first_of_two", "second_of_two"], multiprocessing.get_context("fork").Pool(1)
    for name in names:
        (tmp_path / f"{name}.py").write_text(
            "from spacy_pll import metrics\n"
            f"@metrics.register_metric('{name}', within_words=False)\n"
            "def mine(word):\n    return metrics.one_row_per_piece(word[:, None] <= word[None, :])\n"
        )
        import_code(str(tmp_path / f"{name}.py"))
    sent = pickle.dumps([ImportedCode(), *map(pll_metrics.get, names)])
    with worker:
        modules = worker.apply(modules_of, [sent])
    assert len(set(modules)) == 2 and all(name.startswith("python_code") for name in modules)


def test_a_run_depends_on_the_file(folder, tmp_path):
    code, texts = tmp_path / "gpt_bert.py", tmp_path / "texts.txt"
    code.write_text(CODE)
    texts.write_text("\n".join(SENTENCES))
    pipeline = PipelineSettings(str(folder / "model"), code=str(code))
    run = make_run(texts, pipeline)
    manifests = [make_manifest(run, run.make_pipeline(), 0, "", [])["code"]]
    code.write_text(CODE + "\n# changed\n")
    manifests.append(make_manifest(run, run.make_pipeline(), 0, "", [])["code"])
    assert None not in manifests and manifests[0] != manifests[1]


@pytest.mark.slow
def test_commands_take_the_file(folder, tmp_path):
    model = folder / "model"
    (tmp_path / "texts.txt").write_text("\n".join(SENTENCES))
    code = ("--code", folder / "gpt_bert.py")
    nlp = make_pipeline(str(model), code=str(folder / "gpt_bert.py"))
    nlp.to_disk(tmp_path / "saved")
    scored, saved, without = fresh(
        ("score", tmp_path / "texts.txt", tmp_path / "out.jsonl", "--model", model, *code),
        ("show", SENTENCES[0], "--model", tmp_path / "saved", *code),
        ("show", SENTENCES[0], "--model", model),
    )
    assert scored[0] == 0, scored
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["pll_word_l2r"] == pytest.approx(nlp(SENTENCES[0])._.pll, abs=1e-4)
    assert f"{nlp(SENTENCES[0])._.pll:.2f}" in saved[1]
    assert without[0] == 1 and "gpt-bert" in without[1]


def test_a_file_that_is_not_there_or_fails(tmp_path):
    with pytest.raises(PLLError, match="no file 'none.py'. Set `code`"):
        make_pipeline(code="none.py")
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    with pytest.raises(PLLError, match="wrong.py cannot be imported: ZeroDivisionError"):
        make_pipeline(code=str(tmp_path / "wrong.py"))
    (tmp_path / "script.py").write_text("import sys\nsys.exit('no arguments')\n")
    with pytest.raises(PLLError, match="script.py cannot be imported: SystemExit: no arguments"):
        make_pipeline(code=str(tmp_path / "script.py"))
