import json
import random

import numpy as np

from spacy_pll import read_pairs
from spacy_pll.evaluation.items import Pair, levels, sample_items
from spacy_pll.evaluation.measurements import accuracies


def test_a_sample_is_the_paradigms_own():
    pairs = [Pair(f"{name} {i}", "", {"UID": name}) for i in range(20) for name in ("x", "y")]
    drawn = sample_items(pairs, 5)
    assert [pair.paradigm for pair in drawn] == ["x"] * 5 + ["y"] * 5
    assert drawn[:5] == random.Random("x").sample([pair for pair in pairs if pair.paradigm == "x"], 5)
    # What else is in the file does not change it.
    assert drawn[5:] == sample_items([pair for pair in pairs if pair.paradigm == "y"], 5)
    assert sorted(pair.good for pair in sample_items(pairs, 100)) == sorted(pair.good for pair in pairs)


def test_conditions_are_crossed_unless_one_lies_in_the_other():
    crossed = [Pair("", "", {"voice": voice, "kind": kind}) for voice in "ap" for kind in "xyz"]
    found = levels(crossed, ["voice", "kind"])
    assert list(found) == [(), ("voice",), ("kind",), ("voice", "kind")]
    assert found["voice",][1] == ("p", ("p",), [3, 4, 5]) and found["voice", "kind"][4] == ("p x y", ("p", "y"), [4])
    nested = [Pair("", "", {"a": name[0], "b": name}) for name in ("x1", "x2", "y1")]
    assert list(levels(nested, ["a", "b"])) == [(), ("a",), ("b",)]


def test_the_smallest_groups_are_so_whatever_column_comes_last():
    pairs = [Pair(f"{i}", "", {"UID": uid, "field": uid[0]}) for uid in ("x1", "x2", "y1") for i in range(int(uid[1]))]
    assert len(sample_items(pairs, 1, ["UID", "field"])) == len(sample_items(pairs, 1, ["field", "UID"])) == 3
    _, macro, *_ = accuracies(pairs, {"m": np.array([0, 1, 1, 1.0])}, ["UID", "field"])
    assert (macro.name, macro.value) == ("UID", 2 / 3)


VALUES = [
    ("a x b", "c"),
    ("a", "b x c"),
    (None, "c"),
    ("None", "c"),
    (1, "c"),
    (True, "c"),
    ([1], "c"),
    ("d", "c"),
    ("d", "e"),
]


def test_groups_have_the_same_values_not_the_same_text():
    pairs = [Pair("good", "bad", {"p": p, "q": q}) for p, q in [*VALUES, *VALUES[::-1]]]
    groups = levels(pairs, ["p", "q"])["p", "q"]
    assert sorted(group.members for group in groups) == [[i, 17 - i] for i in range(9)]
    assert {str(group.values) for group in groups} == {str(values) for values in VALUES}
    crossed = ["'a x b' x 'c'", "'a' x 'b x c'", "None x 'c'", "'None' x 'c'"]
    assert {group.name for group in groups} == {*crossed, "1 x c", "True x c", "[1] x c", "d x c", "d x e"}
    found = [one for one in accuracies(pairs, {"m": np.ones(18)}, ["p", "q"]) if len(one.group) == 2]
    assert [(one.level, one.name, tuple(one.group.values())) for one in found] == [
        ("p x q", group.name, group.values) for group in groups
    ]
    assert len(sample_items(pairs, 1, ["p", "q"])) == 9


def test_a_field_inside_another_is_a_column_to_group_by(tmp_path):
    """As it may be a column of options."""
    rows = [{"good": f"It is {i}.", "bad": f"It are {i}.", "about": {"kind": "ab"[i % 2]}} for i in range(3)]
    (path := tmp_path / "pairs.json").write_text(json.dumps(rows))
    groups = levels(read_pairs(str(path)), ["about.kind"])["about.kind",]
    assert [(group.name, group.members) for group in groups] == [("a", [0, 2]), ("b", [1])]
