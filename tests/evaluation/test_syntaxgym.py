import json
import math

import pytest
import spacy

from spacy_pll import InputError, get_scorer, read_suite, score_suite
from spacy_pll.evaluation.syntaxgym import parse_formula

from .given_scores import of_parts

VALUES = {("a", 1): 1.0, ("a", 2): 5.0, ("b", 1): 2.0, ("b", 2): 4.0}


@pytest.mark.parametrize(
    ("formula", "right"),
    [
        ("(1;%a%) < (1;%b%)", True),
        ("(2;%a%)<(2;%b%)", False),
        ("[(1;%a%) + (2;%a%)] = [(1;%b%) + (2;%b%)]", True),
        ("(*;%a%) = (*;%b%)", True),
        ("(*;%a%) > 5.9", True),
        ("(2;%a%) - (1;%a%) - (1;%b%) = 2", True),  # from left to right
        ("((2;%a%) - (1;%a%)) > ((2;%b%) - (1;%b%)) & (1;%a%) > (1;%b%)", False),
        # & and | bind alike, from left to right: ((1 < 2) | (1 < 2)) & (2 < 1)
        ("(1;%a%) < (1;%b%) | (1;%a%) < (1;%b%) & (1;%b%) < (1;%a%)", False),
        ("(1;%a%) < (1;%b%) | [(1;%a%) < (1;%b%) & (1;%b%) < (1;%a%)]", True),
        ("(1;%a%) = 1.0005", True),  # as SyntaxGym compares
        ("(1;%a%) = 1.01", False),
        ("60.0015 = 60", True),
        ("((1;%a%) < (2;%a%)) = ((1;%b%) > (2;%b%))", False),
        ("60.002 = 60", False),
        ("((1;%a%) - (2;%a%)) > -4.5", True),
        ("(1;%a%) - (2;%a%) < -4e0", False),
        ("(1;%a%)-+1.5=-5e-1", True),
        ("(1;%a%) - -1 = +2", True),
    ],
)
def test_formulas(formula, right):
    assert bool(parse_formula(formula)(VALUES)) is right


@pytest.mark.parametrize(
    "formula",
    [
        "",
        "(1;%a%) <",
        "(1;%a%) < (1;%b%)) ",
        "((1;%a%) < 2",
        "(1;a) < 2",
        "1 ! 2",
        "1 2",
        "--1 < 2",
        "(1;%a%) < -",
        "-(1;%a%) < 2",
        "(1;%a%) - (1;%b%)",  # would hold always
        "(1;%a%) < (1;%b%) < (2;%a%)",
        "(1;%a%) & (1;%b%) < 2",
        "[(1;%a%) & (1;%b%)] < 2",
        "(1;%a%) + [(1;%a%) < 2] < 2",
        "[(1;%a%) < (1;%b%)] - 1 < 2",
    ],
)
def test_what_is_no_formula(formula):
    with pytest.raises(InputError, match="The formula"):
        parse_formula(formula)


def condition(name, *contents):
    return {"condition_name": name, "regions": [{"region_number": n, "content": c} for n, c in enumerate(contents, 1)]}


SUITE = {
    "meta": {"name": "number", "metric": "sum"},
    "predictions": [
        {"type": "formula", "formula": "(3;%match%) < (3;%mismatch%)"},
        {"type": "formula", "formula": "(*;%match%) < (*;%mismatch%)"},
    ],
    "items": [
        {
            "item_number": 1,
            "conditions": [
                condition("match", "The cats", "", "sleep", "in the house ."),
                condition("mismatch", "The cats", "", "sleeps", "in the house ."),
            ],
        },
        {
            "item_number": 2,
            "conditions": [
                condition("match", "The girl near the boys", "often", "sees", "herself ."),
                condition("mismatch", "The girl near the boys", "often", "see", "herself ."),
            ],
        },
    ],
}


def write(path, suite):
    path.write_text(json.dumps(suite))
    return str(path)


def test_surprisals_of_regions(tmp_path):
    """By sums over the tokens of each region, counted by hand."""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["word_l2r"]})
    found = score_suite(nlp, read_suite(write(tmp_path / "a.json", SUITE), "syntaxgym"))
    rows, held = list(found.rows()), {0: [], 1: []}
    doc, other = nlp("The cats sleep in the house ."), nlp("The cats sleeps in the house .")
    right = [-doc[:2]._.pll, 0.0, -doc[2]._.pll, -doc[3:]._.pll]
    assert [row["surprisal"] for row in rows[:4]] == pytest.approx(right, abs=1e-4)
    assert [row["text"] for row in rows[:4]] == ["The cats", "", "sleep", "in the house ."]
    third, fourth = (
        nlp("The girl near the boys often sees herself ."),
        nlp("The girl near the boys often see herself ."),
    )
    for match, mismatch, region in ((doc, other, 2), (third, fourth, 6)):
        held[0].append(-match[region]._.pll < -mismatch[region]._.pll)
        held[1].append(-match._.pll < -mismatch._.pll)
    measures = {one.measure: one for one in found.measurements()}
    formulas = [one["formula"] for one in SUITE["predictions"]]
    assert [measures[formula].value for formula in formulas] == [sum(held[0]) / 2, sum(held[1]) / 2]
    both = [all(pair) for pair in zip(*held.values())]
    assert measures["all formulas"].value == sum(both) / 2 and measures["all formulas"].group == {"suite": "number"}


def test_a_folder_of_suites_and_outcomes(tmp_path):
    write(tmp_path / "a.json", SUITE)
    write(tmp_path / "b.json", {**SUITE, "meta": {"name": "other"}, "items": SUITE["items"][:1]})
    suite = read_suite(str(tmp_path), "syntaxgym")
    one, two, three = [(-1.0, 1)] * 3, [(-2.0, 1)] * 3, [(-1.0, 1)] * 4
    worse = [(-1.0, 1), (-1.0, 1), (-9.0, 1), (-1.0, 1)]
    found = list(suite.measurements({"m": of_parts([one, two, worse, three, two, one])}))
    assert [(m.name, m.n, m.value) for m in found] == [
        ("number", 2, 0.5),
        ("number", 2, 0.5),
        ("number", 2, 0.5),
        ("other", 1, 0.0),
        ("other", 1, 0.0),
        ("other", 1, 0.0),
    ]
    assert all(0 <= m.low <= m.value <= m.high <= 1 and not math.isnan(m.low) for m in found)


def test_means_are_refused_before_anything_is_scored(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    with pytest.raises(InputError, match="Leave out `per_piece`"):
        score_suite(nlp, read_suite(write(tmp_path / "a.json", SUITE), "syntaxgym"), per_piece=True)
    assert not get_scorer(nlp).predictor.counts.passes


def test_a_formula_that_is_there_twice_counts_once(tmp_path):
    again = {**SUITE, "predictions": [*SUITE["predictions"], SUITE["predictions"][0]]}
    suite = read_suite(write(tmp_path / "a.json", again), "syntaxgym")
    found = list(suite.measurements({"m": of_parts([[(-1.0, 1)] * 4] * 4)}))
    assert [one.n for one in found] == [2, 2, 2] and len({one.measure for one in found}) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"predictions": [{"formula": "(9;%match%) < 1"}]}, "item 1: there is no region 9 in a condition 'match'"),
        (
            {"predictions": [{"formula": "(1;%nonesuch%) < 1"}]},
            "item 1: there is no region 1 in a condition 'nonesuch'",
        ),
        ({"predictions": [{"formula": "(1;%match%"}]}, "The formula"),
        ({"predictions": []}, "0 formulas"),
        ({"meta": {"name": "x", "metric": "median"}}, "the metric is 'median'"),
        ({"meta": {}}, "not a suite of SyntaxGym"),
        (
            {"items": [{"item_number": 1, "conditions": [condition("match", "", " ")]}]},
            "item 1: the sentence of 'match' is empty",
        ),
        (
            {"items": [{"item_number": 1, "conditions": [{"condition_name": "match"}]}]},
            "item 1: a condition cannot be read",
        ),
    ],
)
def test_suites_that_cannot_be_read(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read_suite(write(tmp_path / "a.json", {**SUITE, **change}), "syntaxgym")
