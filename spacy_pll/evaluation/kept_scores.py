"""Scores of an evaluation that is stopped: parts beside its output keep them, and the next run goes on from there."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..corpus.resumable import ResumableOutput
from ..places import Placed
from .distinct_texts import TextSums

SECONDS_PER_PART = 5


class KeptScores:
    """The scores of texts in their contexts under several scorers, one scorer after the other.

    output (Path): The parts are in the folder OUTPUT.parts.
    resume, force (bool): See `ResumableOutput`.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(self, output: Path, resume: bool = False, force: bool = False):
        self._parts = ResumableOutput(output, resume, force)
        self._of_scorers: dict[str, dict[Placed, TextSums]] = {}
        self._all: list[tuple[str, Placed]] = []
        self._waiting, self._since = (
            list[str](),
            time.monotonic(),
        )  # lines of the next part, and when the last was written

    def begin(self, scorers: Sequence[str], distinct: Sequence[Placed], about: Mapping[str, Any]) -> None:
        """Read what earlier runs have scored.

        distinct (Sequence[Tuple[str, str, str]]): Texts in their places.
        about (Mapping[str, Any]): What else the scores depend on.
        RAISES (ResumeError): The run to resume differs from this one.
        """
        self._all = [(scorer, one) for scorer in scorers for one in distinct]
        self._of_scorers = {scorer: {} for scorer in scorers}
        ends = {n: self._digest(n) for n in self._parts.ends()}
        about = {"input": {"texts": len(self._all), "digest": self._digest(len(self._all))}, **about}
        self._parts.begin(about, ends)
        for (scorer, one), line in zip(self._all, self._parts.read().splitlines()):
            scores, pieces = json.loads(line)
            self._of_scorers[scorer][one] = TextSums(tuple(scores), pieces)

    def known(self, scorer: str) -> Mapping[Placed, TextSums]:
        """What earlier runs have scored."""
        return self._of_scorers[scorer]

    def add(self, sums: Mapping[Placed, TextSums]) -> None:
        """Keep the scores of the next texts: a whole batch, so that they do not depend on where a run was stopped."""
        self._waiting += [f"{json.dumps(one)}\n" for one in sums.values()]
        if time.monotonic() - self._since > SECONDS_PER_PART:
            self._write()

    @contextmanager
    def until_done(self) -> Iterator[None]:
        """If the run stops in this context, the error says what is kept. Otherwise nothing is needed any more."""
        with self._parts.kept(len(self._all)):
            try:
                yield
            except BaseException:
                self._write()
                raise
        self._parts.discard()

    def _write(self) -> None:
        if n := len(self._waiting):
            self._parts.write("".join(self._waiting).encode(), n, self._digest(self._parts.done + n))
        self._waiting, self._since = [], time.monotonic()

    def _digest(self, n: int) -> str:
        return sha256(repr(self._all[:n]).encode("utf8", "surrogatepass")).hexdigest()[:16]
