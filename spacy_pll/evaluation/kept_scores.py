"""Results of an evaluation that is stopped: parts beside its output keep them, and the next run goes on from there."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..corpus.resumable import ResumableOutput
from ..progress import progress_bar

SECONDS_PER_PART = 5


class KeptScores:
    """What is found for each of some things, in their order.

    output (Optional[Path]): The parts are in the folder OUTPUT.parts. None: nothing is kept.
    resume, force (bool): See `ResumableOutput`.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(self, output: Path | None = None, resume: bool = False, force: bool = False):
        self._parts = ResumableOutput(output, resume, force) if output else None
        self.about: dict[str, Any] = {}  # what the results depend on, besides the things
        self._all: Sequence[object] = ()
        self.found: list[Any] = []  # by earlier runs, of the first things
        self._waiting, self._since = list[str](), time.monotonic()  # lines of the next part; when the last was written

    def begin(self, items: Sequence[object], unit: str = "texts") -> None:
        """Read what earlier runs have found. RAISES (ResumeError): The run to resume differs from this one.

        unit (str): What the things are called.
        """
        if self._parts:
            ends = {n: _digest(items[:n]) for n in self._parts.ends()}
            self._parts.begin({"input": {unit: len(items), "digest": _digest(items)}, **self.about}, ends)
            self.found = list(map(json.loads, self._parts.read().splitlines()))
            self._all, self._unit = items, unit

    def add(self, results: Iterable[object]) -> None:
        """Keep the results of the next things: a whole batch, so that they do not depend on where a run was stopped."""
        if self._parts:
            self._waiting += [f"{json.dumps(one)}\n" for one in results]
            if time.monotonic() - self._since > SECONDS_PER_PART:
                self._write(self._parts)

    @contextmanager
    def until_done(self) -> Iterator[None]:
        """If the run stops in this context, the error says what is kept. Otherwise nothing is needed any more."""
        try:
            yield
        except BaseException:
            if not self._parts or not self._all:  # it has not begun
                raise
            with self._parts.kept(len(self._all), self._unit):
                self._write(self._parts)
                raise
        if self._parts:
            self._parts.discard()

    def _write(self, parts: ResumableOutput) -> None:
        if n := len(self._waiting):
            parts.write("".join(self._waiting).encode(), n, _digest(self._all[: parts.done + n]))
        self._waiting, self._since = [], time.monotonic()


def _digest(items: Sequence[object]) -> str:
    return sha256(repr(items).encode("utf8", "surrogatepass")).hexdigest()[:16]


def find_each(
    items: Sequence[object],
    find: Callable[[int], Iterable[FloatArray]],
    unit: str,
    kept: KeptScores,
    show_progress: bool = False,
) -> FloatArray:
    """The numbers that are found for each of some things.

    find (Callable): Finds them for all but the first so many, in batches that do not depend on where it begins.
    unit (str): What they are called.
    kept (KeptScores): Has what is found already, and gets what is found.
    """
    kept.begin(items, unit)
    found = list(kept.found)
    with progress_bar(len(items), len(found), show_progress, f" {unit}") as bar:
        for batch in find(len(found)):
            found += list(batch)
            bar.update(len(batch))
            kept.add(batch.tolist())
    return np.array(found)
