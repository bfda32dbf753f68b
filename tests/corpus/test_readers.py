import gc
import gzip
import io
import json
import os
import sys
import warnings

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_pll import InputError
from spacy_pll.compression import TEXT_FORMATS
from spacy_pll.corpus.readers import list_files
from spacy_pll.corpus.records import Record

from .reading import read_input, read_records, read_rows, read_texts


def test_a_line_of_text_is_a_record(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffOne.\r\n\nA\u2028line separator is text.".encode())
    assert list(read_records(path)) == [
        Record(f"{path}, line 1", "One.", {}),
        Record(f"{path}, line 2", "", {}),
        Record(f"{path}, line 3", "A\u2028line separator is text.", {}),
    ]


def test_other_columns_are_fields(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "line": "x", "tags": ["a"]}\n\n{"line": "y"}\n')
    (tmp_path / "a.csv").write_text('id,line\n1,"x, y\nz"\n')
    (tmp_path / "a.tsv").write_text("line\tid\nx\t1\n")
    records = list(read_records(tmp_path / "a.jsonl", "line"))
    assert [(record.text, record.fields) for record in records] == [("x", {"id": 1, "tags": ["a"]}), ("y", {})]
    assert records[1].location.endswith("a.jsonl, line 3")
    for name, text in (("a.csv", "x, y\nz"), ("a.tsv", "x")):
        [record] = read_records(tmp_path / name, "line")
        assert (record.text, record.fields) == (text, {"id": "1"})


def test_docs(tmp_path):
    nlp = spacy.blank("en")
    DocBin(docs=[nlp("A cat."), nlp("A dog.")]).to_disk(tmp_path / "a.spacy")
    records = list(read_records(tmp_path / "a.spacy", vocab=nlp.vocab))
    assert [record.text.text for record in records] == ["A cat.", "A dog."]
    assert all(record.text.vocab is nlp.vocab for record in records)


def test_a_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.txt").write_text("two\n")
    (tmp_path / "sub" / "a.jsonl").write_text('{"text": "one", "file": "its own"}\n')
    (tmp_path / "notes.md").write_text("not read")
    with pytest.warns(UserWarning, match="will not be read: 'notes.md'"):
        records = list(read_records(tmp_path))
    assert [(record.text, record.fields) for record in records] == [
        ("two", {"file": "b.txt"}),
        ("one", {"file": "its own"}),
    ]
    assert list_files(str(tmp_path / "b.txt")) == [tmp_path / "b.txt"]


@pytest.mark.parametrize("ending", TEXT_FORMATS)
@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-16-le", "utf-8-sig", "cp1252"])
def test_text_in_another_encoding(tmp_path, ending, encoding):
    """A byte of a newline may be part of another character (U+0A0A, in UTF-16 only), and other separators are text."""
    texts = ["Ünë\x85 \x0b.", "Zwei \u0a0a\u2028."] if encoding.startswith("utf") else ["Ünë.", "Zwei."]
    lines = [json.dumps({"text": text}) if ending in (".jsonl", ".json") else text for text in texts]
    header = ["text"] if ending in (".csv", ".tsv") else []
    path = tmp_path / f"a{ending}"
    path.write_bytes("".join(f"{line}\r\n" for line in [*header, *lines]).encode(encoding))
    assert [record.text for record in read_records(path, encoding=encoding)] == texts


@pytest.mark.parametrize(
    ("given", "used", "text", "message"),
    [
        ("latin1", "cp1252", "“Wait!” – no", "in latin1, U.0093 is .*In cp1252, .*“Wait!” –.*give `encoding='cp1252'`"),
        ("ISO-8859-1", "cp1252", "It’s.", "in ISO-8859-1, U.0092 is .*It’s.*give `encoding='cp1252'`"),
        ("latin-1", "utf-8", "“Wait!” – no", "in latin-1, U.0080 is.* In utf-8, .*“Wait.*give `encoding='utf-8'`"),
        ("latin2", "cp1250", "Šla „domů“.", "in latin2, U.008A is.* In cp1250, .*Šla.*give `encoding='cp1250'`"),
    ],
)
@pytest.mark.parametrize("ending", [".txt", ".csv", ".jsonl"])
def test_control_characters_of_an_encoding_like_that_of_windows(tmp_path, given, used, text, message, ending):
    """Once for each file, with the first line that has one. The tokenizer would drop them without a word."""
    head, row = {".txt": ("Ah.", "{}"), ".csv": ("text", '"{}"'), ".jsonl": ("", '{{"text": "{}"}}')}[ending]
    path = tmp_path / f"a{ending}"
    path.write_bytes("\n".join([head, row.format(text), row.format(text)]).encode(used))
    with pytest.warns(UserWarning, match=f"a{ending}, line 2: .*{message}") as warned:
        list(read_records(path, encoding=given))
    assert len(warned) == 1
    assert [record.text for record in read_records(path, encoding=used)][-1] == text  # and no warning


def test_control_characters_that_are_in_the_file(tmp_path):
    (tmp_path / "a.txt").write_bytes("One \x85 line \x81.\n".encode("latin-1"))  # cp1252 has no U+0081
    (tmp_path / "b.txt").write_bytes("One \x85 line.\n".encode())
    assert (
        len(
            [
                *read_records(tmp_path / "a.txt", encoding="latin-1"),
                *read_records(tmp_path / "b.txt"),
            ]
        )
        == 2
    )


def test_text_that_is_not_in_the_encoding(tmp_path):
    (tmp_path / "a.txt").write_bytes("One.\nTwo.\n".encode("utf-16") + b"\n")
    with pytest.raises(InputError, match="a.txt, after line 2: not valid UTF-16 .*truncated data.* another `encoding`"):
        list(read_records(tmp_path / "a.txt", encoding="utf-16"))
    with pytest.raises(InputError, match="after line 2: not valid UTF-16"):
        list(read_records(tmp_path / "a.txt"))
    (tmp_path / "b.txt").write_bytes("One line.\nTwo.\n".encode("utf-16-le"))  # without a mark
    with pytest.raises(InputError, match="b.txt, line 1: not valid UTF-8 .every other byte is 0.*utf-16le"):
        list(read_records(tmp_path / "b.txt"))


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('{"text": "One.", "text": "Two."}', "text"),
        ('{"text": "One.", "n": 1, "n": 1}', "n"),
        ('{"text": "One.", "about": [{"by": {"n": 1, "n": 2}}]}', "n"),
    ],
)
def test_a_key_that_is_there_twice(tmp_path, line, key):
    """Python keeps the last of them. An equal column in CSV is refused, too."""
    (tmp_path / "a.jsonl").write_text('{"text": "n", "about": {"text": [{"text": 1}, {"text": 2}]}}\n' + line + "\n")
    with pytest.raises(InputError, match=f"a.jsonl, line 2: the key '{key}' is there twice in one object. Rename one"):
        list(read_records(tmp_path))


def test_standard_input_stays_open(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"A word.\n")))
    assert [record.text for record in read_records("-")] == ["A word."]
    gc.collect()
    assert not sys.stdin.closed and sys.stdin.read() == ""


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_a_table_with_another_delimiter(tmp_path, ending):
    (tmp_path / f"a{ending}").write_text('n;text\n1;One, two.\n2;"Three; four."\n')
    records = list(read_records(tmp_path / f"a{ending}", delimiter=";"))
    assert [(record.text, record.fields) for record in records] == [
        ("One, two.", {"n": "1"}),
        ("Three; four.", {"n": "2"}),
    ]


def test_a_table_without_a_header(tmp_path):
    (tmp_path / "a.tsv").write_text("1\tOne.\n2\tTwo.\n")
    records = list(read_records(tmp_path, header=["n", "text"]))
    assert [(record.text, record.fields) for record in records] == [
        ("One.", {"file": "a.tsv", "n": "1"}),
        ("Two.", {"file": "a.tsv", "n": "2"}),
    ]
    for header, message in [
        (
            ["n", "sentence"],
            "a.tsv: there is no column 'text'. The columns are: 'n', 'sentence'. They are those of `header`",
        ),
        (
            ["n"],
            "columns are: 'n'. They .* Name the column of the texts with `column`. If line 1 .* out `header`",
        ),
        (["text", "text"], "two columns have the same name"),
        (["text"], "line 1: the row has 2 fields, but `header` names 1"),
        (["1", "One."], "line 1: the file has a header, with the names in `header`. Leave"),
    ]:
        with pytest.raises(InputError, match=message):
            list(read_records(tmp_path, header[-1] if "One." in header else "text", header=header))


def test_hidden_files_are_not_read_and_those_of_other_formats_are_named(tmp_path):
    for name in ("a.txt", "._a.txt", ".DS_Store", ".ipynb_checkpoints/a.txt", "sub/.hidden.csv", "sub/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("A word.\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list_files(str(tmp_path)) == [tmp_path / "a.txt", tmp_path / "sub" / "b.txt"]
    (tmp_path / "notes.md").touch()
    with pytest.warns(UserWarning, match="1 file of other formats in '.*' will not be read: 'notes.md'.$"):
        list_files(str(tmp_path))
    for name in ("x.doc", "sub/y.pdf", "z.xml"):
        (tmp_path / name).touch()
    with pytest.warns(UserWarning, match="4 files of other formats in .*: 'notes.md', 'sub/y.pdf', 'x.doc', ...\\.$"):
        list_files(str(tmp_path))
    with pytest.warns(UserWarning, match="will not be read: 'link' .a link., 'notes.md', 'sub/y.pdf', ...\\.$"):
        (tmp_path / "link").symlink_to(tmp_path / "sub")
        list_files(str(tmp_path))
    (tmp_path / "sub" / "gone.txt").symlink_to("nowhere")
    with pytest.warns(UserWarning), pytest.raises(FileNotFoundError, match="gone.txt"):
        list(read_records(tmp_path))
    # A hidden folder that is itself the input is read.
    assert list_files(str(tmp_path / ".ipynb_checkpoints")) == [tmp_path / ".ipynb_checkpoints" / "a.txt"]


def test_names_that_are_not_utf8(tmp_path):
    (tmp_path / os.fsdecode(b"bad\xff.txt")).write_text("A word.\n")
    for path in (tmp_path, tmp_path / os.fsdecode(b"bad\xff.txt")):
        with pytest.raises(InputError, match=r"The name of the file '.*bad.udcff.txt' is not UTF-8. Rename it"):
            list(read_records(path))


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(InputError, match="is a pipe .*Give - instead.*: < "):
        list(read_records(tmp_path / "pipe.txt"))


def test_a_table_without_rows_has_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("text,n\n")
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"text\tn\n"))
    for name in ("a.csv", "a.tsv.gz"):
        found = {}
        assert list(read_records(tmp_path / name, found=found.__setitem__)) == []
        assert found == {str(tmp_path / name): {"text": None, "n": None}}
        with pytest.raises(InputError, match="line 1: .* no column 'line'.*: 'text', 'n'"):
            list(read_records(tmp_path / name, "line"))


def test_docs_whose_fields_are_not_ours(tmp_path):
    for fields in ("mine", [1], {1: "x"}):
        doc = spacy.blank("en")("A cat.")
        doc.user_data["fields"] = fields
        DocBin(docs=[doc], store_user_data=True).to_disk(tmp_path / "a.spacy")
        with pytest.raises(InputError, match=r"a.spacy, doc 1: doc.user_data\['fields'\] must be a dict"):
            list(read_records(tmp_path / "a.spacy"))


def test_utf_16_without_a_mark_is_called_by_its_name(tmp_path):
    (tmp_path / "a.txt").write_text("The traveler lost it.\n", encoding="utf-16-le")
    with pytest.raises(InputError, match="line 1: .*iconv -f utf-16") as raised:
        list(read_records(tmp_path / "a.txt"))
    assert "latin" not in str(raised.value)


def test_rows_with_all_columns(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"good": "x", "bad": "y"}) + "\n")
    (tmp_path / "a.tsv").write_text("good\tbad\nx\ty\n")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"good,bad\nx,y\n"))
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
            "line 1: there is no column 'text'. The columns are: 'txt'.* `column`",
        ),
        ("a.jsonl", b'{"text": 3}\n', "a.jsonl, line 1: 'text' must be text. It is 3"),
        ("a.jsonl", b'{"text": "\\ud800"}\n', "a.jsonl, line 1: 'text' has a lone surrogate"),
        ("a.jsonl", b'{"text": "x", "y": ' + b"[" * 10**5, "a.jsonl, line 1: too many lists or objects are within"),
        ("a.csv", b"id;text,n\n1;x,y\n", "The columns are: 'id;text', 'n'.*If ';' stands between columns.*`delimiter`"),
        ("a.csv", b"sentence\nx\n", "a.csv, line 1: there is no column 'text'. The columns are: 'sentence'"),
        ("a.csv", b"text,n\nx\n", "a.csv, line 2: the row has 1 fields, but the header has 2"),
        ("a.csv", b"text,text\nx,y\n", "a.csv, line 1: two columns have the same name"),
        ("a.csv", b'text\n"x\n', "a.csv, line 2: a cell begins .*unexpected end of data"),
        ("a.txt", b"good\nbad \xff byte\n", r"a.txt, line 2: not valid UTF-8 \(it has the byte 0xff\)"),
        ("a.csv", b"text\nbad \xff byte\n", "a.csv, line 2: not valid UTF-8"),
        ("a.spacy", b"no docs", "a.spacy: this file is damaged, or was not written by DocBin.to_disk"),
        ("a.gz", b"", "the format '.gz' cannot be read"),
        ("a.docx", b"", "the format '.docx' cannot be read. .* plain text"),
        (
            "a.xlsx",
            b"",
            "the format '.xlsx' cannot be read. It is the file of a spreadsheet program. Save .* CSV UTF-8",
        ),
        ("a.jsonl", b'{"m": {"text": "x"}}', "no column 'text'.* If the one inside 'm' is meant, .*`column='m.text'`"),
        ("a.jsonl", b'{"data": [{"text": "x"}]}', "no column 'text'.* The objects in the list 'data' have one."),
    ],
)
def test_unreadable_input_is_named_with_its_line(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / name))


def test_input_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="There is no file or folder"):
        list(read_records(tmp_path / "none.txt"))
    with pytest.raises(InputError, match="contains no file that ends in"):
        list(read_records(tmp_path))


def test_json_is_a_list_or_lines(tmp_path):
    rows = [{"text": "One.", "n": 1}, {"text": "Two.", "n": 2}]
    contents = {
        "list.json": json.dumps(rows, indent=1),
        "list in one line.json": json.dumps(rows),
        "lines.json": "\n".join(map(json.dumps, rows)),
        "one.json": json.dumps(rows[0]),
    }
    for name, content in contents.items():
        for path, raw in (
            (tmp_path / name, content.encode()),
            (tmp_path / f"{name}.gz", gzip.compress(content.encode())),
        ):
            path.write_bytes(raw)
            records = list(read_records(path))
            assert [(record.text, record.fields["n"]) for record in records] == [("One.", 1), ("Two.", 2)][
                : len(records)
            ]
            assert len(records) == (1 if name == "one.json" else 2)
    assert [row for _, row in read_rows(tmp_path / "list.json.gz")] == rows


@given(st.sampled_from(["data", "rows"]), st.integers(1, 3), st.sampled_from([None, 1]), st.booleans())
def test_a_list_of_objects_inside_an_object(tmp_path_factory, key, n, indent, is_last):
    rows = [{"text": f"{i}", "tags": [{"text": "no"}]} for i in range(n)]
    value = {"version": 1, key: rows, "n": [n]} if is_last else {key: rows, "version": {"data": "1.1"}}
    path = tmp_path_factory.mktemp("lists") / "a.json"
    path.write_text(json.dumps(value, indent=indent))
    assert [row for _, row in read_rows(path)] == rows
    assert [record.text for record in read_records(path)] == [row["text"] for row in rows]
    path.write_text(json.dumps(rows[0]))  # a text of its own, with a list of objects
    assert [record.text for record in read_records(path)] == ["0"]


@given(
    st.recursive(
        st.fixed_dictionaries({"text": st.text("ab"), "n": st.integers(0, 9)}),
        lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=2),
        max_leaves=4,
    )
)
def test_fields_inside_fields(tmp_path_factory, row):
    """Each is found under the names that lead to it, with points between them, and no other is."""
    path = tmp_path_factory.mktemp("nested") / "a.jsonl"
    path.write_text(json.dumps(row))

    def leaves(value, names=()):
        if not isinstance(value, dict):
            return {".".join(names): value}
        return {k: v for name, one in value.items() for k, v in leaves(one, (*names, name)).items()}

    ((_, found),) = read_rows(path)
    assert found == row and {name: found[name] for name in leaves(row)} == leaves(row)
    assert not any(f"{name}.x" in found or f"q.{name}" in found for name in leaves(row))
    for name, value in leaves(row).items():
        if name.endswith("text"):
            (record,) = read_records(path, name)
            assert record.text == value
            assert record.fields == {k: v for k, v in row.items() if k != name}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"text": "One."}, "Two."]', "a.json, item 2: this is a JSON str"),
        ('[{"text": "One."}, {"txt": "Two."}]', "a.json, item 2: there is no column 'text'"),
        ('{"text": "One."}\n{"txt": "Two."}', "a.json, line 2: there is no column 'text'"),
        ('{\n"data": {"text": "One."}}', r"a.json: this is a JSON object \('data'\). Make a list of objects of it"),
        ('[{"text": "One."},', "a.json: not valid JSON"),
        ('"One."', r"a.json: this is a JSON str"),
    ],
)
def test_json_that_cannot_be_read(tmp_path, content, message):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / "a.json"))


def test_json_beside_other_files_of_a_folder_describes_them(tmp_path):
    (tmp_path / "a.csv").write_text("text\nOne.\n")
    (tmp_path / "a.csv.manifest.json").write_text('{"run": {}}')
    with pytest.warns(UserWarning, match="will not be read: 'a.csv.manifest.json'"):
        assert [record.text for record in read_records(tmp_path)] == ["One."]
    (tmp_path / "a.csv").unlink()
    (tmp_path / "a.csv.manifest.json").write_text('[{"text": "Two."}]')
    assert [record.text for record in read_records(tmp_path)] == ["Two."]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_mark_of_utf_16_says_so(tmp_path, encoding):
    for name, content in (("a.txt", "Ünë.\n"), ("a.tsv", "n\ttext\n1\tÜnë.\n"), ("a.json", '[{"text": "Ünë."}]')):
        (tmp_path / name).write_bytes(f"\ufeff{content}".encode(encoding))
        assert [record.text for record in read_records(tmp_path / name)] == ["Ünë."]


def test_cells_that_stand_for_a_missing_value(tmp_path):
    (tmp_path / "a.csv").write_text("text,n\nOne.,NA\nNA,2\n<NA>,3\nNA.,4\n,5\n")
    records = list(read_records(tmp_path / "a.csv"))
    assert [(record.text, record.in_place, record.fields["n"]) for record in records] == [
        ("One.", "", "NA"),
        ("", "NA", "2"),
        ("", "<NA>", "3"),
        ("NA.", "", "4"),
        ("", "", "5"),
    ]
    with pytest.warns(
        UserWarning, match="2 of 5 texts are missing: there is NA, or .* They are left out.*`na_as_text=True"
    ):
        assert list(read_texts(tmp_path / "a.csv", "text", vocab=Vocab())) == ["One.", "NA.", ""]
    assert [record.text for record in read_records(tmp_path / "a.csv", na_as_text=True)][1:3] == ["NA", "<NA>"]
    (tmp_path / "a.jsonl").write_text('{"text": "NA"}\n')
    assert [record.text for record in read_records(tmp_path / "a.jsonl")] == ["NA"]


def test_a_row_without_a_text_is_a_record_where_errors_are_skipped(tmp_path):
    lines = ['{"text": null, "n": 1}', '{"text": 3, "n": 2}', '{"text": "\\ud800", "n": 3}', '{"text": "One.", "n": 4}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    records = list(read_records(tmp_path / "a.jsonl", skip_errors=True))
    assert [record.fields["n"] for record in records] == [1, 2, 3, 4]
    assert [record.text for record in records] == ["", "", "", "One."]
    assert [record.fields.get("text", "-") for record in records] == [None, 3, "\\ud800", "-"]  # what stands there
    problems = [record.problem for record in records]
    assert problems[:2] == ["'text' must be text. It is None.", "'text' must be text. It is 3."] and not problems[3]
    (tmp_path / "a.jsonl").write_text('{"txt": "One."}\n')
    with pytest.raises(InputError, match="there is no column 'text'"):
        list(read_records(tmp_path / "a.jsonl", skip_errors=True))


@pytest.mark.parametrize(
    "line", ['{"text": "On', '{"text": "One."', '{"text" "One."}', "{" + '"a": {' * 9999 + "}" * 9999]
)
def test_lines_of_a_json_file_whose_first_is_damaged(tmp_path, line):
    (tmp_path / "a.json").write_text(f'{line}\n{{"text": "Two."}}\n')
    first, second = read_records(tmp_path / "a.json", skip_errors=True)
    assert first.problem and first.location.endswith("line 1") and first.fields == {"text": line}
    assert second.text == "Two."
    with pytest.raises(InputError, match="line 1: .* give `skip_errors=True`"):
        list(read_input(tmp_path / "a.json"))


@pytest.mark.parametrize("head", ['{"data": [', '{"n": 1, "data":\n[', '[{"text": "One."},'])
def test_json_of_several_lines_is_no_damaged_line(tmp_path, head):
    (tmp_path / "a.json").write_text(head + '\n{"text": "Two."}\n]' + "}" * head.startswith("{"))
    assert [record.text for record in read_records(tmp_path / "a.json", skip_errors=True)][-1] == "Two."


ROWS = {
    ".jsonl": ('{"text": "One.", "n": 1}', ['{"txt": "x"}', '{"text": ', '["x"]', '{"text": 1, "text": 2}'], ""),
    ".csv": ("One.,1", ["x", "a, b,2", "a,b,c,d"], "text,n"),
    ".tsv": ("One.\t1", ["x", "a\tb\t2"], "text\tn"),
}


@given(st.sampled_from([*ROWS]), st.lists(st.integers(0, 4), min_size=1, max_size=5))
def test_rows_that_cannot_be_read_are_skipped_on_request(tmp_path_factory, ending, which):
    """Each stays in its place with what it has. Where no row can be read, that is an error."""
    good, bad, header = ROWS[ending]
    lines = [good if n == 0 else bad[(n - 1) % len(bad)] for n in which]
    path = tmp_path_factory.mktemp("rows") / f"a{ending}"
    path.write_text("\n".join([header] * bool(header) + lines) + "\n")
    if any(which):
        with pytest.raises(InputError, match="line"):
            list(read_records(path))
    if not any(n == 0 for n in which):
        with pytest.raises(InputError, match=f"line {1 + bool(header)}: "):
            list(read_records(path, skip_errors=True))
        return
    records = list(read_records(path, skip_errors=True))
    assert [record.text for record in records] == ["One." if n == 0 else "" for n in which]
    assert [bool(record.problem) for record in records] == [n != 0 for n in which]
    for line, record in zip(lines, records):
        there = record.fields.get("text", "One.")
        cells = line.split("," if ending == ".csv" else "\t")
        assert record.problem == "" or there in (None, line.strip()) or there == cells


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quoting": "all"}, "`quoting` must be csv or none. It is 'all'"),
        ({"delimiter": "\t\t"}, "`delimiter` must be one character"),
        ({"encoding": "utf-9"}, "`encoding` must be one that Python knows, such as 'cp1252'. It is 'utf-9'"),
    ],
)
def test_options_that_are_not_valid(tmp_path, options, message):
    (tmp_path / "a.csv").write_text("text\nOne.\n")
    with pytest.raises(ValueError, match=message):
        list(read_rows(tmp_path / "a.csv", **options))
