"""Raise an error when a worker process is killed, instead of waiting forever."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

# Seconds between two looks at the workers.
INTERVAL = 0.2


@contextmanager
def watch_workers() -> Iterator[None]:
    """Raise an error if a worker process is killed within this context.

    `nlp.pipe(n_process=2)` would wait for the killed worker forever. Each forked worker also holds the pipes of the
    other workers open, so the pipe of a killed worker is never closed. Here a thread watches the workers. When one of
    them is killed, it stops the others.

    RAISES (ChildProcessError): A worker was killed, for example by the system because memory was short.
    """
    started: list[BaseProcess] = []
    killed: list[int] = []  # their exit codes
    done = threading.Event()

    def look() -> None:
        killed.extend(process.exitcode for process in list(started) if process.exitcode)

    def watch() -> None:
        while not done.wait(INTERVAL):
            look()
            if killed:
                for process in list(started):  # in every round: one may just have been started
                    process.kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        with _noting_started(started):
            yield
    except (EOFError, OSError) as error:  # what reading from the pipe of a killed worker raises
        done.set()
        watcher.join()
        look()  # all of them may have ended since the last look
        if not killed:
            raise
        raise ChildProcessError(
            f"A worker process was stopped by {_cause(killed[0])}. Its texts were not scored. If memory was "
            "short, use fewer processes (n_process) or a smaller batch_size."
        ) from error
    finally:
        done.set()
        watcher.join()


@contextmanager
def _noting_started(processes: list[BaseProcess]) -> Iterator[None]:
    """Add each process that is started in this context to a list.

    `multiprocessing.active_children` leaves out a process that died before the first call.
    """
    original = BaseProcess.start

    def start(process: BaseProcess) -> None:
        original(process)
        processes.append(process)

    # By setattr, since mypy takes no assignment to a method.
    setattr(BaseProcess, "start", start)  # noqa: B010
    try:
        yield
    finally:
        setattr(BaseProcess, "start", original)  # noqa: B010


def _cause(exitcode: int) -> str:
    return f"the signal {signal.Signals(-exitcode).name}" if exitcode < 0 else f"an error (exit code {exitcode})"
