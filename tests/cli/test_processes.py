"""`--n-process` of the commands that evaluate: `score` has tests of its own."""

import os
import signal
import time
from pathlib import Path

import pytest

from spacy_pll.stream import workers

from ..conftest import SENTENCES, write_jsonl
from .conftest import run, start

ENDINGS = {"rescore": ".jsonl", "render": ".html"}


@pytest.fixture
def inputs(tmp_path):
    """A command's name: its arguments."""
    pairs = [{"sentence_good": a, "sentence_bad": b} for a, b in zip(SENTENCES, SENTENCES[1:])]
    lists = [{"hypotheses": [{"text": text, "score": 0.0} for text in SENTENCES[:3]]}] * 2
    for name, rows in (("pairs", pairs), ("rescore", lists), ("ppl", [{"text": text} for text in SENTENCES])):
        write_jsonl(tmp_path / f"{name}.jsonl", *rows)
    return {
        "pairs": (tmp_path / "pairs.jsonl",),
        "rescore": (tmp_path / "rescore.jsonl", "--weight", "1"),
        "ppl": (tmp_path / "ppl.jsonl",),
        "render": (tmp_path / "ppl.jsonl",),
    }


@pytest.mark.parametrize("command", ["pairs", "rescore", "ppl", "render"])
def test_two_processes_give_the_same(command, inputs, tmp_path, model_folder, monkeypatch):
    processes, started = [], workers._started

    def noting(nlp, n_process):
        processes.append(n_process)
        return started(nlp, n_process)

    monkeypatch.setattr(workers, "_started", noting)
    options = ("--model", model_folder("bert"), "--batch-size", 2)
    outputs = [tmp_path / f"{n}{ENDINGS.get(command, '.json')}" for n in (1, 2)]
    for n, output in enumerate(outputs, 1):
        run(command, *inputs[command], *options, "--n-process", n, *(() if command == "render" else ("-o",)), output)
    assert processes == [2]
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "of_worker", "code", "message"),
    [
        (signal.SIGKILL, True, 1, "A worker process was stopped by the signal SIGKILL."),
        (signal.SIGINT, False, 130, "Stopped by Ctrl-C."),
        (signal.SIGTERM, False, 143, "Stopped by the signal SIGTERM."),
    ],
)
def test_a_run_that_is_stopped_says_how_to_go_on_and_its_parts_are_joined_then(
    number, of_worker, code, message, model_folder, tmp_path, parts_of
):
    """As with a killed worker, Ctrl-C (which goes to all processes) and `kill`, at three moments of one run."""
    parts_of(16)
    texts, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    texts.write_text("".join(f"{sentence} {n}\n" for n in range(60) for sentence in SENTENCES))
    options = ["--model", model_folder("bert"), "--batch-size", 4]
    for n_parts, again in ((1, "--force"), (2, "--resume"), (2, "--resume")):
        command = ["score", texts, output, *options, "--n-process", 2, again]
        exit_code, stderr = stopped(command, tmp_path, n_parts, number, of_worker)
        assert exit_code == code and not output.exists()
        assert message in stderr and "are kept in" in stderr and "Traceback" not in stderr
        assert stderr.endswith("--batch-size 4 --n-process 2 --resume")  # the command, without --force
    run("score", texts, output, *options, "--resume")
    run("score", texts, tmp_path / "whole.jsonl", *options)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def stopped(command, folder, n_parts, number, of_worker):
    """Run a command until it has written so many parts, and send it, or one of its workers, a signal. RETURNS: Its exit
    code, and what it wrote to standard error.
    """

    def count():
        return len(list((folder / "out.jsonl.parts").glob("0*")))

    before = count()
    process = start(*command, log=folder / "log")
    while count() < before + n_parts:
        assert process.is_alive(), (folder / "log").read_text()
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    if of_worker:
        os.kill(int(children[-1]), number)
    elif number == signal.SIGINT:
        os.killpg(process.pid, number)
    else:
        os.kill(process.pid, number)
    process.join(60)
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)
    return process.exitcode, " ".join((folder / "log").read_text().split())
