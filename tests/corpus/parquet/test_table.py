import datetime
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import spacy

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import install
from spacy_pll.corpus.formats import find_format
from spacy_pll.corpus.parquet import table
from spacy_pll.corpus.parquet.reader import read_records
from spacy_pll.corpus.parquet.table import ParquetTable
from spacy_pll.corpus.readers import Record
from spacy_pll.corpus.rows import ScoredText, TextRows, TokenRows

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
        doc._.pll_data = {"pieces": text.split(), "token": list(range(len(doc)))}
        docs.append(doc)

    def make(fields):
        return [ScoredText(n, doc, Record("", "", own), len(doc)) for n, (doc, own) in enumerate(zip(docs, fields))]

    return make


def whole_file(output, texts):
    """The file if each text is a part of its own."""
    parts = [b"".join(output.encode([[text]])) for text in texts]
    return pq.ParquetFile(io.BytesIO(b"".join(output.merge(parts))))


def test_other_columns_keep_their_types_and_values(scored):
    """Read and written as a run does it: what Arrow reads is what it read before."""
    source = io.BytesIO()
    pq.write_table(pa.table({"text": ["A cat", "A dog", ""], **TYPES}), source, row_group_size=2)
    before = pq.read_table(io.BytesIO(source.getvalue()))
    source.seek(0)
    fields = [record.fields for record in read_records(source, "in.parquet", "text", typed=True)]
    after = whole_file(ParquetTable(TextRows("text", NAMES), before.schema), scored(fields)).read()
    assert after.schema.names == ["text", *TYPES, "pll_word_l2r", "pll_pieces", "pppl"]
    for name in TYPES:
        assert after.schema.field(name).type == before.schema.field(name).type, name
        # NaN does not equal NaN, except in Arrow's own comparison of text
        assert after[name].combine_chunks().to_string() == before[name].combine_chunks().to_string(), name
    assert after["pll_word_l2r"].to_pylist() == [-3.0, -6.0, None] and after["pll_pieces"].to_pylist() == [2, 2, None]
    added = {"pll_word_l2r": pa.float64(), "pll_pieces": pa.int64(), "pppl": pa.float64()}
    assert {name: after.schema.field(name).type for name in added} == added


def test_a_row_per_token_repeats_the_columns_of_its_text(scored):
    schema = pa.schema({"text": pa.large_string(), "n": pa.int8(), "l": pa.list_(pa.string())})
    texts = scored([{"n": pa.scalar(1, pa.int8()), "l": ["x"]}, {"l": None}, {"n": 3}])
    rows = whole_file(ParquetTable(TokenRows("text", NAMES), schema), texts).read()
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
    schema = pa.schema({"text": pa.string()})
    for rows in (TextRows, TokenRows):
        output = ParquetTable(rows("text", NAMES), schema)
        for file in (whole_file(output, [text]), whole_file(output, [])):
            assert file.schema_arrow.field("pll_word_l2r").type == pa.float64()
    assert whole_file(ParquetTable(TextRows("text", NAMES), schema), []).read().num_rows == 0


def test_parts_become_row_groups_of_a_size(scored, monkeypatch):
    output = ParquetTable(TextRows("text", NAMES), pa.schema({"text": pa.string()}))
    texts = scored([{}, {}, {}])
    assert whole_file(output, texts).num_row_groups == 1
    monkeypatch.setattr(table, "ROWS_PER_GROUP", 2)
    file = whole_file(output, texts)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [2, 1]
    monkeypatch.setattr(table, "BYTES_PER_GROUP", 1)
    assert whole_file(output, texts).num_row_groups == 3


def test_merging_holds_no_more_than_a_row_group(scored, monkeypatch):
    monkeypatch.setattr(table, "ROWS_PER_GROUP", 1)
    output = ParquetTable(TextRows("text", NAMES), pa.schema({"text": pa.string()}))
    parts = [b"".join(output.encode([[text]])) for text in scored([{}, {}, {}])]
    read = []
    blocks = output.merge(read.append(n) or part for n, part in enumerate(parts))
    next(blocks)
    assert read == [0]


def test_the_format_of_a_file():
    assert find_format("out.PARQUET", TokenRows) is ParquetTable
