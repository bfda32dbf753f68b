"""Accuracies on minimal pairs and other choices, with their intervals."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import PLLError
from ..settings import with_known_values
from .intervals import Estimate, mcnemar, mean_proportion, paired_difference, proportion
from .items import Item, levels, smallest

OVERALL, MACRO = "overall", "macro"


class Accuracy(NamedTuple):
    """How often the better sentence, or the right option, has the highest score, in a group of items."""

    scorer: str  # the metric, or the scorer if there are several
    level: str  # "overall", "macro" (the mean over the groups of `name`), or the columns that the group is made by
    name: str  # of the group: the values in these columns, as text
    pairs: int  # or other items
    ties: int
    accuracy: float  # 0 to 1; a tie of two counts as half
    low: float  # 95 % interval
    high: float
    # How much more often it is right than the first scorer, on the same pairs; None for the first, and for "macro".
    difference: float | None = None  # of the accuracies, -1 to 1
    difference_low: float | None = None  # 95 % interval
    difference_high: float | None = None
    better: int | None = None  # pairs with a better outcome
    worse: int | None = None
    p: float | None = None  # McNemar's, exact and two-sided
    group: Mapping[str, Any] = {}  # its value in each of these columns

    @property
    def label(self) -> str:
        """What it is of, beside those of the same columns."""
        return self.name if self.group else OVERALL if self.level == OVERALL else f"mean over {self.name}"

    @property
    def estimate(self) -> Estimate:
        """The accuracy with its interval."""
        return Estimate(self.accuracy, self.low, self.high)

    @property
    def gain(self) -> Estimate | None:
        """The difference from the first scorer with its interval; None for the first, and for "macro"."""
        if self.difference is None or self.difference_low is None or self.difference_high is None:
            return None
        return Estimate(self.difference, self.difference_low, self.difference_high)


Ties = Literal["share", "first"]


@with_known_values
def outcomes_of(scores: FloatArray, right: Sequence[int] | IntArray, ties: Ties = "share") -> FloatArray:
    """1 for each item whose right option has the highest score, and 0 where it has not. float64, shape (items,).

    scores (float array, shape (items, options)): Minus infinity where an item has fewer options than others.
    right (Sequence[int]): The number of the right option of each item.
    ties (Literal["share", "first"]): What a tie of the right option with others counts: one share of it, so a half with
        one other; or 1 if the right option comes first, and otherwise 0.
    """
    if np.isnan(scores).any():
        raise PLLError("A score is not a number (NaN), so its item has no outcome. Score the texts again.")
    best = scores == scores.max(axis=1, keepdims=True)
    if ties == "first":
        return (scores.argmax(axis=1) == right).astype(np.float64)
    return best[np.arange(len(best)), right] / best.sum(axis=1)


def accuracies(
    items: Sequence[Item],
    outcomes: FloatArray,
    by: Sequence[str] | None = None,
    scorer: str = "",
    base: FloatArray | None = None,
    tied: BoolArray | None = None,
) -> list[Accuracy]:
    """The accuracy of all items, and of each group.

    items (Sequence[Item]): At least one.
    outcomes (float array, shape (items,)): From 0 to 1.
    by (Optional[Sequence[str]]): See `levels`.
    base (Optional[float array]): The outcomes under the scorer to compare with.
    tied (Optional[bool array]): Which items are ties. None: those whose outcome is between 0 and 1.
    RETURNS (list[Accuracy]): First "overall", the mean over items. Then "macro", the mean over the smallest groups, but
        only where they differ in size: otherwise both are equal. Then the groups of each level, sorted by name.
    """
    tied = (outcomes > 0) & (outcomes < 1) if tied is None else tied
    results, by_columns = [], levels(items, by)
    for columns, groups in by_columns.items():
        level = " x ".join(columns) or OVERALL
        for name, values, members in groups:
            won = outcomes[members]
            gain = () if base is None else _gain(won - base[members])
            one = Accuracy(scorer, level, name, len(won), int(tied[members].sum()), *proportion(won), *gain)
            results.append(one._replace(group=dict(zip(columns, values))))
    columns, groups = smallest(by_columns)
    if len({len(group.members) for group in groups}) > 1:
        mean = mean_proportion([outcomes[group.members] for group in groups])
        results.insert(1, Accuracy(scorer, MACRO, " x ".join(columns), len(outcomes), int(tied.sum()), *mean))
    return results


def _gain(change: FloatArray) -> tuple[Any, ...]:
    signs = int((change > 0).sum()), int((change < 0).sum())
    return *paired_difference(change), *signs, mcnemar(*signs)
