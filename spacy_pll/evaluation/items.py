"""Choices and minimal pairs, and the groups that they are divided into."""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from ..cells import label_of, name_of
from ..corpus.records import Nested
from ..errors import PLLError, no_column
from ..stream.contexts import TextInContext

# BLiMP's columns of groups and of smaller groups, with what others call them, in whatever letters; and the field that
# items from a folder have.
PHENOMENON, PARADIGM, FILE = "linguistics_term", "UID", "file"
PHENOMENA = (PHENOMENON, "phenomenon", "bias_type", "field")
PARADIGMS = (PARADIGM, "paradigm", "pid", FILE)


ONE_OPTION = "To score single texts after a context, write a table of words with `context_column`."


class Item(Protocol):
    """What an accuracy is a mean over."""

    @property
    def fields(self) -> Mapping[str, Any]: ...  # columns: ids and conditions


AnyItem = TypeVar("AnyItem", bound=Item)


class Fields(Nested):
    """Columns of an item, and where it was read: what messages about it begin with."""

    def __init__(self, place: str, columns: Mapping[str, Any]):
        super().__init__(columns)
        self.place = place


class Pair(NamedTuple):
    """Two sentences that differ little."""

    good: str
    bad: str
    fields: Mapping[str, Any] = {}  # the other columns: ids and conditions

    @property
    def phenomenon(self) -> str:
        """The phenomenon, as in BLiMP and other test sets, or ""."""
        return label_of(self.fields.get(_named(self.fields, PHENOMENA)))

    @property
    def paradigm(self) -> str:
        """The paradigm, as in BLiMP and other test sets, or the name of the file, or ""."""
        return label_of(self.fields.get(_named(self.fields, PARADIGMS)))


class Option(TextInContext):
    """An option of a choice."""


class Choice(NamedTuple):
    """Several options, one of which is right: several texts in one context, or one text in several contexts."""

    options: Sequence[Option]
    right: int = 0  # the number of the right option, from 0
    fields: Mapping[str, Any] = {}  # other columns: ids and conditions
    preference: float | None = None  # how much people prefer the first option, on any scale; then none is right


class Group(NamedTuple):
    """Items that have the same labels in some columns, or none."""

    name: str  # the labels, which no other group of these columns has
    values: tuple[Any, ...]  # of the first item
    members: list[int]  # the numbers of the items, from 0


def default_columns(items: Sequence[Item]) -> list[str]:
    """The columns of phenomena and paradigms as far as all items have them; without paradigms, the files."""
    if not items:
        raise PLLError("There is no pair, so there is no accuracy.")
    shared = set.intersection(*(set(item.fields) for item in items))
    in_order = [column for column in items[0].fields if column in shared]
    return [column for names in (PHENOMENA, PARADIGMS) if (column := _named(in_order, names))]


def _named(columns: Iterable[str], names: Sequence[str]) -> str:
    """The column that has the first of these names; "" if none has any."""
    return min(
        (column for column in columns if column in names or column.lower() in names),
        key=lambda column: names.index(column if column in names else column.lower()),
        default="",
    )


def levels(items: Iterable[Item], by: Sequence[str] | None = None) -> dict[tuple[str, ...], list[Group]]:
    """The groups that pairs or other items are divided into.

    by (Optional[Sequence[str]]): Columns. Each value of a column is a group. With several columns, each combination of
        values is a group, too, unless that would only repeat the groups of one column. None: `default_columns`.
    RETURNS (dict[tuple[str, ...], list[Group]]): By columns, sorted by name. First, by none, all items as one group.
    RAISES (InputError): An item has no such column.

    ```python
    import spacy_pll

    pairs = [
        spacy_pll.Pair("The cats sleep.", "The cats sleeps.", {"phenomenon": "agreement"}),
        spacy_pll.Pair("I saw myself.", "I saw himself.", {"phenomenon": "reflexives"}),
    ]
    for columns, groups in spacy_pll.levels(pairs).items():
        print(columns, [group.name for group in groups])
    ```

    ```
    () ['']
    ('phenomenon',) ['agreement', 'reflexives']
    ```
    """
    if isinstance(by, str):
        raise PLLError(f"`by` must be a list of columns, such as {[by]}. It is {by!r}.")
    items = list(items)
    columns = list(by) if by is not None else default_columns(items)
    for number, item in enumerate(items, 1):
        for column in columns:
            if column not in item.fields:
                raise no_column(f"{type(item).__name__} {number}", column, item.fields)
    by_columns: dict[tuple[str, ...], list[Group]] = {(): [Group("", (), list(range(len(items))))]}
    for chosen in [*((column,) for column in columns), *([tuple(columns)] if len(columns) > 1 else [])]:
        groups = groups_by(items, chosen)
        if len(chosen) == 1 or len(groups) > max(map(len, by_columns.values())):
            by_columns[chosen] = groups
    return by_columns


def groups_by(items: Sequence[Item], columns: tuple[str, ...]) -> list[Group]:
    """The groups of items that have the same labels in some columns, sorted by name. Without columns, all are one."""
    groups = dict[tuple[str, ...], Group]()
    for i, item in enumerate(items):
        cells = [item.fields[column] for column in columns]
        labels = tuple(map(label_of, cells))
        if labels not in groups:
            values = tuple(cell.strip() if isinstance(cell, str) else cell for cell in cells)
            groups[labels] = Group(" x ".join(map(name_of, cells)), values, [])
        groups[labels].members.append(i)
    named = zip(groups.values(), distinct_names([(group.name, group.values) for group in groups.values()]))
    return sorted((group._replace(name=name) for group, name in named), key=lambda group: group.name)


def distinct_names(groups: Sequence[tuple[str, tuple[Any, ...]]]) -> list[str]:
    """The names of groups; where two are equal, such as "a x b" of "a" and "b", or of one column, they are written as
    Python does. groups (Sequence[Tuple[str, Tuple[Any, ...]]]): The name and the values of each.
    """
    count = Counter(name for name, _ in groups)
    return [name if count[name] == 1 else " x ".join(map(repr, values)) for name, values in groups]


def smallest(by_columns: Mapping[tuple[str, ...], list[Group]]) -> tuple[tuple[str, ...], list[Group]]:
    """Of `levels`, the columns that make the smallest groups, which are the most, and these groups."""
    # Of columns that make as many groups, the one that is named last.
    return sorted(by_columns.items(), key=lambda level: len(level[1]))[-1]


def smallest_groups(items: Sequence[AnyItem], by: Sequence[str] | None = None) -> dict[str, list[AnyItem]]:
    """The items of each of the smallest groups (see `levels`), in the order in which they come."""
    groups = sorted(smallest(levels(items, by))[1], key=lambda group: group.members)
    return {group.name: [items[i] for i in group.members] for group in groups}


def sample_items(items: Sequence[AnyItem], n: int, by: Sequence[str] | None = None) -> list[AnyItem]:
    """A random sample of at most `n` items of each of the smallest groups, in BLiMP of each paradigm.

    The seed is the group's name, so the sample is the same each time.
    """
    groups = smallest_groups(items, by).items()
    return [item for name, group in groups for item in random.Random(name).sample(group, min(n, len(group)))]
