"""A run of which one output could not be written goes on with --resume, in every command that writes several."""

import os
from pathlib import Path

import pytest

from spacy_pll.cli import COMMANDS
from spacy_pll.files import OutputError
from spacy_pll.prediction import Predictor

from ..conftest import write_jsonl
from ..proteins import PROTEIN, save_protein_model
from .conftest import parameters_of, run

ROWS = [
    {"good": "The cats sleep.", "bad": "The cats sleeps.", "options": ["It is.", "It are."], "label": 0},
    {"good": "It is over.", "bad": "It are over.", "options": ["We saw it.", "We seen it."], "label": 0},
]
# The outputs that a command writes, in this order.
OUTPUTS = {
    "pairs": {"--output": "o.json", "--items": "i.csv", "--plot": "p.svg"},
    "choices": {"--output": "o.csv", "--items": "i.tsv", "--plot": "p.svg", "--predictions": "x.json"},
    "variants": {"--output": "o.csv", "--plot": "p.svg"},
}
FAULTS = [(command, name) for command, outputs in OUTPUTS.items() for name in outputs]


@pytest.fixture
def call(tmp_path, monkeypatch, model_folder):
    """call(command, outputs, *options): run it in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("in.jsonl"), *ROWS)

    def call(command, outputs, *options, **how):
        given = ["in.jsonl", "--model", model_folder("bert")]
        if command == "variants":
            Path("protein").mkdir(exist_ok=True)
            save_protein_model(Path("protein"), "bert")
            given = ["--sequence", PROTEIN[:5], "--model", "protein"]
        return run(command, *given, *(part for pair in outputs.items() for part in pair), *options, **how)

    return call


def test_the_commands_that_go_on():
    goes_on = {one for one in COMMANDS if "--resume" in [parameter.flag for parameter in parameters_of(one)]}
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


def test_another_run_is_not_resumed(call):
    call("pairs", {"--output": "o.json"})
    error = call("pairs", {"--output": "o.json"}, "--resume", "--metrics", "original", fails=True).unwrapped_stderr
    assert "cannot be resumed, because this has changed" in error
    write_jsonl(Path("in.jsonl"), *ROWS[::-1])
    error = call("pairs", {"--output": "o.json"}, "--resume", fails=True).unwrapped_stderr
    assert "cannot be resumed, because this has changed" in error
