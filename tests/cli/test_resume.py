"""A run of which one output could not be written goes on with --resume, in every command that writes several."""

import os
from pathlib import Path

import pytest

from spacy_pll.cli import LazyCommands
from spacy_pll.files import OutputError
from spacy_pll.prediction import Predictor

from ..conftest import write_jsonl
from ..protein_models import PROTEIN, save_protein_model
from .conftest import parameters_of, run

ROWS = [
    {"good": "The cats sleep.", "bad": "The cats sleeps.", "options": ["It is.", "It are."], "label": 0, "kind": "a"},
    {"good": "It is over.", "bad": "It are over.", "options": ["We saw it.", "We seen it."], "label": 0, "kind": "b"},
]
# The outputs that a command writes, in this order.
OUTPUTS = {
    "pairs": {"--output": "o.json", "--items": "i.csv", "--plot": "p.svg"},
    "choices": {"--output": "o.csv", "--items": "i.tsv", "--plot": "p.svg", "--predictions": "x.json"},
    "variants": {"--output": "o.csv", "--plot": "p.svg"},
    "rescore": {"--output": "o.jsonl"},
}
FAULTS = [(command, name) for command, outputs in OUTPUTS.items() for name in outputs]


@pytest.fixture
def call(tmp_path, monkeypatch, model_folder):
    """call(command, outputs, *options): run it in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("in.jsonl"), *ROWS)

    def call(command, outputs, *options, **how):
        given = ["in.jsonl", "--model", model_folder("bert")]
        if command == "rescore":
            lists = ({"hypotheses": [{"text": row[name], "score": -1} for name in ("good", "bad")]} for row in ROWS)
            given[0] = write_jsonl(Path("lists.jsonl"), *lists)
            given += ["--weight", "1"]
        if command == "variants":
            Path("protein").mkdir(exist_ok=True)
            save_protein_model(Path("protein"), "bert")
            given = ["--sequence", PROTEIN[:5], "--model", "protein"]
        return run(command, *given, *(part for pair in outputs.items() for part in pair), *options, **how)

    return call


def test_the_commands_that_go_on():
    goes_on = {one for one in LazyCommands() if "--resume" in [parameter.flag for parameter in parameters_of(one)]}
    assert goes_on == {*OUTPUTS, "score"}


@pytest.mark.parametrize(("command", "fails"), FAULTS)
def test_an_output_that_cannot_be_written(command, fails, call, monkeypatch):
    """What was written before stood in the way: --resume was refused, and so was --force beside it."""
    outputs, replace = OUTPUTS[command], os.replace

    def full(source, target):
        if Path(target).name == outputs[fails]:
            raise OutputError("no space")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        error = call(command, outputs, fails=True).unwrapped_stderr
    assert "no space" in error and "Go on with --resume" in error
    before = [name for name in outputs.values() if Path(name).exists()]
    assert before == list(outputs.values())[: list(outputs).index(fails)]
    if before:
        assert "exists already" in call(command, outputs, fails=True).unwrapped_stderr
    monkeypatch.setattr(Predictor, "submit", lambda self, docs: pytest.fail("scored again"))
    call(command, outputs, "--resume")
    assert all(Path(name).exists() for name in outputs.values()) and not list(Path().glob("*.parts"))
    assert "was complete. Nothing was scored" in call(command, outputs, "--resume").stderr


def test_what_an_earlier_run_did_not_write_is_not_replaced(call):
    call("pairs", {"--output": "o.json"})
    Path("i.csv").write_text("precious")
    more = {"--output": "o.json", "--items": "i.csv"}
    assert "exists already" in call("pairs", more, "--resume", fails=True).unwrapped_stderr
    assert Path("i.csv").read_text() == "precious"
    call("pairs", more, "--resume", "--force")
    assert "The cats sleep." in Path("i.csv").read_text()


OTHERS = {
    "pairs": [["--metrics", "original"], ["--by", "kind"], ["--per-piece"], ["--ties", "first"], ["--sample", "1"]],
    "choices": [["--mask-margin", "0"], ["--by", "kind"]],
    "variants": [["--method", "wt-marginals"], ["--offset", "2"], ["--mask-margin", "0"]],
    "rescore": [["--word-weight", "1"], ["--per-piece"]],
}


@pytest.mark.parametrize(("command", "others"), [(command, one) for command in OTHERS for one in OTHERS[command]])
def test_a_complete_run_is_not_taken_for_another(call, command, others):
    """Whatever its outputs depend on: it would be said to be complete, and they would be those of other settings."""
    outputs = {"--output": OUTPUTS[command]["--output"]}
    call(command, outputs)
    error = call(command, outputs, "--resume", *others, fails=True).unwrapped_stderr
    assert "cannot be resumed, because this has changed" in error
    call(command, outputs, "--force", *others)


def test_other_columns_are_another_run(call):
    call("pairs", {"--items": "i.csv"})
    write_jsonl(Path("in.jsonl"), *({**row, "kind": "c"} for row in ROWS))
    error = call("pairs", {"--items": "i.csv"}, "--resume", fails=True).unwrapped_stderr
    assert "cannot be resumed, because this has changed" in error


def test_a_table_of_variants_with_other_columns_is_written_again(call):
    """The scores are the same, and the table is not."""
    command = "variants", {"--output": "o.csv"}
    for note in ("first", "second"):
        Path("v.csv").write_text(f"mutant,note\n{PROTEIN[0]}1A,{note}\n")
        call(*command, *(["--resume"] if note == "second" else []), "v.csv")
        assert note in Path("o.csv").read_text()
    assert "was complete" in call(*command, "--resume", "v.csv").stderr


def test_an_output_of_a_complete_run_that_is_gone_is_written_again(call):
    """The run was said to be complete, and the table stayed away."""
    outputs = {"--output": "o.json", "--items": "i.csv"}
    call("pairs", outputs)
    before = Path("i.csv").read_bytes()
    Path("i.csv").unlink()
    call("pairs", outputs, "--resume")
    assert Path("i.csv").read_bytes() == before
    assert "was complete" in call("pairs", outputs, "--resume").stderr
