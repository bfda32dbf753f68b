"""The types of columns: those of Parquet files, those of values from other files, and those of the output."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

import pyarrow as pa
from pyarrow import types as is_

from ..readers import InputError, Record, check_utf8

SCALARS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
FEATURES = {int: "int64", float: "float64", str: "string"}  # what `datasets` calls them
EXACT_IN_FLOAT64 = 2**53  # a float64 holds every whole number up to this
# Keys of a file's metadata. All others are left out, since they may describe what the output no longer is.
PANDAS, HUGGING_FACE = b"pandas", b"huggingface"


def arrow_type(type_: Any) -> pa.DataType:
    """The Arrow type of a Python type, such as `float` or `list[str]`."""
    return pa.list_(arrow_type(*get_args(type_))) if get_origin(type_) is list else SCALARS[type_]


def is_text(type_: pa.DataType) -> bool:
    return is_.is_string(type_) or is_.is_large_string(type_) or is_.is_string_view(type_)


def common_type(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both types without a loss; None if there is none."""
    if a == b or is_.is_null(b):
        return a
    if is_.is_null(a):
        return b
    if is_text(a) and is_text(b):
        return pa.large_string()
    kinds = (is_.is_signed_integer, is_.is_unsigned_integer, is_.is_floating)
    return max(a, b, key=lambda type_: type_.bit_width) if any(kind(a) and kind(b) for kind in kinds) else None


class ColumnType:
    """The type of a column, from the values and types that are found in it.

    name (str): Of the column, for messages.
    """

    def __init__(self, name: str):
        self.name = name
        self.found: dict[pa.DataType, str] = {}  # type: where it was first found
        self.items: tuple[ColumnType, str] | None = None  # of lists
        self.keys: tuple[dict[str, ColumnType], str] | None = None  # of objects
        self.exact = True  # all whole numbers can be held by a float64

    def add_type(self, type_: pa.DataType, where: str) -> None:
        """Note the type of a Parquet column."""
        self.found.setdefault(type_, where)
        self.exact &= not is_.is_integer(type_)

    def add(self, value: Any, where: str) -> None:
        """Note a value of JSON.

        RAISES (InputError): Arrow has no type for it.
        """
        if value is None:
            return
        if isinstance(value, list | tuple):
            self.items = self.items or (ColumnType(f"{self.name}[]"), where)
            for item in value:
                self.items[0].add(item, where)
        elif isinstance(value, dict):
            self.keys = self.keys or ({}, where)
            for key, item in value.items():
                self.keys[0].setdefault(key, ColumnType(f"{self.name}.{key}")).add(item, where)
        elif type(value) not in SCALARS:
            raise InputError(f"{where}: {self.name!r} is {value!r:.100}, for which Parquet has no type. Write .jsonl.")
        else:
            self.found.setdefault(SCALARS[type(value)], where)
            if isinstance(value, int):
                self._check_whole_number(value, where)
            elif isinstance(value, str):
                check_utf8(value, where, self.name)

    def _check_whole_number(self, value: int, where: str) -> None:
        self.exact &= abs(value) <= EXACT_IN_FLOAT64
        if not -(2**63) <= value < 2**63:
            raise InputError(
                f"{where}: {self.name!r} is {value}. Parquet holds whole numbers of up to 64 bits. Make it a string, "
                "or write .jsonl."
            )

    def resolve(self) -> pa.DataType:
        """The type of the column.

        RAISES (InputError): No type holds all of its values. The message names two types, and where they are.
        """
        found = dict(self.found)
        if self.exact and pa.float64() in found:
            found.pop(pa.int64(), None)
        if self.items:
            items, where = self.items
            found.setdefault(pa.list_(items.resolve()), where)
        if self.keys:
            keys, where = self.keys
            if not keys:
                raise InputError(f"{where}: {self.name!r} is an object without keys, which Parquet cannot hold.")
            found.setdefault(pa.struct({key: column.resolve() for key, column in keys.items()}.items()), where)
        result: tuple[pa.DataType, str] | None = None
        for type_, where in found.items():
            if result is None:
                result = type_, where
                continue
            common = common_type(result[0], type_)
            if common is None:
                raise InputError(
                    f"The column {self.name!r} has values of two types, {result[0]} ({result[1]}) and {type_} "
                    f"({where}). A column of a Parquet file has one type. Convert one of them, or write .jsonl."
                )
            result = common, (where if common == type_ else result[1])
        return result[0] if result else pa.null()


class InputColumns:
    """The columns of an input, found while it is read.

    column (str): The column of texts.
    schemas (Mapping[str, Optional[pa.Schema]]): The files of the input. None for those that are not Parquet.
    """

    def __init__(self, column: str, schemas: Mapping[str, pa.Schema | None]):
        self.column = column
        self.types: dict[str, ColumnType] = {}
        self.schemas = [schema for schema in schemas.values() if schema is not None]
        self.has_other_files = len(self.schemas) < len(schemas)
        for file, schema in schemas.items():
            for field in [pa.field(column, pa.string())] if schema is None else schema:
                self._of(field.name).add_type(field.type, file)

    def _of(self, name: str) -> ColumnType:
        return self.types.setdefault(name, ColumnType(name))

    def add(self, record: Record) -> None:
        """Note the fields of a record. Those of a Parquet file are Arrow's scalars, whose types are known."""
        for name, value in record.fields.items():
            if not isinstance(value, pa.Scalar):
                self._of(name).add(value, record.location)

    def schema(self, fields: list[str]) -> pa.Schema:
        """The schema of the input: the texts first, then the other columns.

        fields (list[str]): The other columns that the texts have, in their order. Files without texts may have more.
        RAISES (InputError): A column has values of different types.
        """
        metadata = {field.name: field.metadata for schema in self.schemas for field in schema}
        types = {name: self._of(name).resolve() for name in dict.fromkeys([self.column, *fields, *self.types])}
        merged = [pa.field(name, type_, metadata=metadata.get(name)) for name, type_ in types.items()]
        # What the metadata of Parquet files says may not be true of other files.
        shared = {} if self.has_other_files else _shared_metadata([schema.metadata or {} for schema in self.schemas])
        return pa.schema(merged, shared)


def _shared_metadata(each: list[dict[bytes, bytes]]) -> dict[bytes, bytes]:
    """The metadata that all files have and that can be kept."""
    known = [{key: value for key in (PANDAS, HUGGING_FACE) if (value := one.get(key))} for one in each]
    return {key: value for key, value in known[0].items() if all(one.get(key) == value for one in known)}


def output_schema(names: Iterable[str], schema: pa.Schema, added: dict[str, Any]) -> pa.Schema:
    """The schema of an output.

    names (Iterable[str]): Its columns, in their order.
    schema (pa.Schema): Of the input.
    added (dict[str, Any]): The Python types of the columns that scoring adds.
    """
    types = {name: arrow_type(type_) for name, type_ in added.items()}
    fields = [pa.field(name, types[name]) if name in types else schema.field(name) for name in names]
    metadata = dict(schema.metadata or {})
    features = _output_features(names, metadata.pop(HUGGING_FACE, None), {"file": str, **added})
    if features:
        metadata[HUGGING_FACE] = json.dumps({"info": {"features": features}}).encode("utf8")
    return pa.schema(fields, metadata)


def _output_features(names: Iterable[str], metadata: bytes | None, added: dict[str, Any]) -> dict[str, Any] | None:
    """The features that the package `datasets` keeps in the metadata, such as the names of labels, with those of the
    columns that are added. None if not all are known: then it takes them from the types of the columns."""
    try:
        known = json.loads(metadata or b"{}")["info"]["features"]
        return {name: known[name] if name in known else _feature(added[name]) for name in names}
    except (KeyError, TypeError, ValueError):
        return None


def _feature(type_: Any) -> dict[str, Any]:
    """A Python type as a feature of `datasets`. All of its versions read "Sequence"."""
    if get_origin(type_) is list:
        return {"feature": _feature(*get_args(type_)), "_type": "Sequence"}
    return {"dtype": FEATURES[type_], "_type": "Value"}


def with_text_column(schema: pa.Schema, name: str) -> pa.Schema:
    return schema.append(pa.field(name, pa.string()))
