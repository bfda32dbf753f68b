"""Tables of text: what stands between their columns, and whether quotation marks stand around cells or are text.

Tables with tabs are mostly written without quoting. Then a cell may begin with a quotation mark and go on after the
next one, or end without any, and reading it as a quoted cell would make one row of several. Others are quoted by the
rules of RFC 4180, as all tables with commas are. Which of the two holds is a matter of the file as a whole.
"""

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

from ..errors import InputError
from .records import FileOptions

DELIMITERS = ",\t;|"
QUOTED_BY_CUSTOM = ",;"  # tables with these come from spreadsheets and programs, which quote
IN_MEMORY = 2**24  # characters of a table that are kept in memory while it is read twice
Cells = tuple[int, list[str]]  # the number of the last line of a row, and its cells


def read_cells(lines: Iterator[str], name: str, options: FileOptions, usual: str) -> Iterator[Cells]:
    """The rows of a table, the header among them. Blank lines are skipped.

    lines (Iterator[str]): With their ends, "\\n" or "\\r\\n".
    usual (str): The delimiter of files of this format.
    RAISES (InputError): Rows cannot be told apart.
    """
    csv.field_size_limit(2**31 - 1)  # a text may be long
    first = next(lines, "")
    delimiter = options.delimiter or _delimiter_of(first, usual, options.header)
    lines = chain([first], lines)
    if options.quoting or delimiter in QUOTED_BY_CUSTOM:
        yield from _parsed(lines, name, delimiter, options.quoting or "csv")
        return
    # Until a cell begins with a quotation mark, both readings are the same, and rows are read as a stream.
    opening, held = re.compile(f'(?:^|{re.escape(delimiter)})"'), list[str]()

    def before_any() -> Iterator[str]:
        for line in lines:
            if opening.search(line):
                held.append(line)
                return
            yield line

    number, width = 0, len(options.header) if options.header else None
    for number, cells in _parsed(before_any(), name, delimiter, "none"):
        width = len(cells) if width is None and cells else width
        yield number, cells
    if held:
        with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf8", newline="\n") as rest:
            rest.writelines(chain(held, lines))
            quoting = _quoting_of(rest, name, delimiter, width, number)
            rest.seek(0)
            yield from _parsed(rest, name, delimiter, quoting, number)


def _delimiter_of(line: str, usual: str, header: Sequence[str] | None) -> str:
    """What stands between the columns of a table, by its first line. It is the usual one if in doubt."""
    widths = {mark: len(next(csv.reader([line], delimiter=mark), [])) for mark in DELIMITERS}
    fits = [mark for mark in DELIMITERS if (widths[mark] == len(header) if header else widths[mark] > 1)]
    return fits[0] if usual not in fits and len(fits) == 1 else usual


def _parsed(lines: Iterable[str], name: str, delimiter: str, quoting: str, before: int = 0) -> Iterator[Cells]:
    """before (int): How many lines of the file come before these."""
    rows = csv.reader(
        lines, delimiter=delimiter, quoting=csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL, strict=True
    )
    try:
        for row in rows:
            if row:
                yield before + rows.line_num, row
    except csv.Error as error:
        problem = f"{name}, line {before + rows.line_num}: {error}."
        if "\"'" not in str(error) and "end of data" not in str(error):
            raise InputError(problem) from None
        raise InputError(
            f"{name}, line {before + rows.line_num}: a cell begins with a quotation mark, and does not end with the "
            f"next one ({error}).",
            "If quotation marks are text in this file, give `quoting='none'`. Otherwise write those in a cell twice.",
        ) from None


class _Fit(NamedTuple):
    """How a reading fits a file."""

    problem: InputError | None  # the first row that does not
    has_header: bool  # whether all of the header is quoted
    is_meant: bool  # whether it is not only possible by chance
    joined: str  # the first lines that it makes one row of


def _quoting_of(rest: SpooledTemporaryFile[str], name: str, delimiter: str, width: int | None, before: int) -> str:
    """Which of the two readings is that of a file, by all rows from the first quoted cell on.

    width (Optional[int]): The number of cells in each row. None if the first row is the header.
    RAISES (InputError): Neither is possible, or both are, and differ in their rows.
    """
    both = {}
    for quoting in ("csv", "none"):
        rest.seek(0)
        both[quoting] = _fit(rest, name, delimiter, quoting, width, before)
    quoted, plain = both["csv"], both["none"]
    if quoted.problem and plain.problem:
        raise InputError(
            f"{quoted.problem.problem} Nor can it be read with quotation marks as text: {plain.problem.problem}",
            "Mend the row, or give another `delimiter`.",
        )
    if quoted.problem:
        if quoted.is_meant:
            raise quoted.problem
        return "none"
    if plain.problem or quoted.has_header or (quoted.is_meant and not quoted.joined):
        return "csv"
    if quoted.joined:
        raise InputError(
            f"{name}, {quoted.joined}: the quotation marks may stand around one cell of several lines, or be part of "
            "the texts of several rows.",
            "Give `quoting='csv'` for the first, and `quoting='none'` for the second.",
        )
    warnings.warn(
        f"{name}: quotation marks at both ends of a cell are not read as part of it. If they are text, give "
        "`quoting='none'`. If not, `quoting='csv'` says so.",
        stacklevel=2,
    )
    return "csv"


def _fit(lines: Iterable[str], name: str, delimiter: str, quoting: str, width: int | None, before: int) -> _Fit:
    raw, first, joined = list[str](), width is None, ""  # raw: the lines of a row
    has_header = is_meant = False

    def kept() -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line

    mark = re.escape(delimiter)
    quoted = re.compile(rf'(?:^|(?<={mark}))"([^"]*(?:""[^"]*)*)"(?={mark}|\r?\n?\Z)')
    try:
        for number, cells in _parsed(kept(), name, delimiter, quoting, before):
            width = len(cells) if width is None else width
            if len(cells) != width:
                raise InputError(f"{name}, line {number}: the row has {len(cells)} cells, and not {width}.")
            # A pair of quotation marks within a quoted cell, an empty quoted cell and a quoted header are how programs
            # write them, and nothing that texts have.
            row = "".join(raw).lstrip("\r\n")  # without the blank lines before it
            inside, n = quoted.findall(row), row.rstrip("\r\n").count("\n")
            has_header |= first and len(inside) == len(cells)
            is_meant |= has_header or any('""' in cell or not cell for cell in inside)
            joined = joined or f"lines {number - n} to {number}" * (n > 0)
            first, raw = False, []
    except InputError as problem:
        return _Fit(problem, has_header, is_meant, joined)
    return _Fit(None, has_header, is_meant, joined)
