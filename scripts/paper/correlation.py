"""Pearson's r with its interval."""

import math

import numpy as np


def pearson(x, y) -> dict[str, float]:
    """Pearson's r of two variables with Fisher's 95 % interval.

    RETURNS: "r", "low", "high" (NaN where a variable is constant or n < 4) and "n".
    """
    from scipy.stats import pearsonr

    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return {"r": math.nan, "low": math.nan, "high": math.nan, "n": len(x)}
    result = pearsonr(x, y)
    interval = result.confidence_interval(0.95)
    return {"r": float(result.statistic), "low": float(interval.low), "high": float(interval.high), "n": len(x)}


def as_text(row: dict) -> str:
    """ "r = 0.53 [0.49, 0.56]", as it stands over the panels of the figures."""
    return "r undefined" if math.isnan(row["r"]) else f"r = {row['r']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


# How the report shows the columns of `pearson`.
SHOWN = {"n": ",d", "r": ".3f", "low": ".3f", "high": ".3f"}
