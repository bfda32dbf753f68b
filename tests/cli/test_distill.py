import json

import pytest

from ..distillation.conftest import random_texts
from .conftest import run


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "corpus").mkdir()
    for i, name in enumerate(("a.txt", "b.txt")):
        (tmp_path / "corpus" / name).write_text("".join(text + "\n" for text in random_texts(150, i)))
    return tmp_path / "corpus"


TINY = ("--steps", 4, "--batch-tokens", 128, "--eval-every", 2)


def test_a_student_is_trained_and_scores(tmp_path, model_folder, corpus):
    student = tmp_path / "student"
    result = run(
        "distill", model_folder("bert"), corpus, student, *TINY, "--metric", "original", "--words", "tokenizer"
    )
    assert "4 steps" in result.stdout and "on held-out texts: r = 0." in result.stdout
    card = json.loads((student / "one_pass.json").read_text())
    assert (card["metric"], card["words"], card["steps"]) == ("original", "tokenizer", 4)
    run("score", corpus / "a.txt", tmp_path / "out.jsonl", "--one-pass", "--model", student)
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert len(rows) == 150 and all(row["pll"] < 0 for row in rows)
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())
    assert manifest["model"]["one_pass"]["metric"] == "original"
    result = run("score", corpus / "a.txt", tmp_path / "b.jsonl", "--model", student, fails=True)
    assert "was distilled by `pll distill`" in result.unwrapped_stderr
    assert "student exists already" in run("distill", "builtin", corpus, student, fails=True).unwrapped_stderr


def test_the_commands_that_score_have_the_option(tmp_path, model_folder, corpus):
    student = tmp_path / "student"
    run("distill", model_folder("bert"), corpus, student, *TINY)
    own = ("--one-pass", "--model", student)
    assert "pieces" in run("show", "The souvenir.", *own).stdout
    assert "word_l2r" in run("ppl", corpus / "a.txt", *own, "-o", tmp_path / "ppl.json").stdout
    assert json.loads((tmp_path / "ppl.json").read_text())["settings"]["one_pass"] is True
    run("render", corpus / "a.txt", tmp_path / "page.html", *own)
    (tmp_path / "pairs.csv").write_text("sentence_good,sentence_bad\nThe souvenir.,The the.\nA a.,The bus.\n")
    run("pairs", tmp_path / "pairs.csv", *own, "-o", tmp_path / "pairs.json")
    assert json.loads((tmp_path / "pairs.json").read_text())["settings"]["one_pass"] is True
    result = run("show", "The souvenir.", *own, "--metrics", "original", fails=True)
    assert "trained for the metric 'word_l2r', and cannot serve 'original'" in result.unwrapped_stderr


def test_errors_are_messages(tmp_path, model_folder, corpus):
    bert = model_folder("bert")
    assert (
        "There is no file or folder" in run("distill", bert, "nowhere", tmp_path / "out", fails=True).unwrapped_stderr
    )
    result = run("distill", bert, corpus, tmp_path / "out", "--init-teacher", bert, fails=True)
    assert "but there is no `init`" in result.unwrapped_stderr
    built_in = ("--init", "builtin", "--init-teacher", "builtin")
    result = run("distill", bert, corpus, tmp_path / "out", *built_in, fails=True)
    assert "builtin_one_pass' cannot go on: its vocabulary is" in result.unwrapped_stderr
    result = run("distill", bert, corpus, tmp_path / "out", "--metric", "sentence_l2r", fails=True)
    assert "cannot be distilled" in result.unwrapped_stderr
    assert "nowhere" in run("distill", tmp_path / "nowhere", corpus, tmp_path / "out", fails=True).unwrapped_stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "out.training").exists()
