"""A run that is stopped at any of its file operations, and resumed, gives the file that it would have given."""

import io
import multiprocessing
import os
import random
import shutil
import sys
from dataclasses import replace
from itertools import count, islice

import pytest

from spacy_pll import PipelineSettings, files
from spacy_pll.corpus import scored_texts
from spacy_pll.corpus.runs import Run, score_to_file

from ..conftest import SENTENCES
from ..corpus.running import make_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")

OPERATIONS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}  # events of `sys.addaudithook`, each before it
KILLED = 9


def stop_at(number, how, folder):
    """Stop this process before its file operation of this number in a folder. A write is three: it may end half-way."""
    done = 0

    def tick():
        nonlocal done
        done += 1
        if done == number and how == "kill":
            os._exit(KILLED)
        if done == number:
            raise KeyboardInterrupt

    class Watched(io.FileIO):
        def write(self, data):
            half = len(data) // 2
            for part in (data[:half], data[half:]):
                tick()
                super().write(part)
            tick()
            return len(data)

        def flush(self):
            if not self.closed:
                tick()
            super().flush()

    def watch(event, arguments):
        if event in OPERATIONS and str(arguments[0]).startswith(str(folder)):
            tick()

    files.open = Watched
    sys.addaudithook(watch)


def run_and_stop(number, how, folder, run, options):
    """Whether a run in a process of its own was stopped there. Otherwise it ended before."""

    def work():
        stop_at(number, how, folder)
        try:
            score_to_file(run, str(folder / "out.jsonl"), **options)
        except KeyboardInterrupt as error:
            note = " ".join(getattr(error, "__notes__", []))  # none, if no text had been read
            parts = len(list(folder.glob("out.jsonl.parts/0*.jsonl")))
            is_complete = (folder / "out.jsonl.manifest.json").exists()
            true = "is complete" in note and is_complete
            true = true or any(f"The scores of {n} of 3 texts are kept" in note for n in range(parts + 1))
            if note and not true:
                print(f"stop {number}: {note} There are {parts}.", file=sys.stderr)
                os._exit(1)
            os._exit(KILLED)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode in (0, KILLED), f"stop {number}: {process.exitcode}"
    return process.exitcode == KILLED


@pytest.fixture
def begun(make_nlp, model_folder, monkeypatch, parts_of, tmp_path):
    """begun(name): what a run begins with, in a new folder; the run; its options; and what it must give."""
    parts_of(1)
    nlp = make_nlp("bert")
    monkeypatch.setattr(Run, "make_pipeline", lambda run: nlp)  # loading it again and again takes long

    def begin(name):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "in.txt").write_text("".join(f"{sentence}\n" for sentence in SENTENCES[:3]))
        output = folder / "out.jsonl"
        run = make_run(folder / "in.txt", PipelineSettings(model=str(model_folder("bert"))), batch_size=1)
        score_to_file(run, str(output))
        expected = output.read_bytes()
        if name == "new":
            output.unlink()
            (folder / "out.jsonl.manifest.json").unlink()
            return folder, run, {}, expected
        if name == "damaged":  # the user asks for the same once more
            output.write_bytes(expected[10:])
            return folder, run, {"force": True}, expected
        if name == "other":  # and the last run had other settings
            score_to_file(replace(run, input=replace(run.input, column="other")), str(output), force=True)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # a run that was stopped
            patch.setattr(scored_texts, "with_progress", stop_before_the_third)
            score_to_file(run, str(output), force=True)
        first, *_ = sorted((folder / "out.jsonl.parts").glob("0*"))
        if name == "gap":  # as other programs may leave it
            first.unlink()
        return folder, run, {"force": True} if name == "other" else {"resume": True}, expected

    return begin


def stop_before_the_third(scored, *_):
    yield from islice(scored, 2)
    raise KeyboardInterrupt


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize(
    ("name", "how", "first", "step"),
    [
        ("other", "kill", 1, 11),  # among the tests that are not slow, some of its places
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                *(("new", "kill", 2, 2), ("other", "kill", 1, 2)),
                *(("new", "interrupt", 1, 2), ("other", "interrupt", 2, 2)),
                *(("damaged", "kill", 1, 2), ("damaged", "interrupt", 2, 2)),
                *(("gap", "kill", 2, 2), ("gap", "interrupt", 1, 2)),
            )
        ),
    ],
)
def test_a_run_that_is_stopped_anywhere_and_resumed_gives_the_same_bytes(begun, tmp_path, name, how, first, step):
    folder, run, options, expected = begun(name)
    again = random.Random(name)
    shutil.copytree(folder, tmp_path / "begin")
    before = contents(folder)
    for number in count(first, step):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "begin", folder)
        if not run_and_stop(number, how, folder, run, options):
            break
        if again.random() < 0.5:  # it may be stopped a second time
            run_and_stop(again.randrange(1, 60), how, folder, run, {"resume": True})
        # Where the run had not even begun, it is begun once more.
        nothing = "damaged" in name and (folder / "out.jsonl.manifest.json").exists() and contents(folder) == before
        score_to_file(run, str(folder / "out.jsonl"), **(options if nothing else {"resume": True}))
        assert (folder / "out.jsonl").read_bytes() == expected, f"stop {number}"
        names = sorted(path.name for path in folder.iterdir())
        assert names == ["in.txt", "out.jsonl", "out.jsonl.manifest.json"], f"stop {number}"
    print(f"{name}: stopped at each of {(number - first) // step} places, and resumed")
    assert number > 40
