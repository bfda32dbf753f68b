"""Choices in which no option is right: their correlation with the preferences of people."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, InputError, Option
from spacy_pll.evaluation.choices import ChoiceSuite, choices
from spacy_pll.evaluation.intervals import spearman

from .. import reference
from .given_scores import suite_scores

TEXTS = [
    ("The souvenir", "A carnivore"),
    ("I can't travel.", "I travel."),
    ("Young co-workers", "Old ones"),
    ("a", "b"),
]
GRADED = [
    Choice([Option(one), Option(two)], 0, {"kind": kind}, ratio)
    for (one, two), kind, ratio in zip(TEXTS, "xxyy", (0.9, 0.2, 0.5, 0.4))
]


def plainly(x, y):
    """Spearman's rho: Pearson's r of the ranks."""
    ranks = [[sum(b < a for b in values) + sum(b == a for b in values) / 2 for a in values] for values in (x, y)]
    a, b = (np.array(one) - np.mean(one) for one in ranks)
    return sum(a * b) / math.sqrt(sum(a * a) * sum(b * b))


numbers = st.lists(st.tuples(st.integers(0, 5), st.floats(-5, 5)), min_size=2, max_size=30)


@given(numbers)
def test_rho_and_its_interval(pairs):
    x, y = np.array(pairs, dtype=float).T
    found = spearman(x, y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert found is None
        return
    assert found.value == pytest.approx(plainly(x, y), abs=1e-9)
    assert -1 - 1e-9 <= found.low <= found.value <= found.high <= 1 + 1e-9
    assert spearman(-x, y).value == pytest.approx(-found.value) and spearman(np.exp(x), y) == pytest.approx(found)


def test_the_interval_has_the_true_correlation_in_95_of_100_samples():
    """Of normal variables with r = .6, whose rho is 6 / pi asin(.3)."""
    draw, true = np.random.default_rng(0), 6 / math.pi * math.asin(0.3)
    within = []
    for _ in range(2000):
        x, noise = draw.normal(size=(2, 40))
        found = spearman(x, 0.6 * x + 0.8 * noise)
        within.append(found.low <= true <= found.high)
    assert 0.935 < np.mean(within) < 0.965


def test_a_perfect_correlation_of_few_choices_is_not_certain():
    few, many = (spearman(np.arange(n), -np.arange(n)) for n in (5, 500))
    assert (few.value, many.value, few.low) == pytest.approx((-1, -1, -1))
    assert spearman(np.arange(500_000.0), np.arange(500_000.0)).value == pytest.approx(1)
    assert -0.9 < few.high < 0 and -1 < many.high < -0.999


def test_the_share_of_the_first_option_is_compared_with_that_of_people(make_nlp):
    nlp = make_nlp("bert", metrics=["original", "word_l2r"])
    found = choices(nlp, GRADED)
    parts = reference.load_model(nlp.get_pipe("pll").model.name)
    shares = []
    for texts in TEXTS:
        one, two = (sum(reference.score(nlp.make_doc(text), *parts, "original", "spacy")[0]) for text in texts)
        shares.append(1 / (1 + math.exp(two - one)))
    assert found.suite.probabilities(found.scores["original"])[:, 0] == pytest.approx(shares, abs=1e-5)
    first, *_ = found.measurements()
    assert (first.scorer, first.level, first.n) == ("original", "overall", 4)
    assert first.value == pytest.approx(plainly(shares, [0.9, 0.2, 0.5, 0.4]))
    by_kind = [one for one in found.measurements(["kind"]) if one.level == "kind" and one.scorer == "word_l2r"]
    assert [(one.name, one.n, round(abs(one.value), 9)) for one in by_kind] == [("x", 2, 1), ("y", 2, 1)]
    assert [one.group for one in by_kind] == [{"kind": "x"}, {"kind": "y"}]
    predicted = found.suite.predictions(found.scores["original"], ["kind"])["y"]["predictions"][0]
    assert predicted["prob"] == pytest.approx(shares[2], abs=1e-5)
    assert predicted["id"] == "y_0" and predicted["pred"] in TEXTS[2]
    rows = list(found.rows())
    assert {row["right"] for row in rows} == {None}
    assert rows[2]["pll_original_probability"] == pytest.approx(shares[1], abs=1e-5)


def test_what_has_no_accuracy_or_no_correlation(make_nlp):
    scores = {"m": [[1, 2]]}
    graded = suite_scores(ChoiceSuite(GRADED[:1]), scores, scores)
    with pytest.raises(ValueError, match="no right option, so there is no accuracy"):
        graded.suite.outcomes(graded.scores["m"])
    with pytest.raises(ValueError, match="Pictures are of accuracies"):
        graded.plot()
    with pytest.raises(InputError, match="Score them one after the other"):
        choices(make_nlp("bert"), [GRADED[0], Choice(GRADED[1].options)])
    for wrong in (
        GRADED[0]._replace(preference=math.nan),
        GRADED[0]._replace(options=[*GRADED[0].options, Option("c")]),
    ):
        with pytest.raises(InputError, match="Choice 1: the preference .* must be a finite"):
            choices(make_nlp("bert"), [wrong])
    (same,) = graded.measurements([])
    assert same.value is None
