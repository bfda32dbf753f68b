"""Results of an evaluation that is stopped: parts beside its output keep them, and the next run goes on from there."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import FloatArray
from ..errors import RunComplete
from ..files import OUTPUTS
from ..progress import progress_bar
from ..stream.parts import ResumableOutput

SECONDS_PER_PART = 5


class KeptScores:
    """What is found for each of some things, in their order.

    output (Optional[Path]): The parts are in the folder OUTPUT.parts. None: nothing is kept.
    resume, force (bool): See `ResumableOutput`.
    outputs (Sequence[Optional[Path]]): All files that are written when all is found. A run that is resumed replaces
        them, and when they are written, a manifest beside OUTPUT says so.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(
        self,
        output: Path | None = None,
        resume: bool = False,
        force: bool = False,
        outputs: Sequence[Path | None] = (),
    ):
        self._parts = ResumableOutput(output, resume, force) if output else None
        self._outputs = [os.path.relpath(one, output.parent) for one in outputs if one] if output else []
        self.about: dict[str, Any] = {}  # what the results depend on, besides the things
        self.about_outputs: dict[str, Any] = {}  # what the outputs depend on, and the results do not
        self._all: Sequence[object] = ()
        self._digests = list[str]()  # of the first so many of them
        self.found: list[Any] = []  # by earlier runs, of the first things
        self._waiting, self._since = list[str](), time.monotonic()  # lines of the next part; when the last was written

    def begin(self, items: Sequence[object], unit: str = "texts") -> None:
        """Read what earlier runs have found.

        unit (str): What the things are called.
        RAISES (ResumeError): The run to resume differs from this one.
        RAISES (RunComplete): It has written all its outputs.
        """
        if self._parts:
            self._digests = digests(items)
            ends = {n: self._digests[n] for n in self._parts.ends() if n <= len(items)}
            manifest = {"input": {unit: len(items), "digest": self._digests[-1]}, **self.about}
            manifest |= {OUTPUTS: {"files": self._outputs, **self.about_outputs}} if self._outputs else {}
            if self._parts.begin(manifest, ends) is None:
                raise RunComplete(f"{self._parts.output} was complete. Nothing was scored.")
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
        except RunComplete:
            raise
        except BaseException:
            if not self._parts or not self._all:  # it has not begun
                raise
            with self._parts.kept(len(self._all), self._unit):
                self._write(self._parts)
                raise
        if self._parts and self._outputs:
            self._parts.finish()
        elif self._parts:
            self._parts.discard()

    def _write(self, parts: ResumableOutput) -> None:
        if n := len(self._waiting):
            parts.write("".join(self._waiting).encode(), n, self._digests[parts.done + n])
        self._waiting, self._since = [], time.monotonic()


def digests(items: Iterable[object]) -> list[str]:
    """A digest of the first so many things, from none of them on."""
    total = sha256()
    found = [""]
    for item in items:
        total.update(f"{item!r}\n".encode("utf8", "surrogatepass"))
        found.append(total.hexdigest()[:16])
    return found


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
