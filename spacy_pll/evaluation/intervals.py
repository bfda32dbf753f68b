"""95 % intervals: of accuracies, of paired differences between them, and of statistics of things that come in clusters.

Accuracies have Wilson's interval with continuity correction (Newcombe 1998, method 4; Statistics in Medicine 17:
857-872). It has a closed form, is never empty, stays within 0 and 1, and covers the true accuracy at least 94.5 times
in 100 for any number of pairs. Without the correction the interval is shorter, but with 10 pairs and an accuracy of .95
it covers it 91 times only.

The same interval is used where the pairs belong to groups of different difficulty. It is then wider than it has to be,
never too narrow: for given numbers of pairs, the number of right ones varies most if all groups are equally difficult
(Hoeffding 1956, Annals of Mathematical Statistics 27: 713-721). `mean_proportion` is this argument for a mean over
groups of different sizes.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray

Z = NormalDist().inv_cdf(0.975)
# Samples of a bootstrap that are in memory at once.
CHUNK = 50
# What scores of the same word in the same text differ by at most (docs/corpora.md).
SAME = 1e-3


class Estimate(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


def furthest_where(holds: Callable[[float], bool], near: float, far: float) -> float:
    """Up to which number between two something holds, by bisection. near: Where it holds, unless it holds nowhere."""
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if holds(middle) else (near, middle)
    return near


def proportion(outcomes: FloatArray) -> Estimate:
    """The mean of outcomes, each 0, 1 or between them, where the variance is at most that of 0 and 1."""
    p, n = float(np.mean(outcomes)), len(outcomes)

    def bound(p: float, sign: int) -> float:
        shift = sign * Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
        return (p + Z**2 / (2 * n) + shift) / (1 + Z**2 / n)

    half = 0.5 / n
    # What is not larger than the correction cannot be told from 0 or 1.
    return Estimate(p, bound(p - half, -1) if p > half else 0.0, bound(p + half, 1) if p + half < 1 else 1.0)


def mean_proportion(groups: Sequence[FloatArray]) -> Estimate:
    """The mean over groups of the means of their outcomes. Small groups count as much as large ones.

    Like Wilson's, the interval has every mean from which this one is no further than 1.96 standard deviations and half
    of what a pair of the smallest group counts. The deviation is the largest that is possible with that mean, if the
    accuracy of each group lies in its own interval. Groups of equal size have the interval of all pairs, or a shorter
    one. docs/reliability.md has the coverage in simulations: at least 95 %.

    The usual way to combine the groups' intervals is to add the squares of their half widths (Zou & Donner 2008,
    Statistics in Medicine 27: 1693-1702). With many groups this covers too seldom: near 1, each interval is too short
    above its accuracy, and too long below it.
    """
    own, sizes = np.array([proportion(group) for group in groups]), np.array([len(group) for group in groups])
    mean, k = float(own[:, 0].mean()), len(groups)
    half, furthest = 0.5 / (k * sizes.min()), 1 / sizes.min()  # so far, that the accuracies are at the ends

    def accuracies(lean: float) -> FloatArray:
        """Of all accuracies with their mean, those with the largest variance (Lagrange): the larger a group, the
        further is it from 0.5.
        """
        return np.clip(0.5 + lean * sizes, own[:, 1], own[:, 2])

    def bound(sign: int) -> float:
        def is_kept(lean: float) -> bool:
            p = accuracies(lean)
            return bool(sign * (p.mean() - mean) <= half + Z * math.sqrt(np.sum(p * (1 - p) / sizes)) / k)

        return float(accuracies(furthest_where(is_kept, -sign * furthest, sign * furthest)).mean())

    return Estimate(mean, bound(-1), bound(1))


def mean_estimate(values: Sequence[float]) -> Estimate:
    """A mean with Student's interval: of three values it is 2.7 times as long as the one of a bootstrap, which is too
    narrow. It is NaN where all values are the same, but for what scores differ with the batch: they say nothing about
    others.
    """
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if np.ptp(values) > SAME else math.nan
    mean, half = float(np.mean(values)), error * _student(max(1, len(values) - 1))
    return Estimate(mean, mean - half, mean + half)


def _student(df: int) -> float:
    """The 97.5 % quantile of Student's t, by its distribution in closed form (Abramowitz & Stegun 1964, 26.7.3-4)."""
    df = min(df, 1000)  # with more, it is nearly the same

    def is_within(angle: float) -> bool:
        term, total = math.cos(angle) if df % 2 else 1.0, 0.0
        for k in range(2 + df % 2, df + 1, 2):
            total, term = total + term, term * math.cos(angle) ** 2 * (k - 1) / k
        share = (angle + math.sin(angle) * total) * 2 / math.pi if df % 2 else math.sin(angle) * total
        return share < 0.95

    return math.sqrt(df) * math.tan(furthest_where(is_within, 0.0, math.pi / 2))


def paired_difference(differences: FloatArray) -> Estimate:
    """The mean of the differences between paired outcomes, each from -1 to 1.

    The interval is that of Bonett & Price (2012, Journal of Educational and Behavioral Statistics 37: 479-488): two
    differences are added, 1 and -1, and the interval is the one that the normal distribution gives. So it has a width
    even if all differences are the same.
    """
    added = np.append(differences, [1.0, -1.0])
    centre, half = float(added.mean()), Z * float(added.std()) / math.sqrt(len(added))
    return Estimate(float(np.mean(differences)), max(-1.0, centre - half), min(1.0, centre + half))


def mcnemar(better: int, worse: int) -> float:
    """McNemar's exact p, two-sided: how likely so uneven numbers are if a pair is as often better as worse."""
    n, k = better + worse, min(better, worse)
    fewer = np.arange(k, 0, -1)
    # How likely k of n are, and, as shares of that, how likely each smaller number is.
    likely, shares = math.comb(n, k) / 2**n, np.cumprod(fewer / (n + 1 - fewer))
    return min(1.0, 2 * likely * (1 + float(shares.sum())))


def bootstrap_sums(
    columns: Sequence[FloatArray], cluster: IntArray, samples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """The sums of columns, and those of samples of whole clusters, drawn with replacement (Efron & Tibshirani 1993).

    Many statistics, such as means and correlations, can be computed from sums. cluster (int array): The cluster of each
    thing, such as the text that it is in.
    RETURNS (tuple): Float64 arrays of shape (1, columns) and (samples, columns). With one cluster there is no sample.
    """
    _, number = np.unique(cluster, return_inverse=True)
    sums = np.stack([np.bincount(number, weights=column).astype(np.float64) for column in columns], axis=1)
    n = len(sums)
    # The numbers of times that each cluster is drawn.
    sizes = [min(CHUNK, samples - done) for done in range(0, samples if n > 1 else 0, CHUNK)]
    parts = [rng.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64) @ sums for size in sizes]
    return sums.sum(axis=0)[None], np.concatenate([np.zeros((0, sums.shape[1])), *parts])


def ranks(values: FloatArray) -> FloatArray:
    """The place of each value in their order, from 1; equal ones share the mean of their places."""
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[number])


def spearman(x: FloatArray, y: FloatArray) -> Estimate | None:
    """Spearman's rho with the interval of Bonett & Wright (2000, Psychometrika 65: 23-28); with fewer than 4 pairs of
    values, it is -1 to 1. So that an interval has a width even if rho is 1 or -1, rho is taken to be half a step less
    extreme there: a step is what two neighbours in the wrong order change. None where a variable does not vary.
    """
    if min(len(np.unique(x)), len(np.unique(y))) < 2:
        return None
    rho, n = float(np.corrcoef(ranks(x), ranks(y))[0, 1]), len(x)
    if n < 4:
        return Estimate(rho, -1.0, 1.0)
    most, half = 1 - max(6 / (n**3 - n), 1e-15), Z * math.sqrt((1 + rho**2 / 2) / (n - 3))
    centre = math.atanh(min(most, max(-most, rho)))
    return Estimate(rho, min(rho, math.tanh(centre - half)), max(rho, math.tanh(centre + half)))


def correlation_columns(x: FloatArray, y: FloatArray) -> list[FloatArray]:
    """The columns whose sums give Pearson's r. Without the means, no digits of squares are lost."""
    x, y = x - x.mean(), y - y.mean()
    return [np.ones(len(x)), x, y, x * x, y * y, x * y]


def correlation(sums: FloatArray) -> FloatArray:
    """Pearson's r from the sums of `correlation_columns`, shape (samples, 6). NaN where a variable does not vary."""
    n, x, y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((n * xy - x * y) / np.sqrt((n * xx - x * x) * (n * yy - y * y)))


def percentiles(samples: FloatArray) -> tuple[float, float] | None:
    """The percentile interval of a bootstrap; None if there is no sample for which the statistic is defined."""
    known = samples[np.isfinite(samples)]
    return (float(np.quantile(known, 0.025)), float(np.quantile(known, 0.975))) if len(known) else None
