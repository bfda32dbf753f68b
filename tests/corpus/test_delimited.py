import csv
import io
import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import InputError, read_choices, read_pairs
from spacy_pll.corpus.formats import to_csv

from .reading import read_input, read_records, read_rows


def rows_in(path, content, **options):
    path.write_text(content, encoding="utf8", newline="")
    return [list(row.values()) for _, row in read_rows(path, **options)]


# Without quoting: a quotation mark is a character of the text.
PLAIN = {
    "from one row to another": 'text\tn\n"Go away.\t1\nI will not.\t2\nThen stay."\t3\n',
    "goes on after a quotation": 'n\ttext\n1\t"Go away", she said.\n2\tHe left.\n',
    "never closed": 'n\ttext\n1\tHe left.\n2\t"I will not.\n',
    "closed in the same row": 'n\ta\tb\n1\tHe left.\tx\n2\t"I will\tnot."\n',
}


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN)
@pytest.mark.parametrize(("ending", "mark"), [(".tsv", "\t"), (".csv", "|")])
def test_a_table_without_quoting_keeps_all_its_rows(tmp_path, content, ending, mark):
    content = content.replace("\t", mark)
    expected = [line.split(mark) for line in content.splitlines()[1:]]
    assert rows_in(tmp_path / f"a{ending}", content, quoting="none") == expected
    try:
        assert rows_in(tmp_path / f"a{ending}", content) == expected
    except InputError as error:  # both readings fit the first of these
        assert "lines 2 to 4: the quotation marks may stand" in str(error) and set(error.settings) == {"quoting"}
        assert rows_in(tmp_path / f"a{ending}", content, quoting="csv") != expected


# Quoted by the rules, as a program writes it.
QUOTED = {
    "marks within a cell": (
        'n\ttext\n1\t"He said ""no""."\n2\tShe left.\n',
        [["1", 'He said "no".'], ["2", "She left."]],
    ),
    "a tab": ('n\ttext\n1\t"She\tleft."\n', [["1", "She\tleft."]]),
    "two lines": ('text\tn\n"She\nleft."\t1\nHe left.\t2\n', [["She\nleft.", "1"], ["He left.", "2"]]),
    "all cells": ('"n"\t"text"\n"1"\t"She left."\n', [["1", "She left."]]),
    "all cells, and lines that fit by chance": ('"n"\t"text"\n"1"\t"She\nleft.\tNow"\n', [["1", "She\nleft.\tNow"]]),
    "an empty cell": ('n\ttext\n1\t""\n2\t"She left."\n', [["1", ""], ["2", "She left."]]),
    "blank lines": (
        '\nn\ttext\n\n\n1\t"He said ""no""."\n\n2\tShe left.\n',
        [["1", 'He said "no".'], ["2", "She left."]],
    ),
    "carriage returns": ('n\ttext\r\n1\t"He said ""no""."\r\n', [["1", 'He said "no".']]),
}


@pytest.mark.parametrize(("content", "expected"), QUOTED.values(), ids=QUOTED)
def test_a_table_that_is_quoted_by_the_rules_is_read_by_them(tmp_path, content, expected):
    content = content.lstrip("\n")
    assert rows_in(tmp_path / "a.tsv", content) == rows_in(tmp_path / "a.tsv", content, quoting="csv") == expected


def test_a_quotation_mark_alone_and_an_empty_pair_are_text(tmp_path):
    """Together they could be a cell of two lines, and an empty one."""
    with pytest.raises(InputError, match="lines 2 to 3: the quotation marks may stand"):
        rows_in(tmp_path / "a.tsv", 'one\ttwo\n"\ta\n"\t""\n')


def test_what_fits_both_is_said(tmp_path):
    with pytest.warns(UserWarning, match="a.tsv: quotation marks at both ends.*`quoting='none'`"):
        assert rows_in(tmp_path / "a.tsv", 'n\ttext\n1\t"Go!"\n') == [["1", "Go!"]]
    for quoting, expected in (("csv", "Go!"), ("none", '"Go!"')):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert rows_in(tmp_path / "a.tsv", 'n\ttext\n1\t"Go!"\n', quoting=quoting) == [["1", expected]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            'text,n\n"Go" she said.,1\n',
            "line 2: a cell begins with a quotation mark, and does not end with the",
        ),
        (
            "a.csv",
            'text;n\n"Go", she said.;1\n',
            "line 2: a cell begins with a quotation mark, and does not end with the",
        ),
        (
            "a.csv",
            'n,text\n1, "Go."\n',
            "line 2: white space stands before a quotation mark, so it is text. Remove",
        ),
        ("a.csv", 'n; "text"\n1;Go.\n', "line 1: white space stands before a quotation mark"),
        ("a.csv", 'n,text\n1,"Go."\n 2, "She said, ""Go."""\n', "line 3: white space stands before a quotation mark"),
        ("a.csv", 'text,n\n  "Go.",1\n', "line 2: white space stands before a quotation mark"),
        ("a.csv", "n,text\n1,Go.\nn,text\n2,Stay.\n", "line 3: these are the names of the columns again, as where"),
        ("a.tsv", "n\ttext\n1\tGo.\n\ufeffn\ttext\n", "line 3: these are the names of the columns again"),
        (
            "a.tsv",
            '"text"\t"n"\n"Go\\" now"\t"1"\n',
            "line 2: a backslash stands before a quotation mark in a cell",
        ),  # as R
        ("a.tsv", 'text\tn\n"Go", she said.\t1\nHe left.\n', "line 2: .* Nor can it .* line 3: the row has 1 fields"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message):
        rows_in(tmp_path / name, content)


def test_a_text_may_begin_with_a_quotation_mark_behind_white_space_and_be_the_name_of_its_column(tmp_path):
    rows = 'n,text\n1," ""Go."""\n2,"a, ""b"""\n'
    assert rows_in(tmp_path / "a.csv", rows) == [["1", ' "Go."'], ["2", 'a, "b"']]
    assert rows_in(tmp_path / "a.tsv", 'n\ttext\n1\t "Go."\n') == [["1", ' "Go."']]
    assert rows_in(tmp_path / "a.csv", "text\ntext\n") == [["text"]]


def test_a_table_is_read_as_a_stream_until_a_cell_begins_with_a_quotation_mark(monkeypatch):
    def lines():
        yield b"text\n"
        yield b'He said "no".\n'
        raise AssertionError("more was read than needed")

    class Pipe(io.RawIOBase):
        given = lines()

        def readable(self):
            return True

        def readinto(self, block):
            line = next(self.given)
            block[: len(line)] = line
            return len(line)

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Pipe(), write_through=True))
    records = read_records("-", file_format=".tsv")
    assert next(records).text == 'He said "no".'


@pytest.mark.parametrize(
    ("ending", "mark", "line"),
    [
        (".csv", ",", '"x"y,5'),
        (".csv", ";", '1;"x" y "z"'),
        (".csv", ",", "a\rb,5"),
        (".tsv", "\t", "a\rb\t5"),
        (".csv", ",", '"x,5'),  # as the last line alone
    ],
)
def test_a_fault_of_quoting_is_skipped_where_the_row_ends_with_its_line(tmp_path, ending, mark, line):
    good = [f"text{mark}n", f"One.{mark}1", f'"Two"{mark}2' if mark != "\t" else "Two\t2"]
    is_last = line.count('"') % 2
    rows = [*good[:2], *[good[2], line][:: 1 if is_last else -1]]
    (tmp_path / f"a{ending}").write_text("\n".join(rows), newline="")
    records = list(read_records(tmp_path / f"a{ending}", skip_errors=True))
    (faulty,) = [record for record in records if record.problem]
    assert [record.text for record in records if record is not faulty] == ["One.", "Two"]
    assert faulty.location.endswith(f"line {4 if is_last else 3}") and faulty.fields == {"text": [line]}
    assert faulty.problem.startswith(("a cell begins with", "a carriage return"))
    with pytest.raises(InputError, match="line .*: a c.* give `skip_errors=True`"):
        list(read_input(tmp_path / f"a{ending}"))
    with pytest.raises(InputError) as raised:
        list(read_rows(tmp_path / f"a{ending}"))
    assert "skip" not in str(raised.value)
    (tmp_path / f"a{ending}").write_text(line + "\n" * (not is_last) + good[1], newline="")
    with pytest.raises(InputError, match="line 1: a c|line 2: a c"):  # in the header
        list(read_records(tmp_path / f"a{ending}", skip_errors=True))


@pytest.mark.parametrize(
    "name, rows", [("a.csv", '"x,5\n"y",6\n'), ("a.csv", '"x"y"z,5\nz,6\n'), ("a.tsv", 'a\t1\n"x"y\t5\na\rb\t6\n')]
)
def test_a_fault_of_quoting_that_is_not_skipped_is_named(tmp_path, name, rows):
    (tmp_path / name).write_text(("text,n\n" if name == "a.csv" else "text\tn\n") + rows, newline="")
    for skip_errors in (True, False):
        with pytest.raises(InputError, match=r"line \d: a c") as raised:
            list(read_records(tmp_path / name, skip_errors=skip_errors))
        assert ("A fault of quoting is not skipped" in str(raised.value)) == skip_errors
        assert "skip_errors" not in raised.value.settings


CELL = st.text(st.sampled_from('ab" \t\n\r,'), max_size=8)


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=4), st.sampled_from([".csv", ".tsv"]), st.booleans())
def test_what_the_package_writes_is_read_as_it_was_or_not_at_all(tmp_path_factory, cells, ending, python_writes):
    mark = "\t" if ending == ".tsv" else ","
    rows = [{"text": a, "other": b, "pll": "-1.5"} for a, b in cells]
    content = to_csv([{name: name for name in rows[0]}, *rows], list(rows[0]), mark)
    if python_writes:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=mark, quoting=csv.QUOTE_ALL).writerows(
            [list(rows[0]), *(row.values() for row in rows)]
        )
        content = file.getvalue()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rows_in(tmp_path_factory.mktemp("tables") / f"a{ending}", content)
    except InputError as error:
        assert ending == ".tsv" and not python_writes and "may stand around one cell of several lines" in str(error)
    else:
        assert found == [list(row.values()) for row in rows]


@given(st.lists(st.tuples(*[st.text(st.sampled_from('ab" .,'), min_size=1, max_size=6)] * 2), min_size=1, max_size=5))
def test_no_row_of_a_table_without_quoting_is_lost(tmp_path_factory, cells):
    content = "one\ttwo\n" + "".join(f"{a}\t{b}\n" for a, b in cells)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rows_in(tmp_path_factory.mktemp("tables") / "a.tsv", content)
    except InputError:
        return
    assert len(found) == len(cells)


@given(
    st.lists(st.tuples(*[st.text(st.sampled_from("abä '."), min_size=1, max_size=6)] * 2), min_size=1, max_size=4),
    st.sampled_from([(".csv", " "), (".csv", ","), (".tsv", "\t"), (".csv", ";")]),
    st.booleans(),
    st.booleans(),
)
def test_tables_of_r(tmp_path_factory, cells, form, is_quoted, names_all):
    """As write.table writes them: the header is one name short, unless the rows are not named."""
    ending, mark = form
    quoted = (lambda cell: f'"{cell}"') if is_quoted or mark == " " else str
    lines = [mark.join(map(quoted, ["one", "two"]))]
    lines += [mark.join(map(quoted, [str(n), *row])) for n, row in enumerate(cells, 1)]
    path = tmp_path_factory.mktemp("tables") / f"a{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match="row has 3 fields, but the header has 2. .* as R") as raised:
            rows_in(path, "\n".join(lines) + "\n")
        header = raised.value.settings["header"]
        assert header == ["row", "one", "two"]
        found = rows_in(path, "\n".join(lines) + "\n", header=header)
    assert found == [[str(n), *row] for n, row in enumerate(cells, 1)]


@pytest.mark.parametrize("read", [read_pairs, read_choices, lambda path: list(read_records(path, "good"))])
def test_tables_of_r_without_quotation_marks_are_named(tmp_path, read):
    (tmp_path / "a.csv").write_text("good bad\n1 cat cats\n")
    with pytest.raises(InputError, match="columns are: 'good bad'.* as R's write.table has it") as raised:
        read(str(tmp_path / "a.csv"))
    assert raised.value.settings["delimiter"] == " "
    with pytest.raises(InputError, match=r"give `header=\['row', 'good', 'bad'\]`"):
        list(read_rows(tmp_path / "a.csv", delimiter=" "))
    (row,) = read_rows(tmp_path / "a.csv", delimiter=" ", header=["row", "good", "bad"])
    assert row[1] == {"row": "1", "good": "cat", "bad": "cats"}
    (tmp_path / "a.csv").write_text("text\nThe cat sleeps.\n")
    with pytest.raises(InputError) as raised:
        read(str(tmp_path / "a.csv"))
    assert "write.table" not in str(raised.value)


@pytest.mark.parametrize("line", ["sep=;\n", '"sep=;"\r\n', "sep=;\r"])
def test_a_first_line_that_names_the_delimiter(tmp_path, line):
    end = line[len(line.rstrip()) :]
    content = end.join([line.rstrip(), "text,;n", "Sie, er.;1", ""])
    assert rows_in(tmp_path / "a.csv", content) == [["Sie, er.", "1"]]
    ((place, _),) = read_rows(tmp_path / "a.csv")
    assert place.endswith("line 3")
    assert rows_in(tmp_path / "a.csv", "sep=;\nSie, er.;1\n", header=["text", "n"]) == [["Sie, er.", "1"]]


@given(
    st.lists(st.tuples(st.sampled_from(["a", ""]), st.sampled_from(["b", ""])), max_size=5),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from([(".csv", ";"), (".csv", ","), (".tsv", "\t")]),
)
def test_empty_rows_and_columns_at_the_end_are_not_read(tmp_path_factory, rows, more_rows, more_columns, form):
    """As spreadsheets write them. Empty rows between others stay."""
    ending, mark = form
    rows = [*rows, ("a", "b")]
    lines = [mark.join(["one", "two", *[""] * more_columns])]
    lines += [mark.join([*row, *[""] * more_columns]) for row in [*rows, *[("", "")] * more_rows]]
    if more_columns != 1:  # a single column without a name is read: tables of row names have one
        path = tmp_path_factory.mktemp("tables") / f"a{ending}"
        assert rows_in(path, "\n".join(lines) + "\n") == [list(row) for row in rows]


@pytest.mark.parametrize("mark", ";|\t")
def test_the_delimiter_is_told_from_the_header(tmp_path, mark):
    expected = [["Der Hund, der bellt.", "a"], ["Sie geht.", "b"]]
    content = "".join(mark.join(row) + "\n" for row in [["text", "n"], *expected])
    assert rows_in(tmp_path / "a.csv", content) == expected
    assert rows_in(tmp_path / "a.csv", content.partition("\n")[2], header=["text", "n"], delimiter=mark) == expected
    # A table of one column has no delimiter, and with two candidates the usual one stays.
    assert rows_in(tmp_path / "a.csv", f"text\nSie{mark} er\n") == [[f"Sie{mark} er"]]
    assert rows_in(tmp_path / "a.csv", f"text,n{mark}m\nSie,{mark}\n") == [["Sie", mark]]


plain = st.text(st.sampled_from("ab ä,;.'"), max_size=6)
HOW_QUOTED = {0: "{}", 1: '"{}"', 2: '""{}""'}


@given(
    st.lists(st.lists(st.tuples(plain, st.integers(0, 2)), min_size=3, max_size=3), min_size=1, max_size=4),
    st.sampled_from([(".csv", ",", None), (".csv", ";", None), (".csv", ",", "csv"), (".tsv", "\t", "csv")]),
)
def test_cells_with_two_quotation_marks_at_each_end_are_read_as_with_one(tmp_path_factory, rows, form):
    """A cell that begins with the delimiter is empty in this form, and what follows it another cell."""
    ending, mark, quoting = form
    content, expected = mark.join(["one", "two", "three"]) + "\n", [[cell for cell, _ in row] for row in rows]
    for row in rows:
        times = [1 if cell[:1] in ("", mark) else max(n, int(mark in cell)) for cell, n in row]
        content += mark.join(HOW_QUOTED[n].format(cell) for (cell, _), n in zip(row, times)) + "\n"
    while expected and not any(expected[-1]):  # empty rows at the end are not read
        expected.pop()
    assert rows_in(tmp_path_factory.mktemp("tables") / f"a{ending}", content, quoting=quoting) == expected


def test_where_two_quotation_marks_at_each_end_are_not_meant(tmp_path):
    """A row that would not fit the header is refused as before, and what is no quoting stays text."""
    for row in ('""Go, go."",1,2', '""Go."" she said,1', '""Go.""x,1', '""Go"",""', '"" Go,1'):
        if row == '""Go"",""':
            assert rows_in(tmp_path / "a.csv", f"text,n\n{row}\n") == [["Go", ""]]
            continue
        with pytest.raises(InputError, match="line 2: a cell begins with a quotation mark"):
            rows_in(tmp_path / "a.csv", f"text,n\n{row}\n")
    assert rows_in(tmp_path / "a.csv", 'text,n\n""Go."",1\n', quoting="none") == [['""Go.""', "1"]]
    assert rows_in(tmp_path / "a.csv", '""Go, go."",1\n', header=["text", "n"]) == [["Go, go.", "1"]]
    assert rows_in(tmp_path / "a.tsv", 'text\tn\n""Go.""\t1\n') == [['""Go.""', "1"]]  # as texts without quoting
    assert rows_in(tmp_path / "a.csv", 'text,n\n"""Go, go.""",1\n') == [['"Go, go."', "1"]]


@pytest.mark.parametrize("rows", ['"\\"Where",1', '"you?\\"",1\n"b",2', '"a \\"b\\", c",1', '"x\\"","y"\n"z","w"'])
@pytest.mark.parametrize("form", [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".csv", " ")])
def test_quotation_marks_behind_a_backslash_are_named(tmp_path, rows, form):
    """R's write.table writes them so by default. Its error names no setting, since none helps."""
    ending, mark = form
    content = f'"text"{mark}"n"\n' + re.sub(r'(?<="),(?=["\d])', lambda _: mark, rows)
    with pytest.raises(InputError, match='a backslash stands before a quotation mark.*qmethod = "double"') as raised:
        rows_in(tmp_path / f"a{ending}", content + "\n")
    assert raised.value.settings == {}


PCIBEX = """# Results on Sunday, 05 November 2023 10:00:00 GMT
# USER AGENT: Mozilla/5.0 (X11; Linux x86_64), like Gecko
# Design number was non-random = 4
# Columns below this comment are as follows:
# 1. Results reception time.
# 2. sentence
1699178400,The cats sleep.
# 3. Value.
1699178401,The cats sleeps.,x
"""


@pytest.mark.parametrize("column", ["sentence", None])
@pytest.mark.parametrize("header", [None, ["time", "sentence"]])
def test_lines_of_comments_are_named(tmp_path, column, header):
    path = tmp_path / "a.csv"

    def read(**options):
        return [*(read_records(path, column, **options) if column else read_rows(path, **options))]

    path.write_text(PCIBEX)
    with pytest.raises(InputError, match="results of PCIbex.* `header`"):
        read(header=header)
    path.write_text("time,sentence\n1,The cats sleep.\n# 2. Value.\n")  # as before each participant
    with pytest.raises(InputError, match="line 3: the row has 1 fields.* PCIbex"):
        read()
    # What begins with # and can be read is no comment.
    path.write_text("#,sentence\n#1,#blessed\n")
    assert len(read()) == 1
    path.write_text("sentence,n\n#blessed, and so on,1\n")
    with pytest.raises(InputError, match="the row has 3 fields") as raised:
        read()
    assert "PCIbex" not in str(raised.value)
