"""Worker processes that die must not leave their parent waiting."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

# How often the workers are looked at.
SECONDS = 0.2


@contextmanager
def watch_workers() -> Iterator[None]:
    """While this lasts, a worker process that is killed ends the work with an error.

    `nlp.pipe(n_process=2)` would wait for it for ever: each forked worker holds the ends of its siblings' pipes, so the
    one that is gone is never seen to close its own. Here a thread sees that it is gone, and stops its siblings.

    RAISES (ChildProcessError): A worker was killed, by the system for want of memory, say.
    """
    started, killed, done = [], [], threading.Event()

    def look():
        killed.extend(process for process in list(started) if process.exitcode not in (None, 0))

    def watch():
        while not done.wait(SECONDS):
            look()
            if killed:
                for process in list(started):  # again and again: one may only just have been started
                    process.kill()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        with _noting_started(started):
            yield
    except (EOFError, OSError) as error:  # what the parent finds at the end of a pipe
        done.set()
        watcher.join()
        look()  # all of them may be gone before it could look again
        if not killed:
            raise
        raise ChildProcessError(
            f"A worker process was stopped by {_cause(killed[0].exitcode)}. Its texts were not scored. If memory was "
            "short, use fewer processes (n_process) or a smaller batch_size."
        ) from error
    finally:
        done.set()


@contextmanager
def _noting_started(processes: list) -> Iterator[None]:
    """Add each process that is started meanwhile to a list.

    `multiprocessing.active_children` would not do: it leaves out one that died before it was first asked.
    """
    original = BaseProcess.start

    def start(process):
        original(process)
        processes.append(process)

    BaseProcess.start = start
    try:
        yield
    finally:
        BaseProcess.start = original


def _cause(exitcode: int) -> str:
    return f"the signal {signal.Signals(-exitcode).name}" if exitcode < 0 else f"an error (exit code {exitcode})"
