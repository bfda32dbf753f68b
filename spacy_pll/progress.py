"""How many texts are done: a bar in a terminal, and a line every minute where standard error goes to a file."""

import shutil
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Any, TypeVar

from tqdm import tqdm

T = TypeVar("T")
SECONDS_PER_LINE = 60
FIRST_SECONDS, WORTH_SAYING = 5, 1 / 60  # from which a forecast is made; hours of work, or nobody needs it
LINE = "{desc}{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_fmt}]"


_hidden = False


@contextmanager
def hidden_progress() -> Iterator[None]:
    """A context without bars, lines and forecasts, whoever asks for them."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


class Lines(tqdm):  # type: ignore[type-arg]
    """Writes a line each time, where a bar would be written over the one before."""

    @staticmethod
    def status_printer(file: Any) -> Callable[[str], None]:
        return lambda line: print(line, file=file, flush=True)

    def clear(self, *_: Any, **__: Any) -> None:
        """There is no bar to remove where another line is written."""


def with_progress(
    texts: Iterable[T], total: int | None = None, done: int = 0, show: bool = True, unit: str = " texts"
) -> Generator[T, None, None]:
    """Pass texts on, and show on standard error how many there have been: see `progress_bar`."""
    with progress_bar(total, done, show, unit) as bar:
        for text in texts:
            bar.update()
            yield text


def progress_bar(total: int | None, done: int = 0, show: bool = True, unit: str = " texts") -> tqdm:  # type: ignore[type-arg]
    """What shows how many things are done, of a total if that is known. done (int): How many were done before."""
    show = show and not _hidden
    look: dict[str, Any] = {"total": total, "initial": done, "unit": unit, "disable": not show}
    # A line can be written over in a terminal that has a width, and in a notebook.
    if not show or sys.stderr.isatty() and shutil.get_terminal_size().columns > 0 or "ipykernel" in sys.modules:
        return tqdm(**look)
    look |= {"mininterval": SECONDS_PER_LINE, "maxinterval": SECONDS_PER_LINE, "miniters": 1}
    return Lines(**look, bar_format=LINE if total else None)


class Forecast:
    """Says once, after the first seconds, how much work there is, if the other texts are as the first ones.

    total (Optional[int]): How many texts there are. None if that is not known: then nothing is said.
    done (int): How many of them were done before.
    """

    def __init__(self, total: int | None, done: int = 0, show: bool = True):
        show = show and not _hidden
        self.left, self.start, self.texts, self.pieces = (total or 0) - done if show else 0, time.monotonic(), 0, 0

    def add(self, pieces: int, ends_batch: bool) -> None:
        """Count a text that is scored. The texts of a batch come together."""
        self.texts, self.pieces, seconds = self.texts + 1, self.pieces + pieces, time.monotonic() - self.start
        if self.left and ends_batch and seconds >= FIRST_SECONDS:
            pieces, hours = round(self.pieces * self.left / self.texts), seconds * self.left / self.texts / 3600
            time_left = f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.1f} hours"
            if hours >= WORTH_SAYING:
                of_pieces = f"with about {float(f'{pieces:.2g}'):,.0f} wordpieces"
                tqdm.write(
                    f"{self.left:,} texts to go, {of_pieces}: about {time_left} on this device.", file=sys.stderr
                )
            self.left = 0


def number_of(items: object) -> int | None:
    """How many items there are, if that is known before they come."""
    return len(items) if isinstance(items, Sized) else None
