"""How well two scorers agree on the same texts: by wordpiece, word and text, with the cost of each.

*r* is Pearson's correlation. Differences are those of the second scorer from the first, in nats. The intervals are 95 %
percentile bootstrap intervals over texts (Efron & Tibshirani 1993, chapter 13): texts are drawn with replacement, since
the pieces of one text are not independent of each other.
"""

import heapq
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..arrays import FloatArray, IntArray
from ..attributes.names import Names
from ..attributes.stored import read_record
from ..component import get_scorer
from ..errors import PLLError
from ..pipelines import make_pipeline
from ..prediction.batches import batches_of
from ..prediction.predictor import Predictor
from ..progress import number_of, progress_bar
from ..settings import BATCH_SIZE
from ..stream.workers import Work, score_batches
from ..texts import Text, check_texts, plain_texts
from .intervals import bootstrap_sums, correlation, correlation_columns, percentiles
from .measurements import PEARSON, Measurement

# How many tokens are listed, and how many characters on either side of each are shown.
TOKENS, CONTEXT = 20, 40
BOOTSTRAP = 1000  # samples
# How many batches a scorer has in its turn on a GPU, which has the next one ahead. Between turns the GPU has nothing
# to do: each scorer's time is its own.
GPU_BATCHES = 4
AGREEMENT_LEVELS = ("piece", "word", "text", "text_mean")
SECONDS, TIMES_AS_FAST = "seconds", "times as fast"

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
    """The scores of the same pieces, words or texts. A value that cannot be computed is None."""

    n: int
    r: float | None  # Pearson's correlation
    r_interval: Interval | None
    mean_difference: float | None
    mean_difference_interval: Interval | None
    mean_absolute_difference: float | None
    mean_absolute_difference_interval: Interval | None

    def measurements(self, scorer: str, level: str) -> Iterator[Measurement]:
        """The three, as they are shown. level (str): What they are by, such as "word"."""
        for measure, value, interval in (
            (PEARSON, self.r, self.r_interval),
            ("mean difference ", self.mean_difference, self.mean_difference_interval),
            ("mean absolute difference ", self.mean_absolute_difference, self.mean_absolute_difference_interval),
        ):
            yield Measurement(scorer, f"{measure}by {level}", self.n, value, *(interval or ()))


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
class Agreement:
    """How well two scorers agree on the same texts."""

    texts: int
    scorers: tuple[ScorerRun, ScorerRun]
    piece: LevelAgreement | None  # None if the two have different pieces
    word: LevelAgreement
    text: LevelAgreement
    text_mean: LevelAgreement  # of the texts' mean scores per piece
    tokens: Sequence[TokenDifference]  # those that differ most

    def measurements(self) -> list[Measurement]:
        """What each scorer took, and how the second one agrees with the first. Differences are in nats."""
        return measurements_of([self])


def agree(
    first: Language,
    second: Language,
    texts: Iterable[str | Doc],
    *,
    labels: tuple[str, str] = ("first", "second"),
    batch_size: int = BATCH_SIZE,
    show_progress: bool = False,
) -> Agreement:
    """Score texts with two pipelines, and compare their primary metrics.

    first, second (Language): Pipelines with a `pll` component.
    labels (tuple[str, str]): What the results call them.
    show_progress (bool): Show a progress bar.
    RAISES (ValueError): No text was scored by both.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    fast = spacy_pll.make_pipeline(nlp, mask_margin=0)
    found = spacy_pll.agree(nlp, fast, ["The cats sleep on the old sofa.", "A dog barks in the garden."])
    found.word.r, found.tokens[0].token  # 0.999, 'sleep'
    ```
    """
    check_texts(texts)
    nlps = [make_pipeline(nlp, keep_pieces=True) for nlp in (first, second)]
    sides = [Side(label, nlp) for label, nlp in zip(labels, nlps)]
    return compare_scorers(sides, texts, batch_size, show_progress, number_of(texts))[0]


class Side:
    """A pipeline whose scorer has `keep_pieces`, and what its scores take."""

    def __init__(self, label: str, nlp: Language):
        self.label, self.nlp, self.scorer, self.seconds = label, nlp, get_scorer(nlp), 0.0

    def score(self, texts: Sequence[Text], batch_size: int, n_before: int) -> list[Doc]:
        """The docs of some texts. Those that are docs stay as they are. n_before (int): How many texts were scored."""
        inputs = [text.copy() if isinstance(text, Doc) else text for text in texts]
        began = time.perf_counter()
        with closing(score_batches(self.nlp, inputs, Work(batch_size), done=n_before)) as scored:
            docs = [doc for doc, _ in scored]
        self.seconds += time.perf_counter() - began
        return docs

    def run(self) -> ScorerRun:
        """What it took."""
        settings, counts = self.scorer.settings, self.scorer.predictor.counts
        work = self.seconds, counts.ids, counts.passes, counts.targets
        return ScorerRun(self.label, settings.metrics[0], settings.record, *work)


def compare_scorers(
    sides: Sequence[Side], texts: Iterable[str | Doc], batch_size: int, show_progress: bool, total: int | None
) -> list[Agreement]:
    """Compare each scorer with the first one. They take turns, so that a slow minute of the machine is one of all."""
    compared, n_before = [AgreementCounts(sides[0], other) for other in sides[1:]], 0
    with progress_bar(total, show=show_progress) as bar:
        for turn in batches_of(plain_texts(texts), _ends_of_turns(sides[0].scorer.predictor, batch_size)):
            first = sides[0].score(turn, batch_size, n_before)
            for counts, side in zip(compared, sides[1:]):
                counts.add(first, side.score(turn, batch_size, n_before))
            n_before += len(turn)
            bar.update(len(turn))
    return [counts.result() for counts in compared]


def _ends_of_turns(predictor: Predictor, batch_size: int) -> Callable[[Text], bool]:
    """Says of one text after the other whether a turn ends with it. A CPU has one batch in a turn."""
    ends_batch, numbers = predictor.ends_of_batches(batch_size), count(1)
    n_batches = GPU_BATCHES if predictor.prepare().on_gpu else 1
    return lambda text: ends_batch(text) and next(numbers) % n_batches == 0


class AgreementCounts:
    """The scores of two scorers on the same texts."""

    def __init__(self, *sides: Side):
        self.sides = sides
        # By level, of each text, shape (things, 3): the two scores, and the number of the text.
        self.parts = defaultdict[str, list[FloatArray]](list)
        self.same_pieces, self.n = True, 0
        self.tokens: list[TokenDifference] = []

    def add(self, first: Iterable[Doc], second: Iterable[Doc]) -> None:
        """Add some texts, each scored by both."""
        names = [side.scorer.names for side in self.sides]
        for docs in zip(first, second, strict=True):
            a, b = (read_record(doc, own.score, whole=True) for doc, own in zip(docs, names))
            assert a and b  # of every scored doc
            tokens = list(_tokens(self.n, *docs, *names))
            by_level = {"word": [token.scores for token in tokens]}
            if a.ids and b.ids:
                first_sum, second_sum = (doc._.get(own.estimates[own.score][0]) for doc, own in zip(docs, names))
                by_level["text"] = [(first_sum, second_sum)]
                by_level["text_mean"] = [(first_sum / len(a.ids), second_sum / len(b.ids))]
            if (a.pieces, a.start, a.end) == (b.pieces, b.start, b.end):
                both = zip(*(next(iter(record.scores.values())) for record in (a, b)))
                by_level["piece"] = [scores for scores in both if None not in scores]  # not drawn by one of them
            else:
                self.same_pieces = False
            for level, pairs in by_level.items():
                self.parts[level].append(np.array([(*scores, self.n) for scores in pairs]).reshape(-1, 3))
            self.tokens = heapq.nlargest(TOKENS, [*self.tokens, *tokens], key=lambda token: abs(token.difference))
            self.n += 1

    def result(self) -> Agreement:
        """What `agree` returns."""
        if not self.parts["text"]:
            raise PLLError(f"Of the {self.n} texts, none was scored by both scorers, so there is nothing to compare.")
        rng, levels = np.random.default_rng(0), dict[str, Any](piece=None)
        for level in AGREEMENT_LEVELS if self.same_pieces else AGREEMENT_LEVELS[1:]:
            first, second, text = np.concatenate(self.parts[level]).T
            levels[level] = level_agreement(first, second, text.astype(np.int64), rng)
        first_run, second_run = (side.run() for side in self.sides)
        return Agreement(self.n, (first_run, second_run), tokens=self.tokens, **levels)


def measurements_of(comparisons: Sequence[Agreement]) -> list[Measurement]:
    """What each scorer took, and how it agrees with the first one, which is the same in all comparisons."""
    first, texts, measured = comparisons[0].scorers[0], comparisons[0].texts, list[Measurement]()
    for run in [first, *(comparison.scorers[1] for comparison in comparisons)]:
        took = {SECONDS: run.seconds, TIMES_AS_FAST: first.seconds / run.seconds if run.seconds else None}
        work = run.forward_passes, run.forward_pieces, run.scored_pieces
        took |= dict(zip(("forward passes", "wordpieces in forward passes", "scored wordpieces"), work))
        measured += [Measurement(run.label, measure, texts, value) for measure, value in took.items()]
    for comparison in comparisons:
        for level in AGREEMENT_LEVELS:
            if of_level := getattr(comparison, level):
                measured += of_level.measurements(comparison.scorers[1].label, level.replace("_", " "))
    return measured


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


def level_agreement(a: FloatArray, b: FloatArray, text: IntArray, rng: np.random.Generator) -> LevelAgreement:
    """The correlation of two scorers, and their difference. All arrays have the shape (things,); `text` is the number
    of the text of each.
    """
    difference = b - a
    columns = [*correlation_columns(a, b), difference, np.abs(difference)]
    sums, samples = bootstrap_sums(columns, text, BOOTSTRAP, rng)
    intervals = map(percentiles, _statistics(samples))
    numbers = [float(value) if np.isfinite(value) else None for (value,) in _statistics(sums)]
    estimates: list[Any] = [value for both in zip(numbers, intervals) for value in both]
    return LevelAgreement(len(a), *estimates)


def _statistics(sums: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Correlation, mean difference and mean absolute difference. sums (float array, shape (samples, 8))."""
    n, difference, absolute = sums[:, [0, -2, -1]].T
    return correlation(sums[:, :6]), difference / n, absolute / n
