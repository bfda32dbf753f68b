import json
import re

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
        files = ("-o", tmp_path / "out.json", "--plot", tmp_path / "new" / "out.svg")
        result = run("agree", bert, other, corpus, "--column", "line", *files, "--force")
        assert "agreement by" in result.stdout and "the tokens that differ most" in result.stdout
        content = json.loads((tmp_path / "out.json").read_text())
        first, second = content["scorers"]
        assert content["texts"] == 4 and (first["label"], second["label"]) == (bert, other)
        assert content["piece"]["r"] < 1
        assert (second["forward_passes"] < first["forward_passes"]) == saves_passes
        assert "<svg" in (tmp_path / "new" / "out.svg").read_text()


def test_saved_pipelines_and_a_part_of_the_corpus(tmp_path, make_nlp, corpus):
    make_nlp("bert", metrics=["original"]).to_disk(tmp_path / "pipeline")
    make_nlp("roberta").to_disk(tmp_path / "other")
    output = tmp_path / "out.json"
    run("agree", tmp_path / "pipeline", tmp_path / "other", corpus, "--column", "line", "--limit", "2", "-o", output)
    content = json.loads(output.read_text())
    assert content["texts"] == 2 and [one["metric"] for one in content["scorers"]] == ["original", "word_l2r"]
    assert content["piece"] is None


def test_margins_of_one_scorer(tmp_path, model_folder, corpus):
    bert = str(model_folder("bert"))
    options = ("--column", "line", "--at-least", "0", "-o", tmp_path / "out.json")
    result = run("agree", f"{bert},metrics=original", corpus, "--margins", "1000,0", "--spacings", "4", *options)
    assert "mask_margin 0" in result.stdout and "mask_spacing 4" in result.stdout
    assert "mask_margin 0 is the smallest of these that reaches r = 0 by word" in result.stdout
    content = json.loads((tmp_path / "out.json").read_text())
    assert (
        content["smallest"] == {"mask_margin": 0, "mask_spacing": 4}
        and content["at_least"] == 0
        and content["texts"] == 4
    )
    assert [one["scorers"][1]["metric"] for one in content["comparisons"]] == ["original"] * 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "TEXTS"], "Give two scorers before the corpus, or one with --margins 0,1,2,4. The scorers .* are: a."),
        (["TEXTS", "builtin"], "The scorers come first, and the texts last: pll agree builtin .*texts.jsonl. There is"),
        (["a", "TEXTS", "b"], "The scorers come first, and the texts last: pll agree a b .*texts.jsonl. There is"),
        (
            ["TEXTS", "builtin", "--margins", "0"],
            "come first, and the texts last: pll agree builtin .*no file .*'builtin'",
        ),
        (["a", "b", "c", "TEXTS"], "Give two scorers .* The scorers before the corpus are: a, b, c."),
        (
            ["a", "b", "TEXTS", "--margins", "1"],
            "compare one scorer with its own exact scores. Give one. The scorers before the corpus are: a, b.",
        ),
        (["a", "TEXTS", "--margins", "1,x"], "--margins must be whole numbers with commas, such as 0,1. It is '1,x'"),
        (["a", "b", "TEXTS", "--at-least", "0.9"], "--at-least 0.9 is for choosing a margin. Add --margins"),
        (["builtin", "TEXTS", "--column", "line", "--margins", "-1"], "`mask_margin` must be 0 or more.*It is -1"),
    ],
)
def test_margins_and_scorers_that_do_not_go_together(corpus, arguments, message):
    arguments = [corpus if one == "TEXTS" else one for one in arguments]
    assert re.search(message, run("agree", *arguments, fails=True).unwrapped_stderr)


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
