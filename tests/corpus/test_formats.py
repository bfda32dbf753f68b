import csv
import io
import json
import math
import sys

import pytest
import spacy
import srsly
from hypothesis import example, given
from hypothesis import strategies as st
from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from spacy_pll import InputError
from spacy_pll.corpus.columns import check_fields
from spacy_pll.corpus.formats import (
    FORMATS,
    CsvTable,
    JsonLines,
    SpacyDocs,
    TsvTable,
    to_csv,
)
from spacy_pll.corpus.readers import FIELDS, READERS
from spacy_pll.corpus.records import FileOptions, ReadOptions
from spacy_pll.corpus.runs import find_format
from spacy_pll.tables.rows import ScoredText, TextRows, TokenRows

from ..columns import added, rows_of
from ..made_scores import set_scores

# Python 3.10 reads no table with a null character.
any_text = st.text(st.characters(codec="utf-8", exclude_characters="\0" if sys.version_info < (3, 11) else ""))
NAMES = rows_of("texts").names


@pytest.fixture
def scored():
    """Three texts with scores made up for the purpose, the last with nothing to score."""
    nlp, out = spacy.blank("en"), []
    for number, (text, scores, fields) in enumerate(
        [("A cat", [-1, -2], {"n": 1}), ("A dog", [-4, -2], {}), ("", [], {})]
    ):
        doc = set_scores(nlp.make_doc(text), {"word_l2r": [*map(float, scores)]})
        out.append(ScoredText.of(doc, NAMES, number, fields))
    return out


def whole_file(output, scored):
    """The bytes of the file if each text is a part of its own."""
    parts = [output.encode([text]) for text in scored]
    return b"".join(output.merge(parts))


def test_json_lines(scored):
    lines = whole_file(JsonLines(rows_of("texts"), ["n"]), scored).splitlines()
    first, _, last = map(json.loads, lines)
    own = {"text": "A cat", "n": 1, "pll_word_l2r": -3.0, "pll_pieces": 2, "pppl": pytest.approx(math.exp(1.5))}
    assert list(first) == ["text", "n", *added()] and {name: first[name] for name in own} == own
    own = {"text": "", "pll_word_l2r": None, "pll_pieces": 0, "pppl": None}
    assert list(last) == ["text", *added()] and {name: last[name] for name in own} == own


def test_a_csv_table_has_one_header_and_a_column_for_each_field(scored):
    table = whole_file(CsvTable(rows_of("texts"), ["n"]), scored).decode("utf8")
    rows = list(csv.reader(io.StringIO(table)))
    assert rows[0] == ["text", "n", *added()]
    assert [row[:4] for row in rows[1:]] == [["A cat", "1", "-3.0", "2"], ["A dog", "", "-6.0", "2"], ["", "", "", "0"]]


@pytest.mark.parametrize("table", [CsvTable, TsvTable])
@given(
    text=any_text,
    other=any_text,
    name=any_text.filter(lambda name: name not in ("text", *rows_of("texts").types)),
)
@example(text="a\rb", other="\r", name="\r")
@example(text="", other="NaN", name="")
def test_any_text_in_a_table_is_read_back(table, text, other, name):
    rows, vocab = rows_of("texts"), Vocab()
    texts = [text, other, text + "\r\n", "\r" + other]
    docs = [Doc(vocab, words=[text] * bool(text), spaces=[False] * bool(text)) for text in texts]
    scored = [ScoredText.of(doc, NAMES, i, {name: other}) for i, doc in enumerate(docs)]
    data = whole_file(table(rows, [name]), scored)
    read = READERS[".csv"](
        io.BytesIO(data), "out", ReadOptions(files=FileOptions(delimiter=table.delimiter, na_as_text=True))
    )
    assert [(record.text, record.fields[name]) for record in read] == [(text, other) for text in texts]


def test_docs_keep_scores_and_fields(scored):
    data = whole_file(SpacyDocs(rows_of("texts"), ["n"]), scored)
    docs = list(DocBin().from_bytes(data).get_docs(spacy.blank("en").vocab))
    assert [doc._.pll for doc in docs] == [-3.0, -6.0, None]
    assert [doc.user_data.get(FIELDS) for doc in docs] == [{"n": 1}, None, None]


def test_the_format_of_a_file():
    for ending, output_format in FORMATS.items():
        assert find_format(f"out{ending.upper()}", TextRows) is output_format
    for compressed in ("out.jsonl.gz", "out.JSONL.GZ", "out.jsonl.xz"):
        assert find_format(compressed, TextRows) is JsonLines
    assert find_format("-", TokenRows) is JsonLines
    for path, rows, message in [
        (
            "out.xlsx",
            TextRows,
            "must end in .jsonl, .csv, .tsv, .spacy, .parquet, or be - for JSON lines. It is 'out.xlsx'",
        ),
        ("out.spacy.gz", TextRows, "must end in .jsonl"),
        ("out.spacy", TokenRows, "Write the table of texts to it"),
    ]:
        with pytest.raises(InputError, match=message):
            find_format(path, rows)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": "a\ud800"}, "in, line 1: 'x' is 'a.ud800', which cannot be written: .* surrogates not allowed"),
        ({"x": [{"y": "a\ud800"}]}, "'x' is .* surrogates not allowed"),
        ({"x": {"a\ud800": 1}}, "'x' is .* surrogates not allowed"),
        ({"a\ud800": 1}, "'a.ud800' is 1, .* surrogates not allowed"),
        ({"x": nested(10_000)}, r"'x' is \[+...\]+, which cannot be written: .*recursion"),
    ],
)
@pytest.mark.parametrize("more", [(), (srsly.msgpack_dumps,)])
def test_what_cannot_be_written_is_named(fields, message, more):
    with pytest.raises(InputError, match=message):
        check_fields(fields, "in, line 1", *more)


def test_formats_hold_different_values():
    check_fields({"x": [None, True, 1.5, math.nan, 2**70, {"y": nested(90)}]}, "in, line 1")
    check_fields({"x": [b"bytes", 2**64 - 1, -(2**63), nested(90)]}, "in, line 1", srsly.msgpack_dumps)
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(InputError, match="'x' is .*[0-9].*, which cannot be written"):
            check_fields({"x": [value]}, "in, line 1", srsly.msgpack_dumps)
    with pytest.raises(InputError, match="in, line 1: 'x' is b'bytes', .* not JSON serializable"):
        check_fields({"x": b"bytes"}, "in, line 1")


def test_a_value_without_a_column_is_not_lost():
    with pytest.raises(ValueError, match="no such columns: {'b'}"):
        to_csv([{"a": 1}, {"a": 2, "b": 3}], ["a"], ",")
