import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Pair, levels
from spacy_pll.evaluation.intervals import proportion
from spacy_pll.evaluation.measurements import accuracies, outcomes_of

COLUMNS = ("linguistics_term", "UID")
scores = st.sampled_from([-3.0, -2.5, -2.0, -1e9, 0.0])
# Pairs with the scores of their two sentences, in a few paradigms of unequal size, some in two phenomena.
scored_pairs = st.lists(
    st.tuples(scores, scores, st.sampled_from(["binding", "agreement", "islands"]), st.sampled_from("abcde")),
    min_size=1,
)


def outcomes(good, bad):
    return outcomes_of(np.stack((good, bad), axis=1, dtype=np.float64), [0] * len(good))


def parts(rows):
    good, bad = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return [Pair("good", "bad", dict(zip(COLUMNS, row[2:]))) for row in rows], good, bad


def test_a_win_a_tie_and_a_loss():
    assert outcomes([1.0, 2.0, 2.0], [0.0, 2.0, 3.0]).tolist() == [1.0, 0.5, 0.0]
    pairs = [Pair("a", "b")] * 4
    overall = accuracies(pairs, {"m": outcomes([1, 1, 1, 1], [0, 0, 1, 2])})[0]
    assert overall[:4] == ("m", "accuracy", 4, 0.625) and overall.ties == 1  # (1 + 1 + 0.5 + 0) / 4


def test_no_outcome_of_what_is_not_a_number():
    with pytest.raises(ValueError, match="not a number"):
        outcomes([float("nan")], [0.0])


def test_no_accuracy_of_no_pair():
    with pytest.raises(ValueError, match="no pair"):
        accuracies([], {"m": np.zeros(0)})


@given(scored_pairs)
def test_the_interval_contains_the_estimate(rows):
    pairs, good, bad = parts(rows)
    for result in accuracies(pairs, {"m": outcomes(good, bad)}):
        assert 0 <= result.low <= result.value + 1e-9
        assert result.value - 1e-9 <= result.high <= 1
        assert [type(number) for number in result.estimate] == [float] * 3


@given(scored_pairs)
def test_swapped_sides_give_the_rest_to_one(rows):
    pairs, good, bad = parts(rows)
    forward = accuracies(pairs, {"m": outcomes(good, bad)})
    backward = accuracies(pairs, {"m": outcomes(bad, good)})
    for one, other in zip(forward, backward, strict=True):
        assert (*one[:3], *one[6:10]) == (*other[:3], *other[6:10])
        assert one.value + other.value == pytest.approx(1)


@given(scored_pairs)
def test_groups_hold_every_pair_once(rows):
    pairs, good, bad = parts(rows)
    won = outcomes(good, bad)
    results = {(result.level, result.name): result for result in accuracies(pairs, {"m": won})}
    overall = results["overall", ""]
    paradigms = [result for result in results.values() if result.level == "UID"]
    assert sum(result.n for result in paradigms) == overall.n == len(pairs)
    assert sum(result.ties for result in paradigms) == overall.ties == (good == bad).sum()
    assert sum(result.n * result.value for result in paradigms) == pytest.approx(won.sum())
    for result in (result for result in results.values() if result.level == "linguistics_term"):
        assert result.value == pytest.approx(won[[pair.phenomenon == result.name for pair in pairs]].mean())
    # The mean over the smallest groups, which are the most, is another number only where they differ in size. Of two
    # columns with as many groups, the last.
    columns, smallest = max(reversed(levels(pairs).items()), key=lambda level: len(level[1]))
    level = " x ".join(columns)
    sizes = {len(group.members) for group in smallest}
    assert (("macro", level) in results) == (len(sizes) > 1)
    if ("macro", level) in results:
        means = [results[level, group.name].value for group in smallest]
        assert results["macro", level].value == pytest.approx(np.mean(means))


def test_one_pair_of_each_paradigm_has_an_interval_as_well():
    """Resampled within paradigms, it had no width."""
    pairs = [Pair("", "", {"linguistics_term": "item", "UID": name}) for name in "abcd"]
    found = accuracies(pairs, {"m": np.array([1.0, 1.0, 1.0, 0.0])})
    overall, item, *paradigms = found
    assert overall.estimate == (0.75, *proportion(np.array([1.0, 1.0, 1.0, 0.0]))[1:])
    assert item[1:6] == overall[1:6] and all(one.high - one.low > 0.5 for one in paradigms)
