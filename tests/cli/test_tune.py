import pytest

from ..tuning.conftest import random_texts
from .conftest import run


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    for i, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / "corpus" / name).write_text("".join(text + "\n" for text in random_texts(400, i)))
    return tmp_path / "corpus"


def test_a_model_is_tuned_and_scores(tmp_path, model_folder, corpus):
    tuned = tmp_path / "tuned"
    bert = model_folder("bert")
    options = ("--steps", 2, "--metrics", "original", "--margins", 1, "--margins", 2)
    result = run("tune", bert, corpus, tuned, *options)
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"Wrote {tuned}. Agreement with exact scores")
    assert lines[2].startswith("| held-out | `mask_margin` |")
    assert lines[4].startswith("| texts | 1 | before | its own exact scores | ")
    assert lines[-1].startswith("| passages | exact | after | exact scores before | ")
    run("score", corpus / "a.txt", tmp_path / "out.jsonl", "--model", tuned, "--mask-margin", 1)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 400
    assert "tuned exists already" in run("tune", bert, corpus, tuned, fails=True).unwrapped_stderr


def test_errors_are_messages(tmp_path, model_folder, corpus):
    bert, out = model_folder("bert"), tmp_path / "out"
    assert "There is no file or folder" in run("tune", bert, "nowhere", out, fails=True).unwrapped_stderr
    result = run("tune", bert, corpus, out, "--margins", "0,x", fails=True)
    assert "--margins must be whole numbers with commas, such as 0,1. It is '0,x'" in result.unwrapped_stderr
    result = run("tune", bert, corpus, out, "--metrics", "sentence_l2r", fails=True)
    assert "cannot be tuned for the metric" in result.unwrapped_stderr
    assert not out.exists() and not (tmp_path / "out.training").exists()
