import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace
from itertools import accumulate, islice

import pytest
from spacy.language import Language
from spacy.tokens import Doc

import spacy_pll
from spacy_pll import PLLError
from spacy_pll.prediction.batches import batches_of
from spacy_pll.stream.outcomes import score_each
from spacy_pll.stream.workers import Work, score_docs, score_outcomes

from ..conftest import SENTENCES


def score_texts(nlp, texts, batch_size, n_process=1):
    return (outcome for outcome, _ in score_outcomes(nlp, texts, Work(batch_size, n_process)))


@Language.component("kills_its_process")
def kills_its_process(doc):
    if doc.text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if doc.text == "exit":
        os._exit(3)
    if doc.text == "bad":
        raise RuntimeError("a bad text")
    return doc


@pytest.fixture
def nlp(make_nlp):
    """Has what fails behind what scores."""
    nlp = make_nlp("bert")
    nlp.max_length = 200
    nlp.add_pipe("kills_its_process")
    return nlp


def shown(outcomes):
    return [outcome.to_bytes() if isinstance(outcome, Doc) else str(outcome) for outcome in outcomes]


@pytest.mark.parametrize("batch_size", [1, 3])
def test_outcomes_and_their_order_do_not_depend_on_the_number_of_processes(nlp, batch_size):
    texts = [*SENTENCES, "bad", nlp.make_doc("A doc."), "", "long " * 100, *SENTENCES]
    expected = shown(score_texts(nlp, texts, batch_size))
    assert shown(score_texts(nlp, texts, batch_size, 2)) == shown(score_texts(nlp, texts, batch_size, 3)) == expected
    errors = {texts.index(text): error for text, error in zip(texts, expected) if isinstance(error, str)}
    assert errors[5] == "RuntimeError: a bad text" and errors[8].startswith("ValueError: [E088]")
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_warning_of_a_worker_comes_once_and_as_the_parents(make_nlp, monkeypatch, method):
    """Each worker printed it once more, and a spawned one as Python does."""
    monkeypatch.setattr("spacy_pll.stream.workers.Process", multiprocessing.get_context(method).Process)
    nlp, texts = make_nlp("bert"), [f"The 鯨鯨 {name} left." for name in "abcdef"]
    with pytest.warns(UserWarning) as alone:
        list(score_texts(nlp, texts, 1))
    with pytest.warns(UserWarning) as found:
        list(score_texts(make_nlp("bert"), texts, 1, 2))
    assert len(found) == len(alone) == 1 and found[0].filename == alone[0].filename == __file__
    assert "are unknown to the tokenizer" in str(found[0].message)


def test_few_texts_are_read_in_advance(nlp):
    read = []
    endless = (read.append(n) or SENTENCES[0] for n in iter(int, 1))
    docs = score_docs(nlp, endless, 4, 2)
    for _ in range(50):
        next(docs)
    assert len(read) <= 50 + 4 * 2 * 2
    docs.close()
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("text", "cause"),
    [("die", "stopped by the signal SIGKILL.*n_process"), ("exit", r"stopped by an error \(exit code 3\)")],
)
def test_a_worker_that_ends_is_an_error_and_no_hang(nlp, text, cause):
    scored = score_texts(nlp, [*SENTENCES, text, *SENTENCES * 20], 2, 2)
    with pytest.raises(ChildProcessError, match=cause):
        list(scored)
    assert not multiprocessing.active_children()
    # The pipeline is none the worse for it.
    assert len(list(score_docs(nlp, SENTENCES, 2, 2))) == len(SENTENCES)


def test_docs_leave_a_worker_before_their_batch_is_done(nlp):
    scored = score_texts(nlp, [*SENTENCES[:3], "die"], 4, 2)
    assert [doc.text for doc in islice(scored, 3)] == SENTENCES[:3]
    with pytest.raises(ChildProcessError, match="SIGKILL"):
        next(scored)


@pytest.mark.parametrize(("mask_margin", "sizes"), [(None, [1, 1, 2, 1, 3]), (0, [3, 3, 2])])
def test_a_batch_has_so_many_texts_or_so_much_work(make_nlp, monkeypatch, mask_margin, sizes):
    """And a run that begins behind a batch has the same batches."""
    nlp = make_nlp("bert", mask_margin=mask_margin)
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=2000))
    texts = ["long " * 40, "long " * 40, "A text.", "long " * 40, "long " * 40, *["A text."] * 3]
    batches = list(batches_of(texts, predictor.ends_of_batches(3)))
    assert sum(batches, []) == texts and list(map(len, batches)) == sizes
    for n in range(len(batches)):
        done = sum(map(len, batches[:n]))
        assert list(batches_of(texts[done:], predictor.ends_of_batches(3, done))) == batches[n:]
    ends = [number for number, (_, ends) in enumerate(score_each(nlp, texts, 3), 1) if ends]
    assert ends == list(accumulate(sizes))


@Language.component("much_data")
def much_data(doc):
    doc.user_data["much"] = "x" * 2_000_000
    return doc


def test_a_worker_that_is_killed_while_it_answers_is_an_error_and_no_hang(make_nlp):
    """The answer is far larger than what a pipe takes, so the worker waits in the middle of it."""
    nlp = make_nlp("bert")
    nlp.add_pipe("much_data")
    scored = score_texts(nlp, (SENTENCES[0] for _ in iter(int, 1)), 4, 2)
    next(scored)
    time.sleep(0.3)  # nobody reads
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="SIGKILL"):
        list(scored)


def test_a_fault_of_the_worker_is_no_texts_fault(nlp, monkeypatch):
    def broken(self, *args):
        raise RuntimeError("device lost")

    monkeypatch.setattr("spacy_pll.prediction.asking.PendingScores.result", broken)
    with pytest.raises(RuntimeError, match="device lost"):
        list(score_texts(nlp, SENTENCES, 2))
    with pytest.raises(ChildProcessError, match="A worker process failed. RuntimeError: device lost"):
        list(score_texts(nlp, SENTENCES, 2, 2))


def test_workers_cannot_share_a_gpu(nlp, monkeypatch):
    model = nlp.get_pipe("pll").model
    monkeypatch.setattr(model, "loaded", replace(model.load(), on_gpu=True))
    with pytest.raises(PLLError, match="Worker processes cannot use the GPU.*`n_process=1`"):
        list(score_texts(nlp, SENTENCES, 2, 2))
    assert len(list(score_texts(nlp, SENTENCES, 2, 1))) == len(SENTENCES)


@pytest.mark.parametrize("n_process", [0, -2])
def test_no_number_of_processes_is_an_error_before_a_text_is_scored(nlp, n_process):
    """There were no scores and no error, or a KeyError."""
    texts, wrong = ["The cats sleep.", "It is."], f"`n_process` must be 1 or more, or -1 .* It is {n_process}"
    for function in (
        lambda: list(score_texts(nlp, texts, 2, n_process)),
        lambda: spacy_pll.score(texts, nlp, n_process=n_process),
        lambda: spacy_pll.perplexity(nlp, texts, n_process=n_process),
        lambda: spacy_pll.minimal_pairs(nlp, [texts], n_process=n_process),
    ):
        with pytest.raises(PLLError, match=wrong):
            function()


@pytest.mark.parametrize("n_process", [1, 2])
def test_an_error_of_what_is_read_passes(nlp, n_process):
    def texts():
        yield from SENTENCES[:3]
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(score_texts(nlp, texts(), 2, n_process))
    assert not multiprocessing.active_children()


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="worker processes are not forked here")
def test_workers_end_with_their_parent(nlp):
    """Also if it is killed, and while they are scoring."""

    def parent(connection):
        scored = score_texts(nlp, (SENTENCES[0] for _ in iter(int, 1)), 4, 2)
        next(scored)
        connection.send([process.pid for process in multiprocessing.active_children()])
        threading.Event().wait()

    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=parent, args=(there,))
    process.start()
    workers = here.recv()
    process.kill()
    process.join()
    deadline = time.monotonic() + 60
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"  # ended, and nobody has asked how
    except OSError:
        return False


@pytest.mark.parametrize("n_process", [1, 2])
def test_docs_before_an_error_of_the_input_are_given(make_nlp, n_process):
    def texts():
        yield from (f"The cats sleep {number}." for number in range(23))
        raise RuntimeError("the input broke")

    given = []
    with pytest.raises(RuntimeError, match="the input broke"):
        for doc in score_docs(make_nlp("bert"), texts(), 5, n_process=n_process):
            given.append(doc.text)
    assert given == [f"The cats sleep {number}." for number in range(23)]
