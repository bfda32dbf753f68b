"""What a format of output files has, and what it has to know of the input."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .records import Record, check_fields
from .rows import ScoredText, TextRows, column_order

Batch = list[ScoredText]


class InputColumns:
    """The columns of an input, found while it is read.

    column (str): That of the texts.
    """

    def __init__(self, column: str):
        self.column = column
        self.names: dict[str, None] = {}  # of the other columns that the texts have, in their order
        self.declared: dict[str, None] = {}  # of those that tables name, which may have no text

    def declare(self, table: str, columns: Mapping[str, Any]) -> None:
        """Note the columns that a table names, with their types."""
        self.declared.update(dict.fromkeys(columns))

    def add(self, record: Record) -> None:
        """Note the columns of a text."""
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

    def __init__(self, rows: TextRows, columns: Collection[str]):
        self.rows = rows
        self.header = column_order(rows, [name for name in columns if name != rows.column])

    @staticmethod
    def check(record: Record) -> None:
        """RAISES (InputError): The row of this text could not be written, or would lose a value of the input."""
        check_fields(record.fields, record.location)

    def _rows(self, batches: Iterable[Batch]) -> Iterator[dict[str, Any]]:
        for batch in batches:
            for text in batch:
                yield from self.rows(text.number, text.doc, text.fields)

    @abstractmethod
    def encode(self, batches: list[Batch]) -> bytes:
        """The contents of one part."""

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file."""
        yield from parts
