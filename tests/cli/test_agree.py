import json

import pytest

from ..conftest import SENTENCES
from .conftest import run


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"line": text}) + "\n" for text in SENTENCES[:4]))
    return path


def test_two_pairs_of_scorers(tmp_path, model_folder, corpus):
    bert = str(model_folder("bert"))
    for other, saves_passes in ((f"{bert},mask_spacing=4", True), (f"{bert},precision=bfloat16", False)):
        result = run("agree", bert, other, corpus, "--column", "line", "-o", tmp_path / "out", "--force")
        assert "agreement by" in result.stdout and "the tokens that differ most" in result.stdout
        content = json.loads((tmp_path / "out.json").read_text())
        first, second = content["scorers"]
        assert content["texts"] == 4 and (first["label"], second["label"]) == (bert, other)
        assert content["levels"]["piece"]["r"] < 1
        assert (second["forward_passes"] < first["forward_passes"]) == saves_passes
        assert (tmp_path / "out.html").read_text().startswith("<!DOCTYPE html>")


def test_saved_pipelines_and_a_part_of_the_corpus(tmp_path, make_nlp, corpus):
    make_nlp("bert", metrics=["original"]).to_disk(tmp_path / "pipeline")
    make_nlp("roberta").to_disk(tmp_path / "other")
    output = tmp_path / "out.json"
    run("agree", tmp_path / "pipeline", tmp_path / "other", corpus, "--column", "line", "--limit", "2", "-o", output)
    content = json.loads(output.read_text())
    assert content["texts"] == 2 and [one["metric"] for one in content["scorers"]] == ["original", "word_l2r"]
    assert content["levels"]["piece"] is None


def test_errors_are_messages(tmp_path, model_folder, corpus):
    bert = model_folder("bert")
    assert "Unknown setting 'x'" in run("agree", bert, f"{bert},x=1", corpus, fails=True).unwrapped_stderr
    for setting, choices in (("words=foo", "spacy or tokenizer or whitespace"), ("mask_spacing=x", "a whole number")):
        result = run("agree", bert, f"{bert},{setting}", corpus, fails=True)
        assert f"is {setting.split('=')[1]!r}. It must be {choices}" in result.unwrapped_stderr
    assert "there is no column 'text'" in run("agree", bert, bert, corpus, fails=True).unwrapped_stderr
    (tmp_path / "out.json").write_text("precious")
    result = run("agree", bert, bert, corpus, "-o", tmp_path / "out.json", fails=True)
    assert "exists already" in result.unwrapped_stderr and (tmp_path / "out.json").read_text() == "precious"
    result = run("agree", bert, bert, tmp_path / "nowhere", fails=True)
    assert "There is no file or folder" in result.unwrapped_stderr
