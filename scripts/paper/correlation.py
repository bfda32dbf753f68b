"""Pearson's r, and means, with intervals for what comes in clusters: variants of an item, tokens of a word."""

import math

import numpy as np

from spacy_pll.evaluation.intervals import (
    Estimate,
    bootstrap_sums,
    correlation,
    correlation_columns,
    paired_difference,
    percentiles,
    proportion,
    spearman,
)

__all__ = [
    "SHOWN",
    "Estimate",
    "as_text",
    "mean",
    "paired_difference",
    "pearson",
    "pearson_difference",
    "proportion",
    "spearman",
]

SAMPLES = 2000


def _sums(columns, items):
    items = np.arange(len(columns[0])) if items is None else np.asarray(items)
    return bootstrap_sums(columns, items, SAMPLES, np.random.default_rng(0))


def _row(name: str, values, samples, n: int) -> dict[str, float]:
    low, high = percentiles(samples) or (math.nan, math.nan)
    return {name: float(values[0]), "low": low, "high": high, "n": n}


def pearson(x, y, items=None) -> dict[str, float]:
    """Pearson's r of two variables with its 95 % bootstrap interval: items are drawn with replacement.

    items (Sequence): The item of each pair of values. None: each is its own.
    RETURNS: "r", "low", "high" (NaN where a variable is constant or n < 4) and "n".
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"r": math.nan, "low": math.nan, "high": math.nan, "n": len(x)}
    sums, samples = _sums(correlation_columns(x, y), items)
    return _row("r", correlation(sums), correlation(samples), len(x))


def pearson_difference(x, y, other, items=None) -> dict[str, float]:
    """r(x, y) - r(x, other), as "r", with its interval."""
    columns = [*correlation_columns(x, y), *correlation_columns(x, other)]
    values, samples = (correlation(sums[:, :6]) - correlation(sums[:, 6:]) for sums in _sums(columns, items))
    return _row("r", values, samples, len(x))


def mean(values, items=None) -> dict[str, float]:
    """The "mean" of values, with its interval."""
    if not len(values):
        return {"mean": math.nan, "low": math.nan, "high": math.nan, "n": 0}
    columns = [np.ones(len(values)), np.asarray(values, dtype=float)]
    means, samples = (sums[:, 1] / sums[:, 0] for sums in _sums(columns, items))
    return _row("mean", means, samples, len(values))


def as_text(row: dict) -> str:
    """ "r = 0.53 [0.49, 0.56]", as it stands over the panels of the figures."""
    return "r undefined" if math.isnan(row["r"]) else f"r = {row['r']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


# How the report shows the columns of `pearson`.
SHOWN = {"n": ",d", "r": ".3f", "low": ".3f", "high": ".3f"}
