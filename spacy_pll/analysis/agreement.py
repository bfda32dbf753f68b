"""What two scorers have in common: the results of `spacy_pll.agree` and `spacy_pll.compare_margins`.

Scores and differences are natural logarithms. `dataclasses.asdict` makes plain JSON values of each result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class MarginAgreement:
    """How close the scores with some margins and spacings are to the exact ones."""

    model: str
    texts: int
    at_least: float  # how large the correlation by word should be
    smallest: Mapping[str, int | None]  # for each setting that was tried: its smallest value that reaches `at_least`
    comparisons: Sequence[Agreement]  # of each margin and spacing with the exact scores, which come first
