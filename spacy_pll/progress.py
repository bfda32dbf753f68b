"""How many texts are done: a bar in a terminal, and a line every minute where standard error goes to a file."""

import shutil
import sys
from collections.abc import Callable, Generator, Iterable, Sized
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_PER_LINE = 60
LINE = "{desc}{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_fmt}]"


class Lines(tqdm):  # type: ignore[type-arg]
    """Writes a line each time, where a bar would be written over the one before."""

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        return lambda line: print(line, file=file, flush=True)


def with_progress(
    texts: Iterable[T], total: int | None = None, done: int = 0, show: bool = True
) -> Generator[T, None, None]:
    """Pass texts on, and show on standard error how many there have been: see `progress_bar`."""
    with progress_bar(total, done, show) as bar:
        for text in texts:
            bar.update()
            yield text


def progress_bar(total: int | None, done: int = 0, show: bool = True, unit: str = " texts") -> tqdm:  # type: ignore[type-arg]
    """What shows how many things are done, of a total if that is known. done (int): How many were done before."""
    look: dict[str, Any] = {"total": total, "initial": done, "unit": unit, "disable": not show}
    # A line can be written over in a terminal that has a width, and in a notebook.
    if not show or sys.stderr.isatty() and shutil.get_terminal_size().columns > 0 or "ipykernel" in sys.modules:
        return tqdm(**look)
    look |= {"mininterval": SECONDS_PER_LINE, "maxinterval": SECONDS_PER_LINE, "miniters": 1}
    return Lines(**look, bar_format=LINE if total else None)


def number_of(items: object) -> int | None:
    """How many items there are, if that is known before they come."""
    return len(items) if isinstance(items, Sized) else None
