"""Measurements: the numbers that a test set has under each scorer, with their intervals."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import PLLError
from ..settings import with_known_values
from .intervals import Estimate, mcnemar, mean_proportion, paired_difference, proportion, spearman
from .items import Group, Item, levels, smallest

OVERALL, MACRO = "overall", "macro"
ACCURACY, RHO, PEARSON = "accuracy", "Spearman's rho", "r "  # the last with what it is by, such as "r by word"


class Measurement(NamedTuple):
    """A number that a test set has under a scorer, for all items or a group of them."""

    scorer: str  # the metric, or the scorer if there are several
    measure: str  # what is measured, such as "accuracy"
    n: int  # items
    value: float | None  # None where it is not defined
    low: float | None = None  # 95 % interval, if there is one
    high: float | None = None
    level: str = OVERALL  # or "macro" (the mean over the groups of `name`), or the columns that the group is made by
    name: str = ""  # of the group: the values in these columns, as text
    group: Mapping[str, Any] = {}  # its value in each of these columns
    # Of accuracies: how many items are ties; and how much more often this scorer is right than the first one, on the
    # same items (None for the first, and for "macro").
    ties: int | None = None
    difference: float | None = None  # of the accuracies, -1 to 1
    difference_low: float | None = None  # 95 % interval
    difference_high: float | None = None
    better: int | None = None  # items with a better outcome
    worse: int | None = None
    p: float | None = None  # McNemar's, exact and two-sided

    @property
    def label(self) -> str:
        """What it is of, beside those of the same columns."""
        return self.name if self.group else OVERALL if self.level == OVERALL else f"mean over {self.name}"

    @property
    def estimate(self) -> Estimate:
        """The value with its interval. RAISES (ValueError): One is not defined."""
        if self.value is None or self.low is None or self.high is None:
            raise PLLError(f"There is no {self.measure!r} with an interval, for {self.label!r}.")
        return Estimate(self.value, self.low, self.high)

    def is_of(self, columns: tuple[str, ...]) -> bool:
        """Whether it is of a group by these columns, or, without columns, of all items."""
        return tuple(self.group) == columns and (bool(columns) or self.level == OVERALL)


Ties = Literal["share", "first"]


@with_known_values
def outcomes_of(scores: FloatArray, right: Sequence[int] | IntArray, ties: Ties = "share") -> FloatArray:
    """1 for each item whose right option has the highest score, and 0 where it has not. float64, shape (items,).

    scores (float array, shape (items, options)): Minus infinity where an item has fewer options than others.
    right (Sequence[int]): The number of the right option of each item.
    ties (Literal["share", "first"]): How a tie counts, if the right option is one of the best. share: 1 divided by the
        number of equal options. first: 1 if the right option comes first, else 0.
    """
    if np.isnan(scores).any():
        raise PLLError("A score is not a number (NaN), so its item has no outcome. Score the texts again.")
    best = scores == scores.max(axis=1, keepdims=True)
    if ties == "first":
        return (scores.argmax(axis=1) == right).astype(np.float64)
    return best[np.arange(len(best)), right] / best.sum(axis=1)


def accuracies(
    items: Sequence[Item],
    outcomes: Mapping[str, FloatArray],
    by: Sequence[str] | None = None,
    measure: str = ACCURACY,
    tied: Mapping[str, BoolArray] | None = None,
) -> list[Measurement]:
    """The accuracy of each scorer, on all items and on each group, compared with the first scorer.

    items (Sequence[Item]): At least one.
    outcomes (Mapping[str, float array]): By scorer, of each item: from 0 to 1.
    by (Optional[Sequence[str]]): See `levels`.
    measure (str): What the mean of the outcomes is called.
    tied (Optional[Mapping[str, bool array]]): By scorer, which items are ties. None: those whose outcome is between 0
        and 1.
    RETURNS (list[Measurement]): Of each scorer first "overall", the mean over items. Then "macro", the mean over the
        smallest groups, but only where they differ in size: otherwise both are equal. Then the groups of each level,
        sorted by name.
    """
    by_columns, (first, *_), measured = levels(items, by), outcomes, list[Measurement]()
    columns, smallest_ones = smallest(by_columns)
    sizes = {len(group.members) for group in smallest_ones}
    for scorer, won in outcomes.items():
        is_tie = tied[scorer] if tied else (won > 0) & (won < 1)
        of_scorer = list[Measurement]()
        for members, about in each_group(by_columns):
            share, ties = proportion(won[members])._asdict(), int(is_tie[members].sum())
            gain = {} if scorer == first else _gain(won[members] - outcomes[first][members])
            of_scorer.append(Measurement(scorer, measure, **share, **about, ties=ties, **gain))
        if len(sizes) > 1:
            mean = mean_proportion([won[group.members] for group in smallest_ones])
            about = {"n": len(won), "level": MACRO, "name": " x ".join(columns), "ties": of_scorer[0].ties}
            of_scorer.insert(1, Measurement(scorer, measure, **mean._asdict(), **about))
        measured += of_scorer
    return measured


def each_group(by_columns: Mapping[tuple[str, ...], Sequence[Group]]) -> Iterator[tuple[IntArray, dict[str, Any]]]:
    """The numbers of the items of each group of some levels, and what measurements say of the group.

    by_columns (Mapping[tuple[str, ...], Sequence[Group]]): See `levels`.
    """
    for columns, groups in by_columns.items():
        for name, values, members in groups:
            about = {"level": " x ".join(columns) or OVERALL, "name": name, "group": dict(zip(columns, values))}
            yield np.array(members, dtype=np.int64), {"n": len(members), **about}


def _gain(change: FloatArray) -> dict[str, Any]:
    value, low, high = paired_difference(change)
    better, worse = int((change > 0).sum()), int((change < 0).sum())
    of_difference = {"difference": value, "difference_low": low, "difference_high": high}
    return {**of_difference, "better": better, "worse": worse, "p": mcnemar(better, worse)}


def correlations(
    items: Sequence[Item], of_model: Mapping[str, FloatArray], of_people: FloatArray, by: Sequence[str] | None = None
) -> list[Measurement]:
    """Spearman's correlation of the preferences of each scorer and of people, over all items and over each group.

    of_model (Mapping[str, float array]): By scorer, how much the first option is preferred. Only the order counts.
    of_people (float array, shape (items,)): The same of people.
    by (Optional[Sequence[str]]): See `levels`.
    """
    groups, measured = list(each_group(levels(items, by))), list[Measurement]()
    for scorer, model in of_model.items():
        for members, about in groups:
            rho = spearman(model[members], of_people[members])
            measured.append(Measurement(scorer, RHO, **rho._asdict() if rho else {"value": None}, **about))
    return measured
