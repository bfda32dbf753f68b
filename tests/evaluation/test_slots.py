import json

import pytest

from spacy_pll import Filler
from spacy_pll.evaluation.intervals import proportion
from spacy_pll.evaluation.slots import read_slots, slot_measurements

from ..conftest import write_jsonl


def test_candidates_for_all_by_row_and_from_a_vocabulary(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("id,text,words,right\n1,A ___ b.,c|d e ,d e\n2,___!,x|y|z,x\n")
    first, second = read_slots(str(table), candidate_column="words", gold="right")
    assert first[:5] == ("A ", " b.", ("c", "d e"), "d e", f"{table}, line 2")
    assert dict(first.fields) == {"id": "1", "text": "A ___ b.", "right": "d e"}
    assert (second.candidates, second.gold) == (("x", "y", "z"), "x")
    lists = write_jsonl(tmp_path / "t.jsonl", {"s": "A [GAP]", "words": ["a|b", "c"]})
    (found,) = read_slots(str(lists), candidate_column="words", column="s", gap="[GAP]")
    assert found.candidates == ("a|b", "c") and found.gold is None
    (tmp_path / "vocabulary.lst").write_text("c\nd e\n")
    for how in ({"vocabulary": str(tmp_path / "vocabulary.lst")}, {"candidates": ["c", "d e"]}):
        assert {one.candidates for one in read_slots(str(table), **how)} == {("c", "d e")}
    (tmp_path / "t.txt").write_text("A ___\n\n___ b\n")
    assert [one.fields["text"] for one in read_slots(str(tmp_path / "t.txt"), ["a"])] == ["A ___", "___ b"]
    rows = [{"text": "___", "w": given} for given in ("a, b|c", ["a, b", "c"], ["[a, b"], "a")]
    found = read_slots(str(write_jsonl(tmp_path / "w.jsonl", *rows)), candidate_column="w")
    assert [one.candidates for one in found] == [("a, b", "c"), ("a, b", "c"), ("[a, b",), ("a",)]


@pytest.mark.parametrize(
    "rows, how, message",
    [
        ([{"text": "___"}], {}, "Say what may stand in the gap"),
        ([{"text": "___"}], {"candidates": ["a"], "vocabulary": "x"}, "Say what may stand"),
        ([{"text": "___"}], {"candidates": ["a"], "search": True}, "or `top` to search words"),
        ([], {"candidates": ["a"]}, "There is no text in"),
        ([{"text": "___"}, {"text": "a"}], {"candidates": ["a"]}, "jsonl, line 2: a text must have one gap"),
        ([{"text": "___ ___"}], {"candidates": ["a"]}, "line 1: .* It has 2"),
        ([{"text": "___", "w": "a||b"}], {"candidate_column": "w"}, "line 1, candidate 2 is empty"),
        ([{"text": "___", "w": "a, b"}], {"candidate_column": "w"}, r"line 1: 'w' has no \| between .*Write a\|b\|c"),
        ([{"text": "___", "w": "['a']"}], {"candidate_column": "w"}, r"line 1: 'w' has no \| between candidates"),
        ([{"text": "___", "w": ["a", "a"]}], {"candidate_column": "w"}, "line 1, candidate 2: 'a' is there twice"),
        ([{"text": "___", "w": ["a", 1]}], {"candidate_column": "w"}, "line 1, candidate 2 is no text"),
        ([{"text": "___"}], {"candidate_column": "w"}, "line 1: there is no column 'w'.*`candidate_column`"),
        ([{"text": "___"}], {"candidates": ["a"], "gold": "g"}, "line 1: there is no column 'g'.*`gold`"),
        ([{"text": "___", "g": "b"}], {"candidates": ["a"], "gold": "g"}, "line 1: 'b' is right, and is no candidate"),
        ([{"text": "___"}], {"candidates": ["a", "b", "a"]}, "Candidate 3: 'a' is there twice, first as Candidate 1"),
        ([{"text": "___"}], {"candidates": ["a"], "column": "s"}, "there is no column 's'"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_read(tmp_path, rows, how, message):
    path = write_jsonl(tmp_path / "t.jsonl", *rows)
    with pytest.raises(ValueError, match=message):
        read_slots(str(path), **how)


@pytest.mark.parametrize(
    "lines, message", [("a\n\nb\n", "line 2 is empty"), ("a\nb\nb\n", "line 3: 'b' is there twice")]
)
def test_a_vocabulary_that_cannot_be_read(tmp_path, lines, message):
    (tmp_path / "v.txt").write_text(lines)
    with pytest.raises(ValueError, match=f"v.txt, {message}"):
        read_slots(str(write_jsonl(tmp_path / "t.jsonl", {"text": "___"})), vocabulary=str(tmp_path / "v.txt"))


def test_measures(tmp_path):
    rows = [{"text": "___", "g": "a", "kind": kind} for kind in ("x", "x", "y", "y")]
    slots = read_slots(str(write_jsonl(tmp_path / "t.jsonl", *rows)), ["a", "b", "c"], gold="g")

    def ranked(*ranks):
        return [Filler(text, -1.0, 1, None, None, rank, text == "a") for text, rank in zip("abc", ranks)]

    found = [ranked(1, 2, 3), ranked(3, 1, 2), ranked(1, 1, 3), ranked(None, 1, 2)]
    measures = {(one.measure, one.label): one for one in slot_measurements(slots, found, [2], ["kind"])}
    assert measures["accuracy", "overall"][2:6] == (4, *proportion([1, 0, 0.5, 0]))
    assert measures["accuracy", "x"].value == 0.5 and measures["accuracy", "y"].value == 0.25
    assert measures["mean reciprocal rank", "overall"].value == pytest.approx((1 + 1 / 3 + 1 + 0) / 4)
    assert measures["hits at 2", "overall"][3:6] == tuple(proportion([1, 0, 1, 0]))
    assert json.dumps([*measures["hits at 2", "y"]])
    # Groups of two columns may have the same names, and a mean is none of a group.
    slots = [one._replace(fields={"a": a, "b": b}) for one, a, b in zip(slots, "yyyn", "nyyy")]
    groups = [
        (one.level, one.label) for one in slot_measurements(slots, found, [], ["a", "b"]) if one.measure == "accuracy"
    ]
    names = {"a": "ny", "b": "ny", "a x b": ("n x y", "y x n", "y x y")}
    assert groups[:2] == [("overall", "overall"), ("macro", "mean over a x b")]
    assert groups[2:] == [(level, name) for level, of_level in names.items() for name in of_level]
