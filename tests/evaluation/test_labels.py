import json

import pytest

from spacy_pll import InputError, read_choices
from spacy_pll.evaluation.labels import Labelled, read_labels


def labels(*rows, kind=None):
    made = [
        Labelled(f"line {n}", label, texts, ["A", "B", "C"][: len(texts)]) for n, (label, texts) in enumerate(rows, 1)
    ]
    return read_labels(made, "label", kind)


DIGITS = ["3", "2", "1"]


@pytest.mark.parametrize(
    ("rows", "right"),
    [
        ([("0", ["9", "6", "3"]), ("1", ["1", "4", "2"])], [0, 1]),  # the second is also the text of an option
        ([("9", ["9", "6", "3"]), ("1", ["1", "4", "2"])], [0, 0]),
        ([(0.0, ["a", "b"]), (1, ["a", "b"]), ("1.0", ["a", "b"]), (" 0 ", ["a", "b"])], [0, 1, 1, 0]),
        ([("b", ["x", "y"]), ("A", ["x", "y"])], [1, 0]),
        ([("C", ["x", "y", "z"])], [2]),
        ([("B", ["B", "A"]), ("A", ["B", "A"])], None),  # texts, or columns
        ([("2", DIGITS)], None),
        ([(2, DIGITS)], None),  # as in a table
    ],
)
def test_labels_of_a_file_are_read_in_one_way(rows, right):
    if right is not None:
        assert labels(*rows) == right
    else:
        with pytest.raises(InputError, match="line 1: 'label' is .*All labels can be texts of options, and"):
            labels(*rows)


def test_a_kind_that_is_given():
    assert labels((2, DIGITS), kind="from0") == [2] and labels((2, DIGITS), kind="text") == [1]
    assert labels((2, DIGITS), kind="from1") == [1] and labels(("1", DIGITS), ("3", DIGITS), kind="from1") == [0, 2]
    assert labels(("B", ["B", "A"]), kind="column") == [1]
    with pytest.raises(InputError, match="`labels` must be one of text, column, from0, .*. It is 'From1'"):
        labels((2, DIGITS), kind="From1")
    with pytest.raises(InputError, match="line 2: 'label' is 'c'.*The labels are read as numbers from 0"):
        labels(("0", ["a", "b"]), ("c", ["a", "b"]), kind="from0")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("1", ["a", "b"]), ("2", ["a", "b"])],
            "line 2: .*none of the options.*If the labels count from 1, give `labels=",
        ),
        (
            [("0", ["a", "b"]), ("1", ["a", "b"]), ("b", ["a", "c"])],
            "line 3: .*is 'b', one of the letters. Other labels of",
        ),
        ([("a", ["a", "b"]), ("c", ["a", "d"])], "line 2: 'label' is 'c', which is none of the options: 'a', 'd'"),
        ([(float("nan"), ["a", "b"])], "line 1: 'label' is nan"),
        ([("0.5", ["a", "b"])], "line 1: 'label' is '0.5'"),
        ([("", ["a", "b"])], "line 1: 'label' is ''"),
        ([("9" * 5000, ["a", "b"])], "line 1: 'label' is '9+.*, which is none of the options"),
    ],
)
def test_labels_that_fit_no_option(rows, message):
    with pytest.raises(InputError, match=message):
        labels(*rows)


def test_json_and_tables_are_read_alike(tmp_path):
    for label in (0, 1, "0", "a2", "one", "B", 1.0):
        row = {"one": "a1", "two": "a2", "label": label}
        (tmp_path / "a.jsonl").write_text(json.dumps(row))
        (tmp_path / "a.csv").write_text("one,two,label\n" + ",".join(map(str, row.values())) + "\n")
        kind = "from0" if label in (0, 1, "0") else None  # 1 alone may also be from 1
        files = ("a.jsonl", "a.csv")
        both = [read_choices(str(tmp_path / name), [], ["one", "two"], labels=kind) for name in files]
        assert both[0] == both[1] and both[0][0].right == (label not in (0, "0", "one"))


def test_each_file_of_a_folder_has_its_own_way(tmp_path):
    for name, label in (("a.jsonl", "y"), ("b.jsonl", 0)):
        (tmp_path / name).write_text(json.dumps({"options": ["x", "y"], "label": label}))
    assert [choice.right for choice in read_choices(str(tmp_path))] == [1, 0]


def test_numbers_that_may_be_from_1_are_warned_of():
    """If the first of two options is always right, a file that counts from 1 would be read the other way round."""
    rows = [(1, ["a", "b"]), ("1", ["c", "d"])]
    with pytest.warns(UserWarning, match="line 1: 'label' is 1.*none is 0: they may count from 1"):
        assert labels(*rows) == [1, 1]
    assert labels(*rows, kind="from0") == [1, 1] and labels(*rows, kind="from1") == [0, 0]
    assert labels(*rows, (0, ["e", "f"])) == [1, 1, 0]


def test_a_list_of_numbers_counts_from_0(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"options": ["x", "y"], "label": [0, 1]}))
    assert read_choices(str(tmp_path / "a.jsonl"))[0].right == 1
    with pytest.raises(InputError, match="none of the options"):
        read_choices(str(tmp_path / "a.jsonl"), labels="from1")
