import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll.evaluation.slots import read_slots

from ..conftest import write_jsonl


def read(tmp_path, name, content, **how):
    (tmp_path / name).write_text(content)
    table = write_jsonl(tmp_path / "t.jsonl", {"text": "___"})
    [slot] = read_slots(str(table), vocabulary=str(tmp_path / name), **how)
    return slot.candidates


@pytest.mark.parametrize(
    ("name", "content", "how"),
    [
        ("v.csv", "word,n\ntea,3000\nmilk,2500\nNA,9\n", {}),
        ("v.csv", "Word;n\ntea;3,1\nmilk;2,5\nNA;9,0\n", {}),
        ("v.csv", '"","word","n"\n"1","tea",30\n"2","milk",25\n"3","NA",9\n', {}),
        ("v.tsv", "Word\tFREQcount\ntea\t3000\nmilk\t2500\nNA\t9\n", {}),
        ("v.tsv", "lemma\tpos\ntea\tN\nmilk\tN\nmilk\tV\nNA\tN\n", {"word": "lemma"}),  # one word with two rows
        ("v.csv", "tea\nmilk\nNA\n", {}),  # no header
        ("v.csv", "word\ntea\nmilk\nNA\n", {}),
        ("v.csv", "lemma\ntea\nmilk\nNA\n", {"word": "lemma"}),
        ("v.jsonl", '{"word": "tea"}\n{"word": "milk"}\n{"word": "NA"}\n', {}),
        ("v.json", '[{"word": "tea"}, {"word": "milk"}, {"word": "NA"}]', {}),
        ("v.txt", "tea\nmilk\nNA\n", {}),
    ],
)
def test_a_table_of_words_is_read_by_column(tmp_path, name, content, how):
    assert read(tmp_path, name, content, **how) == ("tea", "milk", "NA")


def test_a_table_without_the_names_of_columns(tmp_path):
    assert read(tmp_path, "v.csv", "tea\nhot milk\n") == ("tea", "hot milk")
    message = r"no column 'word'. The columns are: 'tea', '3000'. Name .* with `word`. If line 1"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "v.csv", "tea,3000\nmilk,2500\n")
    with pytest.raises(ValueError, match="row 2 is empty"):
        read(tmp_path, "v.csv", "word,n\ntea,1\n,2\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("Word\tn\ntea\t3000\nmilk\t2500\n", "tabs stand in 3 of 3 lines, and each whole line is a candidate"),
        ("tea 3000\nmilk 2500\nhot wine 900\n", "a number stands beside the word in 3 of 3 lines"),
        ("   3000 tea\n    900 hot wine\n", "a number stands beside the word in 2 of 2 lines"),  # of uniq -c
        ("tea 1.2e-05\nmilk 0,5\n", "a number stands beside the word in 2 of 2 lines"),
        ("word n\ntea 3000\nmilk 2500\nwine 900\n", "a number stands beside the word in 3 of 4 lines"),
        ("tea;3000\nmilk;2500\n", "If it is a table, make it a .tsv or .csv file. There, `word` names"),
        ("word,n\ntea,3\n", "line 1 is 'word,n', as the names of columns"),
        ("[PAD]\n[unused1]\ntea\n##ing\n", r"3 of 4 candidates are written as wordpieces .* such as '\[PAD\]'"),
        ("<s>\ntea\n▁milk\n", "2 of 3 candidates"),
        ("tea\nĠtea\nĠmilk\n", "2 of 3 candidates are written as wordpieces .* such as 'Ġtea'"),
    ],
)
@pytest.mark.parametrize("name", ["v.txt", "v.lst"])
def test_lines_that_are_rows_or_wordpieces_are_warned_of(tmp_path, name, content, message):
    with pytest.warns(UserWarning, match=message) as caught:
        found = read(tmp_path, name, content)
    assert len(caught) == 1 and len(found) == content.count("\n")  # as they are


WORDS = ["tea", "hot milk", "Boeing 747", "3 o'clock", "R&D", "c. 1900", "Łódź", "字", "a-b", "1984", "don't", "No. 1",
         "salt, pepper", "Ġanni", "##", "@ home"]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), unique=True, min_size=1))
@example(["Psalm 1", "Psalm 2", "Psalm 3"])
def test_ordinary_words_and_phrases_have_no_warning(tmp_path_factory, words):
    others = [f"word{letter}" for letter in "abcdefghijklmnopqrst"] if words[0] != "Psalm 1" else []
    assert read(tmp_path_factory.mktemp("words"), "v.txt", "\n".join([*words, *others])) == (*words, *others)
