"""Tables in Markdown: print them, and put them into pages that have a place for them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]
PLACE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
NUMBER = re.compile(r"([-+−÷]? ?[\d.,]+( s)?( ± [\d.]+)?( [\[(].+[\])])?)?")  # with its interval, or nothing
MINUS = re.compile(r"(?<!\d)-(?=\d)")


def markdown_table(rows: Rows) -> str:
    """A table in Markdown. All rows have the same keys, which are the header.

    Columns of numbers are aligned right, and have minus signs in place of hyphens.
    """
    columns, rules = [], []
    for name in rows[0]:
        cells = [str(row[name]) for row in rows]
        is_number = all(map(NUMBER.fullmatch, cells))
        columns.append([MINUS.sub("−", cell) for cell in cells] if is_number else cells)
        rules.append("-:" if is_number else "--")  # as mdformat writes them
    lines = [rows[0], rules, *zip(*columns)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def print_table(title: str, rows: Rows) -> None:
    """Print a table in Markdown, with a title."""
    print(f"\n{title}\n\n{markdown_table(rows)}", flush=True)


def replace_tables(path: Path, tables: Mapping[str, Rows]) -> None:
    """Replace the tables of a page.

    path (Path): A Markdown file. The place of a table is between the lines `<!-- table: NAME -->` and `<!-- end -->`.
    tables (Mapping[str, Rows]): By name. Tables that have no place in the page are left out.
    RAISES (ValueError): The page has a place for none of them.
    """
    page = path.read_text(encoding="utf8")

    def fill(place: re.Match) -> str:
        name = place[2]
        return f"{place[1]}\n{markdown_table(tables[name])}\n\n{place[3]}" if name in tables else place[0]

    without = [f"<!-- table: {name} -->" for name in tables if name not in find_places(path)]
    if len(without) == len(tables):
        raise ValueError(f"{path} has no place for a table. Add one of these lines: {', '.join(without)}.")
    path.write_text(PLACE.sub(fill, page), encoding="utf8")
    print(f"\nWritten to {path}{', which has no ' if without else ''}{', '.join(without)}", flush=True)


def find_places(path: Path) -> list[str]:
    """The names of the tables for which a page has a place."""
    return [place[2] for place in PLACE.finditer(path.read_text(encoding="utf8"))]
