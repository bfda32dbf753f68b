import random
from pathlib import Path

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.corpus.records import InputError
from spacy_pll.evaluation.intervals import paired_difference, proportion
from spacy_pll.evaluation.minimal_pairs import (
    Pair,
    PairScores,
    Sides,
    accuracies,
    levels,
    minimal_pairs,
    outcomes,
    read_pairs,
    sample_pairs,
)

COLUMNS = ("linguistics_term", "UID")
scores = st.sampled_from([-3.0, -2.5, -2.0, -1e9, 0.0])
# Pairs with the scores of their two sentences, in a few paradigms of unequal size, some in two phenomena.
scored_pairs = st.lists(
    st.tuples(scores, scores, st.sampled_from(["binding", "agreement", "islands"]), st.sampled_from("abcde")),
    min_size=1,
)


def parts(rows):
    good, bad = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return [Pair("good", "bad", dict(zip(COLUMNS, row[2:]))) for row in rows], good, bad


def test_a_win_a_tie_and_a_loss():
    assert outcomes([1.0, 2.0, 2.0], [0.0, 2.0, 3.0]).tolist() == [1.0, 0.5, 0.0]
    pairs = [Pair("a", "b")] * 4
    overall = accuracies(pairs, outcomes([1, 1, 1, 1], [0, 0, 1, 2]))[0]
    assert overall[:6] == ("", "overall", "", 4, 1, 0.625)  # (1 + 1 + 0.5 + 0) / 4


def test_no_outcome_of_what_is_not_a_number():
    with pytest.raises(ValueError, match="not a number"):
        outcomes([float("nan")], [0.0])


def test_no_accuracy_of_no_pair():
    with pytest.raises(ValueError, match="no pair"):
        accuracies([], np.zeros(0))


@given(scored_pairs)
def test_the_interval_contains_the_estimate(rows):
    pairs, good, bad = parts(rows)
    for result in accuracies(pairs, outcomes(good, bad)):
        assert 0 <= result.low <= result.accuracy + 1e-9
        assert result.accuracy - 1e-9 <= result.high <= 1
        assert [type(number) for number in result[5:8]] == [float] * 3


@given(scored_pairs)
def test_swapped_sides_give_the_rest_to_one(rows):
    pairs, good, bad = parts(rows)
    forward = accuracies(pairs, outcomes(good, bad))
    backward = accuracies(pairs, outcomes(bad, good))
    for one, other in zip(forward, backward, strict=True):
        assert one[:5] == other[:5]
        assert one.accuracy + other.accuracy == pytest.approx(1)


@given(scored_pairs)
def test_groups_hold_every_pair_once(rows):
    pairs, good, bad = parts(rows)
    won = outcomes(good, bad)
    results = {(result.level, result.name): result for result in accuracies(pairs, won)}
    overall = results["overall", ""]
    paradigms = [result for result in results.values() if result.level == "UID"]
    assert sum(result.pairs for result in paradigms) == overall.pairs == len(pairs)
    assert sum(result.ties for result in paradigms) == overall.ties == (good == bad).sum()
    assert sum(result.pairs * result.accuracy for result in paradigms) == pytest.approx(won.sum())
    for result in (result for result in results.values() if result.level == "linguistics_term"):
        assert result.accuracy == pytest.approx(won[[pair.phenomenon == result.name for pair in pairs]].mean())
    # The mean over the smallest groups is another number only where they differ in size.
    columns, smallest = list(levels(pairs).items())[-1]
    level = " x ".join(columns)
    sizes = {len(group.members) for group in smallest}
    assert (("macro", level) in results) == (len(sizes) > 1)
    if ("macro", level) in results:
        means = [results[level, group.name].accuracy for group in smallest]
        assert results["macro", level].accuracy == pytest.approx(np.mean(means))


def test_one_pair_of_each_paradigm_has_an_interval_as_well():
    """Resampled within paradigms, it had no width."""
    pairs = [Pair("", "", {"linguistics_term": "item", "UID": name}) for name in "abcd"]
    found = accuracies(pairs, np.array([1.0, 1.0, 1.0, 0.0]))
    overall, item, *paradigms = found
    assert (overall.accuracy, overall.low, overall.high) == (0.75, *proportion(np.array([1.0, 1.0, 1.0, 0.0]))[1:])
    assert item[3:8] == overall[3:8] and all(one.high - one.low > 0.5 for one in paradigms)


def test_a_sample_is_the_paradigms_own():
    pairs = [Pair(f"{name} {i}", "", {"UID": name}) for i in range(20) for name in ("x", "y")]
    drawn = sample_pairs(pairs, 5)
    assert [pair.paradigm for pair in drawn] == ["x"] * 5 + ["y"] * 5
    assert drawn[:5] == random.Random("x").sample([pair for pair in pairs if pair.paradigm == "x"], 5)
    # What else is in the file does not change it.
    assert drawn[5:] == sample_pairs([pair for pair in pairs if pair.paradigm == "y"], 5)
    assert sorted(pair.good for pair in sample_pairs(pairs, 100)) == sorted(pair.good for pair in pairs)


def test_columns_that_may_be_missing(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "own.csv").write_text("good,bad,id\nA cat.,A cats.,7\n")
    (tmp_path / "theirs.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B.", "UID": "u"}\n')
    pairs = read_pairs(str(tmp_path))
    assert pairs == [
        Pair("A cat.", "A cats.", {"file": "part/own", "id": "7"}),
        Pair("A.", "B.", {"file": "theirs", "UID": "u"}),
    ]
    assert list(levels(pairs)) == [(), ("file",)]
    with pytest.raises(InputError, match="Pair 1 has no column 'UID'. Its columns are: 'file', 'id'"):
        levels(pairs, ["UID"])


def test_files_without_a_header(tmp_path):
    (tmp_path / "pairs.tsv").write_text("1\tA cat.\tA cats.\tshort\n2\tA dog.\tA dogs.\tshort\n")
    pairs = read_pairs(str(tmp_path / "pairs.tsv"), header=["id", "good", "bad", "kind"])
    assert pairs[0] == Pair("A cat.", "A cats.", {"id": "1", "kind": "short"}) and len(pairs) == 2
    with pytest.raises(InputError, match="line 1: the row has 4 fields, but `header` names 2"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad"])
    with pytest.raises(InputError, match="or, if the file has no header, name its columns with `header`"):
        read_pairs(str(tmp_path / "pairs.tsv"))


def test_a_header_is_no_pair(tmp_path):
    (tmp_path / "pairs.tsv").write_text("good\tbad\tkind\nA cat.\tA cats.\tshort\n")
    with pytest.raises(InputError, match="line 1: the file has a header, with the names in `header`. Leave it out"):
        read_pairs(str(tmp_path / "pairs.tsv"), header=["good", "bad", "kind"])


def test_conditions_are_crossed_unless_one_lies_in_the_other():
    crossed = [Pair("", "", {"voice": voice, "kind": kind}) for voice in "ap" for kind in "xyz"]
    found = levels(crossed, ["voice", "kind"])
    assert list(found) == [(), ("voice",), ("kind",), ("voice", "kind")]
    assert found["voice",][1] == ("p", ("p",), [3, 4, 5]) and found["voice", "kind"][4] == ("p x y", ("p", "y"), [4])
    nested = [Pair("", "", {"a": name[0], "b": name}) for name in ("x1", "x2", "y1")]
    assert list(levels(nested, ["a", "b"])) == [(), ("a",), ("b",)]


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
    found = [one for one in accuracies(pairs, np.ones(18), ["p", "q"]) if len(one.group) == 2]
    assert [(one.level, one.name, tuple(one.group.values())) for one in found] == [
        ("p x q", group.name, group.values) for group in groups
    ]
    assert len(sample_pairs(pairs, 1, ["p", "q"])) == 9


SIDES = {
    "m": Sides(np.array([-1.0, -2.0, -4.0]), np.array([-3.0, -2.0, -3.0]), np.array([1, 2, 4]), np.array([1, 2, 2])),
    "n": Sides(np.array([-5.0, -1.0, -2.0]), np.array([-4.0, -2.0, -3.0]), np.array([1, 2, 4]), np.array([1, 2, 2])),
}
PAIRS = [Pair("a", "b", {"id": 0}), Pair("b", "c", {"id": 1}), Pair("d", "e", {"id": 2})]


def test_outcomes_and_differences_of_two_scorers():
    found = PairScores(PAIRS, SIDES)
    assert {name: won.tolist() for name, won in found.outcomes.items()} == {"m": [1, 0.5, 0], "n": [0, 1, 1]}
    assert PairScores(PAIRS, SIDES, per_piece=True).outcomes["m"].tolist() == [1, 0.5, 1]
    first, overall = found.accuracies([])
    assert overall[:4] == ("n", "overall", "", 3) and first[:4] == ("m", "overall", "", 3)
    assert set(first[8:14]) == {None}
    assert overall.difference == pytest.approx(0.5 / 3) and (overall.better, overall.worse, overall.p) == (2, 1, 1.0)
    assert overall[8:11] == paired_difference(np.array([-1.0, 0.5, 1.0]))
    assert {one.name: one.better for one in found.accuracies(["id"])[5:]} == {"0": 0, "1": 1, "2": 1}


def test_a_row_for_each_pair():
    frame = PairScores(PAIRS, SIDES).to_dataframe()
    assert list(frame)[:6] == ["pair", "sentence_good", "sentence_bad", "id", "m_correct", "m_good"]
    assert frame["pair"].tolist() == [1, 2, 3] and frame["m_correct"].tolist() == [1, 0.5, 0]
    assert frame["m_difference"].tolist() == [2, 0, -1] and frame["n_bad_pieces"].tolist() == [1, 2, 2]
    assert frame["n_difference_per_piece"].tolist() == [-1, 0.5, 1]
    with pytest.raises(ValueError, match="The pairs have a column 'm_good', as their scores do"):
        list(PairScores([Pair("a", "b", {"m_good": 1})], SIDES).rows())
    # A number that the pairs have themselves is kept.
    (first, *_) = PairScores([Pair("a", "b", {"pair": "x7"})], SIDES, columns={"m": "pll_m"}).rows()
    assert first["pair"] == "x7" and first["pll_m_difference"] == 2 and "m_good" not in first


def test_a_picture_has_the_groups():
    pairs = [Pair("a", "b", {"kind": "x"}), Pair("b", "c", {"kind": "y"}), Pair("d", "e", {"kind": "x"})]
    axes = PairScores(pairs, SIDES).plot(["kind"]).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["m", "n"]
    assert [label.get_text() for label in PairScores(pairs, SIDES).plot().axes[0].get_yticklabels()] == ["overall"]


def test_columns_that_are_called_as_the_levels_are():
    for column in ("macro", "overall"):
        scored = PairScores([Pair("a", "b", {column: name}) for name in "xyx"], SIDES)
        assert [label.get_text() for label in scored.plot([column]).axes[0].get_yticklabels()] == ["x", "y"]
        assert [one.name for one in scored.accuracies([column]) if one.group] == ["x", "y"] * 2


def test_pairs_of_texts_are_scored(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    found = minimal_pairs(nlp, [("The traveler.", "The souvenir."), ("The traveler.", "The cats sleep.")])
    docs = {text: nlp(text) for text in ("The traveler.", "The souvenir.", "The cats sleep.")}
    assert list(found.scores) == ["word_l2r", "original"]
    good, bad, good_pieces, bad_pieces = found.scores["word_l2r"]
    assert good == pytest.approx([docs["The traveler."]._.pll] * 2, abs=1e-4)
    assert bad == pytest.approx([docs[text]._.pll for text in ("The souvenir.", "The cats sleep.")], abs=1e-4)
    assert bad_pieces.tolist() == [docs[text]._.pll_pieces for text in ("The souvenir.", "The cats sleep.")]
    other = make_nlp("bert", metrics=["original"])
    both = minimal_pairs({"one": nlp, "two": other}, found.pairs)
    assert list(both.scores) == ["one word_l2r", "one original", "two"]
    assert {"pll_word_l2r_good", "pll_original_correct"} <= set(found.to_dataframe())
    assert {"one word_l2r_good", "two_correct"} <= set(both.to_dataframe())
    with pytest.raises(ValueError, match="There is no pair"):
        minimal_pairs(nlp, [])


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ("mine.tsv", "Pair 1 must be two texts, or a `Pair`. It is 'mine.tsv'. `spacy_pll.read_pairs` reads a file"),
        (Path("mine.tsv"), r"Pair 1 must be two texts, or a `Pair`. It is .*Path\('mine.tsv'\)"),
        ([("A.", "B."), {"good": "A.", "bad": "B."}], "Pair 2 must be two texts, or a `Pair`. It is {'good': 'A.'"),
        ([("A.", "B.", "kind")], r"Pair 1 must be two texts, or a `Pair`. It is \('A.', 'B.', 'kind'\)"),
        (["AB"], "Pair 1 must be two texts"),
        ([Pair("A.", None)], "Pair 1 must be two texts"),
    ],
)
def test_what_is_no_pair(pairs, message):
    with pytest.raises(ValueError, match=message):
        minimal_pairs(spacy.blank("en"), pairs)


def test_columns_are_a_list():
    with pytest.raises(ValueError, match=r"`by` must be a list of columns, such as \['kind'\]. It is 'kind'."):
        PairScores(PAIRS, SIDES).accuracies("kind")
