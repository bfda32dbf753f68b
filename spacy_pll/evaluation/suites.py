"""Test suites: published sets of texts that have measures of their own. A reader makes a suite of a file.

A reader is a function

    path (str): a file or folder
    how (Any): other arguments: see `read_suite`
    RETURNS (Suite)

registered by name in `spacy.registry.pll_readers` (entry point group `spacy_pll_readers`), so that another package can
add one. Ours are in `stereoset`, `syntaxgym` and `acceptability`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import catalogue
import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import registry

from ..arrays import FloatArray, IntArray
from ..attributes.piece_record import read_record
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..pipelines import make_pipeline
from ..settings import BATCH_SIZE
from ..stream.contexts import check_reads_context, score_placed, separated
from ..stream.workers import Work

if not hasattr(registry, "pll_readers"):
    setattr(registry, "pll_readers", catalogue.create("spacy", "pll_readers", entry_points=True))  # noqa: B010
pll_readers: Any = getattr(registry, "pll_readers")  # noqa: B009


class SuiteText(NamedTuple):
    """A text, of which parts are scored."""

    text: str
    context: str = ""  # read before the text, and not scored; a space is put between the two
    # Where each begins and ends in the text, in characters; None: the whole text. A wordpiece belongs to the part in
    # which its first visible character lies.
    parts: Sequence[tuple[int, int]] | None = None


class PartScore(NamedTuple):
    """The score of a part of a text."""

    score: float  # natural log, summed over wordpieces; 0.0 without a wordpiece
    pieces: int  # scored wordpieces


class Measure(NamedTuple):
    """A value that a suite has, for all items or a group of them."""

    measure: str  # such as "accuracy"
    group: str  # "overall", or what the items have in common
    n: int  # items
    value: float
    low: float | None = None  # 95 % interval, if there is one
    high: float | None = None
    scorer: str = ""  # the metric


class Suite(ABC):
    """Texts, and what is computed from the scores of their parts."""

    texts: Sequence[SuiteText]

    def check(self, per_piece: bool) -> None:  # noqa: B027  # most can be measured in any way
        """RAISES (ValueError): The suite cannot be measured so. This is asked before anything is scored."""

    @abstractmethod
    def measures(self, scores: Sequence[Sequence[PartScore]], per_piece: bool) -> list[Measure]:
        """What the suite measures.

        scores (Sequence[Sequence[PartScore]]): For each text, its parts in their order.
        per_piece (bool): Compare means per wordpiece instead of sums.
        """

    @abstractmethod
    def rows(self, scores: Sequence[Sequence[PartScore]]) -> Iterator[dict[str, Any]]:
        """One row for each part or text, with its score and wordpieces."""


@dataclass(frozen=True)
class SuiteScores:
    """A suite with its scores."""

    suite: Suite
    scores: dict[str, list[list[PartScore]]]  # by metric: for each text, its parts
    per_piece: bool = False

    def measures(self) -> list[Measure]:
        """What the suite measures, under each metric."""
        return [
            one._replace(scorer=metric)
            for metric, scores in self.scores.items()
            for one in self.suite.measures(scores, self.per_piece)
        ]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each part or text under each metric."""
        for metric, scores in self.scores.items():
            for row in self.suite.rows(scores):
                yield {"metric": metric, **row}


def read_suite(path: str, reader: str, **how: Any) -> Suite:
    """Read a test suite from a file or folder.

    reader (str): The name of a reader: "stereoset", "syntaxgym", "acceptability", or one of another package.
    how (Any): For `acceptability` the columns `sentence` and `label`, a `threshold`, and how tables are written:
        `encoding`, `delimiter`, `quoting`, `header`, `na_as_text`.
    RAISES (ValueError): There is no such reader, or the file cannot be read.
    """
    readers: dict[str, Callable[..., Suite]] = pll_readers.get_all()
    if reader not in readers:
        raise PLLError(f"There is no `reader` {reader!r}.", f"These are there: {', '.join(sorted(readers))}.")
    try:
        signature(readers[reader]).bind(path, **how)
    except TypeError as error:
        raise PLLError(f"The reader {reader!r} does not take what is given: {error}.", "Leave it out.") from None
    suite = readers[reader](path, **how)
    if not suite.texts:
        raise InputError(f"There is no text in {path!r}.")
    return suite


def check_rows(suite: Suite) -> None:
    """RAISES (ValueError): The rows of the suite cannot be made, whatever the scores are."""
    for _ in suite.rows([[PartScore(0.0, 1)] * len(one.parts or [one]) for one in suite.texts]):
        pass


def score_suite(
    nlp: Language,
    suite: Suite,
    *,
    per_piece: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> SuiteScores:
    """Score the texts of a suite. Equal texts are scored once.

    nlp (Language): A pipeline with a `pll` component, whose setting `targets` has no effect here.
    suite (Suite): What `read_suite` reads.
    per_piece (bool): Compare means per wordpiece instead of sums.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RAISES (ValueError): A text cannot be scored, or a part does not lie in its text, or the suite cannot be measured
        so.
    """
    suite.check(per_piece)
    for text, _, parts in suite.texts:
        if wrong := [part for part in parts or () if not 0 <= part[0] <= part[1] <= len(text)]:
            raise InputError(f"The part {wrong[0]} does not lie in the text {text!r:.100}, which ends at {len(text)}.")
    nlp = make_pipeline(nlp, component=component, keep_pieces=True)
    names = get_scorer(nlp).names
    places = [(one.text, separated(one.context, one.text), "") for one in suite.texts]
    distinct = list(dict.fromkeys(places))
    if any(before for _, before, _ in distinct):
        check_reads_context(get_scorer(nlp))
    docs = score_placed(nlp, distinct, Work(batch_size, n_process, show_progress), component)
    pieces = {one: _pieces_of(doc, names.score) for one, doc in zip(distinct, docs, strict=True)}
    found: dict[str, list[list[PartScore]]] = {metric: [] for metric in names.metrics}
    for (text, _, parts), place in zip(suite.texts, places):
        (where, scores), before = pieces[place], len(place[1])
        inside = [(before + start <= where) & (where < before + end) for start, end in parts or [(0, len(text))]]
        for metric, of_text in scores.items():
            found[metric].append([PartScore(float(of_text[one].sum()), int(one.sum())) for one in inside])
    return SuiteScores(suite, found, per_piece)


def _pieces_of(doc: Doc, attr: str) -> tuple[IntArray, dict[str, FloatArray]]:
    """The character in which each of a doc's pieces begins, and their scores by metric. One without a visible character
    is where its token ends.
    """
    record = read_record(doc, attr)
    assert record  # which the component keeps
    last = [doc[token].idx + len(doc[token]) - 1 for token in record.token]
    scores = {metric: np.array(values) for metric, values in record.scores.items()}
    return np.minimum(np.array(record.start, dtype=np.int64), last), scores


def compared(part: PartScore, per_piece: bool) -> float:
    """The number that is compared: the sum, or the mean per wordpiece."""
    return part.score / max(1, part.pieces) if per_piece else part.score
