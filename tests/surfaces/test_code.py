"""A model whose class is in no package: a Python file registers it, and settings name the file (`code`)."""

import json
import subprocess
import sys

import pytest
import torch

from spacy_pll import make_pipeline
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
