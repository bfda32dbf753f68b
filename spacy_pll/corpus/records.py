"""A text of the input, and what is said where it cannot be read."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..cells import Missing
from ..errors import InputError, PLLError, listed, no_column
from ..settings import check_values

STANDARD_STREAM = "-"
PARQUET = ".parquet"
Row = tuple[str, dict[str, Any]]  # its location, and its columns
Quoting = Literal["csv", "none"]
Found = Callable[[str, Mapping[str, Any]], None]
NAMES_OF_NA = "NA, or another name for a missing value,"
OTHER_DELIMITERS = ";\t|"
AS_R_WRITES = "If spaces stand between columns, as R's write.table has it, give `delimiter=' '` (and quote the texts)."


@dataclass(slots=True)
class Record:
    """One text of the input. What is known of it is added as it is read."""

    location: str  # "corpus.jsonl, line 12": for messages
    text: str | Doc
    fields: dict[str, Any]  # the other columns, or keys, in their order
    sides: tuple[str, str] | None = None  # what is read before and after the text, and not scored
    fingerprint: str = ""  # of all that was read, up to this text
    problem: str = ""  # why there is no text
    in_place: str = ""  # what stands there instead, such as NA


class RowError(InputError):
    """A row has no text that can be read, which `skip_errors` would skip."""


class Nested(dict[str, Any]):
    """The columns of a row. A field inside another, or in each object of a list, is found under both names with a point
    between them, as in choices.text.
    """

    def __missing__(self, name: str) -> Any:
        outer, _, inner = name.partition(".")
        value = super().get(outer)
        if isinstance(value, dict):
            return value[inner]
        if isinstance(value, list) and value and all(isinstance(member, dict) for member in value):
            return [member[inner] for member in value]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default


class Unreadable(NamedTuple):
    """What stands in the column of the texts where a row cannot be read, and errors are skipped."""

    value: Any  # what is there: the line, or the cells
    problem: str


def warn_of_missing(missing: int, total: int, outcome: str) -> None:
    """outcome (str): What became of them."""
    if missing:
        warnings.warn(
            f"{missing:,} of {total:,} texts are missing: there is {NAMES_OF_NA} in their place. {outcome}. If this is "
            "a text, give `na_as_text=True`.",
            stacklevel=3,
        )


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """How files are written. Functions for users take these options as keyword arguments; all others take them as one.

    encoding (str): The encoding of all files but .parquet and .spacy. Under utf-8, files in UTF-16 that begin with a
        byte order mark are read, too.
    delimiter (Optional[str]): The character between the columns of .csv and .tsv files. None: a comma, or a tab for
        .tsv; or, if the header has only another one of comma, tab, ; and |, this one.
    quoting (Optional[str]): Of .csv and .tsv files. With csv, quotation marks around a cell are no part of its text
        (RFC 4180). With none, quotation marks are text. None: csv if the delimiter is a comma or ;, and otherwise what
        fits the whole file.
    header (Optional[Sequence[str]]): The names of the columns, in their order, of .csv and .tsv files without a header.
    na_as_text (bool): In .csv and .tsv files, NA, N/A, #N/A, NaN and <NA> are texts, and not missing values.
    RAISES (ValueError): A value is not valid.
    """

    encoding: str = "utf-8"
    delimiter: str | None = None
    quoting: Quoting | None = None
    header: Sequence[str] | None = None
    na_as_text: bool = False

    def __post_init__(self) -> None:
        check_values(self)
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '"\r\n'):
            raise PLLError(f"`delimiter` must be one character, such as ';'. It is {self.delimiter!r}.")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):  # there is none; or it is not one of text
            raise PLLError(
                f"`encoding` must be one that Python knows, such as 'cp1252'. It is {self.encoding!r}."
            ) from None

    @classmethod
    def of(cls, given: Mapping[str, Any], what: str) -> "FileOptions":
        """From the keyword arguments of a function that reads files of something.

        RAISES (InputError): There is no such option.
        """
        if unknown := given.keys() - cls.__dataclass_fields__.keys():
            raise InputError(f"`{min(unknown)}` says nothing of {what}.", "Leave it out.")
        return cls(**given)


DEFAULT_FILES = FileOptions()


@dataclass(frozen=True)
class ReadOptions:
    """What is read of files, and how they are written."""

    column: str | None = "text"  # of the texts; None where rows are read with all their columns
    vocab: Vocab | None = None  # for the docs of .spacy files
    files: FileOptions = DEFAULT_FILES
    typed: bool = False  # the other columns of Parquet files are Arrow's scalars, and not values that JSON has
    skip_errors: bool = False  # where there is no text in a row, the record says so
    # Gets the name of each table and its columns with their types, Arrow's or None, even if the table has no row.
    found: Found = lambda name, columns: None


DEFAULT_READING = ReadOptions()


def get_text(row: dict[str, Any], location: str, column: str, setting: str | None = "`column`") -> str:
    """The text in a column of a row.

    setting (Optional[str]): What names another column, for messages. None for a key with a fixed name.
    RAISES (InputError): There is no such column, or no text in it.
    """
    if column not in row:
        if setting is None:
            raise InputError(f"{location}: there is no key {column!r}. The keys are: {listed(column, row)}", "Add it.")
        advice = f"Name the column to read with {setting}."
        if outer := next((name for name, value in row.items() if isinstance(value, dict) and column in value), None):
            advice = f"If the one inside {outer!r} is meant, give {setting[:-1]}={f'{outer}.{column}'!r}`."
        elif outer := next((name for name, value in row.items() if _has_rows(value, column)), None):
            advice = f"The objects in the list {outer!r} have one. Write each of them as a line."
        elif marks := [mark for mark in OTHER_DELIMITERS if any(mark in name for name in row)]:
            advice = f"If {marks[0]!r} stands between columns, give it as `delimiter`, or write commas."
        elif has_spaces(row):
            advice = f"{advice} {AS_R_WRITES}"
        raise no_column(location, column, row, advice)
    text = row[column]
    if isinstance(text, Unreadable):
        raise InputError(f"{location}: {text.problem}")
    if isinstance(text, Missing):
        problem = f"{location}: {column!r} is {text}, which stands for a missing value."
        raise InputError(problem, "Leave the row out. Or, if it is a text, give `na_as_text=True`.")
    if not isinstance(text, str):
        raise InputError(f"{location}: {column!r} must be text. It is {text!r:.100}.")
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise InputError(f"{location}: {column!r} has a lone surrogate, {error.object[error.start]!r}.") from None
    return str(text)  # not a marked cell


def has_spaces(row: dict[str, Any]) -> bool:
    """Whether the only name of a column has spaces, which may stand between several."""
    return len(row) == 1 and " " in next(iter(row)).strip()


def _has_rows(value: Any, column: str) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and column in value[0]
