"""How well two scorers agree on the same texts: by wordpiece, word and text, with the cost of each.

*r* is Pearson's correlation. Differences are those of the second scorer from the first, in nats. The intervals are 95 %
percentile bootstrap intervals over texts (Efron & Tibshirani 1993, chapter 13): texts are drawn with replacement, since
the pieces of one text are not independent of each other. `dataclasses.asdict` makes plain JSON values of each result.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..analysis.visualize.plots import new_figure
from ..analysis.visualize.text import visible_text
from ..attributes.names import Names
from ..component import PLLScorer
from ..metrics import FloatArray, IntArray
from ..pipelines import pieces_kept
from ..prediction import Counts
from .intervals import bootstrap_sums, correlation, correlation_columns, percentiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How many tokens are listed, and how many characters on either side of each are shown.
TOKENS, CONTEXT = 20, 40
DECILES = 10
# The rows and columns of the picture of all scores.
BINS = 48
LEVELS = ("piece", "word", "text", "text_mean")


Interval = tuple[float, float]


@dataclass(frozen=True)
class ScorerRun:
    """One of the scorers, and what it took."""

    label: str
    metric: str  # the primary one
    settings: Mapping[str, Any]  # what the scores depend on, besides model and text
    seconds: float
    forward_pieces: int
    forward_passes: int
    scored_pieces: int


@dataclass(frozen=True)
class LevelAgreement:
    """The scores of the same pieces, words or texts. Differences are those of the second scorer from the first.

    The intervals are 95 % percentile bootstrap intervals over texts. A value that cannot be computed is None.
    """

    n: int
    r: float | None  # Pearson's correlation
    r_interval: Interval | None
    mean_difference: float | None
    mean_difference_interval: Interval | None
    mean_absolute_difference: float | None
    mean_absolute_difference_interval: Interval | None
    standard_deviation_of_difference: float | None


@dataclass(frozen=True)
class Decile:
    """A tenth of the things, by the first scorer's score."""

    n: int
    low: float
    high: float
    mean_first: float
    mean_second: float
    mean_difference: float


@dataclass(frozen=True)
class TokenDifference:
    """A token whose two scores differ, with the text around it."""

    text: int  # number of the text, from 0
    before: str
    token: str
    after: str
    scores: tuple[float, float]
    difference: float


@dataclass(frozen=True)
class Histogram:
    """How many things have which two scores: `counts[i][j]` for the first in bin i and the second in bin j."""

    edges: Sequence[float]
    counts: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Agreement:
    """How well two scorers agree on the same texts."""

    texts: int
    scorers: tuple[ScorerRun, ScorerRun]
    piece: LevelAgreement | None  # None if the two have different pieces
    word: LevelAgreement
    text: LevelAgreement
    text_mean: LevelAgreement  # of the texts' mean scores per piece
    unit: str  # of `deciles` and `histogram`: "piece", or "word" if the two have different pieces
    deciles: Sequence[Decile]
    histogram: Histogram
    tokens: Sequence[TokenDifference]  # those that differ most

    def plot(self) -> "Figure":
        """Draw the scores: see `plot_agreements`. RAISES (ImportError): matplotlib is not installed."""
        return plot_agreements([self])


def agree(
    first: Language,
    second: Language,
    texts: Iterable[str | Doc],
    *,
    labels: tuple[str, str] = ("first", "second"),
    batch_size: int = 64,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = lambda texts: texts,
) -> Agreement:
    """Score texts with two pipelines, and compare their primary metrics.

    first, second (Language): Pipelines with a `pll` component.
    labels (tuple[str, str]): What the results call them.
    bootstrap (int): Bootstrap samples for the intervals.
    seed (int): Of the bootstrap.
    progress (Callable[[Iterable], Iterable]): Wraps the texts, to show progress.
    RAISES (ValueError): No text was scored by both.
    """
    with pieces_kept(first) as one, pieces_kept(second) as other:
        for scorer in (one, other):
            scorer.predictor.counts = Counts()
        sides = [(labels[0], one, first.pipe), (labels[1], other, second.pipe)]
        return compare_scorers(sides, progress(texts), batch_size, bootstrap, seed)[0]


def compare_scorers(
    sides: Sequence[tuple[str, PLLScorer, Callable[..., Iterable[Doc]]]],
    texts: Iterable[str | Doc],
    batch_size: int,
    bootstrap: int,
    seed: int,
) -> list[Agreement]:
    """Compare each scorer with the first one. Each has a label, and what scores a batch with it."""
    labels, scorers, pipes = zip(*sides)
    collected, seconds = [AgreementCounts((scorers[0], other)) for other in scorers[1:]], [0.0] * len(sides)
    for batch in minibatch(texts, batch_size):
        docs: list[list[Doc]] = []
        for side, pipe in enumerate(pipes):
            inputs = [text.copy() if isinstance(text, Doc) else text for text in batch]
            began = time.perf_counter()
            docs.append(list(pipe(inputs, batch_size=batch_size)))
            seconds[side] += time.perf_counter() - began
        for own, other in zip(collected, docs[1:]):
            own.add(docs[0], other)
    return [
        own.result((labels[0], label), (seconds[0], took), bootstrap, seed)
        for own, label, took in zip(collected, labels[1:], seconds[1:])
    ]


class AgreementCounts:
    """The scores of two scorers, both with `keep_pieces`, on the same texts."""

    def __init__(self, scorers: tuple[PLLScorer, PLLScorer]):
        self.scorers = scorers
        # Of each text, shape (things, 3): the two scores, and the number of the text.
        self.parts: dict[str, list[FloatArray]] = {level: [np.zeros((0, 3))] for level in LEVELS}
        self.same_pieces, self.n = True, 0
        self.tokens: list[TokenDifference] = []

    def add(self, first: Iterable[Doc], second: Iterable[Doc]) -> None:
        """Add some texts, each scored by both."""
        for docs in zip(first, second, strict=True):
            scored = list(zip(docs, self.scorers))
            records = [doc._.get(scorer.names.data) for doc, scorer in scored]
            sums = [doc._.get(scorer.names.score) for doc, scorer in scored]
            numbers = [len(record["ids"]) for record in records]
            if all(numbers):
                self._add("text", *([score] for score in sums))
                self._add("text_mean", *([score / n] for score, n in zip(sums, numbers)))
            tokens = list(_tokens(self.n, *docs, *(scorer.names for scorer in self.scorers)))
            self._add("word", *([token.scores[side] for token in tokens] for side in (0, 1)))
            if all(records[0][key] == records[1][key] for key in ("pieces", "start", "end")):
                own = (record["scores"][scorer.settings.metrics[0]] for record, scorer in zip(records, self.scorers))
                self._add("piece", *own)
            else:
                self.same_pieces = False
            self.tokens = heapq.nlargest(TOKENS, [*self.tokens, *tokens], key=lambda token: abs(token.difference))
            self.n += 1

    def _add(self, level: str, *scores: list[float]) -> None:
        self.parts[level].append(np.column_stack([*scores, [self.n] * len(scores[0])]))

    def result(self, labels: Sequence[str], seconds: Sequence[float], bootstrap: int, seed: int) -> Agreement:
        """What `agree` returns. seconds (Sequence[float]): How long each scorer took."""
        if len(self.parts["text"]) == 1:
            raise ValueError(f"Of the {self.n} texts, none was scored by both scorers, so there is nothing to compare.")
        rng = np.random.default_rng(seed)
        runs = []
        for label, scorer, took in zip(labels, self.scorers, seconds, strict=True):
            metric, counts = scorer.settings.metrics[0], scorer.predictor.counts
            work = took, counts.ids, counts.rows, counts.targets
            runs.append(ScorerRun(label, metric, scorer.settings.record, *work))
        known = {level: np.concatenate(own) for level, own in self.parts.items()}
        if not self.same_pieces:
            del known["piece"]
        found = {
            level: level_agreement(rows[:, 0], rows[:, 1], rows[:, 2].astype(np.int64), bootstrap, rng)
            for level, rows in known.items()
        }
        unit = next(iter(known))
        a, b, _ = known[unit].T
        levels: dict[str, Any] = {level: found.get(level) for level in LEVELS}
        picture: dict[str, Any] = {"deciles": deciles(a, b), "histogram": histogram(a, b)}
        return Agreement(self.n, (runs[0], runs[1]), unit=unit, tokens=self.tokens, **levels, **picture)


def _tokens(number: int, a: Doc, b: Doc, names_a: Names, names_b: Names) -> Iterator[TokenDifference]:
    """The tokens that both have and that both have scored."""
    other, text = {(token.idx, len(token)): token for token in b}, a.text
    for token in a:
        twin = other.get((token.idx, len(token)))
        if twin is not None and token._.get(names_a.pieces) and twin._.get(names_b.pieces):
            start, end = token.idx, token.idx + len(token)
            scores = token._.get(names_a.score), twin._.get(names_b.score)
            before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
            yield TokenDifference(number, before, text[start:end], after, scores, scores[1] - scores[0])


def level_agreement(
    a: FloatArray, b: FloatArray, text: IntArray, bootstrap: int, rng: np.random.Generator
) -> LevelAgreement:
    """The correlation of two scorers, and their difference.

    a, b (float arrays, shape (things,)): Scores.
    text (int array, shape (things,)): The number of the text of each.
    """
    difference = b - a
    columns = [*correlation_columns(a, b), difference, np.abs(difference)]
    sums, samples = bootstrap_sums(columns, text, bootstrap, rng)
    intervals = map(percentiles, _statistics(samples))
    numbers = [_number(value[0]) for value in _statistics(sums)]
    estimates: list[Any] = [value for both in zip(numbers, intervals) for value in both]
    estimates.append(_number(difference.std()))
    return LevelAgreement(len(a), *estimates)


def _statistics(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Correlation, mean difference and mean absolute difference. sums (float array, shape (samples, 8))."""
    n, difference, absolute = sums[:, [0, -2, -1]].T
    return correlation(sums[:, :6]), difference / n, absolute / n


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def deciles(a: FloatArray, b: FloatArray) -> list[Decile]:
    """Ten equally large groups, ordered by the first scorer's score, the lowest first."""
    order = np.argsort(a, kind="stable")
    return [
        Decile(len(part), *map(float, (a[part[0]], a[part[-1]], a[part].mean(), b[part].mean(), (b - a)[part].mean())))
        for part in np.array_split(order, DECILES)
        if len(part)
    ]


def histogram(a: FloatArray, b: FloatArray) -> Histogram:
    """How many things have which two scores."""
    both = np.concatenate([a, b])
    low, high = np.quantile(both, 0.001), both.max()
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    counts, _, _ = np.histogram2d(np.clip(a, low, None), np.clip(b, low, None), bins=(edges, edges))
    return Histogram(edges.tolist(), counts.astype(int).tolist())


def plot_agreements(results: Sequence[Agreement]) -> "Figure":
    """Draw how many things have which two scores, and the mean scores by decile. One picture per comparison.

    RAISES (ImportError): matplotlib is not installed.
    """
    figure = new_figure(5 * len(results), 4.5)
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results):
        edges, counts = result.histogram.edges, np.array(result.histogram.counts, dtype=np.float64)
        # The darker, the more (logarithmic). Where there is nothing, there is no colour.
        squares = axes.pcolormesh(edges, edges, np.where(counts, counts, np.nan).T, norm="log", cmap="Blues", vmin=0.5)
        figure.colorbar(squares, ax=axes, label=f"{result.unit}s")
        axes.axline((edges[0], edges[0]), slope=1, color="0.4", linestyle="--", linewidth=0.8, label="equal scores")
        means = [(one.mean_first, one.mean_second) for one in result.deciles]
        axes.plot(*zip(*means), color="#d55e00", marker="o", markersize=4, label="means by decile")
        for label, write in zip((one.label for one in result.scorers), (axes.set_xlabel, axes.set_ylabel)):
            write(visible_text(label), parse_math=False)
        axes.legend(loc="upper left", frameon=False, fontsize=9)
    return figure
