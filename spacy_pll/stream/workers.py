"""Score texts in several processes.

Each worker has a pipe of its own, which closes when the worker dies, of whatever cause and at whatever moment. (Where
workers share a queue, as in `nlp.pipe(n_process=2)`, `concurrent.futures` and loky, one that is killed while it writes
leaves half a message there, and the others' answers wait behind it for ever.)
"""

import multiprocessing
import os
import signal
import threading
import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing import Process
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import torch
from spacy.language import Language
from spacy.tokens import Doc
from spacy.tokens.underscore import Underscore

from ..component import get_scorer
from ..errors import PLLError
from ..prediction.batches import batches_of
from ..progress import number_of, with_progress
from ..settings import BATCH_SIZE
from ..texts import Text, plain_texts
from ..user_code import ImportedCode
from ..user_warnings import TextWarning, warn_user
from .outcomes import Outcome, TextError, score_each

Workers = dict[Connection, Process]


class Work(NamedTuple):
    """How texts are scored.

    batch_size (int): The most texts in a batch. On a GPU, batches grow if it is 1,000 or more.
    n_process (int): Worker processes, each with one thread, on a CPU. -1 for one per core; 1 for none besides this one.
    show_progress (bool): Show a progress bar.
    """

    batch_size: int = BATCH_SIZE
    n_process: int = 1
    show_progress: bool = False


AS_USUAL = Work()


def score_outcomes(
    nlp: Language, texts: Iterable[Text], work: Work, done: int = 0
) -> Generator[tuple[Outcome, bool], None, None]:
    """Score texts in their order: see `score_each`. What comes out does not depend on the number of processes.

    RAISES (ChildProcessError): A worker was killed, or fails whatever it scores. Then all of them are stopped.
    RAISES (PLLError): There are to be workers, and the model is on a GPU; or `n_process` is no number of processes.
    """
    batch_size, n_process, _ = work
    if n_process < 1 and n_process != -1:
        raise PLLError(f"`n_process` must be 1 or more, or -1 for one per core. It is {n_process}.")
    if n_process == 1:
        yield from score_each(nlp, plain_texts(texts), batch_size, done)
        return
    predictor = get_scorer(nlp).predictor
    if predictor.prepare().on_gpu:  # loaded once, and not in each process
        raise PLLError("Worker processes cannot use the GPU that this process holds.", "Use `n_process=1`.")
    batches = batches_of(plain_texts(texts), predictor.ends_of_batches(batch_size, done))
    as_bytes = ([text.to_bytes() if isinstance(text, Doc) else text for text in batch] for batch in batches)
    warned = set[str]()
    with _started(nlp, multiprocessing.cpu_count() if n_process == -1 else n_process) as workers:
        for answer, ends_batch, messages in _in_order(as_bytes, workers):
            for message in messages:
                kind = getattr(message, "kind", "") or str(message)
                if kind not in warned:  # each worker warns of a kind of text
                    warned.add(kind)
                    warn_user(message)
            yield answer if isinstance(answer, TextError) else Doc(nlp.vocab).from_bytes(answer), ends_batch


def score_batches(
    nlp: Language, texts: Iterable[Text], work: Work, total: int | None = None, done: int = 0
) -> Generator[tuple[Doc, bool], None, None]:
    """As `score_docs`. YIELDS (Tuple[Doc, bool]): A scored doc, and whether a batch ends with it.

    done (int): How many texts were scored before the first one.
    """
    outcomes = score_outcomes(nlp, texts, work, done)
    watched = with_progress(outcomes, number_of(texts) or total, show=work.show_progress)
    # Closed even if a text fails: otherwise workers would live, and a bar be shown, for as long as the error is kept.
    with closing(outcomes), closing(watched):
        for outcome, ends_batch in watched:
            if isinstance(outcome, TextError):
                raise outcome
            yield outcome, ends_batch


def score_docs(
    nlp: Language,
    texts: Iterable[Text],
    batch_size: int,
    n_process: int = 1,
    show_progress: bool = False,
    total: int | None = None,
) -> Generator[Doc, None, None]:
    """Score texts, in several processes if `n_process` is not 1. An error ends the scoring.

    nlp (Language): A pipeline with a `pll` component.
    texts (Iterable[Union[str, Doc]]): Texts, or docs.
    batch_size, n_process, show_progress: See `Work`.
    total (Optional[int]): How many texts there are. None: the length of `texts`, if it has one.
    YIELDS (Doc): The scored docs, in the order of the texts.
    RAISES (TextError): A text cannot be scored.
    RAISES (ChildProcessError): A worker was killed, or fails whatever it scores.
    RAISES (PLLError): There are to be workers, and the model is on a GPU.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    for doc in spacy_pll.score_docs(nlp, ["The cats sleep.", "The cats sleeps."], batch_size=64):
        print(f"{doc} {doc._.pll:.2f}")
    ```

    ```
    The cats sleep. -14.76
    The cats sleeps. -22.32
    ```
    """
    with closing(score_batches(nlp, texts, Work(batch_size, n_process, show_progress), total)) as scored:
        for doc, _ in scored:
            yield doc


@contextmanager
def _started(nlp: Language, n_process: int) -> Iterator[Workers]:
    """Start workers. They are killed at the end: nothing that they could still do is needed."""
    workers: Workers = {}
    try:
        for _ in range(n_process):
            ours, theirs = multiprocessing.Pipe()
            arguments = (theirs, ImportedCode(), nlp, Underscore.get_state())
            process = Process(target=_work, args=arguments, daemon=True)
            process.start()
            theirs.close()  # the worker has the only other end, so no worker that is started later keeps it open
            workers[ours] = process
        yield workers
    finally:
        for process in workers.values():
            process.kill()
        for connection, process in workers.items():
            process.join()
            connection.close()


def _in_order(batches: Iterator[list[Any]], workers: Workers) -> Iterator[tuple[Any, bool, list[Warning]]]:
    """Hand out batches, and give the answers to each text in the order of the texts: see `_work`.

    A worker has one batch at a time. As many batches as there are workers may have been answered before their turn.
    """
    numbered, turn = enumerate(batches), 0
    idle, busy = list(workers), dict[Connection, int]()
    answers: dict[int, deque[Any]] = {}  # by the number of the batch, from when it is handed out
    failed: Exception | None = None  # of the texts that come next: raised once the texts before are given
    while True:
        while idle and len(answers) < 2 * len(workers):
            try:
                batch = None if failed else next(numbered, None)
            except Exception as error:
                batch, failed = None, error
            if batch is None:
                break
            busy[worker := idle.pop()] = batch[0]
            answers[batch[0]] = deque()
            with _noticing_death(workers[worker]):
                worker.send(batch[1])
        if not answers:
            if failed:
                raise failed
            return
        ready: list[Any] = wait(busy, timeout=0 if answers[turn] else None)
        for worker in ready:
            with _noticing_death(workers[worker]):
                answer = worker.recv()
            if isinstance(answer, str):
                raise ChildProcessError(f"A worker process failed. {answer}")
            answers[busy[worker]].append(answer)
            if answer is None:  # its batch is done
                del busy[worker]
                idle.append(worker)
        if answers[turn]:
            answer = answers[turn].popleft()
            if answer is None:
                del answers[turn]
                turn += 1
            else:
                yield answer


@contextmanager
def _noticing_death(process: Process) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        process.join()
        code = process.exitcode or 0
        cause = f"the signal {signal.Signals(-code).name}" if code < 0 else f"an error (exit code {code})"
        raise ChildProcessError(
            f"A worker process was stopped by {cause}. If memory was short, use fewer processes (n_process) or a "
            "smaller batch_size."
        ) from error


def _work(connection: Connection, code: ImportedCode, nlp: Language, underscore: tuple[Any, ...]) -> None:
    """What a worker does: of each batch, it sends each outcome as soon as it is there, whether it is the last, and what
    is warned of, then None; or the text of an error that is not a text's.

    code (ImportedCode): Comes before the pipeline, which may have what it registers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal goes to all processes. The parent decides.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    Underscore.load_state(underscore)
    messages = list[Warning]()  # for the parent, which shows them as its own
    warnings.showwarning = lambda message, *where, **more: messages.append(sendable(message))
    warnings.filterwarnings("default", category=UserWarning)
    with suppress(EOFError, OSError):  # the parent has ended
        while True:
            texts = [Doc(nlp.vocab).from_bytes(text) if isinstance(text, bytes) else text for text in connection.recv()]
            try:
                for number, (outcome, _) in enumerate(score_each(nlp, texts, len(texts)), 1):
                    answer = outcome.to_bytes() if isinstance(outcome, Doc) else outcome
                    connection.send((answer, number == len(texts), messages.copy()))
                    messages.clear()
                connection.send(None)
            except Exception as error:
                connection.send(f"{type(error).__name__}: {error}")


def sendable(message: Warning | str) -> Warning:
    """A warning as another process knows it: without classes that may not be there."""
    is_known = type(message).__module__ in ("builtins", TextWarning.__module__)
    return message if isinstance(message, Warning) and is_known else UserWarning(str(message))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, for whatever reason."""
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)
