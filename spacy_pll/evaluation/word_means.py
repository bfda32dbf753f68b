"""Mean surprisal by place and condition, with intervals over items, and the figure of studies of reading."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..cells import label_of, numbers_in
from ..errors import InputError, no_column
from ..visualize.plots import LINES, add_frame, new_figure
from ..visualize.text import visible_text
from .intervals import mean_estimate
from .items import distinct_names
from .measurements import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_Group = tuple[str, ...]  # a place, such as a region, and the conditions


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
            position = 0
            for (i, _), (_, *labels) in zip(text, words):
                if "" not in labels:
                    if labels[0] not in self.places:  # one that only some texts have stands behind the one before
                        self.places.insert(position, labels[0])
                    position = self.places.index(labels[0]) + 1
                    self.rows[tuple(labels[: len(columns)])][tuple(labels[len(columns) :]) or words].append(i)
        if not self.rows:
            raise InputError(f"No word has a value in each of the columns {', '.join(names)}, so there are no means.")
        numbers = [number for number in numbers_in(self.places) if number is not None and math.isfinite(number)]
        if len(numbers) == len(self.places):
            self.places = [self.places[i] for i in np.argsort(numbers, kind="stable")]
        self.lines = list(dict.fromkeys(group[1:] for group in self.rows))  # one for each condition

    def means(self, surprisal: Sequence[float | None], scorer: str, measure: str) -> list[Measurement]:
        """The means of what each row has, in the order of places. Rows without it are left out.

        scorer, measure (str): What the results call the metric, and what the means are of.
        """
        groups = sorted(self.rows, key=lambda group: (self.places.index(group[0]), self.lines.index(group[1:])))
        names, measured = distinct_names([(" x ".join(group), group) for group in groups]), list[Measurement]()
        for group, name in zip(groups, names):
            of_items = [
                [value for i in item if (value := surprisal[i]) is not None] for item in self.rows[group].values()
            ]
            if values := [float(np.mean(of_item)) for of_item in of_items if of_item]:
                mean, *ends = mean_estimate(values)
                low, high = (None if math.isnan(end) else end for end in ends)
                about = " x ".join(self.columns), name, dict(zip(self.columns, group))
                measured.append(Measurement(scorer, f"mean {measure}", len(values), mean, low, high, *about))
        return measured

    def plot(self, means: Sequence[Measurement], name: str) -> "Figure":
        """Draw the means over places, a line for each condition. RAISES (ImportError): matplotlib is not installed.

        name (str): What they are of.
        """
        figure = new_figure(min(max(4.5, 1.5 + 0.6 * len(self.places)), 14), 3.6)
        axes = figure.subplots()
        for i, line in enumerate(self.lines):
            shift = 0.2 * ((i + 1) / (len(self.lines) + 1) - 0.5)  # so that no interval hides another
            groups = [(tuple(mean.group.values()), mean) for mean in means]
            by_position = {self.places.index(group[0]) + shift: mean for group, mean in groups if group[1:] == line}
            (colour, marker), style = LINES[i % len(LINES)], "-" if i < len(LINES) else ":"
            look: dict[str, Any] = {"color": colour, "marker": marker, "ls": style, "markersize": 4, "capsize": 2}
            look["label"] = visible_text(", ".join(line)) or "all"
            values = np.array([(mean.value, mean.high) for mean in by_position.values()], np.float64).reshape(-1, 2)
            axes.errorbar([*by_position], values[:, 0], values[:, 1] - values[:, 0], **look)
        labels = [visible_text(place) for place in self.places]
        axes.set_xticks(range(len(labels)), labels, parse_math=False, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_xlabel(self.columns[0], parse_math=False)
        axes.set_ylabel(f"mean {name}" + "\nwith 95 % intervals" * any(mean.low is not None for mean in means))
        add_frame(axes, "y", title=", ".join(self.columns[1:]), title_fontsize=9, alignment="left")
        return figure


def _labels(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [label_of(row.get(name)) for name in names]
