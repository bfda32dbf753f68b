"""Numbers with a decimal comma, as in tables of many countries. Scores beside such numbers are written so, too."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..cells import COMMA, is_missing

POINT = re.compile(r"[-+]?\d+\.\d+")
UNCLEAR = re.compile(r"[-+]?(?:\d*|\d{1,3}(?:,\d{3})+)")  # whole numbers, or others with a comma


class DecimalComma(str):
    """A cell of a table, with a number that has a decimal comma."""


def with_decimal_comma(cell: str) -> str:
    """The cell, marked if it is such a number."""
    return DecimalComma(cell) if "," in cell and COMMA.fullmatch(cell.strip()) else cell


@dataclass
class Decimals:
    """Which columns have numbers with a comma, or with a point, or something else than numbers."""

    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # of the cells of each column

    def add(self, row: Mapping[str, Any]) -> None:
        """Note the cells of a row. Missing ones say nothing."""
        for name, cell in row.items():
            if isinstance(cell, DecimalComma):
                self.kinds[name].add("comma")
            elif isinstance(cell, str) and not is_missing(cell) and not UNCLEAR.fullmatch(cell.strip()):
                self.kinds[name].add("point" if POINT.fullmatch(cell.strip()) else "other")

    @property
    def are_commas(self) -> bool:
        """Whether some columns are numbers with a comma, and none are numbers with a point."""
        return {"comma"} in self.kinds.values() and {"point"} not in self.kinds.values()


def have_commas(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the numbers of a table have a decimal comma."""
    decimals = Decimals()
    for row in rows:
        decimals.add(row)
    return decimals.are_commas
