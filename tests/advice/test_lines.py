import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.advice.lines import HEAD, signs_of_table

from ..corpus.reading import read_records

SENTENCES = ["The cats sleep.", "She left, and he stayed.", "Who saw it?", "It was 3.14 or so.", "Chapter 4", "Yes", ""]


@given(
    st.lists(st.sampled_from(SENTENCES[:4]), min_size=3, max_size=30),
    st.sampled_from("\t,;|"),
    st.sampled_from([("text", "n"), ("n", "text"), ("good", "bad"), ("id", "text", "cond")]),
    st.booleans(),
)
def test_a_table_is_told_from_its_first_lines(sentences, mark, names, has_header):
    rows = [mark.join("x" if name in ("n", "id", "cond") else sentence for name in names) for sentence in sentences]
    lines = [mark.join(names)] * has_header + rows
    assert bool(signs_of_table(lines)) == (mark == "\t" or has_header)
    assert not signs_of_table([line.replace("\t", " ") for line in rows])


@pytest.mark.parametrize("score", ["-3.14", "0.5", "1", "0", "-12", "375,0", "1.5e-05", "+2.0"])
@pytest.mark.parametrize("between", [" ", "  ", "\t", ",", ";", " | "])
def test_scores_behind_sentences(score, between):
    lines = [f"{sentence}{between}{score}" for sentence in ("The cats sleep.", "Who left?", 'She said "no."')]
    assert signs_of_table(lines)
    assert not signs_of_table([*lines[:2], "He left."]) or between == "\t"


@pytest.mark.parametrize("between", [" ", ",", ";", " | "])
def test_labels_before_sentences(between):
    lines = [f"{label}{between}The cats sleep." for label in (1, 0, 1)]
    assert signs_of_table(lines)
    assert not signs_of_table([line.replace("0", "1") for line in lines]) and not signs_of_table(lines[:2])


@pytest.mark.parametrize(
    "content",
    [
        '"good" "bad"\n"1" "A cat." "A cats."',
        '"text"\n"1" "A cat."',
        '"good" "bad" "n"\n"a" "A cat." "A cats." -1.5e+02\n"b" "It\'s \\"it\\"." NA TRUE',
        '"good" "bad"\n"A ""cat""." "A cats."',
    ],
)
def test_tables_of_r_are_told_from_their_names(tmp_path, content):
    lines = content.splitlines()
    assert "as R writes the names of columns" in signs_of_table(lines)
    assert not signs_of_table(lines[:1]) and not signs_of_table([*lines, '"Yes," he said.'])
    assert not signs_of_table([lines[0].replace('"', ""), *lines[1:]])
    (tmp_path / "a.txt").write_text(content)
    assert len(said(tmp_path / "a.txt")[1]) == 1


@given(
    st.lists(
        st.sampled_from([*SENTENCES, "1 man left.", "\tAn indented line.", "A line with\ta tab.", "Text no. 3"]),
        max_size=30,
    )
)
def test_lines_of_text_are_no_table(lines):
    assert bool(signs_of_table(lines)) == (
        len([line for line in lines if line]) > 1
        and sum("with\ta" in line for line in lines) > 0.75 * len([line for line in lines if line])
    )


def said(path):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts = [record.text for record in read_records(path)]
    return texts, [str(one.message) for one in caught]


def test_a_corpus_that_is_a_table_is_read_with_a_warning(tmp_path):
    (tmp_path / "a.txt").write_text("good\tbad\nThe cats sleep.\tThe cats sleeps.\n")
    texts, messages = said(tmp_path / "a.txt")
    assert texts == ["good\tbad", "The cats sleep.\tThe cats sleeps."] and len(messages) == 1
    assert "a.txt: tabs stand in 2 of 2 lines" in messages[0]
    assert "make it a .tsv or .csv file. There, `column` names" in messages[0]
    (tmp_path / "b.txt").write_text("A tab\tin each line.\n" * HEAD + "And none here.\n" * 100)
    assert len(said(tmp_path / "b.txt")[1]) == 1
    (tmp_path / "b.txt").write_text("None here.\n" * HEAD + "A tab\tin each line.\n" * 100)
    assert not said(tmp_path / "b.txt")[1]
