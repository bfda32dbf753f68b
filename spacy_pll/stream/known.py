"""What is known of texts: each distinct text in its place is scored once, and the results of a run that is stopped are
kept in parts beside its output, from which the next run goes on.
"""

import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from warnings import catch_warnings, simplefilter

from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.names import Names
from ..attributes.stored import record_of
from ..attributes.values import sums_in, sums_of_doc
from ..component import get_scorer
from ..errors import PLLError, RunComplete, explained
from ..files import OUTPUTS
from ..progress import with_progress
from ..scoring.kept_encodings import KeptEncodings
from ..span_getters import TEXT_SPAN, named_spans
from ..texts import Text
from .contexts import Part, Placed, placed
from .parts import ResumableOutput, frozen_objects
from .workers import AS_USUAL, Work, score_batches

T = TypeVar("T")
SECONDS_PER_PART = 5


class TextSums(NamedTuple):
    """The scores of a text, or of a part of it."""

    scores: tuple[float, ...]  # one per metric: natural log, summed over wordpieces; NaN without a wordpiece
    pieces: int  # number of scored wordpieces
    id: int | None = None  # of the wordpiece, if this is the score of one

    def per_piece(self) -> "TextSums":
        """The same with means over wordpieces instead of sums. A text without a wordpiece keeps its NaN."""
        return self._replace(scores=tuple(score / max(1, self.pieces) for score in self.scores))


class KeptScores:
    """Keeps the results of a command beside its output, item by item, so that a run that was stopped can go on.

    output (Optional[Path]): The results are kept in the folder OUTPUT.parts. None: nothing is kept.
    resume, force (bool): See `ResumableOutput`.
    outputs (Sequence[Optional[Path]]): All files that the command writes once it has all results. A run that is resumed
        replaces them. When they are written, a manifest beside OUTPUT says so.
    RAISES (ResumeError): There are results that would be lost, or another run writes this output.
    """

    def __init__(
        self, output: Path | None = None, resume: bool = False, force: bool = False, outputs: Sequence[Path | None] = ()
    ):
        self._parts = ResumableOutput(output, resume, force) if output else None
        self._outputs = [os.path.relpath(path, output.parent) for path in outputs if path] if output else []
        self.about: dict[str, Any] = {}  # what the results depend on, besides the items
        self.about_outputs: dict[str, Any] = {}  # what the outputs depend on, and the results do not
        self._unit = ""  # what the items are called, once the run has begun
        self._digests = bytearray()  # of the first item, of the first two, and so on: 8 bytes each
        self.earlier: list[Any] = []  # the results of earlier runs, for the first items
        self._of_batch, self._waiting = list[str](), list[str]()  # lines of a batch that goes on; of the next part
        self._since = time.monotonic()  # when the last part was written

    def begin(self, items: Iterable[object], unit: str = "texts") -> None:
        """Read the results of earlier runs.

        items (Iterable[object]): The items. They are read here, and again when they are scored.
        unit (str): What the items are called.
        RAISES (ResumeError): The run to resume differs from this one.
        RAISES (RunComplete): It has written all its outputs.
        """
        if self._parts:
            with catch_warnings():
                simplefilter("ignore")  # the warnings come when the items are read to be scored
                self._digests = bytearray(b"".join(map(bytes.fromhex, digests(items))))
            total = len(self._digests) // 8
            ends = {n: self._digest(n) for n in self._parts.ends() if n <= total}
            manifest = {"input": {unit: total, "digest": self._digest(total)}, **self.about}
            manifest |= {OUTPUTS: {"files": self._outputs, **self.about_outputs}} if self._outputs else {}
            if self._parts.begin(manifest, ends) is None:
                raise RunComplete(f"{self._parts.output} was complete. Nothing was scored.")
            with explained(f"The parts in {self._parts.folder} are damaged", "Start again with `force=True`."):
                self.earlier = list(map(json.loads, self._parts.read().splitlines()))
        self._unit = unit

    def _digest(self, n: int) -> str:
        return self._digests[8 * n - 8 : 8 * n].hex() if n else ""

    def add(self, results: Iterable[object], ends_batch: bool = True) -> None:
        """Keep the results of the next items. Parts have whole batches, so that results do not depend on where a run
        was stopped.
        """
        if self._parts:
            self._of_batch += [f"{json.dumps(result)}\n" for result in results]
            if ends_batch:
                self._waiting, self._of_batch = self._waiting + self._of_batch, []
                if time.monotonic() - self._since > SECONDS_PER_PART:
                    self._write(self._parts)

    @contextmanager
    def until_done(self) -> Iterator[None]:
        """If the run stops in this context, the error says what is kept. Otherwise nothing is needed any more."""
        try:
            with frozen_objects():
                yield
        except BaseException:
            if not self._parts or not self._unit:
                raise
            with self._parts.kept(len(self._digests) // 8, self._unit):
                self._write(self._parts)
                raise
        if self._parts and self._outputs:
            self._parts.finish()
        elif self._parts:
            self._parts.discard()

    def each(
        self,
        find: Callable[[int], Generator[tuple[T, bool], None, None]],
        n: int | None = None,
        first: int = 0,
        show_progress: bool = False,
    ) -> Generator[T, None, None]:
        """The result for each item, from where an earlier run stopped. Results are values of JSON. The results of
        earlier runs come first, and have lists in place of tuples.

        find (Callable): `find(n_known)` yields the results for all items but the first `n_known`, each with whether a
            batch ends with it. Batches must end at the same items whatever `n_known` is.
        n (Optional[int]): How many items there are.
        first (int): How many of the kept results are for other items, and come before these.
        """
        known = self.earlier[first:][:n]
        yield from known
        with closing(find(len(known))) as results:
            for value, ends_batch in with_progress(results, n, len(known), show_progress, f" {self._unit}"):
                self.add([value], ends_batch)
                yield value

    def discard(self) -> None:
        """Keep nothing: a run that goes on would find no more than this one."""
        if self._parts:
            self._parts.discard()
            self._parts = None

    def _write(self, parts: ResumableOutput) -> None:
        lines, self._waiting = self._waiting, []  # first: if writing fails, they are not written under other numbers
        if lines:
            parts.write("".join(lines).encode(), len(lines), self._digest(parts.done + len(lines)))
        self._since = time.monotonic()


def digests(items: Iterable[object]) -> Iterator[str]:
    """A digest of the first item, of the first two, and so on."""
    total = sha256()
    for item in items:
        total.update(f"{item!r}\n".encode("utf8", "surrogatepass"))
        yield total.hexdigest()[:16]


def digest_of(items: Iterable[object]) -> str:
    """A digest of all items."""
    last = deque(digests(items), maxlen=1)
    return last[0] if last else ""


def in_batches(batches: Iterable[Sequence[T]]) -> Generator[tuple[T, bool], None, None]:
    """The items of some batches, each with whether its batch ends with it."""
    return ((item, number == len(batch)) for batch in batches for number, item in enumerate(batch, 1))


def score_distinct(
    nlp: Language,
    parts: Mapping[Placed, Collection[Part | None]],
    work: Work = AS_USUAL,
    kept: KeptScores | None = None,
    n_kept: int = 0,
    encodings: KeptEncodings | None = None,
) -> Generator[tuple[Placed, list[TextSums]], None, None]:
    """Score distinct texts in their places: the model reads what stands before and after each, and the text is scored.

    nlp, encodings: See `placed`.
    parts (Mapping[Placed, Collection[Optional[Tuple[int, int]]]]): By text in its place, whose scores are wanted: where
        a part begins and ends in the text, in characters. None: the whole text. Empty: those of each wordpiece.
    kept (Optional[KeptScores]): Gets the scores of each batch, and has the scores of the first texts.
    n_kept (int): How many of the results that it has are of other texts, and come before these.
    YIELDS (Tuple[Placed, List[TextSums]]): Each text in its place, and the scores of its parts.
    RAISES (ValueError): A text cannot be scored, or has words, and none of them was scored.
    """
    distinct, kept = list(parts), kept or KeptScores()
    needs_ids = not all(parts.values())
    n_earlier = len(kept.earlier[n_kept:][: len(parts)])
    keeps = {"keep_pieces": True} if needs_ids else {}
    nlp, docs = placed(nlp, distinct[n_earlier:], encodings, **keeps)
    names = get_scorer(nlp).names

    waiting = iter(distinct[n_earlier:])

    def read(doc: Doc) -> list[TextSums]:
        of_text = next(waiting)
        return sums_of(doc, names, parts[of_text], len(of_text[1]))

    n = len(distinct)
    with closing(kept.each(lambda n_known: read_docs(nlp, docs, read, work, n, n_known), n, n_kept)) as results:
        for text, sums in zip(distinct, results):
            yield text, [TextSums(tuple(scores), pieces, id) for scores, pieces, id in sums]


def read_docs(
    nlp: Language, rest: Iterable[Text], read: Callable[[Doc], T], work: Work, n: int | None = None, n_known: int = 0
) -> Generator[tuple[T, bool], None, None]:
    """What is read from the scored doc of each text, and whether a batch ends with it, for `KeptScores.each`.

    rest (Iterable[Union[str, Doc]]): The texts, without the first `n_known` of all `n`.
    read (Callable): From a scored doc to values that JSON has.
    """
    with closing(score_batches(nlp, rest, work, n if n is None else n - n_known, n_known)) as scored:
        for doc, ends_batch in scored:
            yield read(doc), ends_batch


def score_places(
    nlp: Language, places: Iterable[Placed], work: Work = AS_USUAL, kept: KeptScores | None = None
) -> dict[Placed, TextSums]:
    """The scores of whole texts by text in its place: see `score_distinct`."""
    return {text: sums for text, (sums,) in score_distinct(nlp, dict.fromkeys(places, [None]), work, kept)}


def text_sums(doc: Doc, names: Names) -> TextSums:
    """The scores of a doc that `placed` made, once it is scored."""
    _, scores, pieces = sums_of_doc(doc, names)
    if not pieces and doc._.get(names.pieces) is None:
        [text] = named_spans(doc, TEXT_SPAN)
        if any(not token.is_space for token in text):
            raise PLLError(
                f"Nothing was scored in the text {text.text[:100]!r}. If the pipeline's `pll` component leaves out "
                "spans of the text, use one that scores whole texts."
            )
    return TextSums(tuple(math.nan if score is None else score for score in scores.values()), pieces)


def sums_of(doc: Doc, names: Names, parts: Collection[Part | None], before: int) -> list[TextSums]:
    """The scores of parts of the text of such a doc: see `score_distinct`. For those of each piece, it has
    `keep_pieces`.

    A wordpiece belongs to the part in which its first visible character lies.

    before (int): How many characters stand before the text.
    """
    whole = text_sums(doc, names)  # fails if nothing was scored
    if parts and not any(parts):
        return [whole] * len(parts)
    record = record_of(doc, names.data)
    if not parts:
        assert record  # of every scored doc
        drawn = record.of_drawn()
        return [TextSums(tuple(scores), 1, id) for id, *scores in zip(drawn.ids, *drawn.scores.values())]

    def of_part(begin: int, end: int) -> TextSums:
        _, scores, n = sums_in(record, names.metrics, before + begin, before + end)
        return TextSums(tuple(score or 0.0 for score in scores.values()), n)

    return [of_part(*part) if part else whole for part in parts]
