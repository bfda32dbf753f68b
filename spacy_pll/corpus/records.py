"""A text of the input, and what is said where it cannot be read."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import InputError

STANDARD_STREAM = "-"
PARQUET = ".parquet"
Row = tuple[str, dict[str, Any]]  # its location, and its columns


class Record(NamedTuple):
    """One text of the input."""

    location: str  # "corpus.jsonl, line 12": for messages
    text: str | Doc
    fields: dict[str, Any]  # the other columns, or keys, in their order
    context: str | None = None  # read before the text, and not scored
    fingerprint: str = ""  # of all that was read, up to this text


class ReadOptions(NamedTuple):
    """How files are read."""

    column: str | None = "text"  # of the texts; None where rows are read with all their columns
    vocab: Vocab | None = None  # for the docs of .spacy files
    typed: bool = False  # the other columns of Parquet files are Arrow's scalars, and not values that JSON has
    encoding: str = "utf-8"
    delimiter: str | None = None  # None is the comma, or the tab
    header: Sequence[str] | None = None  # the columns of .csv and .tsv files that have no header
    # Gets the name of each table and its columns with their types, Arrow's or None, even if the table has no row.
    found: Callable[[str, Mapping[str, Any]], None] = lambda name, columns: None


def get_text(row: dict[str, Any], location: str, column: str, setting: str | None = "`column`") -> str:
    """The text in a column of a row.

    setting (Optional[str]): What names another column, for messages. None for a key with a fixed name.
    RAISES (InputError): There is no such column, or no text in it.
    """
    if column not in row:
        names = ", ".join(map(repr, row)) or "none"
        if setting is None:
            raise InputError(f"{location}: there is no key {column!r}. The keys are: {names}.", "Add it.")
        advice = f"Name the column to read with {setting}."
        if len(row) == 1 and (found := {";", "\t"} & set(*row)):
            advice = f"If {min(found)!r} stands between columns, give it as `delimiter`, or write commas."
        raise InputError(f"{location}: there is no column {column!r}. The columns are: {names}.", advice)
    text = row[column]
    if not isinstance(text, str):
        raise InputError(f"{location}: {column!r} must be text. It is {text!r:.100}.")
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise InputError(f"{location}: {column!r} has a lone surrogate, {error.object[error.start]!r}.") from None
    return text
