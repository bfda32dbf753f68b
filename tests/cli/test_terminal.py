"""What the commands show where the terminal, or what reads their output, is not as usual."""

import json
import resource
import subprocess
import sys
import warnings

import pytest
from spacy.cli._util import app
from typer.testing import CliRunner

from spacy_pll.cli import errors
from spacy_pll.cli.terminal import draw, duration, hint_if_busy, visible
from spacy_pll.files import OutputError
from spacy_pll.visualize.plots import new_figure

from ..conftest import SENTENCES
from .conftest import COMMANDS, run


def test_control_characters_are_shown_not_sent():
    assert visible("\x1b[2Ja\tb\n\x9b1m\x07\x7fé\u202e") == r"\x1b[2Ja" + "\tb\n" + r"\x9b1m\x07\x7f" + "é\u202e"


def test_a_busy_machine_is_said_to_who_takes_several_threads():
    options = {"threads": None, "gpu_id": -1, "n_process": 1}
    hint = hint_if_busy(options, {}, 2.0, 2)
    assert "give --threads 1, or set OMP_NUM_THREADS=1" in hint and "2 cores busy (load 2.0)" in hint
    assert hint_if_busy({"threads": None, "gpu_id": -1}, {}, 9.5, 8)
    for changed in ({"threads": 2}, {"gpu_id": 0}, {"n_process": 2}, {"n_process": -1}):
        assert hint_if_busy({**options, **changed}, {}, 9.5, 8) is None
    assert hint_if_busy(options, {"OMP_NUM_THREADS": "1"}, 9.5, 8) is None
    assert hint_if_busy(options, {}, 7.9, 8) is None and hint_if_busy(options, {}, 3.0, 1) is None
    assert hint_if_busy({"corpus": "a.txt"}, {}, 9.5, 8) is None  # it reads no text with a model


@pytest.mark.parametrize("command", ["show", "agree", "pairs"])
def test_no_text_reaches_the_terminal_as_a_command(command, tmp_path, model_folder):
    model, text = model_folder("bert"), "The \x1b]0;title\x07 traveler"
    path = tmp_path / "in.jsonl"
    row = {"text": text, "sentence_good": text, "sentence_bad": "A word", "UID": "\x1b[31m", "linguistics_term": "x"}
    path.write_text(json.dumps(row) + "\n")
    arguments = {"show": (text, "--model", model), "agree": (model, model, path), "pairs": (path, "--model", model)}
    result = run(command, *arguments[command])
    assert "\x1b" not in result.stdout and r"\x1b" in result.stdout


def test_nor_does_the_name_of_a_file(tmp_path):
    result = run("show", "A word.", "--model", "\x1b]0;title\x07", fails=True)
    assert "\x1b]" not in result.stderr and r"\x1b]0;title\x07" in result.unwrapped_stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", ["show", "ppl"])
def test_a_reader_that_has_gone_is_no_error(command, tmp_path, model_folder):
    """As `... | head` may be. What is written to a file is written all the same."""
    (tmp_path / "in.txt").write_text("".join(text + "\n" for text in SENTENCES))
    output = tmp_path / "out.json"
    arguments = {"show": SENTENCES * 9, "ppl": (tmp_path / "in.txt", "-o", output)}
    words = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "spacy",
        "pll",
        command,
        *arguments[command],
        "--model",
        model_folder(),
    ]
    running = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.close()
    *progress, last = running.stderr.read().decode().splitlines() or [""]
    assert last == (f"Wrote {output}." if command == "ppl" else "") and running.wait() == 0
    assert all(" texts [" in line for line in progress if line)
    assert output.exists() == (command == "ppl")


def test_a_terminal_that_knows_only_ascii(model_folder):
    result = CliRunner(charset="ascii").invoke(app, ["pll", "show", "Die Stra\u00dfe.", "--model", str(model_folder())])
    assert (result.exit_code, result.stderr) == (0, "") and rb"Stra\xdfe" in result.stdout_bytes


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.2, "0 s"), (4.4, "4 s"), (59.7, "1 min 0 s"), (125, "2 min 5 s"), (7509, "2 h 5 min")]
)
def test_a_duration_names_its_units(seconds, shown):
    assert duration(seconds) == shown


def test_a_log_has_no_colours_and_whole_lines(monkeypatch):
    message = "A word. " * 30
    shown = {"log": errors.shown_message("fail", message)}
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("ANSI_COLORS_DISABLED", raising=False)
    shown["terminal"] = errors.shown_message("fail", message)
    monkeypatch.setenv("NO_COLOR", "1")
    shown["plain"] = errors.shown_message("fail", message)
    assert {name: ("\x1b" in text, "\n" in text) for name, text in shown.items()} == {
        "log": (False, False), "terminal": (True, True), "plain": (False, True),
    }  # fmt: skip
    assert all("✘ A word." in text for text in shown.values())


def test_warnings_are_messages(capsys):
    with pytest.warns(UserWarning), errors.printed_errors():
        warnings.warn("as pytest sees them", stacklevel=1)
    with errors.printed_errors(errors.options_of(COMMANDS["show"])):
        shown = warnings.formatwarning("Set `words` to \x1b.", UserWarning, "file.py", 3)
    assert "Set --words to " in shown and r"\x1b." in shown and "file.py" not in shown
    assert "file.py" in warnings.formatwarning("", UserWarning, "file.py", 3)


def test_a_picture_stays_until_the_new_one_is_complete(tmp_path):
    file = tmp_path / "new" / "a.png"
    draw(file, lambda: new_figure(1, 1))
    before, (soft, hard) = file.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, hard))  # as a full disk
    try:
        with pytest.raises(OutputError, match="a.png cannot be written"):
            draw(file, lambda: new_figure(1, 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == before and [path.name for path in file.parent.iterdir()] == ["a.png"]


def test_each_command_that_scores_can_be_quiet():
    names = {name for name, command in COMMANDS.items() if "quiet" in {one.name for one in command.params}}
    assert names == {*COMMANDS} - {"explore", "lm-eval"}


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "t.txt").write_text("".join(f"{text}\n" for text in SENTENCES))
    (tmp_path / "w.csv").write_text("word\nThe\ncats\n")
    (tmp_path / "p.csv").write_text("good,bad\nThe cats sleep.,The cats sleeps.\n")
    (tmp_path / "c.jsonl").write_text('{"context": "The", "options": ["cat.", "cats."], "label": 0}\n')
    (tmp_path / "n.jsonl").write_text(
        '{"hypotheses": [{"text": "a cat", "score": -1}, {"text": "a dog", "score": -2}]}\n'
    )
    (tmp_path / "s.csv").write_text("text\nThe ___ sleeps.\n")
    (tmp_path / "a.csv").write_text("sentence,label\nThe cats sleep.,1\nThe cats sleeps.,0\n")
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "given",
    [
        "score t.txt out.csv",
        "score t.txt -",
        "words w.csv out.csv --no-log-frequency",
        "render t.txt out.html",
        "slots s.csv out.csv --candidates cat,dog",
        "pairs p.csv --output out.json",
        "choices c.jsonl --output out.json",
        "suite a.csv --reader acceptability --output out.json",
        "ppl t.txt --output out.json",
        "rescore n.jsonl --weight 1 --output out.jsonl",
        "agree MODEL MODEL t.txt --output out.json",
        "margins MODEL t.txt --margins 1 --output out.json",
        "unigrams t.txt out.json",
        "show t --model MODEL",
    ],
)
def test_quiet_leaves_standard_error_empty(inputs, model_folder, monkeypatch, given):
    """Unless there is an error; and what goes to standard output stays."""
    monkeypatch.setattr("spacy_pll.cli.terminal.hint_if_busy", lambda *arguments: "busy")
    model = str(model_folder("bert"))
    words = [str(inputs / word) if "." in word and word != "-" else word for word in given.split()]
    words = [model if word == "MODEL" else word for word in words]
    words += [] if model in words else ["--model", model]
    loud = run(*words)
    quiet = run(*words, "--quiet", *["--force"] * ("out" in given))
    assert "busy" in loud.stderr and quiet.stderr == ""
    assert quiet.stdout.count("\n") == loud.stdout.count("\n")
    if "out" in given and "unigrams" not in given:  # what is there is not replaced without being told
        assert "exists" in run(*words, "--quiet", fails=True).stderr
    assert "busy" in run(*words, *["--force"] * ("out" in given)).stderr  # nothing of it is left


def test_quiet_shows_warnings_and_what_to_type_after_a_stop(inputs, model_folder, monkeypatch):
    (inputs / "n.csv").write_text("text\nThe cats sleep.\nNA\n")
    how = ("score", inputs / "n.csv", inputs / "out.csv", "--quiet", "--model", model_folder("bert"))
    with pytest.warns(UserWarning, match="1 of 2 texts are missing"):
        assert run(*how).stderr == ""
    assert run(*how, "--resume").stderr == ""  # it was complete

    def stop(*arguments):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr("spacy_pll.corpus.scored_texts.score_outcomes", stop)
    stopped = run(*how, "--force", code=130).unwrapped_stderr
    assert "Stopped by Ctrl-C." in stopped and stopped.endswith("--resume")
