"""Graded choices: how a model's preferences between two texts correlate with those of people."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray
from .accuracies import OVERALL
from .intervals import Estimate, Z, ranks
from .items import Item, levels


class Correlation(NamedTuple):
    """Spearman's rank correlation of the preferences of a model and of people, in a group of choices."""

    scorer: str  # the metric, or the scorer if there are several
    level: str  # "overall", or the columns that the group is made by
    name: str  # of the group: the values in these columns, as text
    choices: int
    rho: float | None  # None where one of the two does not vary
    low: float | None  # 95 % interval
    high: float | None
    group: Mapping[str, Any] = {}  # its value in each of these columns


def correlations(
    items: Sequence[Item],
    of_model: FloatArray,
    of_people: FloatArray,
    by: Sequence[str] | None = None,
    scorer: str = "",
) -> list[Correlation]:
    """The correlation over all items, and over each group.

    of_model, of_people (float array, shape (items,)): How much the first option is preferred. Only the order counts.
    by (Optional[Sequence[str]]): See `levels`.
    """
    found = []
    for columns, groups in levels(items, by).items():
        for name, values, members in groups:
            rho = spearman(of_model[members], of_people[members])
            one = Correlation(scorer, " x ".join(columns) or OVERALL, name, len(members), *(rho or (None, None, None)))
            found.append(one._replace(group=dict(zip(columns, values))))
    return found


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
