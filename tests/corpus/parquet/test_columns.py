import json

import pyarrow as pa
import pytest

from spacy_pll.corpus.parquet.columns import ColumnType, InputColumns, arrow_type, common_type, output_schema
from spacy_pll.corpus.readers import InputError, Record

STRING, LARGE_STRING, DOUBLE = pa.string(), pa.large_string(), pa.float64()


def test_python_types_in_arrow():
    assert arrow_type(float) == pa.float64() and arrow_type(int) == pa.int64()
    assert arrow_type(list[list[str]]) == pa.list_(pa.list_(pa.string()))


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        (pa.int32(), pa.int32(), pa.int32()),
        (pa.int32(), pa.null(), pa.int32()),
        (pa.int8(), pa.int64(), pa.int64()),
        (pa.uint8(), pa.uint16(), pa.uint16()),
        (pa.float32(), DOUBLE, DOUBLE),
        (STRING, LARGE_STRING, LARGE_STRING),
        (pa.int64(), DOUBLE, None),  # a double does not hold every whole number
        (pa.uint64(), pa.int64(), None),
        (pa.timestamp("us"), pa.timestamp("ns"), None),
        (pa.int64(), STRING, None),
        (pa.bool_(), pa.int8(), None),
    ],
)
def test_a_common_type_loses_nothing(a, b, common):
    assert common_type(a, b) == common and common_type(b, a) == common


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([1, None, -2], pa.int64()),
        ([1, 2.5], DOUBLE),
        ([2**53, 2.5], DOUBLE),
        ([2**63 - 1, -(2**63)], pa.int64()),
        ([True, None], pa.bool_()),
        (["a", ""], STRING),
        ([None], pa.null()),
        ([["a"], [], None], pa.list_(STRING)),
        ([("a",), ["b"]], pa.list_(STRING)),  # .spacy files have tuples
        ([[]], pa.list_(pa.null())),
        (
            [{"a": 1}, {"b": [{"c": 1}, {"c": 0.5}]}],
            pa.struct({"a": pa.int64(), "b": pa.list_(pa.struct({"c": DOUBLE}))}),
        ),
    ],
)
def test_the_type_of_values(values, type_):
    column = ColumnType("n")
    for value in values:
        column.add(value, "here")
    assert column.resolve() == type_
    assert pa.array(values, type_).to_pylist() is not None  # Arrow agrees


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], r"column 'n' has values of two types, int64 \(line 1\) and string \(line 2\).*Convert one of them"),
        ([True, 1], r"bool \(line 1\) and int64 \(line 2\)"),
        ([2**53 + 1, 0.5], r"int64 \(line 1\) and double \(line 2\)"),
        ([0.5, 2**53 + 1], r"double \(line 1\) and int64 \(line 2\)"),
        (["a", ["a"]], r"string \(line 1\) and list<item: string> \(line 2\)"),
        ([["a"], [1]], r"The column 'n\[\]' has values of two types"),
        ([{"a": 1}, {"a": "x"}], r"The column 'n\.a' has values of two types"),
        ([2**63], "line 1: 'n' is 9223372036854775808. Parquet holds whole numbers of up to 64 bits"),
        (["\ud800"], "line 1: 'n' has a lone surrogate"),
        ([{}], "line 1: 'n' is an object without keys"),
        ([b"a"], "line 1: 'n' is b'a', for which Parquet has no type"),
    ],
)
def test_values_that_no_type_holds(values, message):
    def resolve():
        column = ColumnType("n")
        for number, value in enumerate(values, 1):
            column.add(value, f"line {number}")
        column.resolve()

    with pytest.raises(InputError, match=message):
        resolve()


def columns_of(files, *records):
    columns = InputColumns("text", files)
    for record in records:
        columns.add(record)
    return columns


def test_the_columns_of_several_files():
    a = pa.schema({"n": pa.int8(), "text": STRING, "t": pa.timestamp("ns")})
    b = pa.schema({"text": LARGE_STRING, "n": pa.int32(), "only b": pa.null()})
    columns = columns_of({"a": a, "b": b, "c": None}, Record("c, line 1", "x", {"n": 3, "new": [1]}))
    schema = columns.schema(["new", "n"])
    types = {"text": LARGE_STRING, "new": pa.list_(pa.int64()), "n": pa.int64()}
    assert dict(zip(schema.names, schema.types)) == {**types, "t": pa.timestamp("ns"), "only b": pa.null()}
    assert schema.names[:3] == ["text", "new", "n"]


def test_types_that_differ_are_named_with_their_files():
    a, b = pa.schema({"text": STRING, "n": pa.int8()}), pa.schema({"text": STRING, "n": STRING})
    with pytest.raises(InputError, match=r"'n' has values of two types, int8 \(a.parquet\) and string \(b.parquet\)"):
        columns_of({"a.parquet": a, "b.parquet": b}).schema([])
    record = Record("c.jsonl, line 7", "x", {"n": True})
    with pytest.raises(InputError, match=r"int8 \(a.parquet\) and bool \(c.jsonl, line 7\)"):
        columns_of({"a.parquet": a, "c.jsonl": None}, record).schema([])


LABEL = {"names": ["bad", "good"], "_type": "ClassLabel"}
TEXT = {"dtype": "string", "_type": "Value"}


def with_metadata(features, **other):
    info = json.dumps({"info": {"features": features}, "fingerprint": "abc"})
    return pa.schema({"text": STRING, "label": pa.int64()}, {"huggingface": info, **other})


def test_the_features_of_datasets_are_brought_up_to_date():
    file = with_metadata({"text": TEXT, "label": LABEL}, pandas="{}", spark="the columns that there were")
    schema = columns_of({"a": file, "b": file}).schema([])
    out = output_schema(["text", "label", "pll", "pieces"], schema, {"pll": float, "pieces": list[str]})
    assert set(out.metadata) == {b"huggingface", b"pandas"}
    assert json.loads(out.metadata[b"huggingface"]) == {
        "info": {
            "features": {
                "text": TEXT,
                "label": LABEL,
                "pll": {"dtype": "float64", "_type": "Value"},
                "pieces": {"feature": TEXT, "_type": "Sequence"},
            }
        }
    }


@pytest.mark.parametrize(
    "files",
    [
        {"a": with_metadata({"text": TEXT, "label": LABEL}), "b": with_metadata({"text": TEXT, "label": TEXT})},
        {"a": with_metadata({"text": TEXT, "label": LABEL}), "b": None},
        {"a": with_metadata({"text": TEXT})},
        {"a": pa.schema({"text": STRING, "label": pa.int64()}, {"huggingface": "not JSON"})},
        {"a": pa.schema({"text": STRING, "label": pa.int64()}, {"huggingface": "[]"})},
    ],
)
def test_features_that_may_be_wrong_are_left_out(files):
    schema = columns_of(files).schema([])
    assert not output_schema(["text", "label", "pll"], schema, {"pll": float}).metadata
