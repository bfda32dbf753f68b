"""How well two scorers agree on the same texts: by wordpiece, word and text, with the cost of each.

*r* is Pearson's correlation. Differences are those of the second scorer from the first, in nats. The intervals are 95 %
percentile bootstrap intervals over texts (Efron & Tibshirani 1993, chapter 13): texts are drawn with replacement, since
the pieces of one text are not independent of each other.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..analysis.agreement import Agreement, Decile, Histogram, LevelAgreement, ScorerRun, TokenDifference
from ..component import PLLScorer
from ..metrics import FloatArray, IntArray
from ..pipelines import pieces_kept
from ..prediction import Counts
from .intervals import bootstrap_sums, correlation, correlation_columns, percentiles

# How many tokens are listed, and how many characters on either side of each are shown.
TOKENS, CONTEXT = 20, 40
DECILES = 10
# The rows and columns of the picture of all scores.
BINS = 48
LEVELS = ("piece", "word", "text", "text_mean")


@dataclass
class Pairs:
    """The scores of the same things by two scorers."""

    a: list[FloatArray] = field(default_factory=list)  # one array per text
    b: list[FloatArray] = field(default_factory=list)
    text: list[int] = field(default_factory=list)  # the number of each array's text

    def add(self, number: int, a: Iterable[float], b: Iterable[float]) -> None:
        """Add the scores of one text."""
        self.a.append(np.array(a, dtype=np.float64))
        self.b.append(np.array(b, dtype=np.float64))
        self.text.append(number)

    def arrays(self) -> tuple[FloatArray, FloatArray, IntArray]:
        """All scores of the first, all of the second, and the number of the text of each."""
        text = np.repeat(np.array(self.text, dtype=np.int64), [len(part) for part in self.a])
        none = [np.zeros(0)]
        return np.concatenate(none + self.a), np.concatenate(none + self.b), text


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
        collected, seconds = AgreementCounts((one, other)), [0.0, 0.0]
        for batch in batches(progress(texts), batch_size):
            docs: list[list[Doc]] = []
            for side, nlp in enumerate((first, second)):
                inputs = [text.copy() if isinstance(text, Doc) else text for text in batch]
                began = time.perf_counter()
                docs.append(list(nlp.pipe(inputs, batch_size=batch_size)))
                seconds[side] += time.perf_counter() - began
            collected.add(*docs)
    return collected.result(labels, seconds, bootstrap, seed)


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


class AgreementCounts:
    """The scores of two scorers on the same texts.

    scorers (tuple[PLLScorer, PLLScorer]): Both with `keep_pieces`.
    """

    def __init__(self, scorers: tuple[PLLScorer, PLLScorer]):
        self.scorers = scorers
        self.pairs = {level: Pairs() for level in LEVELS}
        self.same_pieces, self.n = True, 0
        self.tokens: list[TokenDifference] = []

    def add(self, first: Iterable[Doc], second: Iterable[Doc]) -> None:
        """Add some texts, each scored by both."""
        for a, b in zip(first, second, strict=True):
            self.same_pieces &= _add(self.n, a, b, self.scorers, self.pairs)
            tokens = [*self.tokens, *_tokens(self.n, a, b, self.scorers)]
            self.tokens = heapq.nlargest(TOKENS, tokens, key=lambda token: abs(token.difference))
            self.n += 1

    def result(self, labels: Sequence[str], seconds: Sequence[float], bootstrap: int, seed: int) -> Agreement:
        """What `agree` returns. seconds (Sequence[float]): How long each scorer took."""
        if not self.pairs["text"].a:
            raise ValueError(f"Of the {self.n} texts, none was scored by both scorers, so there is nothing to compare.")
        unit = "piece" if self.same_pieces else "word"
        rng = np.random.default_rng(seed)
        first, second = (_describe(*one) for one in zip(labels, self.scorers, seconds, strict=True))
        known = {level: own.arrays() for level, own in self.pairs.items() if level != "piece" or self.same_pieces}
        found = {level: level_agreement(*arrays, bootstrap, rng) for level, arrays in known.items()}
        a, b, _ = known[unit]
        return Agreement(
            self.n,
            (first, second),
            found.get("piece"),
            found["word"],
            found["text"],
            found["text_mean"],
            unit,
            deciles(a, b),
            histogram(a, b),
            self.tokens,
        )


def _describe(label: str, scorer: PLLScorer, seconds: float) -> ScorerRun:
    settings, counts = scorer.settings, scorer.predictor.counts
    return ScorerRun(label, settings.metrics[0], settings.record, seconds, counts.ids, counts.rows, counts.targets)


def _add(number: int, a: Doc, b: Doc, scorers: tuple[PLLScorer, PLLScorer], pairs: dict[str, Pairs]) -> bool:
    """Add the scores of a text. RETURNS: Whether the two have the same pieces."""
    names = [scorer.names for scorer in scorers]
    records = [doc._.get(own.data) for doc, own in zip((a, b), names)]
    pieces = [len(record["ids"]) for record in records]
    if all(pieces):
        sums = [doc._.get(own.score) for doc, own in zip((a, b), names)]
        pairs["text"].add(number, sums[:1], sums[1:])
        pairs["text_mean"].add(number, [sums[0] / pieces[0]], [sums[1] / pieces[1]])
    words = list(_words(a, b, scorers))
    pairs["word"].add(number, [one[2] for one in words], [one[3] for one in words])
    same = all(records[0][key] == records[1][key] for key in ("pieces", "start", "end"))
    if same:
        values = [record["scores"][scorer.settings.metrics[0]] for record, scorer in zip(records, scorers)]
        pairs["piece"].add(number, *values)
    return same


def _words(a: Doc, b: Doc, scorers: tuple[PLLScorer, PLLScorer]) -> Iterator[tuple[int, int, float, float]]:
    """The tokens that both have and that both have scored: where each begins and ends, and its two scores."""
    other = {(token.idx, len(token)): token for token in b}
    for token in a:
        twin = other.get((token.idx, len(token)))
        if twin is None or not token._.get(scorers[0].names.pieces) or not twin._.get(scorers[1].names.pieces):
            continue
        yield (
            token.idx,
            token.idx + len(token),
            token._.get(scorers[0].names.score),
            twin._.get(scorers[1].names.score),
        )


def _tokens(number: int, a: Doc, b: Doc, scorers: tuple[PLLScorer, PLLScorer]) -> Iterator[TokenDifference]:
    text = a.text
    for start, end, score_a, score_b in _words(a, b, scorers):
        before, after = text[max(0, start - CONTEXT) : start], text[end : end + CONTEXT]
        yield TokenDifference(number, before, text[start:end], after, (score_a, score_b), score_b - score_a)


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
    r, mean, absolute = _statistics(sums)
    of_r, of_mean, of_absolute = (percentiles(values) for values in _statistics(samples))
    return LevelAgreement(
        len(a),
        _number(r[0]),
        of_r,
        _number(mean[0]),
        of_mean,
        _number(absolute[0]),
        of_absolute,
        _number(difference.std()),
    )


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
