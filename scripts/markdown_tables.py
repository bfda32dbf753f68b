"""Tables in Markdown: print them, and put them into pages that have a place for them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]
NUMBER = re.compile(r"([-+−÷]? ?[\d.,]+( ± [\d.]+)?( [\[(].+[\])])?)?")  # with its interval, or nothing


def markdown_table(rows: Rows) -> str:
    """A table in Markdown. All rows have the same keys, which are the header. Columns of numbers are aligned right."""
    columns = {name: [str(row[name]) for row in rows] for name in rows[0]}
    rules = ("---:" if all(map(NUMBER.fullmatch, cells)) else "---" for cells in columns.values())
    lines = [columns, rules, *zip(*columns.values())]
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
    places = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)
    page = path.read_text(encoding="utf8")

    def fill(place: re.Match) -> str:
        name = place[2]
        return f"{place[1]}\n{markdown_table(tables[name])}\n\n{place[3]}" if name in tables else place[0]

    if not any(place[2] in tables for place in places.finditer(page)):
        raise ValueError(f"{path} has no place for a table. Add one of these lines: {', '.join(map(_begin, tables))}.")
    path.write_text(places.sub(fill, page), encoding="utf8")


def _begin(name: str) -> str:
    return f"<!-- table: {name} -->"
