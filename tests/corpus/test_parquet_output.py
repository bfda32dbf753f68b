"""Scored texts as a Parquet file."""

import datetime
import io
import json
import tempfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll import InputError
from spacy_pll.corpus import parquet_output
from spacy_pll.corpus.parquet import (
    read_table as read_parquet,
)
from spacy_pll.corpus.parquet_output import ParquetTable, TypedColumns
from spacy_pll.corpus.records import ReadOptions, Record
from spacy_pll.corpus.runs import find_format
from spacy_pll.files import to_json
from spacy_pll.tables.rows import ScoredText, TokenRows

from ..columns import added, rows_of
from ..made_scores import set_scores
from .reading import read_rows, write_table

STRING, LARGE_STRING, DOUBLE = pa.string(), pa.large_string(), pa.float64()


def columns_of(schemas, *records):
    """The columns of files; None for a file that is not Parquet."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in schemas]
        for file, schema in zip(files, schemas.values()):
            if schema is not None:
                pq.write_table(schema.empty_table(), file)
        columns = TypedColumns("text")
        for path in files:
            with open(path, "rb") as file:
                list(read_parquet(file, str(path), ReadOptions(typed=True, found=columns.declare)))
    for record in records:
        columns.add(record)
    return columns


NAMES = rows_of("texts").names


def nested(depth):
    return [nested(depth - 1)] if depth else 1


def values_of(name, values):
    return [Record(f"line {number}", "x", {name: value}) for number, value in enumerate(values, 1)]


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
        ([2**53, 0.5], DOUBLE),
        ([2**53 + 1, None], pa.int64()),
        ([["a"], [], {"a": 2**60}, None], STRING),
        ([np.float64(1)], DOUBLE),  # from doc.user_data of a .spacy file
        ([("a",), ["b"], {}], STRING),  # .spacy files have tuples
    ],
)
def test_the_type_of_values(values, type_):
    assert columns_of({}, *values_of("n", values)).types()["n"] == type_


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], r"column 'n' has values of two types, int64 \(line 1\) and string \(line 2\).*Convert one of them"),
        ([True, 1], r"bool \(line 1\) and int64 \(line 2\)"),
        ([2**53 + 1, 0.5], r"int64 \(line 1\) and double \(line 2\)"),
        ([0.5, 1, 2**53 + 1], r"double \(line 1\) and int64 \(line 3\)"),
        (["a", ["a"]], r"string \(line 1\) and list or object \(line 2\)"),
        ([{"a": 1}, 1], r"list or object \(line 1\) and int64 \(line 2\)"),
        ([2**63], "line 1: 'n' is 9223372036854775808. Parquet holds whole numbers of up to 64 bits"),
    ],
)
def test_values_that_no_type_holds(values, message):
    with pytest.raises(InputError, match=message):
        columns_of({}, *values_of("n", values)).types()


def test_the_columns_of_several_files():
    a = pa.schema({"n": pa.int8(), "text": STRING, "t": pa.timestamp("ns")})
    b = pa.schema({"text": LARGE_STRING, "n": pa.int32(), "only b": pa.null()})
    columns = columns_of({"a.parquet": a, "b.parquet": b}, Record("c, line 1", "x", {"n": 3, "new": [1]}))
    types = {"text": LARGE_STRING, "new": STRING, "n": pa.int64()}
    assert columns.types() == {**types, "t": pa.timestamp("ns"), "only b": pa.null()}
    assert [*columns.types()][:3] == ["text", "n", "new"]


def test_types_that_differ_are_named_with_their_files():
    a, b = pa.schema({"text": STRING, "n": pa.int8()}), pa.schema({"text": STRING, "n": STRING})
    with pytest.raises(
        InputError, match=r"'n' has values of two types, int8 \(.*a.parquet\) and string \(.*b.parquet\)"
    ):
        columns_of({"a.parquet": a, "b.parquet": b})
    with pytest.raises(InputError, match=r"int8 \(.*a.parquet\) and bool \(c.jsonl, line 7\)"):
        columns_of({"a.parquet": a}, Record("c.jsonl, line 7", "x", {"n": True}))


MOMENT = datetime.datetime(2020, 2, 29, 12, 30)
TYPES = {
    "int8": pa.array([1, None, -3], pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "float32": pa.array([0.1, None, float("nan")], pa.float32()),
    "bool": pa.array([True, None, False]),
    "large_string": pa.array(["a", None, ""], pa.large_string()),
    "string_view": pa.array(["a", None, ""], pa.string_view()),
    "bytes": pa.array([b"\xff", None, b""]),
    "date": pa.array([MOMENT.date(), None, datetime.date(1, 1, 1)]),
    "nanoseconds": pa.array([1, None, 1_500_000_000_123_456_789], pa.timestamp("ns", "Europe/Berlin")),
    "microseconds": pa.array([MOMENT, None, MOMENT], pa.timestamp("us")),
    "time": pa.array([1, None, 3], pa.time64("ns")),
    "duration": pa.array([1, None, 3], pa.duration("us")),
    "decimal": pa.array([Decimal("1.10"), None, Decimal("-12345678901234567890.05")]),
    "categories": pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), ["b", "a", "unused"], ordered=True),
    "list": pa.array([["a", None], None, []]),
    "fixed": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
    "struct": pa.array([{"a": MOMENT, "b": [1]}, None, {"a": None, "b": []}]),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "null": pa.nulls(3),
}  # fmt: skip


def made_doc(text, scores):
    """A text with scores made up for the purpose."""
    doc = spacy.blank("en").make_doc(text)
    return set_scores(doc, {"word_l2r": [*map(float, scores)]}, pieces=text.split())


@pytest.fixture
def scored():
    """Three texts, the last with nothing to score. Gives them fields."""
    docs = [made_doc(*one) for one in [("A cat", [-1, -2]), ("A dog", [-4, -2]), ("", [])]]

    def make(fields):
        return [ScoredText.of(doc, NAMES, n, own) for n, (doc, own) in enumerate(zip(docs, fields))]

    return make


def whole_file(output, texts):
    """The file if each text is a part of its own."""
    parts = [output.encode([text]) for text in texts]
    return pq.ParquetFile(io.BytesIO(b"".join(output.merge(parts))))


def test_other_columns_keep_their_types_and_values(scored):
    """Read and written as a run does it: what Arrow reads is what it read before."""
    source = io.BytesIO()
    pq.write_table(pa.table({"text": ["A cat", "A dog", ""], **TYPES}), source, row_group_size=2)
    before = pq.read_table(io.BytesIO(source.getvalue()))
    source.seek(0)
    fields = [row for _, row in read_parquet(source, "in.parquet", ReadOptions(typed=True))]
    after = whole_file(
        ParquetTable(rows_of("texts"), dict(zip(before.schema.names, before.schema.types))), scored(fields)
    ).read()
    assert after.schema.names == ["text", *TYPES, *added()]
    for name in TYPES:
        assert after.schema.field(name).type == before.schema.field(name).type, name
        # NaN does not equal NaN, except in Arrow's own comparison of text
        assert after[name].combine_chunks().to_string() == before[name].combine_chunks().to_string(), name
    assert after["pll_word_l2r"].to_pylist() == [-3.0, -6.0, None] and after["pll_pieces"].to_pylist() == [2, 2, 0]
    types = {"pll_word_l2r": pa.float64(), "pll_pieces": pa.int64(), "pppl": pa.float64()}
    assert {name: after.schema.field(name).type for name in types} == types


def test_a_row_per_token_repeats_the_columns_of_its_text(scored):
    types = {"text": pa.large_string(), "n": pa.int8(), "l": pa.list_(pa.string())}
    texts = scored([{"n": pa.scalar(1, pa.int8()), "l": ["x"]}, {"l": None}, {"n": 3}])
    rows = whole_file(ParquetTable(rows_of("tokens"), types), texts).read()
    assert rows.schema.names == ["doc", "token", "text", "n", "l", "pieces", "pll_word_l2r", "surprisal"]
    assert rows.schema.field("text").type == pa.large_string()
    assert rows.schema.field("pieces").type == pa.list_(pa.string())
    assert [(*list(row.values())[:5], row["pll_word_l2r"]) for row in rows.to_pylist()] == [
        (0, 0, "A", 1, ["x"], -1.0),
        (0, 1, "cat", 1, ["x"], -2.0),
        (1, 0, "A", None, None, -4.0),
        (1, 1, "dog", None, None, -2.0),
    ]
    assert rows["pieces"].to_pylist() == [["A"], ["cat"], ["A"], ["dog"]]


def test_columns_without_a_score_have_their_type(scored):
    """A type guessed from the first rows would be null."""
    text = scored([{}, {}, {}])[2]
    for table in ("texts", "tokens"):
        output = ParquetTable(rows_of(table), {"text": pa.string()})
        for file in (whole_file(output, [text]), whole_file(output, [])):
            assert file.schema_arrow.field("pll_word_l2r").type == pa.float64()
    assert whole_file(ParquetTable(rows_of("texts"), {"text": pa.string()}), []).read().num_rows == 0


@pytest.mark.parametrize("value", [2**53 + 1, pa.scalar(2**53 + 1), [0.5, 2**53 + 1]])
def test_a_whole_number_that_no_float_holds_is_not_rounded(scored, value):
    type_ = pa.list_(DOUBLE) if isinstance(value, list) else DOUBLE
    types = {"text": pa.string(), "n": type_}
    with pytest.raises(InputError, match="'n' is no .*double.*: Integer value 9007199254740993 "):
        ParquetTable(rows_of("texts"), types).encode(scored([{"n": value}]))


@pytest.mark.parametrize("value", [nested(90), {"a": [2**70, 0.5, None], "b": {}}, ("é",), []])
def test_lists_and_objects_of_json_are_text(scored, value):
    types = columns_of({}, *values_of("n", [value])).types()
    table = whole_file(ParquetTable(rows_of("texts"), types), scored([{"n": value}, {"n": None}])).read()
    first, second = table["n"].to_pylist()
    assert second is None and json.loads(first) == (list(value) if isinstance(value, tuple) else value)


any_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=5,
)


@given(value=st.lists(any_text) | st.lists(json_values) | st.dictionaries(any_text, json_values, max_size=3))
@example(value=["New York", "Rome"])
@example(value=["one"])
@example(value=[])
@example(value=[[1], ["a"], {}])
def test_lists_and_objects_are_json_in_every_table(tmp_path_factory, value):
    """Of `pll score`, of texts and of tokens, and of the commands that write a table at once."""
    folder, rows, found = tmp_path_factory.mktemp("tables"), [{"text": "A cat", "n": value}, {"text": "A dog"}], []
    doc = made_doc("A cat", [-1, -2])
    for ending in (".csv", ".tsv", ".parquet"):
        write_table(folder / f"a{ending}", rows)
        types = columns_of({}, *values_of("n", [value])).types()
        for table in ("texts", "tokens"):
            of = rows_of(table)
            output = find_format(f"o{ending}", type(of))(of, types)
            texts = [ScoredText.of(doc, NAMES, fields={"n": value})]
            (folder / f"{table}{ending}").write_bytes(b"".join(output.merge([output.encode(texts)])))
            found.append(next(read_rows(folder / f"{table}{ending}"))[1])
        found.append(next(read_rows(folder / f"a{ending}"))[1])
    assert {row["n"] for row in found} == {to_json(value)} and json.loads(found[0]["n"]) == value
    pieces = [row["pieces"] for row in found if "pieces" in row]
    assert pieces == ["A", "A", ["A"]]  # ours are read with the eyes


def test_lists_of_two_sources_are_two_types():
    """What is a list in a Parquet file, and text where JSON lines had it, cannot be one column."""
    with pytest.raises(InputError, match=r"two types, list<.*> \(.*a.parquet\) and list or object \(line 1\)"):
        columns_of({"a.parquet": pa.schema({"text": STRING, "n": pa.list_(STRING)})}, *values_of("n", [["a"]]))


def test_parts_become_row_groups_of_a_size(scored, monkeypatch):
    output = ParquetTable(rows_of("texts"), {"text": pa.string()})
    texts = scored([{}, {}, {}])
    assert whole_file(output, texts).num_row_groups == 1
    monkeypatch.setattr(parquet_output, "ROWS_PER_GROUP", 2)
    file = whole_file(output, texts)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [2, 1]
    monkeypatch.setattr(parquet_output, "BYTES_PER_GROUP", 1)
    assert whole_file(output, texts).num_row_groups == 3


def test_merging_holds_no_more_than_a_row_group(scored, monkeypatch):
    monkeypatch.setattr(parquet_output, "ROWS_PER_GROUP", 1)
    output = ParquetTable(rows_of("texts"), {"text": pa.string()})
    parts = [output.encode([text]) for text in scored([{}, {}, {}])]
    read = []
    blocks = output.merge(read.append(n) or part for n, part in enumerate(parts))
    next(blocks)
    assert read == [0]


def test_the_format_of_a_file():
    assert find_format("out.PARQUET", TokenRows) is ParquetTable
