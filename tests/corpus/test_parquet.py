import datetime
import io
import json
import random
import resource
import tempfile
import tracemalloc
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.piece_record import PieceRecord
from spacy_pll.attributes.registration import install
from spacy_pll.corpus import parquet
from spacy_pll.corpus.formats import find_format, write_table
from spacy_pll.corpus.parquet import (
    ParquetTable,
    TypedColumns,
    arrow_type,
    common_type,
    json_value,
)
from spacy_pll.corpus.parquet import (
    read_table as read_parquet,
)
from spacy_pll.corpus.readers import read_records, read_rows
from spacy_pll.corpus.records import ReadOptions, Record
from spacy_pll.corpus.scored_texts import ScoredText
from spacy_pll.errors import InputError
from spacy_pll.tables.rows import TextRows, TokenRows


def write(path, columns, **options):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, **options)
    return str(path)


def test_a_row_is_a_record(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_PER_READ", 2)
    texts, numbers = ["one", "", "A\u2028 \x00 犬", "four", "five"], pa.array([1, 2, None, 4, 5], pa.int8())
    path = write(tmp_path / "a.parquet", {"n": numbers, "line": pa.array(texts, pa.large_string())}, row_group_size=3)
    records = list(read_records(path, "line"))
    assert records == [
        Record(f"{path}, row {number}", text, {"n": n})
        for number, (text, n) in enumerate(zip(texts, numbers.to_pylist()), 1)
    ]
    typed = list(read_records(path, "line", typed=True))
    assert [record.fields["n"] for record in typed] == list(numbers) and typed[0].fields["n"].type == pa.int8()
    assert [record.text for record in typed] == texts
    assert [row for _, row in read_rows(tmp_path / "a.parquet")] == [
        {"n": n, "line": text} for text, n in zip(texts, numbers.to_pylist())
    ]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_only(tmp_path, type_):
    path = write(tmp_path / "a.parquet", {"text": pa.array(["x", "y"], type_)})
    assert [(record.text, record.fields) for record in read_records(path)] == [("x", {}), ("y", {})]


def test_texts_in_a_dictionary_and_in_other_columns(tmp_path):
    """As data frames write categories, and data sets fields inside others."""
    texts = [f"Text {n % 150}." for n in range(200)]
    columns = {"text": pa.array(texts).dictionary_encode(), "kind": pa.array(["a", "b"] * 100).dictionary_encode()}
    path = write(tmp_path / "a.parquet", {**columns, "m": pa.array([{"s": {"t": text}, "n": 1} for text in texts])})
    for column in ("text", "m.s.t"):
        for typed in (False, True):
            records = list(read_records(path, column, typed=typed))
            assert [record.text for record in records] == texts and "m" in records[0].fields
    with pytest.raises(InputError, match="there is no column 'm.s.u'"):
        list(read_records(path, "m.s.u"))
    with pytest.raises(InputError, match="'m.s' must hold text. It holds struct"):
        list(read_records(path, "m.s"))


def test_no_row_and_no_row_group(tmp_path):
    schema = pa.schema({"text": pa.string()})
    assert list(read_records(write(tmp_path / "a.parquet", schema.empty_table()))) == []
    pq.ParquetWriter(tmp_path / "b.parquet", schema).close()
    assert pq.ParquetFile(tmp_path / "b.parquet").num_row_groups == 0
    assert list(read_records(str(tmp_path / "b.parquet"))) == []


def test_a_folder_of_several_formats(tmp_path):
    write(tmp_path / "b.parquet", {"text": ["two"], "n": [2]})
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "c").mkdir()
    write(tmp_path / "c" / "a.parquet", {"text": ["three"], "file": ["its own"]})
    assert [(record.text, record.fields) for record in read_records(str(tmp_path))] == [
        ("one", {"file": "a.txt"}),
        ("two", {"file": "b.parquet", "n": 2}),
        ("three", {"file": "its own"}),
    ]


def test_a_pipe_is_read_from_its_end(tmp_path):
    class Pipe(io.BytesIO):
        def seekable(self):
            return False

        def seek(self, *args):
            raise OSError("a pipe has no position")

    path = tmp_path / "a.parquet"
    write(path, {"text": ["x"]})
    assert [row for _, row in read_parquet(Pipe(path.read_bytes()), "standard input", ReadOptions())] == [{"text": "x"}]


# "x", and a lone surrogate with a "y". Arrow does not check what it is given as bytes.
SURROGATE = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 5], np.int32)), pa.py_buffer(b"x\xed\xa0\x80y")]
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"text": ["x", None]}, r"a.parquet, row 2: 'text' must be text. It is None\."),
        ({"text": [1]}, "a.parquet: 'text' must hold text. It holds int64"),
        ({"text": pa.nulls(1)}, "a.parquet: 'text' must hold text. It holds null"),
        ({"line": ["x"], "n": [1]}, "a.parquet: there is no column 'text'. The columns are: 'line', 'n'.* `column`"),
        ({}, "a.parquet: there is no column 'text'. The columns are: none"),
        (pa.table([["x"], ["y"]], names=["text", "text"]), "a.parquet: two columns have the same name"),
        ({"text": SURROGATE}, r"a.parquet, row 2: 'text' is not valid UTF-8 \(byte 1 is 0xed\)"),
        ({"text": ["x", "y"], "s": SURROGATE}, "a.parquet, row 2: 's' is not valid UTF-8"),
        (b"", "a.parquet: this is not a Parquet file, or it is damaged"),
        (b"PAR1 and so on PAR1", "a.parquet: this is not a Parquet file, or it is damaged"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_row(tmp_path, content, message):
    path = tmp_path / "a.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write(path, content)
    with pytest.raises(InputError, match=message):
        list(read_records(str(path)))


def test_a_file_that_is_cut_off_or_altered_is_damaged(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, {"text": [f"text {n}" for n in range(1000)]}, compression="gzip")
    data = path.read_bytes()
    for damaged in (data[:-20], data[: len(data) // 2], data[:1000] + bytes(500) + data[1500:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="this is not a Parquet file, or it is damaged"):
            list(read_records(str(path)))


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([1, None], pa.uint8()), [1, None]),
        (pa.array([True, None]), [True, None]),
        (pa.array([0.5, float("-inf"), None]), [0.5, float("-inf"), None]),
        (pa.array([datetime.date(2020, 2, 29), None]), ["2020-02-29", None]),
        (pa.array([1_500_000_000_123_456_789, None], pa.timestamp("ns")), ["2017-07-14T02:40:00.123456789", None]),
        (pa.array([1_500_000_000], pa.timestamp("s", "Europe/Berlin")), ["2017-07-14T04:40:00+0200"]),
        (pa.array([1, None], pa.time64("us")), ["00:00:00.000001", None]),
        (pa.array([1500, None], pa.duration("ms")), [1500, None]),
        (pa.array([Decimal("1.10"), None]), ["1.10", None]),
        (pa.array([b"\xff\x00", None]), ["/wA=", None]),
        (pa.array([b"ab"], pa.binary(2)), ["YWI="]),
        (pa.array(["a", "b", None, "a"]).dictionary_encode(), ["a", "b", None, "a"]),
        (pa.array([[b"a", None], None, []]), [["YQ==", None], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
        (pa.array([{"a": 1, "b": [Decimal("1.5")]}, None]), [{"a": 1, "b": ["1.5"]}, None]),
        (pa.array([{"a": 1}, None, {"a": 3}])[1:], [None, {"a": 3}]),
        (pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8())), [[{"key": "k", "value": 1}], None]),
        (pa.nulls(2), [None, None]),
    ],
)
def test_values_as_json_has_them(array, values):
    assert list(map(json_value, array)) == values


def test_a_file_is_not_read_as_a_whole(tmp_path):
    """Python's own memory, which is where texts end up."""
    path = write(tmp_path / "a.parquet", {"text": [f"{n} " + "x" * 1000 for n in range(10_000)]})
    tracemalloc.start()
    try:
        assert sum(1 for _ in read_records(path)) == 10_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000  # all texts have 10 MB


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the size of a process is read from /proc")
def test_row_groups_are_not_kept(tmp_path):
    """pyarrow can keep what it has read of each row group, outside of Python's memory and of its own pool."""
    rng = random.Random(0)
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(tmp_path / "a.parquet", schema) as writer:
        for _ in range(60):
            writer.write_table(pa.table({"text": [rng.randbytes(500).hex() for _ in range(1000)]}))
    assert (tmp_path / "a.parquet").stat().st_size > 50_000_000

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    sizes = [resident() for n, _ in enumerate(read_records(str(tmp_path / "a.parquet"))) if n % 1000 == 0]
    assert max(sizes) - sizes[20] < 15_000_000


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


def nested(depth):
    return [nested(depth - 1)] if depth else 1


def values_of(name, values):
    return [Record(f"line {number}", "x", {name: value}) for number, value in enumerate(values, 1)]


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
        (pa.decimal128(10, 2), DOUBLE, None),  # a double does not have all of its digits
        (pa.list_(pa.decimal128(10, 2)), pa.list_(DOUBLE), None),
        (pa.decimal128(10, 2), pa.null(), pa.decimal128(10, 2)),
        (STRING, pa.binary(), None),
        (STRING, pa.string_view(), LARGE_STRING),
        (
            pa.struct({"d": pa.decimal128(10, 2), "n": pa.int32()}),
            pa.struct({"d": pa.decimal128(10, 2), "n": pa.int64()}),
            pa.struct({"d": pa.decimal128(10, 2), "n": pa.int64()}),
        ),
        (pa.int64(), STRING, None),
        (pa.bool_(), pa.int8(), None),
    ],
)
def test_a_common_type_loses_nothing(a, b, common):
    for first, second in ((a, b), (b, a)):
        with pytest.raises(TypeError) if common is None else nullcontext():
            assert common_type(first, second) == common


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


def test_rows_with_different_columns(tmp_path):
    rows = [{"a": 1}, {"a": 2, "b": "x,y"}]
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, rows)
    assert (tmp_path / "t.csv").read_text() == 'a,b\n1,\n2,"x,y"\n'
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x,y"}]


@pytest.mark.parametrize("values", [[1, "a"], [1, 2**64], [2**60 + 1, 0.5], [{}]])
def test_rows_that_parquet_cannot_hold(tmp_path, values):
    with pytest.raises(InputError, match=r"A column has values .* Write .*t\.csv"):
        write_table(tmp_path / "t.parquet", [{"a": value} for value in values])
    assert not list(tmp_path.iterdir())


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


NAMES = Names("pll", ["word_l2r"])
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


@pytest.fixture
def scored():
    """Three texts with scores made up for the purpose, the last with nothing to score. Gives them fields."""
    install(NAMES)
    nlp, docs = spacy.blank("en"), []
    for text, scores in [("A cat", [-1, -2]), ("A dog", [-4, -2]), ("", [])]:
        doc = nlp.make_doc(text)
        for token, score in zip(doc, scores):
            token._.pll = token._.pll_word_l2r = float(score)
            token._.pll_pieces = 1
        places = list(range(len(doc)))
        record = PieceRecord(text.split(), places, places, places, places, {"word_l2r": places})
        doc._.pll_data = record.to_dict()
        docs.append(doc)

    def make(fields):
        return [ScoredText(n, doc, own, len(doc)) for n, (doc, own) in enumerate(zip(docs, fields))]

    return make


def whole_file(output, texts):
    """The file if each text is a part of its own."""
    parts = [output.encode([[text]]) for text in texts]
    return pq.ParquetFile(io.BytesIO(b"".join(output.merge(parts))))


def test_other_columns_keep_their_types_and_values(scored):
    """Read and written as a run does it: what Arrow reads is what it read before."""
    source = io.BytesIO()
    pq.write_table(pa.table({"text": ["A cat", "A dog", ""], **TYPES}), source, row_group_size=2)
    before = pq.read_table(io.BytesIO(source.getvalue()))
    source.seek(0)
    fields = [row for _, row in read_parquet(source, "in.parquet", ReadOptions(typed=True))]
    after = whole_file(
        ParquetTable(TextRows("text", NAMES), dict(zip(before.schema.names, before.schema.types))), scored(fields)
    ).read()
    assert after.schema.names == ["text", *TYPES, "pll_word_l2r", "pll_pieces", "pppl"]
    for name in TYPES:
        assert after.schema.field(name).type == before.schema.field(name).type, name
        # NaN does not equal NaN, except in Arrow's own comparison of text
        assert after[name].combine_chunks().to_string() == before[name].combine_chunks().to_string(), name
    assert after["pll_word_l2r"].to_pylist() == [-3.0, -6.0, None] and after["pll_pieces"].to_pylist() == [2, 2, 0]
    added = {"pll_word_l2r": pa.float64(), "pll_pieces": pa.int64(), "pppl": pa.float64()}
    assert {name: after.schema.field(name).type for name in added} == added


def test_a_row_per_token_repeats_the_columns_of_its_text(scored):
    types = {"text": pa.large_string(), "n": pa.int8(), "l": pa.list_(pa.string())}
    texts = scored([{"n": pa.scalar(1, pa.int8()), "l": ["x"]}, {"l": None}, {"n": 3}])
    rows = whole_file(ParquetTable(TokenRows("text", NAMES), types), texts).read()
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
    for rows in (TextRows, TokenRows):
        output = ParquetTable(rows("text", NAMES), {"text": pa.string()})
        for file in (whole_file(output, [text]), whole_file(output, [])):
            assert file.schema_arrow.field("pll_word_l2r").type == pa.float64()
    assert whole_file(ParquetTable(TextRows("text", NAMES), {"text": pa.string()}), []).read().num_rows == 0


@pytest.mark.parametrize("value", [2**53 + 1, pa.scalar(2**53 + 1), [0.5, 2**53 + 1]])
def test_a_whole_number_that_no_float_holds_is_not_rounded(scored, value):
    type_ = pa.list_(DOUBLE) if isinstance(value, list) else DOUBLE
    types = {"text": pa.string(), "n": type_}
    with pytest.raises(InputError, match="'n' is no .*double.*: Integer value 9007199254740993 "):
        ParquetTable(TextRows("text", NAMES), types).encode([scored([{"n": value}])])


@pytest.mark.parametrize("value", [nested(90), {"a": [2**70, 0.5, None], "b": {}}, ("é",), []])
def test_lists_and_objects_of_json_are_text(scored, value):
    types = columns_of({}, *values_of("n", [value])).types()
    table = whole_file(ParquetTable(TextRows("text", NAMES), types), scored([{"n": value}, {"n": None}])).read()
    first, second = table["n"].to_pylist()
    assert second is None and json.loads(first) == (list(value) if isinstance(value, tuple) else value)


def test_lists_of_two_sources_are_two_types():
    """What is a list in a Parquet file, and text where JSON lines had it, cannot be one column."""
    with pytest.raises(InputError, match=r"two types, list<.*> \(.*a.parquet\) and list or object \(line 1\)"):
        columns_of({"a.parquet": pa.schema({"text": STRING, "n": pa.list_(STRING)})}, *values_of("n", [["a"]]))


def test_parts_become_row_groups_of_a_size(scored, monkeypatch):
    output = ParquetTable(TextRows("text", NAMES), {"text": pa.string()})
    texts = scored([{}, {}, {}])
    assert whole_file(output, texts).num_row_groups == 1
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 2)
    file = whole_file(output, texts)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [2, 1]
    monkeypatch.setattr(parquet, "BYTES_PER_GROUP", 1)
    assert whole_file(output, texts).num_row_groups == 3


def test_merging_holds_no_more_than_a_row_group(scored, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 1)
    output = ParquetTable(TextRows("text", NAMES), {"text": pa.string()})
    parts = [output.encode([[text]]) for text in scored([{}, {}, {}])]
    read = []
    blocks = output.merge(read.append(n) or part for n, part in enumerate(parts))
    next(blocks)
    assert read == [0]


def test_the_format_of_a_file():
    assert find_format("out.PARQUET", TokenRows) is ParquetTable
