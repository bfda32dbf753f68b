"""A text of the input, and what is said where it cannot be read."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..errors import InputError as InputError


class How(NamedTuple):
    """How files are read."""

    column: str | None = "text"  # of the texts; None where rows are read with all their columns
    vocab: Vocab | None = None  # for the docs of .spacy files
    typed: bool = False  # the other columns of Parquet files are Arrow's scalars, and not values that JSON has
    encoding: str = "utf-8"
    delimiter: str | None = None  # None is the comma, or the tab
    header: Sequence[str] | None = None  # the columns of .csv and .tsv files that have no header


class Record(NamedTuple):
    """One text of the input."""

    location: str  # "corpus.jsonl, line 12": for messages
    text: str | Doc
    fields: dict[str, Any]  # the other columns, or keys, in their order
    fingerprint: str = ""  # of all that was read, up to this text: see `with_fingerprints`


def with_fingerprints(records: Iterable[Record]) -> Iterator[Record]:
    """Give records their fingerprints: 16 hexadecimal digits of a SHA-256 over the texts and columns until there.

    Two readings of an input give the same fingerprints only if they give the same texts and columns in the same order.
    """
    total = sha256()
    for record in records:
        text = record.text
        if isinstance(text, Doc):  # its strings have no order, and its user data are in the columns
            text = repr(text.to_bytes(exclude=["strings", "user_data"]))
        total.update(repr((text, record.fields)).encode("utf8", "surrogatepass"))
        yield record._replace(fingerprint=total.copy().hexdigest()[:16])


Row = tuple[str, dict[str, Any]]  # its location, and its columns


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
