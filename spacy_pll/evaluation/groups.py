"""Minimal pairs, and the groups that they are divided into."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InputError

# BLiMP's columns of groups and of smaller groups; and the field that pairs from a folder have.
PHENOMENON, PARADIGM, FILE = "linguistics_term", "UID", "file"


class Pair(NamedTuple):
    """Two sentences that differ little."""

    good: str
    bad: str
    fields: Mapping[str, Any] = {}  # the other columns: ids and conditions

    @property
    def phenomenon(self) -> str:
        """As BLiMP has it, or ""."""
        return str(self.fields.get(PHENOMENON, ""))

    @property
    def paradigm(self) -> str:
        """As BLiMP has it, or the name of the file, or ""."""
        return str(self.fields.get(PARADIGM, self.fields.get(FILE, "")))


class Group(NamedTuple):
    """Pairs that have the same values in some columns."""

    name: str  # the values as text, which no other group of these columns has
    values: tuple[Any, ...]
    members: list[int]  # the numbers of the pairs, from 0


def default_columns(pairs: Sequence[Pair]) -> list[str]:
    """BLiMP's columns of phenomena and paradigms as far as all pairs have them; without paradigms, the files."""
    if not pairs:
        raise ValueError("There is no pair, so there is no accuracy.")
    shared = set.intersection(*(set(pair.fields) for pair in pairs))
    smaller = PARADIGM if PARADIGM in shared else FILE
    return [column for column in (PHENOMENON, smaller) if column in shared]


def levels(pairs: Sequence[Pair], by: Sequence[str] | None = None) -> dict[tuple[str, ...], list[Group]]:
    """The groups that the pairs are divided into.

    by (Optional[Sequence[str]]): Columns: the values of each make groups, and so do all of them crossed, unless the
        groups of one lie in those of the others. None is `default_columns`.
    RETURNS (dict[tuple[str, ...], list[Group]]): By columns, sorted by name. First, by none, all pairs as one group.
    RAISES (InputError): A pair has no such column.
    """
    if isinstance(by, str):
        raise ValueError(f"`by` must be a list of columns, such as {[by]}. It is {by!r}.")
    columns = list(by) if by is not None else default_columns(pairs)
    for number, pair in enumerate(pairs, 1):
        for column in columns:
            if column not in pair.fields:
                names = ", ".join(map(repr, pair.fields)) or "none"
                raise InputError(f"Pair {number} has no column {column!r}. Its columns are: {names}.")
    by_columns: dict[tuple[str, ...], list[Group]] = {(): [Group("", (), list(range(len(pairs))))]}
    for chosen in [*((column,) for column in columns), *([tuple(columns)] if len(columns) > 1 else [])]:
        groups = _groups(pairs, chosen)
        if len(chosen) == 1 or len(groups) > max(map(len, by_columns.values())):
            by_columns[chosen] = groups
    return by_columns


def _groups(pairs: Sequence[Pair], columns: tuple[str, ...]) -> list[Group]:
    groups: dict[str, Group] = {}
    for i, pair in enumerate(pairs):
        values = tuple(pair.fields[column] for column in columns)
        # A value may be a list. And 1 is not True here.
        name = " x ".join(map(str, values))
        groups.setdefault(repr(values), Group(name, values, [])).members.append(i)
    count = Counter(group.name for group in groups.values())
    distinct = (
        one if count[one.name] == 1 else one._replace(name=" x ".join(map(repr, one.values))) for one in groups.values()
    )
    return sorted(distinct, key=lambda group: group.name)


def smallest_groups(pairs: Sequence[Pair], by: Sequence[str] | None = None) -> dict[str, list[Pair]]:
    """The pairs of each of the smallest groups (see `levels`), in the order in which they come."""
    groups = sorted(list(levels(pairs, by).values())[-1], key=lambda group: group.members)
    return {group.name: [pairs[i] for i in group.members] for group in groups}


def sample_pairs(pairs: Sequence[Pair], n: int, by: Sequence[str] | None = None) -> list[Pair]:
    """A random sample of at most `n` pairs of each of the smallest groups, in BLiMP of each paradigm.

    The seed is the group's name, so the sample is the same each time.
    """
    groups = smallest_groups(pairs, by).items()
    return [pair for name, group in groups for pair in random.Random(name).sample(group, min(n, len(group)))]
