"""Numbers with a decimal comma, as in tables of many countries. Scores beside such numbers are written so, too."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Three digits may be thousands, unless nothing but 0 stands before them.
COMMA, POINT = re.compile(r"[-+]?(?:0,\d+|\d+,(?:\d\d?|\d{4,}))"), re.compile(r"[-+]?\d+\.\d+")
UNCLEAR = re.compile(r"[-+]?(?:\d*|\d{1,3}(?:,\d{3})+)")  # whole numbers, or others with a comma


class DecimalComma(str):
    """A cell of a table, with a number that has a decimal comma."""


def with_decimal_comma(cell: str) -> str:
    """The cell, marked if it is such a number."""
    return DecimalComma(cell) if "," in cell and COMMA.fullmatch(cell) else cell


@dataclass
class Decimals:
    """Which columns have numbers with a comma, or with a point, or something else than numbers."""

    kinds: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # of the cells of each column

    def add(self, row: Mapping[str, Any]) -> None:
        """Note the cells of a row. Missing ones say nothing."""
        for name, cell in row.items():
            if isinstance(cell, DecimalComma):
                self.kinds[name].add("comma")
            elif isinstance(cell, str) and not hasattr(cell, "is_missing") and not UNCLEAR.fullmatch(cell):
                self.kinds[name].add("point" if POINT.fullmatch(cell) else "other")

    @property
    def are_commas(self) -> bool:
        """Whether some columns are numbers with a comma, and none are numbers with a point."""
        return {"comma"} in self.kinds.values() and {"point"} not in self.kinds.values()
