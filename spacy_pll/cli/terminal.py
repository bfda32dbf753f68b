"""What goes to the terminal: control characters are shown, not sent, and a reader that has gone is no error."""

import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from ..corpus.records import PARQUET, STANDARD_STREAM
from ..documentation import page
from ..errors import InputError, PLLError, explained
from ..files import atomic_write, check_apart, check_output, outputs_of
from ..progress import hidden_progress
from ..stream.known import KeptScores
from ..visualize.plots import new_figure

PICTURES = (".png", ".svg", ".pdf")
TABLES = (".csv", ".tsv", PARQUET)
READ_FOLDERS = ("model", "scorers", "assays")  # options that may name one
T = TypeVar("T")
# Those of ASCII and Latin-1, except tabs and newlines. A terminal obeys them: they may change its title, or hide text.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    r"""The text with its control characters as Python writes them, such as \x1b."""
    return CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def say(text: str = "") -> None:
    """Print a line to standard output."""
    with until_closed():
        print(visible(text), flush=True)


_quiet = False


@contextmanager
def quietly() -> Iterator[None]:
    """A context without what `report` says, and without progress. Errors, warnings and results stay."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    global _quiet
    before, _quiet, are_disabled = _quiet, True, are_progress_bars_disabled()
    disable_progress_bars()  # of downloads
    try:
        with hidden_progress():
            yield
    finally:
        _quiet = before
        if not are_disabled:
            enable_progress_bars()


def report(text: str) -> None:
    """Print a line about the run to standard error, since standard output may carry results. See `quietly`."""
    if not _quiet:
        print(visible(text), file=sys.stderr)


def hint_if_busy(given: Mapping[str, Any], environment: Mapping[str, str], load: float, cores: int) -> str | None:
    """What to set if a run would take several threads while other programs use the cores (docs/speed.md).

    given (Mapping[str, Any]): The options of the command.
    load (float): How many threads want a core, on average.
    """
    takes_all = given.get("threads", 1) is None and given.get("n_process", 1) == 1 and given.get("gpu_id", 0) < 0
    if not takes_all or "OMP_NUM_THREADS" in environment or not load >= cores > 1:
        return None
    return (
        f"Something has kept the {cores} cores busy (load {load:.1f}). If it still does, fewer threads are "
        f"faster: give --threads 1, or set OMP_NUM_THREADS=1 ({page('speed.md#threads')})."
    )


def duration(seconds: float) -> str:
    """Such as 4 s, 5 min 4 s, or 2 h 5 min."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def save(file: Path | None, write: Callable[..., object], *contents: Any) -> None:
    """Write a file, if it is asked for, and say so."""
    if file:
        write(file, *contents)
        report(f"Wrote {file}.")


def check_files(given: Mapping[str, Any], arguments: Collection[str]) -> None:
    """Check that no input of a command is lost: see `check_apart`.

    given (Mapping[str, Any]): The values of its options and arguments. A path is an output. A text that names a file is
        an input, also within the settings of a scorer, and so is one that names a folder where folders are read.
    arguments (Collection[str]): Which of them are no options.
    """
    inputs, outputs = list[str](), list[Path]()
    for name, value in given.items():
        is_there = os.path.exists if name in arguments or name in READ_FOLDERS else os.path.isfile
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, Path):
                outputs.append(item)
            elif isinstance(item, str) and item != STANDARD_STREAM:
                inputs += filter(is_there, [item, *re.split("[=,]", item)])
    check_apart([path for path in outputs if str(path) != STANDARD_STREAM], inputs)


def check_outputs(
    force: bool,
    resume: bool,
    first: Path | None,
    *outputs: tuple[Path | None, tuple[str, ...]],
    beside: str = "--output",
) -> KeptScores:
    """Check the files that a command is to write, which would else be found when all is scored. With --force any may be
    replaced, and if a run goes on, those that the earlier run writes. RETURNS (KeptScores): Keeps scores until then.

    first (Optional[Path]): The file beside which scores are kept. beside (str): The options that name it.
    outputs (Tuple[Optional[Path], Tuple[str, ...]]): Files, and how their names may end.
    RAISES (ImportError, OSError, ValueError): One cannot be written, or something would be lost.
    """
    if resume and not first:
        raise InputError(f"--resume goes on with what is kept beside {beside}. Give the one of before.")
    ours = outputs_of(first) if resume and first else ()
    for file, endings in outputs:
        check_output(file, endings, force or file is not None and os.path.abspath(file) in ours)
        if file and endings is PICTURES:
            new_figure(1, 1)
        check_parquet(file, [])
    return KeptScores(first, resume, force, [file for file, _ in outputs])


def check_parquet(file: Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """RAISES (ImportError, ValueError): A table cannot hold rows, which would else be found when all is scored."""
    if file and file.suffix == PARQUET:
        from ..corpus import parquet  # needs the extra `[parquet]`

        parquet.table_of(file, rows)


def draw(file: Path, plot: Callable[..., Any], *results: Any) -> None:
    """Write a picture, and make its folder if needed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as picture:
        figure = plot(*results)
        with explained(f"{file} cannot be drawn"):  # such as a picture of thousands of groups
            figure.savefig(picture, format=file.suffix[1:])


@contextmanager
def until_closed() -> Iterator[None]:
    """End quietly where the reader of standard output, such as `head`, has closed it. What comes later goes nowhere."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Stoppable(Iterable[T]):
    """Items that end where Ctrl-C is pressed, so that what is known of those before can be shown. Pressed once more, it
    stops at once. After the block, the command ends as it does when it is stopped.
    """

    def __init__(self, items: Sequence[T]):
        self.items, self.given, self.stopped = items, 0, False

    def __enter__(self) -> "Stoppable[T]":
        self._before = signal.signal(signal.SIGINT, self._stop)
        return self

    def _stop(self, *_: object) -> None:
        if self.stopped or not self.given:
            raise KeyboardInterrupt
        self.stopped = True
        report(f"Stopping after {self.given:,} of {len(self.items):,} texts. Ctrl-C once more stops at once.")

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        if self.stopped and (error is None or isinstance(error, PLLError)):  # as if no text was scored
            raise KeyboardInterrupt

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[T]:
        for item in self.items:
            if self.stopped:
                return
            self.given += 1
            yield item
