"""Read Parquet files as a stream: a file may be larger than the memory."""

import base64
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types as is_

from ..readers import InputError, Record, get_text
from .columns import is_text

ROWS_PER_READ = 1_000
# Columns are read in blocks of this size, so that a row group need not fit into memory.
BYTES_PER_READ = 2**20


@contextmanager
def open_parquet(file: Any, name: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. What goes wrong while it is open is an error about this file.

    file (Union[str, Path, IO[bytes]]): The file.
    name (str): Its name, for messages.
    RAISES (InputError): It cannot be read, or has two columns of the same name.
    """
    try:
        with pq.ParquetFile(file, buffer_size=BYTES_PER_READ) as parquet:
            names = parquet.schema_arrow.names
            if len(set(names)) < len(names):
                raise InputError(f"{name}: two columns have the same name: {names}.")
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: this is not a Parquet file, or it is damaged ({error}).") from None


def read_schema(file: Any, name: str, column: str) -> pa.Schema:
    """The schema of a Parquet file, which must have a column of texts.

    RAISES (InputError): It cannot be read, or has no such column.
    """
    with open_parquet(file, name) as parquet:
        check_text_column(parquet.schema_arrow, name, column)
        return parquet.schema_arrow


def check_text_column(schema: pa.Schema, name: str, column: str) -> None:
    """RAISES (InputError): There is no such column, or it holds no text."""
    if column not in schema.names:
        raise InputError(
            f"{name}: there is no column {column!r}. The columns are: {', '.join(map(repr, schema.names)) or 'none'}. "
            "Name the column to read with --column."
        )
    if not is_text(schema.field(column).type):
        raise InputError(f"{name}: {column!r} must hold text. It holds {schema.field(column).type}.")


def read_records(file: IO[bytes], name: str, column: str, typed: bool = False) -> Iterator[Record]:
    """Read texts one by one.

    typed (bool): Whether the other columns are Arrow's scalars, which keep their types. Otherwise they are values that
        JSON has: see `json_values`.
    RAISES (InputError): A text cannot be read; the message gives its row, from 1.
    """
    # A pipe cannot be read from its end, where Parquet has its schema.
    with open_parquet(file if file.seekable() else pa.BufferReader(file.read()), name) as parquet:
        check_text_column(parquet.schema_arrow, name, column)
        for first, batch in read_batches(parquet):
            values = {
                key: list(array) if typed and key != column else _decoded(array, name, first, key)
                for key, array in zip(batch.schema.names, batch.columns)
            }
            texts = values.pop(column)
            rows = zip(*values.values()) if values else [()] * len(texts)
            for number, (text, row) in enumerate(zip(texts, rows, strict=True), first):
                location = f"{name}, row {number}"
                yield Record(location, get_text({column: text}, location, column), dict(zip(values, row)))


def read_rows(file: IO[bytes], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows with all their columns, as values that JSON has, each with its location."""
    with open_parquet(file, name) as parquet:
        for first, batch in read_batches(parquet):
            columns = [_decoded(array, name, first, key) for key, array in zip(batch.schema.names, batch.columns)]
            for number, row in enumerate(zip(*columns), first):
                yield f"{name}, row {number}", dict(zip(batch.schema.names, row))


def read_batches(parquet: pq.ParquetFile) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Some rows at a time, with the number of the first, from 1."""
    first = 1
    # One row group after another: otherwise pyarrow keeps what it has read of each until it has read all of them.
    for group in range(parquet.num_row_groups):
        for batch in parquet.iter_batches(ROWS_PER_READ, row_groups=[group]):
            yield first, batch
            first += len(batch)


def _decoded(array: pa.Array, name: str, first: int, column: str) -> list[Any]:
    """The values of a column as JSON has them.

    RAISES (InputError): A string is not valid UTF-8; the message gives its row.
    """
    try:
        return json_values(array)
    except UnicodeDecodeError:
        for number in range(len(array)):
            try:
                json_values(array.slice(number, 1))
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{name}, row {first + number}: {column!r} is not valid UTF-8 (byte {error.start + 1} is "
                    f"0x{error.object[error.start]:02x})."
                ) from None
        raise


def json_values(array: pa.Array) -> list[Any]:
    """The values of an array as JSON has them.

    Dates, times and decimals become strings (ISO 8601), durations whole numbers of their unit, bytes Base64, NaN and
    infinity null, and maps lists of objects with `key` and `value`.
    """
    type_ = array.type
    if isinstance(type_, pa.BaseExtensionType):
        return json_values(array.storage)
    if is_.is_dictionary(type_):
        return json_values(array.dictionary_decode())
    if is_.is_struct(type_):
        columns = [json_values(column) for column in array.flatten()]
        names = [field.name for field in type_]
        rows = zip(*columns) if columns else [()] * len(array)
        return [dict(zip(names, row)) if valid else None for row, valid in zip(rows, _valid(array))]
    if is_.is_nested(type_):
        return [json_values(item.values) if item.is_valid else None for item in array]
    if is_.is_floating(type_):
        return [x if x is None or math.isfinite(x) else None for x in array.to_pylist()]
    if is_.is_duration(type_):
        return array.cast(pa.int64()).to_pylist()
    if is_.is_timestamp(type_):
        return [x and x.replace(" ", "T", 1) for x in array.cast(pa.string()).to_pylist()]
    if is_.is_temporal(type_) or is_.is_decimal(type_):
        return array.cast(pa.string()).to_pylist()
    values = array.to_pylist()
    return [x if x is None else base64.b64encode(x).decode() for x in values] if _is_bytes(type_) else values


def _valid(array: pa.Array) -> list[bool]:
    return array.is_valid().to_pylist()


def _is_bytes(type_: pa.DataType) -> bool:
    tests = (is_.is_binary, is_.is_large_binary, is_.is_fixed_size_binary, is_.is_binary_view)
    return any(test(type_) for test in tests)
