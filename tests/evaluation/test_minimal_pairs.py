import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.corpus.readers import InputError
from spacy_pll.evaluation.intervals import proportion
from spacy_pll.evaluation.minimal_pairs import (
    BLIMP,
    Pair,
    accuracies,
    first_pairs,
    outcomes,
    read_pairs,
    sample_pairs,
    wins,
)
from spacy_pll.evaluation.scoring import TextScore

scores = st.sampled_from([-3.0, -2.5, -2.0, -1e9, 0.0])
# Pairs with the scores of their two sentences, in a few paradigms of unequal size, some in two phenomena.
scored_pairs = st.lists(
    st.tuples(scores, scores, st.sampled_from(["", "agreement", "islands"]), st.sampled_from("abcde")), min_size=1
)


def parts(rows):
    good, bad = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return [Pair("good", "bad", *row[2:]) for row in rows], good, bad


def test_a_win_a_tie_and_a_loss():
    assert outcomes([1.0, 2.0, 2.0], [0.0, 2.0, 3.0]).tolist() == [1.0, 0.5, 0.0]
    pairs = [Pair("a", "b", "", "p")] * 4
    overall = accuracies(pairs, outcomes([1, 1, 1, 1], [0, 0, 1, 2]))[0]
    assert overall[:5] == ("overall", "", 4, 1, 0.625)  # (1 + 1 + 0.5 + 0) / 4


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


@given(scored_pairs)
def test_swapped_sides_give_the_rest_to_one(rows):
    pairs, good, bad = parts(rows)
    forward = accuracies(pairs, outcomes(good, bad))
    backward = accuracies(pairs, outcomes(bad, good))
    for one, other in zip(forward, backward, strict=True):
        assert one[:4] == other[:4]
        assert one.accuracy + other.accuracy == pytest.approx(1)


@given(scored_pairs)
def test_groups_hold_every_pair_once(rows):
    pairs, good, bad = parts(rows)
    won = outcomes(good, bad)
    results = {(result.level, result.name): result for result in accuracies(pairs, won)}
    overall = results["overall", ""]
    paradigms = [result for result in results.values() if result.level == "paradigm"]
    assert sum(result.pairs for result in paradigms) == overall.pairs == len(pairs)
    assert sum(result.ties for result in paradigms) == overall.ties == (good == bad).sum()
    assert sum(result.pairs * result.accuracy for result in paradigms) == pytest.approx(won.sum())
    assert ("phenomenon", "") not in results
    for result in (result for result in results.values() if result.level == "phenomenon"):
        assert result.accuracy == pytest.approx(won[[pair.phenomenon == result.name for pair in pairs]].mean())
    # The mean over paradigms is another number only where they differ in size.
    assert (("macro", "") in results) == (len({result.pairs for result in paradigms}) > 1)
    if ("macro", "") in results:
        assert results["macro", ""].accuracy == pytest.approx(np.mean([result.accuracy for result in paradigms]))


def test_one_pair_of_each_paradigm_has_an_interval_as_well():
    """Resampled within paradigms, it had no width."""
    pairs = [Pair("", "", "item", name) for name in "abcd"]
    found = accuracies(pairs, np.array([1.0, 1.0, 1.0, 0.0]))
    overall, item, *paradigms = found
    assert (overall.accuracy, overall.low, overall.high) == (0.75, *proportion(np.array([1.0, 1.0, 1.0, 0.0]))[1:])
    assert item[2:] == overall[2:] and all(one.high - one.low > 0.5 for one in paradigms)


def test_a_sample_is_the_paradigms_own():
    pairs = [Pair(f"{name} {i}", "", "", name) for i in range(20) for name in ("x", "y")]
    drawn = sample_pairs(pairs, 5)
    assert [pair.paradigm for pair in drawn] == ["x"] * 5 + ["y"] * 5
    assert drawn[:5] == random.Random("x").sample([pair for pair in pairs if pair.paradigm == "x"], 5)
    # What else is in the file does not change it.
    assert drawn[5:] == sample_pairs([pair for pair in pairs if pair.paradigm == "y"], 5)
    assert sorted(sample_pairs(pairs, 100)) == sorted(pairs)


def test_the_first_pairs_of_each_paradigm():
    pairs = [Pair(f"{name} {i}", "", "", name) for i in range(3) for name in ("y", "x")]
    assert [pair.good for pair in first_pairs(pairs, 2)] == ["y 0", "y 1", "x 0", "x 1"]
    assert sorted(first_pairs(pairs, 9)) == sorted(pairs)


def test_columns_that_may_be_missing(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "own.csv").write_text("sentence_good,sentence_bad\nA cat.,A cats.\n")
    (tmp_path / "theirs.jsonl").write_text(
        '{"sentence_good": "A.", "sentence_bad": "B.", "linguistics_term": "t", "UID": "u"}\n'
    )
    assert read_pairs(str(tmp_path), dict.fromkeys(BLIMP)) == [
        Pair("A cat.", "A cats.", "", "part/own"),
        Pair("A.", "B.", "t", "u"),
    ]
    with pytest.raises(InputError, match="own.csv, line 2: there is no column 'linguistics_term'"):
        read_pairs(str(tmp_path))


def test_each_metric_has_its_outcomes():
    pairs = [Pair("a", "b", "", "p"), Pair("b", "c", "", "p")]
    scored = {"a": TextScore((-1.0, -9.0), 3), "b": TextScore((-2.0, -8.0), 1), "c": TextScore((-2.0, -10.0), 4)}
    assert {metric: won.tolist() for metric, won in wins(pairs, scored, ["m", "n"])} == {"m": [1, 0.5], "n": [0, 1]}
