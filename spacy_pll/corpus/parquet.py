"""Parquet files: reading as a stream, the types of columns, writing. This needs the extra `[parquet]`.

Nothing imports this module before a file of this format is named.
"""

import base64
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, get_args, get_origin

from ..requirements import install_command
from .files import atomic_write
from .formats import check_fields
from .readers import PARQUET
from .records import How, InputError, Record, Row, get_text
from .rows import ScoredText, TextRows, column_order

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import types as is_
except ImportError:
    raise ImportError(f"Parquet files need pyarrow. Install it with: {install_command('parquet')}") from None

ROWS_PER_READ = 1_000
# Columns are read in blocks of this size, so that a row group need not fit into memory.
BYTES_PER_READ = 2**20
# A row group of an output is written as soon as those of its parts have one of these sizes together.
ROWS_PER_GROUP = 2**16
BYTES_PER_GROUP = 2**25
MAX_DEPTH = 40  # of lists and objects in each other; pyarrow writes deeper ones, but does not read them
SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}


@contextmanager
def open_parquet(file: Any, name: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file. What goes wrong while it is open is an error about this file.

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


def _check_text_column(schema: pa.Schema, name: str, column: str) -> None:
    """RAISES (InputError): There is no such column, or it holds no text."""
    get_text(dict.fromkeys(schema.names, ""), name, column)
    if not _is_text(schema.field(column).type):
        raise InputError(f"{name}: {column!r} must hold text. It holds {schema.field(column).type}.")


def read_rows(file: IO[bytes], name: str, how: How) -> Iterator[Row]:
    """The rows, numbered from 1.

    RAISES (InputError): A value cannot be read; the message gives its row.
    """
    number = 0
    # A pipe cannot be read from its end, where Parquet has its schema.
    with open_parquet(file if file.seekable() else pa.BufferReader(file.read()), name) as parquet:
        if how.column is not None:
            _check_text_column(parquet.schema_arrow, name, how.column)
        # One row group after another: otherwise pyarrow keeps what it has read of each until it has read all of them.
        for group in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(ROWS_PER_READ, row_groups=[group]):
                for scalars in zip(*batch.columns):
                    number += 1
                    location = f"{name}, row {number}"
                    yield location, _row(dict(zip(batch.schema.names, scalars)), location, how)


def _row(scalars: dict[str, pa.Scalar], location: str, how: How) -> dict[str, Any]:
    """RAISES (InputError): A string is not valid UTF-8."""
    row = {}
    for name, scalar in scalars.items():
        try:
            row[name] = scalar if how.typed and name != how.column else json_value(scalar)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{location}: {name!r} is not valid UTF-8 (byte {error.start + 1} is "
                f"0x{error.object[error.start]:02x})."
            ) from None
    return row


def json_value(scalar: pa.Scalar) -> Any:
    """A value as JSON has it.

    Dates, times and decimals become strings (ISO 8601), durations whole numbers of their unit, bytes Base64, and maps
    lists of objects with `key` and `value`.
    """
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar | pa.DictionaryScalar):
        return json_value(scalar.value)
    if isinstance(scalar, pa.StructScalar):
        return {name: json_value(value) for name, value in scalar.items()}
    if isinstance(scalar, pa.ListScalar):
        return list(map(json_value, scalar.values))
    if isinstance(scalar, pa.DurationScalar):
        return scalar.value
    if is_.is_timestamp(scalar.type):
        return str(scalar.cast(pa.string())).replace(" ", "T", 1)
    if is_.is_temporal(scalar.type) or is_.is_decimal(scalar.type):
        return str(scalar.cast(pa.string()))
    value = scalar.as_py()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def arrow_type(type_: Any) -> pa.DataType:
    """The Arrow type of a Python type, such as `float` or `list[str]`."""
    return pa.list_(arrow_type(*get_args(type_))) if get_origin(type_) is list else SCALARS[type_]


def _is_text(type_: pa.DataType) -> bool:
    return is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both types; None if there is none. That of whole numbers and floats is float.

    `InputColumns` refuses a whole number that its column's float cannot hold exactly.
    """
    if a == b:
        return a
    if re.search(r"decimal\d+\(", f"{a} {b}") and pa.null() not in (a, b):
        return None  # pyarrow would make floats of decimals, which do not have all of their digits
    try:
        schemas = [pa.schema([("", type_)]) for type_ in (a, b)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        return None


class InputColumns:
    """The types of the columns of an input, found while it is read.

    column (str): The column of texts.
    files (Iterable[Path]): The files of the input. Those that are Parquet say what types they have.
    RAISES (InputError): A file cannot be read, or two files have different types.
    """

    def __init__(self, column: str, files: Iterable[Path]):
        self.column = column
        self.types: dict[str, tuple[pa.DataType, str]] = {}  # and where it was found
        self.large: dict[str, tuple[Any, str]] = {}  # the first value with a whole number that no float may hold
        for file in files:
            schema = pa.schema([(column, pa.string())])
            if file.suffix.lower() == PARQUET:
                with open_parquet(file, str(file)) as parquet:
                    schema = parquet.schema_arrow
                _check_text_column(schema, str(file), column)
            for field in schema:
                self._add(field.name, field.type, str(file))

    def add(self, record: Record) -> None:
        """Note the fields of a record. Those of a Parquet file are Arrow's scalars, whose types are known.

        RAISES (InputError): A column has values of two types, or a value that has none.
        """
        for name, value in record.fields.items():
            if not isinstance(value, pa.Scalar):
                try:
                    type_ = pa.array([value]).type
                except (pa.ArrowException, OverflowError) as error:
                    raise InputError(
                        f"{record.location}: {name!r} is {value!r:.100}, which Parquet cannot hold ({error}). Make it "
                        "a string, or write .jsonl."
                    ) from None
                self._add(name, type_, record.location)
                if name not in self.large and _is_large(value):
                    self.large[name] = value, record.location

    def _add(self, name: str, type_: pa.DataType, where: str) -> None:
        before, first = self.types.setdefault(name, (type_, where))
        common = common_type(before, type_)
        if common is None:
            raise InputError(
                f"The column {name!r} has values of two types, {before} ({first}) and {type_} ({where}). "
                "A column of a Parquet file has one type. Convert one of them, or write .jsonl."
            )
        if common != before:
            self.types[name] = common, where

    def schema(self, fields: list[str]) -> pa.Schema:
        """The schema of the input: the texts first, then the other columns.

        fields (list[str]): The other columns that the texts have, in their order. Files without texts may have more.
        RAISES (InputError): A column has a type that Parquet cannot hold.
        """
        names = dict.fromkeys([self.column, *fields, *self.types])
        for name, (type_, where) in self.types.items():
            if "struct<>" in str(type_) or str(type_).count("<") > MAX_DEPTH:
                raise InputError(
                    f"{where}: {name!r} is {str(type_):.100}, which Parquet cannot hold: an object without keys, or "
                    "too many lists or objects within each other. Make it a string, or write .jsonl."
                )
        for name, (value, where) in self.large.items():
            try:
                pa.array([value], self.types[name][0])
            except pa.ArrowException as error:
                raise InputError(
                    f"{where}: {name!r} is {value!r:.100}, but others in this column are floats ({error}). Make them "
                    "strings, or write .jsonl."
                ) from None
        # A column of a .csv file without a row has no type.
        return pa.schema([(name, self.types.get(name, (pa.string(),))[0]) for name in names])


def _is_large(value: Any) -> bool:
    """Whether a value of JSON is, or has in it, a whole number that a float64 may not hold exactly."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list | tuple):
        return any(map(_is_large, value))
    return isinstance(value, int) and abs(value) > 2**53


class ParquetTable:
    """A Parquet file. Each part is a Parquet file of its own.

    fields (list[str]): The other columns. Those that are not in the schema are text.
    schema (pa.Schema): Of the input.
    """

    def __init__(self, rows: TextRows, fields: list[str], schema: pa.Schema):
        self.rows = rows
        types = dict(zip(schema.names, schema.types)) | {name: arrow_type(own) for name, own in rows.types.items()}
        names = column_order(rows, [name for name in fields if name != rows.column])
        self.schema = pa.schema([(name, types.get(name, pa.string())) for name in names])

    @staticmethod
    def check(record: Record) -> None:
        """As for the other formats. Arrow's scalars come from a Parquet file, so they can be written to one."""
        check_fields({k: v for k, v in record.fields.items() if not isinstance(v, pa.Scalar)}, record.location)

    def encode(self, batches: list[list[ScoredText]]) -> bytes:
        """The contents of one part. Each batch is a row group, so the whole file does not depend on where parts end."""
        return b"".join(self._encode(filter(len, map(self._table, batches))))

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file."""
        return self._encode(_groups(parts))

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
        rows = [row for text in batch for row in self.rows(text.number, text.doc, text.fields)]
        columns = []
        for field in self.schema:
            try:
                columns.append(_array([row.get(field.name) for row in rows], field.type))
            except pa.ArrowException as error:
                where = f"Text {batch[0].number + 1} of the input, or one soon after it"
                raise InputError(f"{where}: {field.name!r} is no {field.type}: {error}. Write .jsonl.") from None
        return pa.Table.from_arrays(columns, schema=self.schema)


def _array(values: list[Any], type_: pa.DataType) -> pa.Array:
    if not any(isinstance(value, pa.Scalar) for value in values):
        return pa.array(values, type_)
    return pa.concat_arrays([pa.repeat(_scalar(value, type_), 1) for value in values])


def _scalar(value: Any, type_: pa.DataType) -> pa.Scalar:
    if not isinstance(value, pa.Scalar):
        return pa.scalar(value, type_)
    return value if value.type == type_ else value.cast(type_)


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


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows of values that JSON has to a file. Not all rows need have all columns.

    RAISES (InputError): A column has values of different types, or some that Parquet cannot hold.
    """
    columns = {name: None for row in rows for name in row}
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        table = pa.Table.from_pylist([columns | row for row in rows])
        with atomic_write(path) as file:
            pq.write_table(table, file)
    except (pa.ArrowException, OverflowError) as error:
        problem = f"A column has values of two types, or that Parquet cannot hold ({error})"
        raise InputError(f"{problem}. Write {path.with_suffix('.csv')}.") from None
