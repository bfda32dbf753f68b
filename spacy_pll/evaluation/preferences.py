"""Correlations with the preferences of people, who may prefer one of two options a little or a lot."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..arrays import FloatArray
from .accuracies import OVERALL
from .intervals import spearman
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
    items: Sequence[Item], of_model: FloatArray, of_people: FloatArray, by: Sequence[str] | None, scorer: str
) -> list[Correlation]:
    """Spearman's correlation over all items, and over each group.

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
