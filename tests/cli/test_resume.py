"""A run of which one output could not be written goes on with --resume, in every command that writes several."""

import json
import os
import sys
from pathlib import Path

import pytest

from spacy_pll.analysis import filling
from spacy_pll.files import OutputError
from spacy_pll.prediction.predictor import Predictor
from spacy_pll.stream import known, parts

from ..conftest import write_jsonl
from ..protein_models import PROTEIN
from .conftest import COMMANDS, parameters_of, run

# To the tiny tokenizer, words that it does not know are one piece.
pytestmark = pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
ROWS = [
    {"good": "The cats sleep.", "bad": "The cats sleeps.", "options": ["It is.", "It are."], "label": 0, "kind": "a"},
    {"good": "It is over.", "bad": "It are over.", "options": ["We saw it.", "We seen it."], "label": 0, "kind": "b"},
]
# The outputs that a command writes, in this order.
OUTPUTS = {
    "pairs": {"--output": "o.json", "--items": "i.csv", "--plot": "p.svg"},
    "choices": {"--output": "o.csv", "--items": "i.tsv", "--plot": "p.svg", "--predictions": "x.json"},
    "suite": {"--output": "o.json", "--items": "i.csv"},
    "ppl": {"--output": "o.json"},
    "words": {"": "o.csv", "--plot": "p.svg"},
    "variants": {"--output": "o.csv", "--plot": "p.svg"},
    "rescore": {"--output": "o.jsonl"},
    "slots": {"": "o.csv"},
}
FAULTS = [(command, name) for command, outputs in OUTPUTS.items() for name in outputs]


@pytest.fixture
def call(tmp_path, monkeypatch, model_folder, protein_folder):
    """call(command, outputs, *options): run it in an empty folder."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("in.jsonl"), *ROWS)

    def call(command, outputs, *options, **how):
        given = ["in.jsonl", "--model", model_folder("bert")]
        if command == "rescore":
            lists = ({"hypotheses": [{"text": row[name], "score": -1} for name in ("good", "bad")]} for row in ROWS)
            given[0] = write_jsonl(Path("lists.jsonl"), *lists)
            given += ["--weight", "1"]
        if command == "words":
            given += ["--means", "label"] * ("--plot" in outputs)
            given += [
                "--word",
                "good",
                "--by",
                "kind",
                *([] if "--log-frequency" in options else ["--no-log-frequency"]),
            ]
        if command == "ppl":
            given += ["--column", "good"]
        if command == "slots":
            gaps = (
                {"text": "The ___ lost it.", "some": ["traveler", "souvenir"], "kind": "a"},
                {"text": "She lost ___.", "some": ["it", "hooligans"], "kind": "b"},
            )
            given[0] = write_jsonl(Path("gaps.jsonl"), *gaps)
            given += ["--candidate-column", "some"] * (not {"--candidates", "--top"}.intersection(options))
        if command == "suite":
            given += ["--reader", "acceptability", "--sentence", "good", "--label", "label=0"]
            write_jsonl(Path("in.jsonl"), *ROWS, {**ROWS[0], "good": ROWS[0]["bad"], "label": 1})
        if command == "variants":
            given = ["--sequence", PROTEIN[:5], "--model", protein_folder()]
        return run(command, *given, *(part for pair in outputs.items() for part in pair if part), *options, **how)

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


OTHERS = {
    "pairs": [["--metrics", "original"], ["--by", "kind"], ["--per-piece"], ["--ties", "first"], ["--sample", "1"]],
    "choices": [["--mask-margin", "0"], ["--by", "kind"]],
    "ppl": [["--metrics", "original"], ["--words", "whitespace"], ["--column", "bad"]],
    "words": [["--base", "2"], ["--lags", "1"], ["--word", "bad"], ["--space-after", "label"]],
    "suite": [["--per-piece"], ["--threshold", "-9"], ["--label", "label=1"]],
    "variants": [["--method", "wt-marginals"], ["--offset", "2"], ["--mask-margin", "0"]],
    "rescore": [["--word-weight", "1"], ["--per-piece"], ["--costs"]],
    "slots": [
        ["--candidates", "it,cat"],
        ["--keep", "1"],
        ["--top", "3"],
        ["--shared-pieces"],
        ["--precision", "bfloat16"],
    ],
}


@pytest.mark.parametrize(("command", "others"), [(command, one) for command in OTHERS for one in OTHERS[command]])
def test_a_complete_run_is_not_taken_for_another(call, command, others):
    """Whatever its outputs depend on: it would be said to be complete, and they would be those of other settings."""
    outputs = dict([next(iter(OUTPUTS[command].items()))])
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


def test_other_labels_of_a_suite_are_another_run(call):
    """Its texts, and so its scores, are the same."""
    call("suite", {"--output": "o.json"})
    error = call("suite", {"--output": "o.json"}, "--resume", "--label", "label=1", fails=True).unwrapped_stderr
    assert "cannot be resumed" in error


def test_other_candidates_are_another_run(call):
    """Whether they are for all texts, or in a column, which is not among those of the output."""
    for name, options in (("v.txt", ["--vocabulary", "v.txt"]), ("gaps.jsonl", ["--candidate-column", "some"])):
        for words in (["it", "cat"], ["it", "dog"]):
            Path("v.txt").write_text("\n".join(words))
            write_jsonl(Path("gaps.jsonl"), {"text": "She lost ___.", "some": words})
            command = "slots", "gaps.jsonl", f"{name}.csv", *options
            run(*command) if words[1] == "cat" else None
        assert "cannot be resumed" in run(*command, "--resume", fails=True).unwrapped_stderr


def test_log_frequencies_are_part_of_a_run(call, monkeypatch, model_folder):
    """They are written if wordfreq is there, which may change. Then rows with and without them were mixed."""
    pytest.importorskip("wordfreq")
    command = "words", "in.jsonl", "o.csv", "--word", "good", "--by", "kind", "--model", model_folder("bert")
    run(*command)
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    with pytest.warns(UserWarning, match="The table of words has no log frequencies"):
        error = run(*command, "--resume", fails=True).unwrapped_stderr
    assert "cannot be resumed" in error and "run.log_frequency: it was True, and is now False" in error


def test_a_full_disk_is_said_and_what_is_kept_stays_right(call, monkeypatch):
    """What could not be written was written again under the numbers of other texts."""
    monkeypatch.setattr(known, "SECONDS_PER_PART", 0)
    call("pairs", {"--items": "i.csv"}, "--batch-size", "1")
    expected, calls, write = Path("i.csv").read_bytes(), [], parts.ResumableOutput._write

    def full(self, path, blocks):
        calls.append(path)
        if len(calls) == 2:
            raise OutputError("no space")
        write(self, path, blocks)

    with monkeypatch.context() as patch:
        patch.setattr(parts.ResumableOutput, "_write", full)
        error = call("pairs", {"--items": "i.csv"}, "--batch-size", "1", "--force", fails=True).unwrapped_stderr
    assert "no space" in error and "The scores of 1 of 4" in error
    call("pairs", {"--items": "i.csv"}, "--batch-size", "1", "--resume")
    assert Path("i.csv").read_bytes() == expected


def test_of_a_run_that_is_refused_nothing_is_said_to_be_kept(call, monkeypatch):
    """It was said of none of its texts, with advice that would be refused again."""
    monkeypatch.setattr(known, "SECONDS_PER_PART", 0)
    with monkeypatch.context() as patch:
        patch.setattr(known.KeptScores, "discard", lambda self: None)
        patch.setattr(parts.ResumableOutput, "finish", lambda self: None)
        call("pairs", {"--items": "i.csv"}, "--batch-size", "1")
    error = call("pairs", {"--items": "i.csv"}, "--batch-size", "2", "--resume", fails=True).unwrapped_stderr
    assert "batch_size: it was 1, and is now 2" in error and "are kept" not in error and error.endswith("--force.")


STOPPED = [
    *((command, []) for command in ("pairs", "choices", "suite", "ppl", "words", "rescore")),
    ("ppl", ["--windows", "2"]),
    ("ppl", ["--metrics", "sentence_any_order", "--n-passes", "8"]),
    ("slots", []),
    ("slots", ["--top", "3"]),
]


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize(("command", "options"), STOPPED)
def test_a_run_that_is_stopped_goes_on(command, options, n, call, monkeypatch):
    """After any number of batches: the outputs are the same, and what was scored is not scored again."""
    outputs = {option: name for option, name in OUTPUTS[command].items() if option != "--plot"}
    if "--windows" in options:
        outputs = {"--output": "o.csv"}
    more = [*options, *(["--batch-size", "1"] if command != "slots" else [])]
    monkeypatch.setattr(filling, "MAX_TEXTS", (1, 1))
    call(command, outputs, *more)
    expected, seen = [Path(name).read_bytes() for name in outputs.values()], []
    monkeypatch.setattr(known, "SECONDS_PER_PART", 0)
    original = known.KeptScores.add

    def add(self, results, ends_batch=True):
        original(self, results, ends_batch)
        seen.append(len(results))
        if len(seen) == n:
            raise KeyboardInterrupt

    monkeypatch.setattr(known.KeptScores, "add", add)
    assert f"The scores of {n} of" in call(command, outputs, *more, "--force", code=130).unwrapped_stderr
    call(command, outputs, *more, "--resume")
    about = json.loads(Path(f"{next(iter(outputs.values()))}.manifest.json").read_text())
    (total,) = (value for name, value in about["input"].items() if name in ("texts", "windows", "hypotheses"))
    assert [Path(name).read_bytes() for name in outputs.values()] == expected and sum(seen) == total
    assert not list(Path().glob("*.parts"))
