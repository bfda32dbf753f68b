"""Write scored texts as Parquet. The types of the columns are known before the first row is written."""

import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..fields import check_fields
from ..files import atomic_write
from ..readers import Record
from ..rows import ScoredText, TextRows, TokenRows, column_order
from .columns import ColumnType, output_schema

# A row group of the whole file is written as soon as those of its parts have one of these sizes together.
ROWS_PER_GROUP = 2**16
BYTES_PER_GROUP = 2**25


class ParquetTable:
    """A Parquet file. Each part is a Parquet file of its own.

    rows (Union[TextRows, TokenRows]): Makes the rows of a scored text.
    schema (pa.Schema): Of the input.
    """

    def __init__(self, rows: TextRows | TokenRows, schema: pa.Schema):
        self.rows = rows
        self.fields = [name for name in schema.names if name != rows.column]
        self.schema = output_schema(column_order(rows, self.fields), schema, rows.types)

    @staticmethod
    def check(record: Record, rows: Any) -> None:
        """As for the other formats. Arrow's scalars come from a Parquet file, so they can be written to one."""
        check_fields({k: v for k, v in record.fields.items() if not isinstance(v, pa.Scalar)}, record.location)

    def encode(self, batches: Iterable[list[ScoredText]]) -> Iterator[bytes]:
        """The contents of one part. Each batch is a row group, so the whole file does not depend on where parts end.

        batches (Iterable[list[ScoredText]]): Their fields are Arrow's scalars, or values that JSON has.
        """
        sink = _Blocks()
        with pq.ParquetWriter(sink, self.schema) as writer:
            for batch in batches:
                if rows := self._table(batch):
                    writer.write_table(rows, row_group_size=len(rows))
                    yield from sink.take()
        yield from sink.take()

    def _table(self, batch: list[ScoredText]) -> pa.Table:
        made: dict[str, list[Any]] = {name: [] for name in self.schema.names if name not in self.fields}
        copied: dict[str, list[pa.Array]] = {name: [] for name in self.fields}
        for text in batch:
            rows = list(self.rows(text.number, text.doc, text.record))
            for name, values in made.items():
                values.extend(row[name] for row in rows)
            for name, arrays in copied.items():
                if rows:
                    value = _scalar(text.record.fields.get(name), self.schema.field(name).type)
                    arrays.append(pa.repeat(value, len(rows)))
        columns = [
            pa.array(made[name], type_) if name in made else _joined(copied[name], type_)
            for name, type_ in zip(self.schema.names, self.schema.types)
        ]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file.

        parts (Iterable[bytes]): The contents of all parts.
        """
        sink = _Blocks()
        with pq.ParquetWriter(sink, self.schema) as writer:
            for group in _groups(parts):
                writer.write_table(group, row_group_size=len(group))
                yield from sink.take()
        yield from sink.take()


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows of values that JSON has to a file.

    RAISES (InputError): A column has values of different types.
    """
    types: dict[str, ColumnType] = {}
    for number, row in enumerate(rows, 1):
        for name, value in row.items():
            types.setdefault(name, ColumnType(name)).add(value, f"row {number}")
    schema = pa.schema([(name, column.resolve()) for name, column in types.items()])
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        pq.write_table(pa.Table.from_pylist(rows, schema), file)


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    if not isinstance(value, pa.Scalar):
        return pa.scalar(value, type_)
    return value if value.type == type_ else value.cast(type_)


def _joined(arrays: list[pa.Array], type_: pa.DataType) -> pa.Array:
    return pa.concat_arrays(arrays) if arrays else pa.array([], type_)


def _groups(parts: Iterable[bytes]) -> Iterator[pa.Table]:
    """Join the row groups of parts to larger ones."""
    group: list[pa.Table] = []
    rows = size = 0
    for part in parts:
        file = pq.ParquetFile(pa.BufferReader(part))
        for number in range(file.num_row_groups):
            group.append(file.read_row_group(number))
            rows, size = rows + len(group[-1]), size + file.metadata.row_group(number).total_byte_size
            if rows >= ROWS_PER_GROUP or size >= BYTES_PER_GROUP:
                yield pa.concat_tables(group)
                group, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(group)


class _Blocks(io.RawIOBase):
    """A file to write to, whose contents are taken block by block."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.blocks.append(bytes(data))
        return len(data)

    def take(self) -> list[bytes]:
        blocks, self.blocks = self.blocks, []
        return blocks
