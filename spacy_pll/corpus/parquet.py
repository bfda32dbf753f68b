"""Parquet files: reading as a stream, the types of columns, tables. This needs the extra `[parquet]`.

Nothing imports this module before a file of this format is named.
"""

import base64
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, get_args, get_origin

from ..errors import InputError
from ..files import to_json
from ..requirements import extra
from .decoding import writable, writable_fields
from .records import Nested, ReadOptions, Row, get_text

with extra("parquet", "Parquet files need pyarrow"):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import types as is_

ROWS_PER_READ = 1_000
# Columns are read in blocks of this size, so that a row group need not fit into memory.
BYTES_PER_READ = 2**20
SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
# Stands for whole numbers that a float64 holds exactly, up to this one. No Parquet file has a column of this type.
SMALL, LARGEST_SMALL = pa.month_day_nano_interval(), 2**53
# Stands for lists and objects of JSON, which are written as text. No Parquet file has such a column either.
NESTED = pa.dense_union([])
WRITTEN_AS = {SMALL: pa.int64(), NESTED: pa.string()}


def read_table(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    """The rows, numbered from 1.

    RAISES (InputError): The file cannot be read, or has two columns of the same name; or a value cannot be read.
    """
    number, column = 0, options.column
    try:
        # A pipe cannot be read from its end, where Parquet has its schema.
        source: Any = file if file.seekable() else pa.BufferReader(file.read())
        with pq.ParquetFile(source, buffer_size=BYTES_PER_READ) as parquet:
            schema = parquet.schema_arrow
            if len(set(schema.names)) < len(schema.names):
                raise InputError(f"{name}: two columns have the same name: {schema.names}.")
            if column is not None:
                if (type_ := _type_in(schema, column)) is None:
                    get_text(dict.fromkeys(schema.names, ""), name, column)
                elif not is_text(values_type(type_)):
                    raise InputError(f"{name}: {column!r} must hold text. It holds {type_}.")
            options.found(name, dict(zip(schema.names, schema.types)))
            # One row group after another: otherwise pyarrow keeps what it has read of each until it has read all.
            for group in range(parquet.num_row_groups):
                for batch in parquet.iter_batches(ROWS_PER_READ, row_groups=[group]):
                    for scalars in zip(*batch.columns):
                        number += 1
                        location = f"{name}, row {number}"
                        yield location, _row(dict(zip(schema.names, scalars)), location, options)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{name}: this is not a Parquet file, or it is damaged ({error}).") from None


def _row(scalars: dict[str, pa.Scalar], location: str, options: ReadOptions) -> dict[str, Any]:
    """RAISES (InputError): A string is not valid UTF-8."""
    row = Nested()
    for name, scalar in scalars.items():
        try:
            if options.typed and name != options.column:
                row[name] = _valid(scalar, options.skip_errors)
            else:
                row[name] = json_value(scalar, "surrogateescape" if options.skip_errors else "strict")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{location}: {name!r} is not valid UTF-8 (byte {error.start + 1} is "
                f"0x{error.object[error.start]:02x})."
            ) from None
    column = options.column
    if options.typed and column and column not in row:  # it is inside another one, which is not Python's
        outer = column.partition(".")[0]
        row[column] = Nested({outer: json_value(scalars[outer], "surrogateescape")}).get(column)
    return row


def _valid(scalar: pa.Scalar, skip_errors: bool) -> pa.Scalar:
    """The scalar, or what can be written of a string. RAISES (UnicodeDecodeError): It has a string that cannot be."""
    if is_text(scalar.type) or is_.is_dictionary(scalar.type) or is_.is_nested(scalar.type):
        try:
            scalar.as_py()
        except UnicodeDecodeError:
            if not (skip_errors and is_text(scalar.type)):
                raise
            return pa.scalar(writable(json_value(scalar, "surrogateescape")), scalar.type)
    return scalar


def json_value(scalar: pa.Scalar, errors: str = "strict") -> Any:
    """A value as JSON has it. errors (str): What becomes of bytes that are not valid UTF-8, as for `bytes.decode`.

    Dates, times and decimals become strings (ISO 8601), durations whole numbers of their unit, bytes Base64, and maps
    lists of objects with `key` and `value`.
    """
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pa.ExtensionScalar | pa.DictionaryScalar):
        return json_value(scalar.value, errors)
    if isinstance(scalar, pa.StructScalar):
        return Nested({name: json_value(value, errors) for name, value in scalar.items()})
    if isinstance(scalar, pa.ListScalar):
        return [json_value(value, errors) for value in scalar.values]
    if isinstance(scalar, pa.DurationScalar):
        return scalar.value
    if is_.is_timestamp(scalar.type):
        return str(scalar.cast(pa.string())).replace(" ", "T", 1)
    if is_.is_temporal(scalar.type) or is_.is_decimal(scalar.type):
        return str(scalar.cast(pa.string()))
    if is_text(scalar.type):
        return scalar.as_buffer().to_pybytes().decode("utf8", errors)
    value = scalar.as_py()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def arrow_type(type_: Any) -> pa.DataType:
    """The Arrow type of a Python type, such as `float` or `list[str]`."""
    return pa.list_(arrow_type(*get_args(type_))) if get_origin(type_) is list else SCALARS[type_]


def _type_in(fields: Iterable[pa.Field], column: str) -> pa.DataType | None:
    """The type of a column, or of a field inside one: see `Nested`."""
    types = {column_field.name: column_field.type for column_field in fields}
    outer, _, inner = column.partition(".")
    is_inside = column not in types and outer in types and is_.is_struct(types[outer])
    return _type_in(types[outer], inner) if is_inside else types.get(column)


def values_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values of a column, which may stand in a dictionary, as the categories of a data frame do."""
    return type_.value_type if is_.is_dictionary(type_) else type_


def is_text(type_: pa.DataType) -> bool:
    return is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)


def type_of(value: Any) -> pa.DataType:
    """The type of a value of JSON. RAISES (TypeError): There is none."""
    if value is None:
        return pa.null()
    if isinstance(value, list | tuple | dict):
        return NESTED
    if type(value) is int and abs(value) <= LARGEST_SMALL:
        return SMALL
    if type(value) is not int or -(2**63) <= value < 2**63:
        for kind, type_ in SCALARS.items():
            if isinstance(value, kind):  # also numpy's floats
                return type_
    raise TypeError


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type that holds the values of both types without a loss.

    RAISES (TypeError): There is none.
    """
    if a == b or is_.is_null(b):
        return a
    if is_.is_null(a):
        return b
    if SMALL in (a, b):
        other = b if a == SMALL else a
        return other if other == pa.float64() else common_type(pa.int64(), other)
    if is_.is_list(a) and is_.is_list(b):
        return pa.list_(common_type(a.value_type, b.value_type))
    if is_.is_struct(a) and is_.is_struct(b):
        first, second = ({field.name: field.type for field in type_} for type_ in (a, b))
        types = {name: (first.get(name, pa.null()), second.get(name, pa.null())) for name in first | second}
        return pa.struct([(name, common_type(*both)) for name, both in types.items()])
    if is_text(a) and is_text(b):
        return pa.large_string()
    if any(kind(a) and kind(b) for kind in (is_.is_signed_integer, is_.is_unsigned_integer, is_.is_floating)):
        return max(a, b, key=lambda type_: type_.bit_width)
    raise TypeError


def table_of(path: Path, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The contents of a file with rows of values that JSON has. Lists and objects become JSON text, as in .csv files.
    Not all rows need have all columns.

    RAISES (InputError): A column has values of different types, or some that Parquet cannot hold.
    """
    rows = [writable_fields(dict(row)) for row in rows]
    columns, file = {name: None for row in rows for name in row}, io.BytesIO()
    whole = [{**columns, **row} for row in rows]
    try:
        pq.write_table(pa.table({name: _with_json([row[name] for row in whole]) for name in columns}), file)
        return file.getvalue()
    except (pa.ArrowException, OverflowError) as error:
        problem = f"A column has values of two types, or that Parquet cannot hold ({error})"
        raise InputError(f"{problem}. Write {path.with_suffix('.csv')}.") from None


def _with_json(values: Sequence[Any]) -> pa.Array:
    """A column. RAISES (pa.ArrowException): Some values are lists or objects, and others are not."""
    nested = [isinstance(value, list | tuple | dict) for value in values]
    if any(nested) and any(value is not None and not is_nested for value, is_nested in zip(values, nested)):
        raise pa.ArrowTypeError("some are lists or objects")
    return pa.array([to_json(value) if is_nested else value for value, is_nested in zip(values, nested)])
