"""The intervals cover what they should, as exact sums of probabilities say; McNemar's p is that of statsmodels."""

import math
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.evaluation.intervals import (
    _student,
    bootstrap_sums,
    mcnemar,
    mean_estimate,
    mean_proportion,
    paired_difference,
    percentiles,
    proportion,
)

COVERED = 0.93


def right(k, n):
    """The outcomes of n pairs, k of them right."""
    return np.repeat([1.0, 0.0], [k, n - k])


def binomial(n, p):
    return np.array([comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])


def coverage(estimates, probabilities, truth):
    return sum(
        probability
        for estimate, probability in zip(estimates, probabilities, strict=True)
        if estimate.low <= truth <= estimate.high
    )


@pytest.mark.parametrize("n", [5, 10, 20, 50])
@pytest.mark.parametrize("p", [0.5, 0.9, 0.95])
def test_coverage_of_an_accuracy(n, p):
    assert coverage([proportion(right(k, n)) for k in range(n + 1)], binomial(n, p), p) >= COVERED


@pytest.mark.parametrize("p", [np.full(10, 0.9), np.full(20, 0.95), np.linspace(0.3, 1, 10), np.repeat([0.5, 0.98], 7)])
def test_coverage_with_pairs_of_different_difficulty(p):
    """One pair of each kind: whatever the kinds, their pooled accuracy is covered."""
    probabilities = np.ones(1)
    for one in p:
        probabilities = np.convolve(probabilities, [1 - one, one])
    estimates = [proportion(right(k, len(p))) for k in range(len(p) + 1)]
    assert coverage(estimates, probabilities, p.mean()) >= COVERED


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 30), (5, 10, 20), (1, 2, 3, 4)])
def test_coverage_of_a_mean_over_groups(sizes):
    counts = list(product(*(range(n + 1) for n in sizes)))
    estimates = [mean_proportion([right(k, n) for k, n in zip(own, sizes)]) for own in counts]
    hard_first = np.linspace(0.5, 0.95, len(sizes))
    for p in (hard_first, hard_first[::-1]):
        each = [binomial(n, one) for n, one in zip(sizes, p)]
        probabilities = [np.prod([one[k] for one, k in zip(each, own)]) for own in counts]
        assert coverage(estimates, probabilities, p.mean()) >= COVERED


# Numbers of pairs and accuracies of groups. In all but the last three, other methods cover too seldom: Wilson's
# interval for the effective number of pairs (84 to 89 %) in the first two and the fourth, the intervals of the groups,
# combined by the squares of their half widths (75 to 90 %), in all but the first two.
GROUPS = {
    "a small and difficult group": ([4, 1000, 1000, 1000], [0.6, 0.99, 0.99, 0.99]),
    "two pairs, and a thousand easy ones": ([2, 1000], [0.66, 0.99]),
    "equal and easy, as many as BLiMP's": ([100] * 67, [0.99] * 67),
    "half of them a single, difficult pair": ([1] * 50 + [1000] * 50, [0.6] * 50 + [0.99] * 50),
    "half of them a single, easy pair": ([1] * 50 + [1000] * 50, [0.95] * 50 + [0.5] * 50),
    "a pair each, but one": ([1] * 100 + [2], [0.8] * 101),
    "a small and easy group": ([4, 1000, 1000, 1000], [0.99, 0.6, 0.6, 0.6]),
    "as difficult as BLiMP's": ([100] * 67, np.linspace(0.4, 1, 67)),
    "about as large as BLiMP's": (list(range(67, 134)), np.linspace(0.4, 1, 67)),
}


# The others take longer.
@pytest.mark.parametrize(
    ("sizes", "p"),
    [pytest.param(*GROUPS[name], id=name, marks=[pytest.mark.slow] * (i > 2)) for i, name in enumerate(GROUPS)],
)
def test_simulated_coverage_of_a_mean_over_groups(sizes, p):
    rng = np.random.default_rng(0)
    samples = [mean_proportion([right(k, n) for k, n in zip(rng.binomial(sizes, p), sizes)]) for _ in range(500)]
    assert coverage(samples, np.full(500, 1 / 500), np.mean(p)) >= COVERED


def test_simulated_coverage_with_ties():
    """A tie counts as half. So outcomes vary less than without it."""
    rng, shares = np.random.default_rng(0), [[0.2, 0.4, 0.4], [0.01, 0.1, 0.89], [0, 0.3, 0.7]]
    sizes, truth = [5, 20, 300], np.mean([p @ np.array([0, 0.5, 1]) for p in np.array(shares)])
    samples = [
        mean_proportion([rng.choice([0, 0.5, 1], size, p=p) for size, p in zip(sizes, shares)]) for _ in range(500)
    ]
    assert coverage(samples, np.full(500, 1 / 500), truth) >= COVERED


@pytest.mark.parametrize("n", [5, 10, 20, 40])
@pytest.mark.parametrize(("better", "worse"), [(0.05, 0.05), (0.2, 0.05), (0.4, 0.3), (0.9, 0.02)])
def test_coverage_of_a_paired_difference(n, better, worse):
    estimates, probabilities = [], []
    for b in range(n + 1):
        for w in range(n + 1 - b):
            estimates.append(paired_difference(np.repeat([1.0, -1.0, 0.0], [b, w, n - b - w])))
            chance = better**b * worse**w * (1 - better - worse) ** (n - b - w)
            probabilities.append(comb(n, b) * comb(n - b, w) * chance)
    assert coverage(estimates, probabilities, better - worse) >= COVERED


def test_an_interval_has_a_width_and_an_accuracy_inside():
    for n in (1, 2, 5, 100):
        for k in range(n + 1):
            for estimate in (proportion(right(k, n)), mean_proportion([right(k, n), right(k, n), np.ones(3)])):
                assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
                assert estimate.high - estimate.low > 0.01
        for same in (1.0, 0.0, -1.0):
            estimate = paired_difference(np.full(n, same))
            assert -1 <= estimate.low < estimate.high <= 1 and estimate.value == same


def test_values_of_the_literature():
    """Newcombe (1998), table I, method 4: 81 of 263 and 15 of 148. 0 of 20 and 1 of 29."""
    table = {(81, 263): (0.2535, 0.3682), (15, 148): (0.0598, 0.1644), (0, 20): (0, 0.2005), (1, 29): (0.0018, 0.1963)}
    for (k, n), (low, high) in table.items():
        assert proportion(right(k, n)) == pytest.approx((k / n, low, high), abs=1e-4)


def test_equal_groups_have_the_interval_of_all_pairs():
    """Or a shorter one, if the groups' own intervals leave no accuracy that they could share."""
    groups = [right(6, 10), right(5, 10), right(7, 10)]
    assert mean_proportion(groups) == pytest.approx(proportion(np.concatenate(groups)))
    assert mean_proportion(groups[:1]) == pytest.approx(proportion(groups[0]))
    for all_right in (np.zeros, np.ones):
        same = [all_right(7)] * 3
        assert mean_proportion(same) == pytest.approx(proportion(np.concatenate(same)))
    apart = [right(10, 100), right(95, 100)]
    one, other = mean_proportion(apart), proportion(np.concatenate(apart))
    assert one.high - one.low < 0.8 * (other.high - other.low)
    # A small group makes the interval of the mean over groups wider, not that of all pairs.
    groups[0] = right(1, 2)
    one, other = mean_proportion(groups), proportion(np.concatenate(groups))
    assert one.high - one.low > 1.2 * (other.high - other.low)


def test_mcnemar_as_statsmodels_has_it():
    """mcnemar([[0, better], [worse, 0]], exact=True).pvalue of statsmodels."""
    values = {(1, 0): 1.0, (0, 6): 0.03125, (5, 1): 0.21875, (12, 30): 0.007915897334896727, (3, 2): 1.0,
              (120, 80): 0.005685155996750306, (40, 41): 1.0}  # fmt: skip
    for numbers, p in values.items():
        assert mcnemar(*numbers) == mcnemar(*numbers[::-1]) == pytest.approx(p, rel=1e-12)
    assert mcnemar(3, 3) == mcnemar(0, 0) == 1.0
    assert 0 < mcnemar(1000, 3000) < 1e-200


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_sum_of_probabilities(better, worse):
    n = better + worse
    exact = Fraction(2 * sum(comb(n, i) for i in range(min(better, worse) + 1)), 2**n)
    assert mcnemar(better, worse) == pytest.approx(float(min(Fraction(1), exact)), rel=1e-12, abs=0)


def test_mcnemar_of_many_pairs():
    """As of the normal distribution with the same variance, and a continuity correction."""
    assert mcnemar(20_000, 20_400) == pytest.approx(math.erfc((400 - 1) / math.sqrt(2 * 40_400)), rel=1e-3)


def test_a_bootstrap_draws_whole_clusters():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(100), 5)
    values = rng.normal(size=100)[cluster]
    total, samples = bootstrap_sums([np.ones(500), values], cluster, 2000, rng)
    assert total.tolist() == [[500, pytest.approx(values.sum())]] and samples.shape == (2000, 2)
    # The standard error of a mean of 100 values, not of 500.
    assert (samples[:, 1] / samples[:, 0]).std() == pytest.approx(values.std() / 10, rel=0.1)
    low, high = percentiles(samples[:, 1] / samples[:, 0])
    assert high - low == pytest.approx(2 * 1.96 * values.std() / 10, rel=0.1)
    alone = bootstrap_sums([values], np.zeros(500, dtype=int), 2000, rng)[1]
    assert alone.shape == (0, 1) and percentiles(alone[:, 0]) is None


def test_students_interval_has_the_quantiles_of_tables():
    values = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 7: 2.365, 10: 2.228, 19: 2.093, 30: 2.042, 120: 1.980}
    assert {df: round(_student(df), 3) for df in values} == values
    assert 1.96 < _student(10**6) < 1.963
    mean, low, high = mean_estimate([1.0, 2.0, 6.0])
    half = 4.3026527 * np.std([1, 2, 6], ddof=1) / math.sqrt(3)
    assert (mean, low, high) == pytest.approx((3, 3 - half, 3 + half))


@pytest.mark.parametrize("values", [[2.0], [2.0] * 5, [2.0, 2.00001]])
def test_no_interval_of_a_mean_where_nothing_is_known_of_others(values):
    assert mean_estimate(values) == pytest.approx((2.0, math.nan, math.nan), 1e-4, nan_ok=True)


@pytest.mark.parametrize(("n", "at_least"), [(3, 0.89), (10, 0.9), (40, 0.92)])
def test_coverage_of_a_mean_of_skewed_values(n, at_least):
    """Surprisals are skewed. With three values, a bootstrap covers the mean 69 times in 100."""
    samples = np.random.default_rng(0).gamma(2, 3, (1000, n))
    covered = [low <= 6 <= high for _, low, high in map(mean_estimate, samples.tolist())]
    assert np.mean(covered) > at_least
