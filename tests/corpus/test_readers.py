import bz2
import gzip
import json
import lzma

import pytest
import spacy
from spacy.tokens import DocBin

from spacy_pll.corpus.readers import InputError, Record, list_files, read_records, read_rows


def test_a_line_of_text_is_a_record(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffOne.\r\n\nA\u2028line separator is text.".encode())
    assert list(read_records(str(path))) == [
        Record(f"{path}, line 1", "One.", {}),
        Record(f"{path}, line 2", "", {}),
        Record(f"{path}, line 3", "A\u2028line separator is text.", {}),
    ]


def test_other_columns_are_fields(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "line": "x", "tags": ["a"]}\n\n{"line": "y"}\n')
    (tmp_path / "a.csv").write_text('id,line\n1,"x, y\nz"\n')
    (tmp_path / "a.tsv").write_text("line\tid\nx\t1\n")
    records = list(read_records(str(tmp_path / "a.jsonl"), "line"))
    assert [(record.text, record.fields) for record in records] == [("x", {"id": 1, "tags": ["a"]}), ("y", {})]
    assert records[1].location.endswith("a.jsonl, line 3")
    for name, text in (("a.csv", "x, y\nz"), ("a.tsv", "x")):
        [record] = read_records(str(tmp_path / name), "line")
        assert (record.text, record.fields) == (text, {"id": "1"})


def test_docs(tmp_path):
    nlp = spacy.blank("en")
    DocBin(docs=[nlp("A cat."), nlp("A dog.")]).to_disk(tmp_path / "a.spacy")
    records = list(read_records(str(tmp_path / "a.spacy"), vocab=nlp.vocab))
    assert [record.text.text for record in records] == ["A cat.", "A dog."]
    assert all(record.text.vocab is nlp.vocab for record in records)


def test_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("two\n")
    (tmp_path / "sub" / "a.jsonl").write_text('{"text": "one", "file": "its own"}\n')
    (tmp_path / "notes.md").write_text("not read")
    assert [(record.text, record.fields) for record in read_records(str(tmp_path))] == [
        ("two", {"file": "b.txt"}),
        ("one", {"file": "its own"}),
    ]
    assert list_files(str(tmp_path / "b.txt")) == [tmp_path / "b.txt"]


@pytest.mark.parametrize(("ending", "module"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compressed_text_is_read_like_other_text(tmp_path, ending, module):
    contents = {
        "a.txt": "One.\nTwo.\n",
        "b.JSONL": '{"text": "Three."}\n',
        "c.csv": "text,n\nFour.,1\n",
        "d.tsv": "text\nFive.\n",
    }
    for name, text in contents.items():
        (tmp_path / (name + ending.upper())).write_bytes(module.compress(text.encode()))
    (tmp_path / f"e.spacy{ending}").write_bytes(b"not read")
    assert len(list_files(str(tmp_path))) == 4
    records = list(read_records(str(tmp_path)))
    assert [record.text for record in records] == ["One.", "Two.", "Three.", "Four.", "Five."]
    assert records[3].fields == {"file": f"c.csv{ending.upper()}", "n": "1"}
    path = tmp_path / f"a.txt{ending}"
    whole = module.compress("".join(f"Line {i}.\n" for i in range(9)).encode())
    for damaged in (whole[:-9], b"no compressed data", whole[:20] + b"\0\0\0\0" + whole[24:]):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"a.txt{ending}: the compressed file is damaged or incomplete"):
            list(read_records(str(path)))


def test_rows_with_all_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"good": "x", "bad": "y"}) + "\n")
    (tmp_path / "a.tsv").write_text("good\tbad\nx\ty\n")
    for path in tmp_path.iterdir():
        assert [row for _, row in read_rows(path)] == [{"good": "x", "bad": "y"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', r"a.jsonl, line 2: not valid JSON \("),
        ("a.jsonl", b'{"text": "x"}\n\n["x"]\n', "a.jsonl, line 3: this is a JSON list. Each line must be one"),
        (
            "a.jsonl",
            b'{"txt": "x"}\n',
            "line 1: there is no column 'text'. The columns are: 'txt'.* --column",
        ),
        ("a.jsonl", b'{"text": 3}\n', "a.jsonl, line 1: 'text' must be text. It is 3"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl, line 1: 'text' has a lone surrogate"),
        ("a.csv", b"sentence\nx\n", "a.csv, line 2: there is no column 'text'. The columns are: 'sentence'"),
        ("a.csv", b"text,n\nx\n", "a.csv, line 2: the row has 1 fields, but the header has 2"),
        ("a.csv", b"text,text\nx,y\n", "a.csv, line 1: two columns have the same name"),
        ("a.csv", b'text\n"x\n', "a.csv, line 2: unexpected end of data"),
        ("a.txt", b"good\nbad \xff byte\n", r"a.txt, line 2: not valid UTF-8 \(byte 5 of the line is 0xff\)"),
        ("a.csv", b"text\nbad \xff byte\n", "a.csv, line 2: not valid UTF-8"),
        ("a.spacy", b"no docs", "a.spacy: this file is damaged, or was not written by DocBin.to_disk"),
        ("a.gz", b"", "the format '.gz' cannot be read"),
        ("a.docx", b"", "the format '.docx' cannot be read. The known formats are: .txt"),
    ],
)
def test_unreadable_input_is_named_with_its_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_records(str(tmp_path / name)))


def test_input_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="There is no file or folder"):
        list(read_records(str(tmp_path / "none.txt")))
    with pytest.raises(InputError, match="contains no file that ends in"):
        list(read_records(str(tmp_path)))
