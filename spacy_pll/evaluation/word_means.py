"""Mean surprisal by place and condition, with intervals over items: the table and the figure of studies of reading."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cells import label_of, numbers_in
from ..errors import InputError, no_column
from ..visualize.plots import LINES, add_frame, new_figure
from ..visualize.text import Table, visible_text
from .intervals import Estimate, mean_estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Group = tuple[str, ...]  # a place, such as a region, and the conditions
_Means = dict[_Group, tuple[int, Estimate]]  # over so many items, each of which has the mean of its words


class WordGroups:
    """The words of each place and condition, by item, found before they are scored. Equal texts with equal values count
    once: that several people have read a text is no more evidence about its surprisal.

    rows, texts (Sequence): The rows; and for each text the numbers of its rows, and its words: see `texts_of_rows`.
    columns (Sequence[str]): That of places, and then those of conditions. Places that are numbers are in their order,
        others in the order of the words. A row without a value is left out.
    items (Sequence[str]): Those that say which item a word belongs to. Empty: a text is an item.
    RAISES (InputError): There is no such column, or no word has a value in each.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        texts: Sequence[Sequence[tuple[int, str]]],
        columns: Sequence[str],
        items: Sequence[str] = (),
    ):
        self.columns, names = columns, [*columns, *items]
        self.rows = defaultdict[_Group, dict[object, list[int]]](lambda: defaultdict(list))
        self.places = list[str]()
        for name in names:
            if not any(name in row for row in rows):
                raise no_column("The table", name, {name: None for row in rows for name in row})
        distinct = {tuple((word, *_labels(rows[i], names)) for i, word in text): text for text in texts}
        for words, text in distinct.items():
            here = 0
            for (i, _), (_, *labels) in zip(text, words):
                if "" not in labels:
                    if labels[0] not in self.places:  # one that only some texts have stands behind the one before
                        self.places.insert(here, labels[0])
                    here = self.places.index(labels[0]) + 1
                    self.rows[tuple(labels[: len(columns)])][tuple(labels[len(columns) :]) or words].append(i)
        if not self.rows:
            raise InputError(f"No word has a value in each of the columns {', '.join(names)}, so there are no means.")
        numbers = [number for number in numbers_in(self.places) if number is not None and math.isfinite(number)]
        if len(numbers) == len(self.places):
            self.places = [self.places[i] for i in np.argsort(numbers, kind="stable")]
        self.lines = list(dict.fromkeys(group[1:] for group in self.rows))  # one for each condition

    def means(self, surprisal: Sequence[float | None]) -> _Means:
        """The means of what each row has, in the order of places. Rows without it are left out."""
        found = _Means()
        for group in sorted(self.rows, key=lambda group: (self.places.index(group[0]), self.lines.index(group[1:]))):
            of_items = [[one for i in item if (one := surprisal[i]) is not None] for item in self.rows[group].values()]
            if values := [float(np.mean(of_item)) for of_item in of_items if of_item]:
                found[group] = len(values), mean_estimate(values)
        return found

    def table(self, means: _Means, name: str) -> Table:
        """The means as people read them. name (str): What they are of."""
        rows: Table = [(*self.columns, "items", name, "95 % interval")]
        for group, (items, (value, *ends)) in means.items():
            rows.append((*group, items, f"{value:.2f}", " to ".join(f"{one:.2f}" for one in ends if one == one)))
        return rows

    def plot(self, means: _Means, name: str) -> "Figure":
        """Draw the means over places, a line for each condition. RAISES (ImportError): matplotlib is not installed."""
        figure = new_figure(min(max(4.5, 1.5 + 0.6 * len(self.places)), 14), 3.6)
        axes = figure.subplots()
        for i, line in enumerate(self.lines):
            shift = 0.2 * ((i + 1) / (len(self.lines) + 1) - 0.5)  # so that no interval hides another
            here = {self.places.index(group[0]) + shift: one for group, (_, one) in means.items() if group[1:] == line}
            (colour, marker), style = LINES[i % len(LINES)], "-" if i < len(LINES) else ":"
            look: dict[str, Any] = {"color": colour, "marker": marker, "ls": style, "markersize": 4, "capsize": 2}
            look["label"] = visible_text(", ".join(line)) or "all"
            values = np.array([*here.values()]).reshape(-1, 3)
            axes.errorbar([*here], values[:, 0], values[:, 2] - values[:, 0], **look)
        labels = [visible_text(place) for place in self.places]
        axes.set_xticks(range(len(labels)), labels, parse_math=False, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_xlabel(self.columns[0], parse_math=False)
        axes.set_ylabel(f"mean {name}\nwith 95 % intervals")
        add_frame(axes, "y", title=", ".join(self.columns[1:]), title_fontsize=9, alignment="left")
        return figure


def _labels(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [label_of(row.get(name)) for name in names]
