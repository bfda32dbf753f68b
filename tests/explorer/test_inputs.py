"""What people type, and files as `pll score` writes them."""

import pytest
from spacy.vocab import Vocab

from spacy_pll.corpus.readers import InputError, Record
from spacy_pll.explorer.inputs import (
    file_numbers,
    file_table,
    is_scored,
    read_upload,
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
    table = file_table(records, "pll")
    assert list(table["text"]) == TEXTS.splitlines()
    numbers = file_numbers(table)
    score = "pll_original" if metrics == "original" else "pll_word_l2r"
    assert {score, "pll_pieces", "pppl"} <= set(numbers) and "text" not in numbers
    assert (numbers[score] < 0).all()
    assert all(is_scored(record.text, "pll") for record in records) if ending == ".spacy" else True


def test_tasks_for_prodigy(scored):
    table = file_table(read_upload(*scored(".jsonl", "--prodigy"), "text", Vocab()), "pll")
    assert set(file_numbers(table)["meta.score"]) == {0.0, 1.0}
    assert "tokens" not in table


def test_rows_of_tokens(scored):
    table = file_table(read_upload(*scored(".csv", "--tokens"), "text", Vocab()), "pll")
    assert list(table["text"])[:3] == ["The", "cats", "sleep"]
    assert file_numbers(table)["surprisal"][1] > 0


def test_docs_without_scores(make_nlp):
    nlp = make_nlp()
    doc = nlp.make_doc("The cats sleep.")
    assert not is_scored(doc, "pll") and not is_scored(nlp.make_doc(""), "pll")
    assert is_scored(nlp(doc), "pll") and not is_scored(doc, "mine")


def test_columns_of_numbers():
    fields = [{"a": None, "b": "", "c": 1}, {"a": -2.0, "b": "7", "c": "x"}, {"b": "1e3"}]
    numbers = file_numbers(file_table([Record("", "a", row) for row in fields], "pll"))
    assert list(numbers) == ["a", "b"]
    assert list(numbers.sort_values("a").index) == [1, 0, 2]  # rows without a number come last
    assert list(numbers["b"])[1:] == [7, 1000]


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
