import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import spacy

from spacy_pll.corpus.workers import watch_workers

from ..conftest import SENTENCES

pytestmark = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork", reason="worker processes are not forked here"
)


def kill_one(which, before):
    """Kill a worker once both are there."""
    while len(workers := set(multiprocessing.active_children()) - before) < 2:
        time.sleep(0.01)
    os.kill(sorted(process.pid for process in workers)[which], signal.SIGKILL)


@pytest.mark.parametrize("which", [0, 1])
def test_a_killed_worker_is_an_error_and_no_hang(make_nlp, which):
    nlp = make_nlp("bert")
    nlp.initialize()
    before = set(multiprocessing.active_children())
    killer = threading.Thread(target=kill_one, args=(which, before), daemon=True)
    killer.start()
    endless = (text for _ in iter(int, 1) for text in SENTENCES)
    with pytest.raises(ChildProcessError, match="stopped by the signal SIGKILL.*n_process"), watch_workers():
        for _ in nlp.pipe(endless, n_process=2, batch_size=4):
            pass
    assert not set(multiprocessing.active_children()) - before
    # The pipeline is none the worse for it.
    with watch_workers():
        assert len(list(nlp.pipe(SENTENCES, n_process=2, batch_size=2))) == len(SENTENCES)


def test_errors_of_other_kinds_pass():
    for error in (OSError("disk"), EOFError("end"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as found, watch_workers():
            raise error
        assert found.value is error


CODE = """
import os, signal, sys
import spacy
from spacy.language import Language
from spacy_pll.cli import app

@Language.component("killed_by_a_text")
def killed_by_a_text(doc):
    if doc.text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return doc

app(["score", *sys.argv[1:]])
"""


@pytest.mark.slow
def test_the_command_says_so(make_nlp, tmp_path):
    nlp = spacy.blank("en")
    code = CODE.rsplit("app(", 1)[0]
    exec(compile(code, "component", "exec"), {})
    nlp.add_pipe("killed_by_a_text")
    make_nlp("bert", nlp=nlp).to_disk(tmp_path / "pipeline")
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in [*SENTENCES * 3, "die", *SENTENCES * 3]))
    arguments = [tmp_path / "in.txt", tmp_path / "out.jsonl", "--model", tmp_path / "pipeline", "--n-process", 2]
    out = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, arguments), "--batch-size", "2"], capture_output=True, text=True
    )
    assert out.returncode == 1 and "Traceback" not in out.stderr, out.stderr
    assert "stopped by the signal SIGKILL" in " ".join(out.stderr.split())
    assert not (tmp_path / "out.jsonl").exists()
