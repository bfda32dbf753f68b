import csv
import json
import re
import signal

import pytest

from spacy_pll.evaluation.agreement import AgreementCounts

from ..conftest import SENTENCES, write_jsonl
from .conftest import run


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "texts.jsonl"
    write_jsonl(path, *({"line": text} for text in SENTENCES[:4]))
    return path


def test_two_pairs_of_scorers(tmp_path, model_folder, corpus):
    bert = str(model_folder("bert"))
    for other, saves_passes in ((f"{bert},mask_spacing=4", True), (f"{bert},precision=bfloat16", False)):
        result = run("agree", bert, other, corpus, "--column", "line", "-o", tmp_path / "out.json", "--force")
        assert "r by piece (95 % interval)" in result.stdout and "the tokens that differ most" in result.stdout
        content = json.loads((tmp_path / "out.json").read_text())
        (second,) = content["settings"]["compared"]
        assert (content["settings"]["scorer"], second["scorer"]) == (bert, other) and len(content["tokens"]) == 20
        of_both = {(one["scorer"], one["measure"]): one for one in content["results"]}
        assert of_both[other, "r by piece"]["value"] < 1 and of_both[other, "seconds"]["n"] == 4
        passes = [of_both[scorer, "forward passes"]["value"] for scorer in (bert, other)]
        assert (passes[1] < passes[0]) == saves_passes


def test_saved_pipelines_and_a_part_of_the_corpus(tmp_path, make_nlp, corpus):
    make_nlp("bert", metrics=["original"]).to_disk(tmp_path / "pipeline")
    make_nlp("roberta").to_disk(tmp_path / "other")
    output = tmp_path / "out.json"
    run("agree", tmp_path / "pipeline", tmp_path / "other", corpus, "--column", "line", "--limit", "2", "-o", output)
    content = json.loads(output.read_text())
    settings = content["settings"]
    assert (settings["metrics"], settings["compared"][0]["metrics"]) == (["original"], ["word_l2r"])
    assert settings["limit"] == 2 and all("by piece" not in one["measure"] for one in content["results"])


def test_a_table_of_results_and_a_scorer_with_itself(tmp_path, model_folder, corpus):
    bert, output = str(model_folder("bert")), tmp_path / "out.csv"
    run("agree", bert, bert, corpus, "--column", "line", "-o", output)
    with open(output) as file:
        rows = list(csv.DictReader(file))
    assert {row["scorer"] for row in rows} == {bert, f"{bert} again"}
    assert [float(row["value"]) for row in rows if row["measure"] == "r by word"] == [pytest.approx(1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "TEXTS"], "Give two scorers before the corpus. There is one: a. To compare one scorer with"),
        (
            ["TEXTS", "builtin"],
            "The scorers come first, .* spacy-pll agree builtin .*texts.jsonl. There is",
        ),
        (
            ["a", "TEXTS", "b"],
            "The scorers come first, .* spacy-pll agree a b .*texts.jsonl. There is",
        ),
        (["a", "b", "c", "TEXTS"], "Give two scorers .* There are 3: a, b, c."),
    ],
)
def test_scorers_that_do_not_go_together(corpus, arguments, message):
    arguments = [corpus if one == "TEXTS" else one for one in arguments]
    assert re.search(message, run("agree", *arguments, fails=True).unwrapped_stderr)


@pytest.mark.parametrize("command", ["agree", "margins"])
def test_what_is_done_is_shown_when_it_is_stopped(model_folder, corpus, monkeypatch, command):
    scorers, batches = [model_folder("bert")] * (2 if command == "agree" else 1), []
    before = signal.getsignal(signal.SIGINT)  # ignored, if the tests run in the background of a shell
    add = AgreementCounts.add

    def stop(self, *docs):
        batches.append(add(self, *docs))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(AgreementCounts, "add", stop)
    how = ("--column", "line", "--batch-size", 2, *(("--margins", 0) if command == "margins" else ()))
    result = run(command, *scorers, corpus, *how, code=130)
    assert len(batches) == 1 and "Stopping after 2 of 4 texts" in result.stderr and "Stopped by Ctrl-C" in result.stderr
    assert ("again" if command == "agree" else "mask_margin 0") in result.stdout and "r by word" in result.stdout
    assert signal.getsignal(signal.SIGINT) is before


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
