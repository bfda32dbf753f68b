"""Scored texts as a Parquet file, in parts. This needs the extra `[parquet]`.

Nothing imports this module before a file of this format is named.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InputError
from ..files import to_json
from ..prediction.batches import batches_of
from ..requirements import extra
from ..tables.rows import ScoredText, TextRows
from .columns import InputColumns, json_bytes
from .formats import Format
from .parquet import NESTED, WRITTEN_AS, arrow_type, common_type, is_text, type_of, values_type
from .records import Record

with extra("parquet", "Parquet files need pyarrow"):
    import pyarrow as pa
    import pyarrow.parquet as pq

# A row group of an output is written as soon as those of its parts have one of these sizes together.
ROWS_PER_GROUP = 2**16
BYTES_PER_GROUP = 2**25


def _encode(fields: Mapping[str, Any]) -> bytes:
    """Values of JSON. Those of a Parquet file, Arrow's scalars, stay as they are."""
    return json_bytes({name: value for name, value in fields.items() if not isinstance(value, pa.Scalar)})


@dataclass
class TypedColumns(InputColumns):
    """The columns of an input with their types."""

    typed = True
    encode: Callable[[Any], object] = _encode
    found_types: dict[str, tuple[pa.DataType, str]] = field(
        default_factory=dict
    )  # the types, and where they were found

    def declare(self, table: str, columns: Mapping[str, pa.DataType | None]) -> None:
        """RAISES (InputError): Two files have different types."""
        super().declare(table, columns)
        for name, type_ in columns.items():
            if type_ is not None:
                self._add(name, values_type(type_) if name == self.column else type_, table)

    def add(self, record: Record) -> None:
        """RAISES (InputError): A column has values of two types, or a value that has none."""
        super().add(record)
        for name, value in record.fields.items():
            if name == self.column or isinstance(value, pa.Scalar):  # a failed text, or what a file has declared
                continue
            try:
                type_ = type_of(value)
            except TypeError:
                raise InputError(
                    f"{record.location}: {name!r} is {value!r:.100}. Parquet holds whole numbers of up to 64 bits. "
                    "Make it a string, or write .jsonl."
                ) from None
            self._add(name, type_, record.location)

    def _add(self, name: str, type_: pa.DataType, where: str) -> None:
        before, first = self.found_types.setdefault(name, (type_, where))
        try:
            common = common_type(before, type_)
        except TypeError:
            kinds = ["list or object" if kind == NESTED else WRITTEN_AS.get(kind, kind) for kind in (before, type_)]
            raise InputError(
                f"The column {name!r} has values of two types, {kinds[0]} ({first}) and {kinds[1]} ({where}). "
                "A column of a Parquet file has one type. Convert one of them, or write .jsonl."
            ) from None
        if common != before:
            self.found_types[name] = common, where

    def types(self) -> dict[str, pa.DataType]:
        text = pa.string(), ""  # the texts of other formats, or a column of a .csv file without a row
        types = {name: self.found_types.get(name, text)[0] for name in super().types()}
        return {name: WRITTEN_AS.get(type_, type_) for name, type_ in types.items()}


class ParquetTable(Format):
    """A Parquet file. Each part is a Parquet file of its own.

    columns (Mapping[str, pa.DataType]): Those of the input with their types. Others that are needed are text.
    """

    input_columns = TypedColumns

    def __init__(self, rows: TextRows, columns: Mapping[str, pa.DataType | None], *more: bool):
        super().__init__(rows, columns, *more)
        types = {**columns, **{name: arrow_type(own) for name, own in rows.types.items()}}
        self.schema = pa.schema([(name, types.get(name) or pa.string()) for name in self.header])

    def encode(self, texts: Iterable[ScoredText]) -> bytes:
        """The contents of one part. Each batch is a row group, so the whole file does not depend on where parts end."""
        batches = batches_of(texts, lambda text: text.ends_batch)
        return b"".join(self._encode(filter(len, map(self._table, batches))))

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file."""
        return self._encode(_row_groups(parts))

    def _encode(self, groups: Iterable[pa.Table]) -> Iterator[bytes]:
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, self.schema) as writer:
            for group in groups:
                writer.write_table(group, row_group_size=len(group))
                yield sink.getvalue()
                sink.seek(0)
                sink.truncate()
        yield sink.getvalue()

    def _table(self, batch: list[ScoredText]) -> pa.Table:
        rows, columns = list(self.rows_of(batch)), []
        for name, type_ in zip(self.schema.names, self.schema.types):
            try:
                columns.append(_array([row.get(name) for row in rows], type_))
            except pa.ArrowException as error:
                where = f"Text {batch[0].number + 1} of the input, or one soon after it"
                raise InputError(f"{where}: {name!r} is no {type_}: {error}. Write .jsonl.") from None
        return pa.Table.from_arrays(columns, schema=self.schema)


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if is_text(type_):
        values = [value if value is None or isinstance(value, str | pa.Scalar) else to_json(value) for value in values]
    if not any(isinstance(value, pa.Scalar) for value in values):
        return pa.array(values, type_)
    scalars = [value if isinstance(value, pa.Scalar) else pa.scalar(value, type_) for value in values]
    return pa.concat_arrays([pa.repeat(value if value.type == type_ else value.cast(type_), 1) for value in scalars])


def _row_groups(parts: Iterable[bytes]) -> Iterator[pa.Table]:
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
