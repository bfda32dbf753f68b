"""Options about files that several commands have, and what is said before any work."""

import csv
import json
import sys
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spacy.tokens import DocBin
from spacy.vocab import Vocab

from spacy_pll.corpus.records import FileOptions

from .conftest import COMMANDS, run

READERS = ("score", "words", "suite", "render", "slots", "pairs", "choices", "ppl", "agree", "margins", "variants",
           "unigrams")  # fmt: skip


def test_each_command_that_reads_tables_has_the_options_for_them():
    for name in READERS:
        parameters = {parameter.name for parameter in COMMANDS[name].params}
        assert vars(FileOptions()).keys() <= parameters, name
    assert set(READERS) | {"rescore", "show", "explore", "lm-eval"} == set(COMMANDS)


@pytest.fixture
def model(model_folder):
    return ("--model", model_folder("bert"))


@pytest.fixture
def never(monkeypatch):
    """Nothing is scored."""
    from spacy_pll.component import PLLScorer

    def fail(*arguments, **more):
        raise AssertionError("something was scored")

    monkeypatch.setattr(PLLScorer, "pipe", fail)


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_a_german_table(tmp_path, model):
    """Semicolons, cp1252, commas in cells."""
    rows = [
        "good;bad;label;n",
        "Der Hund, der bellt, schläft.;Der Hund, der bellt, schlafen.;0;1",
        "Sie geht.;Sie gehen.;0;2",
    ]
    (tmp_path / "a.csv").write_bytes("\n".join(rows).encode("cp1252"))
    how = ("--encoding", "cp1252", *model)
    assert " 2 " in run("pairs", tmp_path / "a.csv", *how).stdout.splitlines()[3]
    assert " 2 " in run("choices", tmp_path / "a.csv", "--options", "good,bad", *how).stdout.splitlines()[3]
    run("score", tmp_path / "a.csv", tmp_path / "o.csv", "--column", "good", *how)
    with open(tmp_path / "o.csv", encoding="utf8") as file:
        assert [row["good"] for row in csv.DictReader(file)] == ["Der Hund, der bellt, schläft.", "Sie geht."]
    error = run("ppl", tmp_path / "a.csv", "--column", "good", *model, fails=True).unwrapped_stderr
    assert "line 2: not valid UTF-8" in error and "--encoding cp1252" in error


def test_missing_texts_keep_their_rows(tmp_path, model):
    (tmp_path / "a.csv").write_text("text,n\nTwo words.,1\nNA,2\n,3\n")
    with pytest.warns(UserWarning, match="1 of 3 texts are missing: .* Their rows have no scores"):
        run("score", tmp_path / "a.csv", tmp_path / "o.csv", *model)
    with open(tmp_path / "o.csv") as file:
        rows = list(csv.DictReader(file))
    assert [(row["text"], row["n"], bool(row["pll_word_l2r"])) for row in rows] == [
        ("Two words.", "1", True),
        ("NA", "2", False),
        ("", "3", False),
    ]
    run("score", tmp_path / "a.csv", tmp_path / "o.csv", "--na-as-text", "--force", *model)
    with open(tmp_path / "o.csv") as file:
        assert list(csv.DictReader(file))[1]["pll_word_l2r"]
    with pytest.warns(UserWarning, match="1 of 3 texts are missing: .* They are left out"):
        assert run("ppl", tmp_path / "a.csv", *model).stdout.splitlines()[3].split() == ["texts", "2"]


@pytest.mark.parametrize("line", ['{"text": null}', '{"text": 3}', '{"text": ["a"]}', '{"text": "\\ud800"}'])
def test_a_line_without_a_text_is_skipped_on_request(tmp_path, model, line):
    (tmp_path / "a.jsonl").write_text('{"text": "Two words."}\n' + line + '\n{"text": "More words."}\n')
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        run("score", tmp_path / "a.jsonl", tmp_path / "o.jsonl", "--skip-errors", *model)
    rows = [json.loads(row) for row in (tmp_path / "o.jsonl").read_text().splitlines()]
    there = "\\ud800" if "ud800" in line else json.loads(line)["text"]
    assert [row["text"] for row in rows] == ["Two words.", there, "More words."]
    assert [row["pll_word_l2r"] is None for row in rows] == [False, True, False]
    assert rows[0]["error"] is None and rows[1]["error"].startswith("'text' ")
    error = run("score", tmp_path / "a.jsonl", "-", *model, fails=True).unwrapped_stderr
    assert "line 2: 'text' " in error and "To leave its scores out, give --skip-errors." in error
    error = run("ppl", tmp_path / "a.jsonl", *model, fails=True).unwrapped_stderr  # which has no such option
    assert "line 2: 'text' " in error and "skip" not in error


@pytest.mark.parametrize("output", ["o.jsonl", "o.csv", "o.parquet", "o.spacy", "-"])
def test_a_good_text_beside_half_a_character_is_scored(tmp_path, model, output):
    lines = ['{"text": "Two words.", "n": "a\\ud83d"}', '{"text": "\\ud83d"}', '{"text": "It ran.", "k\\ud83d": 3}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    output = output if output == "-" else tmp_path / output
    error = run("score", tmp_path / "a.jsonl", output, *model, fails=True).unwrapped_stderr
    assert "line 1: 'n' is 'a\\ud83d', which cannot be written" in error and "Or give --skip-errors: then" in error
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        done = run("score", tmp_path / "a.jsonl", output, "--skip-errors", *model)
    rows = rows_of(output, done)
    assert [row["text"] for row in rows] == ["Two words.", "\\ud83d", "It ran."]
    assert [row["pll_word_l2r"] in (None, "") for row in rows] == [False, True, False]
    assert [row["pll_pieces"] in (0, "0") for row in rows] == [False, True, False]
    assert rows[0]["n"] == "a\\ud83d" and rows[2]["k\\ud83d"] in (3, "3")


def rows_of(output, done):
    """The rows of an output, or the docs."""
    if output == "-":
        return [json.loads(line) for line in done.stdout.splitlines()]
    if output.suffix == ".parquet":
        return pq.read_table(output).to_pylist()
    if output.suffix == ".spacy":
        docs = DocBin().from_disk(output).get_docs(Vocab())
        scores = ("pll_word_l2r", "pll_pieces")
        return [
            {"text": doc.text, **doc.user_data["fields"], **{name: doc._.get(name) for name in scores}} for doc in docs
        ]
    with open(output, encoding="utf8") as file:
        return [*csv.DictReader(file)] if output.suffix == ".csv" else [json.loads(line) for line in file]


@pytest.mark.parametrize("table", ["texts", "tokens", "words"])
@pytest.mark.parametrize("output", ["o.jsonl", "o.csv", "o.parquet", "o.spacy", "-"])
def test_if_no_text_could_be_scored_the_exit_status_says_so(tmp_path, model, output, table):
    """Also of a run in parts. Each text has a row, and `pll_pieces` is 0."""
    if output == "o.spacy" and table != "texts":
        return
    (tmp_path / "a.jsonl").write_text('{"text": null}\n{"text": 3}\n{"text": "\\ud800"}\n')
    output = output if output == "-" else tmp_path / output
    how = ("score", tmp_path / "a.jsonl", output, "--skip-errors", "--table", table, "--batch-size", 1, *model)
    how = (*how, "--no-log-frequency") if table == "words" else how
    with pytest.warns(UserWarning, match="3 of 3 texts could not be scored"):
        done = run(*how, code=3)
    assert "None of the texts could be scored" in done.unwrapped_stderr
    rows = rows_of(output, done)
    assert [row["text"] for row in rows] in (
        [None, 3, "\\ud800"],
        [None, "3", "\\ud800"],
        ["", "3", "\\ud800"],
        ["", 3, "\\ud800"],
    )
    assert all(row["error"] for row in rows) and {row.get("pll_pieces", 0) for row in rows} <= {0, "0"}
    assert ("pll_pieces" in rows[0]) == (table != "tokens")
    # One score, or nothing to score, is no such end.
    for line in ('{"text": "A cat."}\n{"text": null}\n', '{"text": " "}\n{"text": ""}\n', ""):
        (tmp_path / "a.jsonl").write_text(line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(*how, *["--force"] * (output != "-"))


@pytest.mark.slow
@pytest.mark.parametrize("output", ["o.jsonl", "o.csv", "o.tsv", "o.parquet", "o.spacy", "-"])
@pytest.mark.parametrize("line", ['{"txt": "Two words.", "n": 1}', '{"text": "Two wo', "Two words."])
def test_a_damaged_line_is_skipped_on_request(tmp_path, model, line, output):
    (tmp_path / "a.jsonl").write_text('{"text": "Two words.", "n": 1}\n' + line + '\n{"text": "More words."}\n')
    output = output if output == "-" else tmp_path / output
    error = run("score", tmp_path / "a.jsonl", output, *model, fails=True).unwrapped_stderr
    assert "line 2: " in error and "To leave its scores out, give --skip-errors." in error
    with pytest.warns(UserWarning, match="1 of 3 texts could not be scored"):
        done = run("score", tmp_path / "a.jsonl", output, "--skip-errors", *model)
    if str(output).endswith((".jsonl", "-")):
        lines = done.stdout if output == "-" else output.read_text()
        rows = [json.loads(row) for row in lines.splitlines()]
        assert [row["pll_word_l2r"] is None for row in rows] == [False, True, False]
        assert rows[1]["text"] == (None if "txt" in line else line) and rows[1]["error"]
    (tmp_path / "b.jsonl").write_text(line + "\n")  # nothing in it can be read
    assert "line 1: " in run("score", tmp_path / "b.jsonl", "-", "--skip-errors", *model, fails=True).unwrapped_stderr


def test_decimal_commas_of_a_table_are_those_of_what_is_written(tmp_path, model):
    (tmp_path / "a.csv").write_text("word;rt\nTwo;375,0\nwords;12,5\n")
    how = (*model, "--no-log-frequency")
    run("words", tmp_path / "a.csv", tmp_path / "o.csv", *how)
    run("score", tmp_path / "a.csv", tmp_path / "p.csv", "--column", "word", *model)
    run("score", tmp_path / "p.csv", tmp_path / "q.csv", "--column", "word", "--attr", "again", *model)
    for name in ("o.csv", "p.csv", "q.csv"):
        with open(tmp_path / name, encoding="utf8") as file:
            rows = list(csv.DictReader(file, delimiter=";"))
        assert [row["rt"] for row in rows] == ["375,0", "12,5"]
        assert all(float(row["pll_word_l2r"].replace(",", ".")) < 0 and "." not in row["pll_word_l2r"] for row in rows)
    (tmp_path / "b.csv").write_text("word,rt\nTwo,375.0\nwords,12.5\n")
    run("words", tmp_path / "b.csv", tmp_path / "r.csv", *how)
    points = list(csv.DictReader((tmp_path / "r.csv").read_text().splitlines()))
    commas = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines(), delimiter=";"))
    assert points == [{name: cell.replace(",", ".") for name, cell in row.items()} for row in commas]


OF_SHEETS = [*(name for name in READERS if name not in ("margins", "unigrams")), "rescore"]


@pytest.mark.parametrize("command", [*OF_SHEETS, "suite --reader stereoset", "suite --reader syntaxgym"])
def test_the_file_of_a_spreadsheet_program_is_named(tmp_path, model, command):
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    given = {
        "score": ["o.csv"],
        "words": [tmp_path / "o.csv"],
        "render": [tmp_path / "o.html"],
        "suite": ["--reader", "acceptability"],
        "slots": [tmp_path / "o.csv", "--candidates", "a"],
        "rescore": ["--weight", "1"],
        "variants": ["--sequence", "MKV"],
    }
    scorers = ["builtin", "builtin,mask_margin=1"] if command == "agree" else []
    options = [*given.get(command, []), *(model if command != "agree" else [])]
    error = run(*command.split(), *scorers, tmp_path / "a.xlsx", *options, fails=True).unwrapped_stderr
    assert "CSV UTF-8" in error


def test_a_context_without_a_text_is_skipped_on_request(tmp_path, model):
    (tmp_path / "a.jsonl").write_text('{"text": "cup", "c": 3}\n{"text": "cup", "c": "The"}\n')
    how = ("--table", "words", "--no-log-frequency", "--context-column", "c", *model)
    error = run("score", tmp_path / "a.jsonl", tmp_path / "o.jsonl", *how, fails=True).unwrapped_stderr
    assert "line 1: 'c' must be text. It is 3. To leave its scores out, give --skip-errors." in error
    with pytest.warns(UserWarning, match="1 of 2 texts could not be scored"):
        run("score", tmp_path / "a.jsonl", tmp_path / "o.jsonl", "--skip-errors", *how)
    rows = [json.loads(row) for row in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["pll_word_l2r"] is None for row in rows] == [True, False]


def test_where_nothing_stands_before_a_text(tmp_path, model):
    how, scores = ("--table", "words", "--no-log-frequency", "--force", *model), dict[str, list[float]]()
    (tmp_path / "a.csv").write_text("text,c\ncup,NA\ncup,\ncup,The\n")
    (tmp_path / "a.jsonl").write_text(
        '{"text": "cup", "c": {"b": null}}\n{"text": "cup", "c": {"b": ""}}\n{"text": "cup", "c": {"b": "The"}}\n'
    )
    pq.write_table(pa.table({"text": ["cup"] * 3, "c": pa.array([None, "", "The"])}), tmp_path / "a.parquet")
    for name, column in (("a.csv", "c"), ("a.jsonl", "c.b"), ("a.parquet", "c")):
        for out in ("o.jsonl", "o.parquet"):
            run("score", tmp_path / name, tmp_path / out, "--context-column", column, *how)
        rows = [json.loads(row) for row in (tmp_path / "o.jsonl").read_text().splitlines()]
        assert rows[0]["pll_word_l2r"] == rows[1]["pll_word_l2r"] != rows[2]["pll_word_l2r"]
        read = pq.read_table(tmp_path / "o.parquet")
        scores[name] = read["pll_word_l2r"].to_pylist()
        assert scores[name] == [row["pll_word_l2r"] for row in rows] == scores["a.csv"]


def test_what_stands_between_context_and_text(tmp_path, model):
    (tmp_path / "a.jsonl").write_text('{"text": "venir.", "c": "The sou"}\n')
    scores = {}
    for separator in ("", " ", "-"):
        how = ("--table", "words", "--no-log-frequency", "--context-column", "c", "--separator", separator)
        run("score", tmp_path / "a.jsonl", tmp_path / "o.jsonl", "--force", "--shared-pieces", *how, *model)
        scores[separator] = json.loads((tmp_path / "o.jsonl").read_text())["pll_word_l2r"]
    run("score", tmp_path / "a.jsonl", tmp_path / "o.jsonl", "--force", *how[:5], *model)
    assert json.loads((tmp_path / "o.jsonl").read_text())["pll_word_l2r"] == scores[" "]
    assert len(set(scores.values())) == 3


PAIRS = "good,bad,topic\nA cat.,A cats.,x\n"


@pytest.mark.parametrize(
    ("command", "options", "message"),
    [
        ("pairs", ("--by", "topc"), "Pair 1: there is no column 'topc'"),
        ("pairs", ("--by", "topic,phenomenom"), "Pair 1: there is no column 'phenomenom'"),
        (
            "pairs",
            ("--by", "Topic"),
            "no column 'Topic'. The columns are: 'topic', 'n'. Similar: topic.",
        ),
        ("choices", ("--options", "good,bad", "--label", "n", "--by", "topc"), "Choice 1: there is no column 'topc'"),
        ("pairs", ("--items", "o.csv"), "The pairs have a column 'pll_word_l2r_good', as their scores do"),
        ("choices", ("--options", "good,bad", "--label", "n", "--items", "o.csv"), "column 'pll_word_l2r"),
        ("pairs", ("--plot", "p.png"), "Plots need matplotlib"),
        ("choices", ("--options", "good,bad", "--label", "n", "--plot", "p.png"), "Plots need matplotlib"),
        ("pairs", ("--items", "o.parquet"), "Parquet files need pyarrow"),
    ],
)
def test_what_is_wrong_is_said_before_the_work(tmp_path, model, never, monkeypatch, command, options, message):
    monkeypatch.chdir(tmp_path)
    content = PAIRS
    if "--items" in options and "parquet" not in options[-1]:
        content = content.replace("topic", "pll_word_l2r_good,pll_word_l2r,n").replace(",x", ",1,1,0")
    else:
        content = content.replace("topic", "topic,n").replace(",x", ",x,0")
    (tmp_path / "mine.csv").write_text(content)
    if "--plot" in options:
        monkeypatch.setitem(sys.modules, "matplotlib", None)
    if "o.parquet" in options:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        monkeypatch.delitem(sys.modules, "spacy_pll.corpus.parquet", raising=False)
        monkeypatch.delattr("spacy_pll.corpus.parquet", raising=False)
    given = ("mine.csv", *model)
    assert message in run(command, *given, *options, fails=True).unwrapped_stderr
    assert not [path for path in tmp_path.iterdir() if path.name[:2] in ("o.", "p.")]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("command", ["words", "pairs", "ppl", "slots", "render"])
def test_half_a_character_in_a_column_that_is_copied_loses_no_work(tmp_path, model, command, ending):
    """It is written as an escape, where the end of all work was an error."""
    row = {
        "text": "The ___ sleeps.",
        "word": "cat",
        "good": "A cat.",
        "bad": "A cats.",
        "half": "a\ud83d",
        "k\udfff": 1,
    }
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    output = tmp_path / f"o{ending if command != 'render' else '.html'}"
    options = {
        "words": [output, "--no-log-frequency"],
        "pairs": ["--items", output],
        "ppl": ["--windows", "2", "--output", output],
        "slots": [output, "--candidates", "cat,dog"],
        "render": [output],
    }[command]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(command, tmp_path / "a.jsonl", *options, *model)
    if command == "render":
        assert "\\ud83d" in output.read_text("utf8")
    elif ending == ".parquet":
        assert pq.read_table(output).to_pylist()[0]["half"] == "a\\ud83d"
    else:
        assert "a\\ud83d" in output.read_text("utf8") and "k\\udfff" in output.read_text("utf8")
