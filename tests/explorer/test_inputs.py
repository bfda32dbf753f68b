"""What people type, and files as `pll score` writes them."""

import math

import pytest
from spacy.vocab import Vocab

from spacy_pll.corpus.readers import InputError
from spacy_pll.explorer.inputs import (
    as_number,
    file_rows,
    is_scored,
    number_columns,
    read_upload,
    sorted_order,
    split_at_slot,
    split_lines,
)

from ..cli.conftest import run

TEXTS = "The cats sleep.\nA house, too.\n"


def test_lines():
    assert split_lines(" one \n\n\ttwo\r\n") == ["one", "two"]


@pytest.mark.parametrize(
    ("sentence", "parts"),
    [
        ("The ___ sat.", ("The ", " sat.")),
        ("un____", ("un", "")),
        ("__ snake_case", ("", " snake_case")),
    ],
)
def test_a_slot(sentence, parts):
    assert split_at_slot(sentence) == parts


@pytest.mark.parametrize(("sentence", "number"), [("No slot_here.", 0), ("___ and ___", 2)])
def test_a_sentence_without_one_slot(sentence, number):
    with pytest.raises(ValueError, match=f"one slot, written ___. It has {number}: '{sentence}'"):
        split_at_slot(sentence)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, model_folder):
    """scored(ending, *options): a file that `pll score` wrote, as it is uploaded."""
    folder = tmp_path_factory.mktemp("scored")
    (folder / "texts.txt").write_text(TEXTS)

    def make(ending, *options):
        path = folder / f"scores{len(list(folder.iterdir()))}{ending}"
        run("score", folder / "texts.txt", path, "--model", model_folder("bert"), *options)
        return path.name, path.read_bytes()

    return make


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".spacy"])
@pytest.mark.parametrize("metrics", ["original", "original,word_l2r"])
def test_files_of_scores(scored, ending, metrics):
    records = read_upload(*scored(ending, "--metrics", metrics), "text", Vocab())
    rows = file_rows(records, "pll")
    assert [row["text"] for row in rows] == TEXTS.splitlines()
    columns = number_columns(rows)
    score = "pll_original" if metrics == "original" else "pll_word_l2r"
    assert score in columns and "pll_pieces" in columns and "pppl" in columns and "text" not in columns
    assert rows[0][score] < 0
    lowest = min(range(2), key=lambda i: rows[i][score])
    assert sorted_order(rows, score, lowest_first=True) == [lowest, 1 - lowest]
    assert sorted_order(rows, score, lowest_first=False) == [1 - lowest, lowest]
    assert sorted_order(rows, None, lowest_first=True) == [0, 1]
    assert all(is_scored(record.text, "pll") for record in records) if ending == ".spacy" else True


def test_tasks_for_prodigy(scored):
    rows = file_rows(read_upload(*scored(".jsonl", "--prodigy"), "text", Vocab()), "pll")
    assert {row["meta.score"] for row in rows} == {0.0, 1.0}
    assert "tokens" not in rows[0]


def test_rows_of_tokens(scored):
    rows = file_rows(read_upload(*scored(".csv", "--tokens"), "text", Vocab()), "pll")
    assert [row["text"] for row in rows][:3] == ["The", "cats", "sleep"]
    assert rows[1]["surprisal"] > 0


def test_docs_without_scores(make_nlp):
    nlp = make_nlp()
    doc = nlp.make_doc("The cats sleep.")
    assert not is_scored(doc, "pll") and not is_scored(nlp.make_doc(""), "pll")
    assert is_scored(nlp(doc), "pll") and not is_scored(doc, "mine")


def test_missing_numbers_come_last():
    rows = [{"a": None}, {"a": -2.0, "b": "x"}, {"a": -3.0}, {}]
    assert number_columns(rows) == ["a"]
    assert sorted_order(rows, "a", lowest_first=False) == [1, 2, 0, 3]


@pytest.mark.parametrize(("text", "value"), [("-1.5", -1.5), ("", None), ("a", "a"), (3, 3), (None, None)])
def test_numbers_of_csv_files(text, value):
    assert as_number(text) == value


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("t.jsonl", b'{"text": "a"}\nno', "^t.jsonl, line 2: not valid JSON"),
        ("t.csv", b"words\na\n", "^t.csv, line 1: there is no column 'text'.*the field “Column of the texts”"),
        ("../t.docx", b"", "^t.docx: the format '.docx' cannot be read"),
    ],
)
def test_files_that_cannot_be_read(name, contents, message):
    with pytest.raises(InputError, match=message):
        read_upload(name, contents, "text", Vocab())


def test_rows_without_a_number_come_last():
    rows = [{"n": math.nan}, {"n": 2.0}, {}, {"n": 1.0}, {"n": None}, {"n": math.inf}]
    assert sorted_order(rows, "n", lowest_first=True) == [3, 1, 5, 0, 2, 4]
    assert sorted_order(rows, "n", lowest_first=False) == [5, 1, 3, 0, 2, 4]
