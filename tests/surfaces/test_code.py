"""A model whose class is in no package: a Python file registers it, and settings name the file (`code`)."""

import json
import os
import subprocess
import sys

import catalogue
import pytest
import torch

from spacy_pll import PipelineSettings, make_pipeline
from spacy_pll.corpus.inputs import START, Input
from spacy_pll.corpus.runs import Run, make_manifest
from spacy_pll.corpus.scoring import Scoring
from spacy_pll.errors import PLLError

from .. import reference
from ..conftest import SENTENCES, get_tokenizer
from ..doc_examples import ROOT, read_blocks

# The file that docs/other-models.md shows.
CODE = next(block.text for block in read_blocks(ROOT / "docs" / "other-models.md") if block.file == "own_bert.py")
SAVE = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
from own_bert import OwnBert, OwnBertConfig
torch.manual_seed(0)
config = OwnBertConfig(vocab_size=int(sys.argv[2]), pad_token_id=0, initializer_range=0.5)
OwnBert(config).save_pretrained(sys.argv[1] + "/model")
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with the file, and with a model that another process made and saved."""
    (tmp_path / "own_bert.py").write_text(CODE)
    tokenizer = get_tokenizer("wordpiece")
    command = [sys.executable, "-c", SAVE, str(tmp_path), str(len(tokenizer))]
    subprocess.run(command, check=True, capture_output=True)
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path


def fresh(*words):
    """A command in a process of its own, which does not know the class."""
    return subprocess.run([sys.executable, "-m", "spacy", "pll", *map(str, words)], capture_output=True, text=True)


def test_from_a_file_to_scores(folder):
    nlp = make_pipeline(str(folder / "model"), ["word_l2r", "original"], code=str(folder / "own_bert.py"))
    transformer = nlp.get_pipe("pll").model.loaded.checkpoint.transformer
    assert type(transformer).__name__ == "OwnBert"
    tokenizer = get_tokenizer("wordpiece")
    for doc in nlp.pipe(SENTENCES):
        ids, kept, word, _ = reference.read(doc, tokenizer, "spacy")
        for metric in ("word_l2r", "original"):
            expected = 0.0
            for t, position in enumerate(kept):
                hidden = {kept[i] for i in range(len(kept)) if reference.is_masked(metric, i, t, word)}
                row = tuple(tokenizer.mask_token_id if i in hidden else one for i, one in enumerate(ids))
                with torch.inference_mode():
                    expected += reference.predict(transformer, row)[position, ids[position]].item()
            assert doc._.get(f"pll_{metric}") == pytest.approx(expected, abs=1e-3)


def test_what_the_page_says_of_the_class(folder):
    model, code = str(folder / "model"), str(folder / "own_bert.py")
    nlp = make_pipeline(model, code=code)
    assert nlp.get_pipe("pll").model.loaded.forward.narrowing == "before_head"
    with pytest.raises(PLLError, match="A OwnBert, .* cannot read all masks in one pass"):
        make_pipeline(model, mask_margin=1, code=code)


def test_a_file_with_a_metric_is_imported_once_for_each_state_of_it(folder, monkeypatch):
    """Also where two scorers name it. A pipeline that is loaded already can have the metric."""
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())  # other tests list the metrics
    code = folder / "own_metric.py"
    text = (
        f"open({str(folder / 'runs')!r}, 'a').write('x')\n"
        "import numpy as np\nfrom spacy_pll import MaskRows, register_metric\n"
        "@register_metric('own_metric', within_words=True)\n"
        "def own_metric(word):\n"
        "    return MaskRows(np.arange(len(word)), np.eye(len(word), dtype=bool), np.ones(len(word)))\n"
    )
    code.write_text(text)
    first = make_pipeline(None, ["own_metric"], code=str(code))
    again = make_pipeline(make_pipeline(None), ["own_metric", "original"], code=str(code))
    assert again(SENTENCES[0])._.pll == first(SENTENCES[0])._.pll == again(SENTENCES[0])._.pll_original
    assert (folder / "runs").read_text() == "x"
    code.write_text(text.replace("np.eye", "~np.eye"))
    os.utime(code, (1, 1))  # another time than that of the first state
    make_pipeline(None, code=str(code))
    assert (folder / "runs").read_text() == "xx"
    # The pipelines that are there take the metric that has the name now.
    assert first(SENTENCES[0])._.pll != again(SENTENCES[0])._.pll_original


def test_a_run_depends_on_the_file(folder):
    code, texts = folder / "own_bert.py", folder / "texts.txt"
    texts.write_text("\n".join(SENTENCES))
    pipeline = PipelineSettings(str(folder / "model"), code=str(code))
    run = Run(Input(str(texts)), Scoring(pipeline))
    manifests = [make_manifest(run, run.make_pipeline(), START, [])["code"]]
    code.write_text(CODE + "\n# changed\n")
    manifests.append(make_manifest(run, run.make_pipeline(), START, [])["code"])
    assert None not in manifests and manifests[0] != manifests[1]


def test_commands_take_the_file(folder):
    model = folder / "model"
    done = fresh("show", SENTENCES[0], "--model", model, "--code", folder / "own_bert.py")
    assert done.returncode == 0 and "souvenir" in done.stdout, done.stderr
    (folder / "texts.txt").write_text("\n".join(SENTENCES))
    scored = fresh(
        "score", folder / "texts.txt", folder / "out.jsonl", "--model", model, "--code", folder / "own_bert.py"
    )
    assert scored.returncode == 0, scored.stderr
    first = json.loads((folder / "out.jsonl").read_text().splitlines()[0])
    nlp = make_pipeline(str(model), code=str(folder / "own_bert.py"))
    assert first["pll_word_l2r"] == pytest.approx(nlp(SENTENCES[0])._.pll, abs=1e-4)
    nlp.to_disk(folder / "saved")
    saved = fresh("show", SENTENCES[0], "--model", folder / "saved", "--code", folder / "own_bert.py")
    assert saved.stdout == done.stdout
    without = fresh("show", SENTENCES[0], "--model", model)
    assert without.returncode == 1 and "own-bert" in " ".join(without.stderr.split() + without.stdout.split())


def test_a_file_that_is_not_there_or_fails(tmp_path):
    with pytest.raises(PLLError, match="There is no file 'none.py'. Set `code` to a Python file"):
        make_pipeline(code="none.py")
    (tmp_path / "wrong.py").write_text("1 / 0\n")
    with pytest.raises(PLLError, match="wrong.py cannot be imported: ZeroDivisionError"):
        make_pipeline(code=str(tmp_path / "wrong.py"))
