import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.advice.word_rows import INDEX, joined_rows, other_order
from spacy_pll.tables.word_rows import texts_of_rows


def said_of(rows, by):
    return [*filter(None, [joined_rows(rows, texts_of_rows(rows, "word", by), "word", by)])]


@given(
    st.lists(st.sampled_from(["s1", "s2", "s3"]), min_size=2, max_size=3, unique=True),
    st.lists(st.lists(st.sampled_from(["She", "saw", "it"]), min_size=3, max_size=5), min_size=2, max_size=3),
    st.sampled_from([("subj", "item", "n"), ("item", "subj", "n"), ("item", "n", "subj"), ("n", "subj", "item")]),
)
def test_rows_of_several_texts_in_one(readers, sentences, order):
    """Each reader reads each sentence. However the rows are sorted, a forgotten column, or words of other texts between
    those of a text, are noticed, and a table that is right stays silent.
    """
    rows = [
        {"subj": subj, "item": item, "n": n, "word": word}
        for subj in readers
        for item, words in enumerate(sentences)
        for n, word in enumerate(words)
    ]
    rows.sort(key=lambda row: [row[name] for name in order])
    said = said_of(rows, ["subj", "item"])
    keys = [(row["subj"], row["item"]) for row in rows]
    runs = [key for i, key in enumerate(keys) if i == 0 or keys[i - 1] != key]
    assert bool(said) == (len(runs) > len(set(runs)))
    if said:  # the first two rows: by brute force over all of them
        pairs = ((i, j) for i in range(len(rows)) for j in range(i + 2, len(rows)) if keys[j] == keys[i])
        i, j = next((i, j) for i, j in pairs if not any(key == keys[i] for key in keys[i + 1 : j]))
        assert len(said) == 1 and said[0].startswith(f"Rows {i + 1} and {j + 1} are read as neighbours in one text")
    forgotten = said_of(rows, ["item"])
    assert len(forgotten) == 1 and "missing in `by`" in forgotten[0]
    assert "neighbours" in forgotten[0] or "each value in the column 'subj'" in forgotten[0]


def said_of_order(rows, by):
    return [*filter(None, [other_order(rows, texts_of_rows(rows, "word", by), ["word", *by, *INDEX])])]


@given(
    st.lists(st.permutations(range(12)).map(lambda order: order[:9]), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([int, str, float]),
    st.sampled_from(["n", "index"]),
)
def test_rows_in_another_order_than_their_numbers(orders, is_sorted, kind, name):
    orders = [range(len(order)) if is_sorted else order for order in orders]
    rows = [
        {"item": i, name: kind(n), "rt": 300 + n * 37 % 400, "length": 3, "x": None if n else "a", "word": "a"}
        for i, order in enumerate(orders)
        for n in order
    ]
    steps = [{b > a for a, b in zip(order, order[1:])} for order in orders]
    said = said_of_order(rows, ["item"])
    assert len(said) == (name == "n" and any(len(of_text) == 2 for of_text in steps))
    for one in said:
        i, j = (int(number) - 1 for number in re.match(r"Rows (\d+) and (\d+) are", one).groups())
        assert j == i + 1 and float(rows[i]["n"]) > float(rows[j]["n"]) and rows[i]["item"] == rows[j]["item"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),  # the first number
            st.lists(st.sampled_from(["kept"] * 12 + ["removed", "twice", "no word"]), min_size=5, max_size=12),
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([int, str, float]),
)
def test_rows_that_were_removed_or_are_there_twice(texts, kind):
    """By the fates of the rows, which the numbers of a right table do not show."""
    rows, counted, odd = [], 0, []
    for item, (first, fates) in enumerate(texts):
        before = None
        for number, fate in enumerate(fates, first):
            row = {"item": item, "n": kind(number), "rt": 300 + number * 37 % 400, "word": "a"}
            if fate == "no word":
                rows.append({**row, "word": ""})
            for copy in range({"kept": 1, "twice": 2}.get(fate, 0)):
                gone = before is not None and not copy and "removed" in fates[before - first : number - first]
                if before is not None:
                    counted += 1
                    odd += [(len(rows), before, number)] if copy or gone else []
                rows.append(row)
                before = number
    said = said_of_order(rows, ["item"])
    assert len(said) == bool(odd and len(odd) <= counted / 4)
    for one in said:
        j, before, after = odd[0]
        assert f" and {j + 1} are read as neighbours in one text, and have {before} and {after} in the column" in one
        assert ("rows removed or moved" in one) == (before != after) and ("there twice" in one) == (before == after)


@pytest.mark.parametrize("first", [0, 1, 7])
def test_numbers_that_begin_anew_are_no_other_order(first):
    """Of sentences in a text, as the Provo corpus has them, or of a text whose first word is not there."""
    words = [(sentence, n) for sentence, length in enumerate((7, 4, 9)) for n in range(first, first + length)]
    rows = [{"text": 1, "sentence": sentence, "n": n, "word": "a"} for sentence, n in words]
    assert not said_of_order(rows, ["text"]) and not said_of_order(rows[1:], ["text"])
    [said] = said_of_order([row for i, row in enumerate(rows) if i != 13], ["text"])
    assert f"Rows 13 and 14 are read as neighbours in one text, and have {first + 1} and {first + 3} in" in said
    [said] = said_of_order([*rows[:12], rows[13], rows[12], *rows[14:]], ["text"])
    assert f"Rows 12 and 13 are read as neighbours in one text, and have {first} and {first + 2} in" in said


VERSIONS = ["The horse raced past fell.", "The horse that was raced past fell."]
ITEMS = [
    VERSIONS,
    ["The boat floated down sank.", "The boat that was floated down sank."],
    ["She left me.", "So he is."],
]


def test_conditions_that_are_read_as_one_text_are_noticed():
    """Here, the third item has two texts that are no versions of one."""
    rows = [
        {"item": item, "cond": cond, "place": n, "word": word}
        for item, versions in enumerate(ITEMS)
        for cond, version in enumerate(versions)
        for n, word in enumerate(version.split())
    ]
    assert not said_of(rows, ["item", "cond"])
    (said,) = said_of(rows, ["item"])
    assert said.startswith("Rows 1 and 6 are read as one text, which has nearly the same words several times: once for")
    assert "each value in the column 'cond'. Is this column missing in `by`?" in said
    some = [row for row in rows if row["item"] != 1]  # as many texts speak for it as against it
    assert not said_of(some, ["item"])
    # Sentences of a story, of which some are alike, or short.
    story = [*VERSIONS, "It was not the one that I knew.", "He saw.", "He saw it."]
    rows = [{"story": 1, "line": n, "word": word} for n, line in enumerate(story) for word in line.split()]
    assert not said_of(rows, ["story"]) and not said_of(rows, [])


def test_a_line_that_comes_again_is_no_reader():
    """Lines of a poem, of which one is there twice."""
    lines = ["Round and round", "the wheel goes", "Round and round", "all day long"]
    rows = [{"poem": "a", "line": n, "word": word} for n, line in enumerate(lines) for word in line.split()]
    assert not said_of(rows, ["poem"]) and not said_of(rows, [])


def test_columns_of_a_frame_that_are_not_filled():
    rows = [{"item": 1, "x": pd.NA if i % 2 else i, "word": word} for i, word in enumerate("a b c a b c".split())]
    assert not said_of(rows, ["item"])
