"""Tables of text: what stands between their columns, and whether quotation marks stand around cells or are text.

Tables with tabs are mostly written without quoting. Then a cell may begin with a quotation mark and go on after the
next one, or end without any, and reading it as a quoted cell would make one row of several. Others are quoted by the
rules of RFC 4180, as all tables with commas are. Which of the two holds is a matter of the file as a whole.
"""

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import Literal, NamedTuple

from ..errors import OF_COMMENTS, InputError, is_comment
from .decimals import with_decimal_comma
from .records import ReadOptions

DELIMITERS = ",\t;|"
QUOTED_BY_CUSTOM = ",; "  # tables with these come from spreadsheets and programs, which quote
DELIMITER_LINE = re.compile(r'"?sep=(.)"?[\r\n]*')  # the first line of some tables for Excel
R_HEADER = re.compile(r'"[^"]*"(?: "[^"]*")+\s*')  # as R's write.table writes it, with spaces between
LATE_MARK = re.compile(r'\s+"')  # at the beginning of a cell
ESCAPED_MARK = '\\"'  # as R's write.table writes a quotation mark
IN_MEMORY = 2**24  # characters of a table that are kept in memory while it is read twice
Cells = tuple[int, list[str]]  # the number of the last line of a row, and its cells


class Fault(list[str]):
    """The line of a row with a fault of quoting, as its only cell."""

    def __init__(self, line: str, error: InputError):
        super().__init__([line])
        self.error = error


def read_cells(lines: Iterator[str], name: str, options: ReadOptions, usual: str) -> Iterator[Cells]:
    """The rows of a table, the header among them. Blank lines are skipped, and so are rows of empty cells at the end,
    which spreadsheets leave there. A faulty row that ends with its line is a `Fault`.

    lines (Iterator[str]): With their ends, "\\n", "\\r\\n" or "\\r".
    usual (str): The delimiter of files of this format.
    RAISES (InputError): Rows cannot be told apart.
    """
    csv.field_size_limit(2**31 - 1)  # a text may be long
    first, before, header, quoting = next(lines, ""), 0, options.files.header, options.files.quoting
    told = DELIMITER_LINE.fullmatch(first)
    if told:
        first, before = next(lines, ""), 1
    delimiter = options.files.delimiter or (told[1] if told else _delimiter_of(first, usual, header))
    if header and _split(first, delimiter) == [*header[1:]]:  # R's names of columns, without one for those of rows
        quoting = quoting or ("csv" if first.startswith('"') else None)
        first, before = next(lines, ""), before + 1
    empty, may_quote = list[Cells](), quoting == "csv" or quoting is None and delimiter in QUOTED_BY_CUSTOM
    for number, cells in _all_cells(chain([first], lines), name, delimiter, quoting, before, options):
        header = header or cells
        if isinstance(cells, Fault) and may_quote and len(meant := _quoted_once(cells[0], delimiter)) == len(header):
            cells = meant
        if len(cells) > 1 and not any(cells):
            empty.append((number, cells))
            continue
        yield from empty
        empty.clear()
        yield number, cells if isinstance(cells, Fault) else [*map(with_decimal_comma, cells)]


def _all_cells(
    lines: Iterator[str], name: str, delimiter: str, quoting: str | None, before: int, options: ReadOptions
) -> Iterator[Cells]:
    """before (int): How many lines come before these."""
    skip, known, number = options.skip_errors, options.files.header, before
    if quoting or delimiter in QUOTED_BY_CUSTOM:
        yield from _parsed(lines, name, delimiter, quoting or "csv", before, skip)
        return
    # Until a cell begins with a quotation mark, both readings are the same, and rows are read as a stream.
    opening, held = re.compile(f'(?:^|{re.escape(delimiter)})"'), list[str]()

    def before_any() -> Iterator[str]:
        for line in lines:
            if opening.search(line):
                held.append(line)
                return
            yield line

    for number, cells in _parsed(before_any(), name, delimiter, "none", before, skip):
        known = known or cells
        yield number, cells
    if held:
        with SpooledTemporaryFile(IN_MEMORY, "w+", encoding="utf8", newline="\n") as rest:
            rest.writelines(chain(held, lines))
            try:
                quoting = _quoting_of(rest, name, delimiter, known, number)
            except InputError as error:
                raise _unskipped(error, skip) from None
            rest.seek(0)
            yield from _parsed(rest, name, delimiter, quoting, number)


def check_width(cells: Sequence[str], header: Sequence[str], where: str, is_given: bool = False) -> None:
    """RAISES (InputError): A row has more cells, or fewer, than the header. is_given (bool): `header` was given."""
    if len(cells) == len(header):
        return
    advice, named = "", "`header` names" if is_given else "the header has"
    if is_comment(header[0]) or is_comment(cells[0]) and (is_given or len(cells) < len(header)):
        advice = OF_COMMENTS
    elif len(cells) == len(header) + 1 and not is_given:
        advice = (
            "If the first cell is the name of the row, which has no name in the header, as R writes it, give "
            f"`header={['row', *header]!r}`. If a cell has the delimiter in it, put quotation marks around the cell."
        )
    raise InputError(f"{where}: the row has {len(cells)} fields, but {named} {len(header)}.", advice)


def _delimiter_of(line: str, usual: str, header: Sequence[str] | None) -> str:
    """What stands between the columns of a table, by its first line. It is the usual one if in doubt."""
    if R_HEADER.fullmatch(line):
        return " "
    widths = {mark: len(_split(line, mark)) for mark in DELIMITERS}
    fits = [mark for mark in DELIMITERS if (widths[mark] == len(header) if header else widths[mark] > 1)]
    if header and not fits:  # without a name for the column of R's row names
        fits = [mark for mark in DELIMITERS if widths[mark] == len(header) - 1]
    return fits[0] if usual not in fits and len(fits) == 1 else usual


def _quoted_once(line: str, delimiter: str) -> list[str]:
    """The cells of a line in which some have two quotation marks at each end, as where a table was written twice: one
    is meant. None if there are no such cells, or the others cannot be told apart.
    """
    mark = re.escape(delimiter)
    once, n = re.subn(rf'(?:^|(?<={mark}))""([^"{mark}][^"]*)""(?={mark}|$)', r'"\1"', line)
    with suppress(csv.Error):
        return next(csv.reader([once], delimiter=delimiter, strict=True), []) if n else []
    return []


def _split(line: str, delimiter: str) -> list[str]:
    """The cells of a line; none if they cannot be told apart."""
    with suppress(csv.Error):
        return next(csv.reader([line], delimiter=delimiter), [])
    return []


def _parsed(
    lines: Iterable[str], name: str, delimiter: str, quoting: str, before: int = 0, skip: bool = False
) -> Iterator[Cells]:
    """before (int): How many lines of the file come before these."""
    raw = list[str]()  # the lines of a row

    def kept() -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line

    mode: Literal[0, 3] = csv.QUOTE_NONE if quoting == "none" else csv.QUOTE_MINIMAL
    rows = csv.reader(kept(), delimiter=delimiter, quoting=mode, strict=True)
    while True:
        start = rows.line_num
        raw.clear()
        try:
            row = next(rows, None)
        except csv.Error as error:
            fault, line = _fault(error, f"{name}, line {before + rows.line_num}", raw), raw[-1] if raw else ""
            is_whole = line.count('"') % 2 == 0 or quoting == "none" or "end of data" in str(error)
            if rows.line_num > start + 1 or not is_whole:
                raise _unskipped(fault, skip) from None
            row = Fault(line.rstrip("\r\n"), fault)
        if row is None:
            return
        line = raw[-1] if raw else ""
        spaced = (cell for cell in row if LATE_MARK.match(cell) and delimiter + cell in delimiter + line)
        if quoting == "csv" and delimiter in ",;" and any(spaced):
            where = f"{name}, line {before + rows.line_num}"
            problem = f"{where}: white space stands before a quotation mark, so it is text."
            advice = "Remove the space, or, if the mark is text, put quotation marks around all of the cell."
            row = Fault(line.rstrip("\r\n"), InputError(problem, advice))
        if row:
            yield before + rows.line_num, row


def _fault(error: csv.Error, where: str, raw: Sequence[str]) -> InputError:
    """raw (Sequence[str]): The lines of the row, as far as it was read."""
    if "new-line" in str(error):
        advice = "Put quotation marks around the cell, or end all lines in the same way."
        return InputError(f"{where}: a carriage return stands in the middle of a row.", advice)
    if "\"'" not in str(error) and "end of data" not in str(error):
        return InputError(f"{where}: {error}.")
    if escaped := next((line for line in raw if ESCAPED_MARK in line), None):
        return InputError(
            f"{where}: a backslash stands before a quotation mark in a cell: {escaped.strip():.100} (R's write.table "
            "writes marks in this way).",
            'In R, write the table with write.csv, or give write.table qmethod = "double". Elsewhere, write it twice.',
        )
    return InputError(
        f"{where}: a cell begins with a quotation mark, and does not end with the next one ({error}).",
        "If quotation marks are text in this file, give `quoting='none'`. Otherwise write those in a cell twice.",
    )


def _unskipped(error: InputError, skip: bool) -> InputError:
    told = " A fault of quoting is not skipped where it is not clear in which line its row ends." if skip else ""
    return InputError(error.problem, f"{error.advice}{told}".strip())


class _Fit(NamedTuple):
    """How a reading fits a file."""

    problem: InputError | None  # the first row that does not
    has_header: bool  # whether all of the header is quoted
    is_meant: bool  # whether it is not only possible by chance
    joined: str  # the first lines that it makes one row of


def _quoting_of(
    rest: SpooledTemporaryFile[str], name: str, delimiter: str, header: Sequence[str] | None, before: int
) -> str:
    """Which of the two readings is that of a file, by all rows from the first quoted cell on.

    header (Optional[Sequence[str]]): The names of the columns. None if the first row has them.
    RAISES (InputError): Neither is possible, or both are, and differ in their rows.
    """
    both = {}
    for quoting in ("csv", "none"):
        rest.seek(0)
        both[quoting] = _fit(rest, name, delimiter, quoting, header, before)
    quoted, plain = both["csv"], both["none"]
    if quoted.problem and plain.problem:
        if quoted.problem.problem == plain.problem.problem:
            raise quoted.problem
        raise InputError(
            f"{quoted.problem.problem} Nor can it be read with quotation marks as text: {plain.problem.problem}",
            quoted.problem.advice or "Mend the row, or give another `delimiter`.",
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


def _fit(
    lines: Iterable[str], name: str, delimiter: str, quoting: str, header: Sequence[str] | None, before: int
) -> _Fit:
    raw, first, joined = list[str](), header is None, ""  # raw: the lines of a row
    has_header = is_meant = False

    def kept() -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line

    mark = re.escape(delimiter)
    quoted = re.compile(rf'(?:^|(?<={mark}))"([^"]*(?:""[^"]*)*)"(?={mark}|\r?\n?\Z)')
    try:
        for number, cells in _parsed(kept(), name, delimiter, quoting, before):
            if isinstance(cells, Fault):
                raise cells.error
            header = header or cells
            check_width(cells, header, f"{name}, line {number}")
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
