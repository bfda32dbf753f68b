import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.vocab import Vocab

from spacy_pll.corpus.decoding import writable
from spacy_pll.corpus.inputs import Input
from spacy_pll.corpus.readers import read_records
from spacy_pll.errors import InputError

ROWS = [["text", "n"], ["The cats sleep.", "1"], ["She left, then.", "2"]]


@pytest.mark.parametrize("last", ["\r", ""])
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("a.txt", [row[0] for row in ROWS[1:]]),
        ("a.csv", [f'"{a}","{b}"' for a, b in ROWS]),
        ("a.csv", [";".join(row) for row in ROWS]),
        ("a.tsv", ["\t".join(row) for row in ROWS]),
        ("a.jsonl", [json.dumps(dict(zip(ROWS[0], row))) for row in ROWS[1:]]),
        ("a.json", [json.dumps([dict(zip(ROWS[0], row)) for row in ROWS[1:]])]),
    ],
)
def test_carriage_returns_alone_end_lines(tmp_path, name, lines, last):
    (tmp_path / name).write_text("\r".join(lines) + last, newline="")
    records = list(read_records(str(tmp_path / name)))
    assert [record.text for record in records] == [row[0] for row in ROWS[1:]]
    assert name == "a.txt" or [record.fields for record in records] == [{"n": "1"}, {"n": "2"}]


@given(st.lists(st.text(st.sampled_from("ab\r\u2028 "), min_size=1), min_size=1, max_size=4))
def test_carriage_returns_within_the_lines_of_a_file_are_text(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_text("".join(f"{line}\n" for line in lines), newline="")
    assert [record.text for record in read_records(str(path))] == [line.rstrip("\r") for line in lines]


def test_a_carriage_return_within_a_row_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("text,n\na\rb,1\n", newline="")
    with pytest.raises(InputError, match="line 2: a carriage return stands in the middle of a row. Put quotation"):
        list(read_records(str(tmp_path / "a.csv")))


def test_what_is_written_of_a_lone_surrogate():
    for value in ("ä", 3, None, ["ä"], {"a": 1.5}):
        assert writable(value) is value
    assert writable("a\udcff") == "a\\udcff" and writable(["\ud800"]) == '["\\ud800"]'


@pytest.mark.parametrize(("name", "rest"), [("a.txt", "line 2"), ("a.csv", "line 3"), ("a.jsonl", "line 2")])
def test_a_line_with_a_byte_that_is_not_valid_is_skipped_on_request(tmp_path, name, rest):
    lines = {
        "a.txt": [b"One.", b"bad \xff byte", b"Two."],
        "a.csv": [b"text,n", b"One.,1", b"bad \xff byte,2", b"Two.,3"],
        "a.jsonl": [b'{"text": "One."}', b'{"text": "x", "n": "bad \xff byte"}', b'{"text": "Two."}'],
    }[name]
    (tmp_path / name).write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=f"{rest}: not valid UTF-8 .*0xff"):
        list(read_records(str(tmp_path / name)))
    with pytest.raises(InputError, match=f"{rest}: not valid UTF-8 .* give `skip_errors=True`"):
        list(Input(str(tmp_path / name)).records(Vocab()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, bad, two = read_records(str(tmp_path / name), skip_errors=True)
    assert (one.text, two.text) == ("One.", "Two.") and bad.location.endswith(rest)
    assert bad.problem == "not valid UTF-8 (it has the byte 0xff)."
    assert "bad \\udcff byte" in str(bad.text or bad.fields["text"]).replace("\\\\", "\\")
