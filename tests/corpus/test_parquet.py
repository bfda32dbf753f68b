import datetime
import io
import random
import resource
import tracemalloc
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spacy_pll import InputError
from spacy_pll.corpus import parquet
from spacy_pll.corpus.records import ReadOptions, Record

from .reading import read_input, read_records, read_rows, write_table


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
    assert list(read_records(tmp_path / "b.parquet")) == []


def test_a_folder_of_several_formats(tmp_path):
    write(tmp_path / "b.parquet", {"text": ["two"], "n": [2]})
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "c").mkdir()
    write(tmp_path / "c" / "a.parquet", {"text": ["three"], "file": ["its own"]})
    assert [(record.text, record.fields) for record in read_records(tmp_path)] == [
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
    assert [row for _, row in parquet.read_table(Pipe(path.read_bytes()), "standard input", ReadOptions())] == [
        {"text": "x"}
    ]


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
        (b"", "a.parquet: .* not a Parquet file"),
        (b"PAR1 and so on PAR1", "a.parquet: .* not a Parquet file"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_with_its_row(tmp_path, content, message):
    path = tmp_path / "a.parquet"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write(path, content)
    with pytest.raises(InputError, match=message):
        list(read_records(path))


@pytest.mark.parametrize("typed", [False, True])
def test_what_is_not_valid_utf_8_is_skipped_on_request(tmp_path, typed):
    how, path = {"typed": typed, "skip_errors": True}, tmp_path / "a.parquet"
    write(path, {"text": SURROGATE, "n": [1, 2]})
    good, bad = read_input(path, **how)
    assert good.text == "x" and not good.problem and bad.problem.startswith("'text' has a lone surrogate")
    nested = pa.StructArray.from_arrays([SURROGATE, pa.array(["", None])], ["a", "b"])
    write(path, {"text": ["x", "y"], "s": SURROGATE} if typed else {"text": ["x", "y"], "s": SURROGATE, "m": nested})
    records = [*read_input(path, **how)]
    assert [one.text for one in records if not one.problem] == ["x", "y"]
    bad = "\\udced\\udca0\\udc80y"
    if typed:
        assert [one.fields["s"].as_py() for one in records] == ["x", bad]
        with pytest.raises(InputError, match="a.parquet, row 2: 's' is not valid UTF-8"):
            list(read_input(path, typed=True))
        write(path, {"text": ["x", "y"], "s": SURROGATE, "m": nested})
        with pytest.raises(InputError, match="a.parquet, row 2: 'm' is not valid UTF-8"):
            list(read_input(path, **how))
        return
    assert [one.fields for one in records] == [
        {"s": "x", "m": {"a": "x", "b": ""}},
        {"s": bad, "m": {"a": bad, "b": None}},
    ]
    good, bad = read_input(path, "m.a", **how)
    assert good.text == "x" and not good.problem and "has a lone surrogate" in bad.problem
    good, bad = read_input(path, context_column="s", **how)
    assert not good.problem and bad.problem and "s" in bad.problem


def test_a_file_that_is_cut_off_or_altered_is_damaged(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, {"text": [f"text {n}" for n in range(1000)]}, compression="gzip")
    data = path.read_bytes()
    for damaged in (data[:-20], data[: len(data) // 2], data[:1000] + bytes(500) + data[1500:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="is not a Parquet file"):
            list(read_records(path))


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
    assert list(map(parquet.json_value, array)) == values


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
        for _ in range(120):
            writer.write_table(pa.table({"text": [rng.randbytes(500).hex() for _ in range(1000)]}))
    assert (tmp_path / "a.parquet").stat().st_size > 100_000_000

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    sizes = [resident() for n, _ in enumerate(read_records(tmp_path / "a.parquet")) if n % 1000 == 0]
    assert max(sizes) - sizes[20] < 30_000_000  # 55 MB where they are kept


STRING, LARGE_STRING, DOUBLE = pa.string(), pa.large_string(), pa.float64()


def test_python_types_in_arrow():
    assert parquet.arrow_type(float) == pa.float64() and parquet.arrow_type(int) == pa.int64()
    assert parquet.arrow_type(list[list[str]]) == pa.list_(pa.list_(pa.string()))


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
            assert parquet.common_type(first, second) == common


def test_rows_with_different_columns(tmp_path):
    rows = [{"a": 1}, {"a": 2, "b": "x,y"}]
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, rows)
    assert (tmp_path / "t.csv").read_text() == 'a,b\n1,\n2,"x,y"\n'
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [{"a": 1, "b": None}, {"a": 2, "b": "x,y"}]


@pytest.mark.parametrize("values", [[1, "a"], [1, 2**64], [2**60 + 1, 0.5], [["a"], "a"], [{}, 1]])
def test_rows_that_parquet_cannot_hold(tmp_path, values):
    with pytest.raises(InputError, match=r"A column has values .* Write .*t\.csv"):
        write_table(tmp_path / "t.parquet", [{"a": value} for value in values])
    assert not list(tmp_path.iterdir())
