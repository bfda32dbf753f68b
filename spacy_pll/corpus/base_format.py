"""What a format of output files has, and what it has to know of the input."""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from spacy.tokens import Doc

from ..errors import InputError
from ..files import to_json
from ..tables.rows import TextRows
from .records import Record


class ScoredText(NamedTuple):
    """A text of the input with its scores."""

    number: int  # of the text in the input, from 0
    doc: Doc
    fields: dict[str, Any]  # its other columns
    pieces: int  # scored wordpieces
    fingerprint: str = ""  # of the input up to this text: see `inputs.Input.records`
    ends_batch: bool = False  # whether it is the last of a batch: there, a run may be interrupted and go on


def json_bytes(value: Any) -> bytes:
    """JSON in UTF-8."""
    return to_json(value).encode("utf8")


def check_fields(fields: dict[str, Any], location: str, encode: Callable[[Any], object] = json_bytes) -> None:
    """Check that the other columns of a text can be written.

    encode (Callable[[Any], object]): Writes a value as the format does.
    RAISES (InputError): They cannot.
    """
    for name, value in fields.items():
        try:
            encode({name: value})
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(
                f"{location}: {name!r} is {reprlib.repr(value)}, which cannot be written: {error}. Change or remove it."
            ) from None


class InputColumns:
    """The columns of an input, found and checked while it is read.

    column (str): That of the texts.
    encode (Callable[[Any], object]): Writes a value of another one as the format does.
    """

    def __init__(self, column: str, encode: Callable[[Any], object] = json_bytes):
        self.column, self.encode = column, encode
        self.names: dict[str, None] = {}  # of the other columns that the texts have, in their order
        self.declared: dict[str, None] = {}  # of those that tables name, which may have no text

    def declare(self, table: str, columns: Mapping[str, Any]) -> None:
        """Note the columns that a table names, with their types."""
        self.declared.update(dict.fromkeys(columns))

    def add(self, record: Record) -> None:
        """Note the columns of a text.

        RAISES (InputError): The row of this text could not be written, or would lose a value of the input.
        """
        check_fields(record.fields, record.location, self.encode)
        self.names.update(dict.fromkeys(record.fields))

    def types(self) -> dict[str, Any]:
        """The columns of the input, the texts first, with their types if the format has types, else None."""
        return dict.fromkeys([self.column, *self.names, *self.declared])


class Format(ABC):
    """From scored texts to the bytes of each part, and from parts to the whole file.

    rows (TextRows): Makes the rows of scored texts.
    columns (Collection[str]): Those of the input.
    """

    typed = False  # whether the columns of a file have types: those of a Parquet input then arrive as they are
    input_columns = InputColumns
    encode_field: Callable[[Any], object] = json_bytes

    def __init__(self, rows: TextRows, columns: Collection[str]):
        self.rows = rows
        first = [*rows.first, rows.column, *(name for name in columns if name != rows.column)]
        self.header = [*first, *(name for name in rows.types if name not in first)]

    @abstractmethod
    def encode(self, batches: list[list[ScoredText]]) -> bytes:
        """The contents of one part."""

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file."""
        yield from parts
