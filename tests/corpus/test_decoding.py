import json
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import InputError
from spacy_pll.corpus.columns import check_fields
from spacy_pll.corpus.decoding import writable, writable_fields

from .reading import read_input, read_records

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
    records = list(read_records(tmp_path / name))
    assert [record.text for record in records] == [row[0] for row in ROWS[1:]]
    assert name == "a.txt" or [record.fields for record in records] == [{"n": "1"}, {"n": "2"}]


@given(st.lists(st.text(st.sampled_from("ab\r\u2028 "), min_size=1), min_size=1, max_size=4))
def test_carriage_returns_within_the_lines_of_a_file_are_text(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_text("".join(f"{line}\n" for line in lines), newline="")
    assert [record.text for record in read_records(path)] == [line.rstrip("\r") for line in lines]


def test_a_carriage_return_within_a_row_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("text,n\na\rb,1\n", newline="")
    with pytest.raises(InputError, match="line 2: a carriage return .*quotation"):
        list(read_records(tmp_path / "a.csv"))


def test_what_is_written_of_a_lone_surrogate():
    for value in ("ä", 3, None, ["ä"], {"a": 1.5}):
        assert writable(value) is value
    assert writable("a\udcff") == "a\\udcff" and writable(["\ud800", 1]) == ["\\ud800", 1]
    assert writable({"a\udcff": {"b": ["\ud800"]}}) == {"a\\udcff": {"b": ["\\ud800"]}}
    both = {"a\ud800": 1, "a\\ud800": 2}  # which would have one name
    assert json.loads(writable(both)) == both and writable_fields(both) is both
    assert writable_fields({"a\ud800": "\udfff", "n": 1}) == {"a\\ud800": "\\udfff", "n": 1}
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    assert writable(deep) is deep  # which cannot be written either


# Texts in which half a character may stand, anywhere in what JSON has.
halves = st.text(st.sampled_from("ab \ud83d\udcff\\"), max_size=5)
values = st.recursive(
    st.none() | st.integers() | halves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(halves, inner, max_size=3),
    max_leaves=6,
)
rows = st.fixed_dictionaries(
    {"text": halves, "meta": st.fixed_dictionaries({"text": halves, "n": values}), "o": values}
)


@given(st.lists(rows, min_size=1, max_size=5), st.sampled_from(["text", "meta.text"]), st.sampled_from(["o", None]))
def test_half_a_character_in_any_field_is_skipped_on_request(tmp_path_factory, objects, column, context):
    """A text beside it is read, but where it stands in the context of the text; and all can be written."""
    path = tmp_path_factory.mktemp("halves") / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in objects))
    records = [*read_input(path, column, context_column=context, skip_errors=True)]
    for row, record in zip(objects, records, strict=True):
        text = row["text"] if column == "text" else row["meta"]["text"]
        beside = row["o"] if context else None
        is_bad = not is_valid([text, beside]) or beside is not None and not isinstance(beside, str)
        assert bool(record.problem) == is_bad
        assert record.text == text or is_bad
        check_fields(record.fields, record.location)
        assert record.fields["meta"]["n"] == row["meta"]["n"] or not is_valid(row["meta"]["n"])
        assert record.fields["o"] == row["o"] or not is_valid(row["o"])


def is_valid(value):
    try:
        json.dumps(value, ensure_ascii=False).encode("utf8")
    except UnicodeEncodeError:
        return False
    return True


@pytest.mark.parametrize("header", [b"text,n\xff", b"n\xff,text"])
def test_a_header_with_a_byte_that_is_not_valid(tmp_path, header):
    (tmp_path / "a.csv").write_bytes(header + b"\na,b\n")
    names: list[str] = []
    found = {"found": lambda _, columns: names.extend(columns)}
    [record] = read_input(tmp_path / "a.csv", skip_errors=True, **found)
    assert "n\\udcff" in names and [*record.fields] == ["n\\udcff"] and not record.problem


@pytest.mark.parametrize(("name", "rest"), [("a.txt", "line 2"), ("a.csv", "line 3"), ("a.jsonl", "line 2")])
def test_a_line_with_a_byte_that_is_not_valid_is_skipped_on_request(tmp_path, name, rest):
    lines = {
        "a.txt": [b"One.", b"bad \xff byte", b"Two."],
        "a.csv": [b"text,n", b"One.,1", b"bad \xff byte,2", b"Two.,3"],
        "a.jsonl": [b'{"text": "One."}', b'{"text": "x", "n": "bad \xff byte"}', b'{"text": "Two."}'],
    }[name]
    (tmp_path / name).write_bytes(b"\n".join(lines))
    with pytest.raises(InputError, match=f"{rest}: not valid UTF-8 .*0xff"):
        list(read_records(tmp_path / name))
    with pytest.raises(InputError, match=f"{rest}: not valid UTF-8 .* give `skip_errors=True`"):
        list(read_input(tmp_path / name))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, bad, two = read_records(tmp_path / name, skip_errors=True)
    assert (one.text, two.text) == ("One.", "Two.") and bad.location.endswith(rest)
    assert bad.problem == "not valid UTF-8 (it has the byte 0xff)."
    assert "bad \\udcff byte" in str(bad.text or bad.fields["text"]).replace("\\\\", "\\")
