from inspect import signature

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import Choice, InputError, Option, minimal_pairs
from spacy_pll.evaluation.choices import ChoiceSuite, choices
from spacy_pll.evaluation.measurements import outcomes_of

from .. import reference
from ..conftest import SENTENCES
from .given_scores import suite_scores

IN_CONTEXT = [
    Choice([Option(text, "The traveler lost") for text in ("the souvenir.", "a carnivore, who is young.", "it.")], 1),
    Choice([Option("travels with co-workers.", before) for before in ("Dr. Smith", "The hooligans", "")], 0),
    Choice([Option("$3.50 for it.", "The hooligans paid "), Option(" $3.50 for it.", "Smith paid")], 1, {"id": "x"}),
    Choice([Option(text, "The", after="lost it.") for text in ("traveler", "young hooligans")], 0),
    Choice([Option("The souvenir", after=after) for after in (" is young.", "paid.")], 1),
]


def by_brute_force(transformer, tokenizer, metric, option):
    """The score of the pieces that begin in the text, or in the space before it, each masked in its own pass."""
    context = option.context if not option.context or option.context.endswith(" ") else f"{option.context} "
    end = len(context + option.text.lstrip())
    whole = f"{context}{option.text.lstrip()} {option.after.lstrip()}".rstrip()
    ids, kept, word, _ = reference.read(spacy.blank("en")(whole), tokenizer, "spacy")
    offsets = tokenizer.backend_tokenizer.encode(whole).offsets
    targets = [i for i in range(len(kept)) if len(context.rstrip()) <= offsets[kept[i]][0] < end]
    total = 0.0
    for target in targets:
        masked = {kept[i] for i in range(len(kept)) if reference.is_masked(metric, i, target, word)}
        total += reference.log_probabilities(transformer, tokenizer, ids, masked)[kept[target]]
    return total, len(targets)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_options_are_scored_in_their_contexts(make_nlp, model_folder, architecture):
    model = reference.load_model(model_folder(architecture))
    found = choices(make_nlp(architecture, metrics=["word_l2r", "original"]), IN_CONTEXT)
    for metric in ("word_l2r", "original"):
        scores, best = found.scores[metric], list[int]()
        for choice, own in zip(IN_CONTEXT, found.suite.options, strict=True):
            expected = [by_brute_force(*model, metric, option) for option in choice.options]
            assert scores.sums[own] == pytest.approx([score for score, _ in expected], abs=1e-4)
            assert scores.pieces[own].tolist() == [count for _, count in expected]
            best.append(max(range(len(expected)), key=lambda k: expected[k][0]))
        assert found.suite.chosen(scores).tolist() == best
        assert found.suite.outcomes(scores).tolist() == [float(k == c.right) for k, c in zip(best, IN_CONTEXT)]


def test_minimal_pairs_are_choices_of_two_without_a_context(make_nlp):
    nlp = make_nlp("bert")
    pairs = [(one, two) for one in SENTENCES for two in SENTENCES if one != two]
    found = choices(nlp, [Choice([Option(one), Option(two)], 0) for one, two in pairs])
    expected = minimal_pairs(nlp, pairs)
    for name in ("sums", "pieces"):
        assert getattr(found.scores["word_l2r"], name).tolist() == getattr(expected.scores["word_l2r"], name).tolist()
    assert found.measurements() == expected.measurements()
    means = choices(nlp, found.suite.items, per_piece=True), minimal_pairs(nlp, pairs, per_piece=True)
    assert means[0].measurements() == means[1].measurements()


THREE = [
    Choice([Option(text) for text in "abc"], right, {"kind": kind}) for right, kind in ((1, "x"), (0, "y"), (2, "x"))
]
SCORES = {"m": [[-3.0, -1.0, -1.0], [-2.0, -2.0, -2.0], [-1.0, -2.0, -3.0]]}
COUNTS = {"m": [[1, 1, 2], [1, 2, 2], [1, 1, 9]]}


def scored(items=THREE, columns=None, **settings):
    n = len(items)
    return suite_scores(ChoiceSuite(items, **settings), {"m": SCORES["m"][:n]}, {"m": COUNTS["m"][:n]}, columns)


def test_ties_and_means():
    found, first = scored(), scored(ties="first")
    assert found.suite.outcomes(found.scores["m"]) == pytest.approx([1 / 2, 1 / 3, 0])
    assert first.suite.outcomes(first.scores["m"]).tolist() == [1, 1, 0]
    assert first.measurements()[0].value == pytest.approx(2 / 3)
    assert [one.ties for one in first.measurements(["kind"])] == [one.ties for one in found.measurements(["kind"])]
    means = suite_scores(ChoiceSuite(THREE), SCORES, COUNTS, per_piece=True)
    assert means.suite.outcomes(means.scores["m"]).tolist() == [0, 0, 1]
    overall, *_ = found.measurements()
    assert (overall.n, overall.ties) == (3, 2) and overall.value == pytest.approx(5 / 18)
    assert {signature(one).parameters["ties"].default for one in (minimal_pairs, choices)} == {"share"}


def test_pictures_have_a_line_at_chance():
    found = scored()
    assert found.plot(["kind"]).axes[0].lines[-1].get_xdata() == pytest.approx([100 / 3] * 2)
    assert found.plot_curves(["kind"]).axes[0].lines[-1].get_ydata() == pytest.approx([100 / 3] * 2)


@pytest.mark.filterwarnings("ignore:.*they are the same wordpieces")
def test_equal_options_are_a_tie(make_nlp):
    same = Choice([Option("sleeps  now.", "A cat"), Option("sleeps now.", "A cat")])  # in the same wordpieces
    found = choices(make_nlp("bert"), [same])
    assert [(one.value, one.ties) for one in found.measurements()] == [(0.5, 1)]


@given(st.integers(1, 3), st.integers(0, 3), st.integers(0, 2), st.booleans())
def test_options_that_are_equal(equal, others, right, of_people):
    """As many as are made so, and no others; all of them are an error."""
    options = [Option("a", "x"), Option("b", "x"), Option("c", "x")]
    same = [*options[:right], options[right], *options[right + 1 :], Option(" " + options[right].text, "x")]
    wrong_ones = [*options, options[right - 1]]  # which can be told from the right one
    items = [Choice(wrong_ones, right)] * others + [Choice(same, right)] * equal
    if of_people:
        items = [Choice([Option("a"), Option("a" if len(set(one.options)) == 4 else "b")], 0, {}, 0.1) for one in items]
    if not others:
        with pytest.raises(InputError, match="Choice 1: two options are equal, .*, as in all choices. Is one column"):
            ChoiceSuite(items).check(False)
        return
    with pytest.warns(UserWarning, match=f"Choice {others + 1}: two options .* {equal} of {len(items)} choices"):
        ChoiceSuite(items).check(False)
    ChoiceSuite(items[:others] * 100 + items[-1:] * others).check(False)  # one in a hundred, as in BLiMP


def test_a_row_for_each_option():
    frame = scored(columns={"m": "pll_m"}).to_dataframe()
    assert list(frame)[:6] == ["choice", "option", "right", "context", "text", "kind"]
    assert frame["choice"].tolist() == [1] * 3 + [2] * 3 + [3] * 3 and frame["text"].tolist() == [*"abc"] * 3
    assert frame["option"].tolist() == [1, 2, 3] * 3
    assert frame["right"].tolist() == [False, True, False, True, False, False, False, False, True]
    assert frame["pll_m"].tolist() == sum(SCORES["m"], []) and frame["pll_m_pieces"].tolist() == sum(COUNTS["m"], [])
    assert frame["pll_m_chosen"].tolist() == [False, True, False, True, False, False, True, False, False]
    with pytest.raises(ValueError, match="The choices have a column 'text'"):
        list(scored([THREE[0]._replace(fields={"text": 1})]).rows())


def predictions(found, by=None):
    return found.suite.predictions(found.scores["m"], by)


def test_predictions_are_the_chosen_texts_by_group():
    found = predictions(scored(), ["kind"])
    assert list(found) == ["x", "y"]
    assert found["x"] == {"predictions": [{"id": "x_0", "pred": "b"}, {"id": "x_1", "pred": "a"}]}
    options = [Option("is red.", before) for before in ("A rose", "The sky ")], [Option(text, "It is") for text in "ab"]
    suite = ChoiceSuite([Choice(one) for one in options])
    found = predictions(suite_scores(suite, {"m": [[-2, -1], [-2, -1]]}, {"m": [[2, 2], [1, 1]]}))
    assert [one["pred"] for one in found[""]["predictions"]] == ["The sky is red.", " b"]


@given(st.lists(st.lists(st.sampled_from([-1.0, -2.0, -3.5]), min_size=2, max_size=5), min_size=1, max_size=8))
def test_the_options_of_a_choice_share_one_outcome(scores):
    """Whichever is the right one, the outcomes of a choice sum to 1; with `ties="first"` they do as well."""
    table = np.full((len(scores), max(map(len, scores))), -np.inf)
    for row, one in zip(table, scores):
        row[: len(one)] = one
    for ties in ("share", "first"):
        total = sum(outcomes_of(table, [min(k, len(one) - 1) for one in scores], ties) * (
            np.array([k < len(one) for one in scores])) for k in range(table.shape[1]))  # fmt: skip
        assert total == pytest.approx(np.ones(len(scores)))


@pytest.mark.parametrize(
    "items, message",
    [
        ([], "There is no choice"),
        ([("a", "b")], r"Choice 1 must be a `Choice` of `Option`s. It is \('a', 'b'\)"),
        ([Choice(["a", "b"])], "Choice 1 must be a `Choice` of `Option`s"),
        ([THREE[0], Choice([Option("a")])], "Choice 2: a choice needs two options or more. It has 1"),
        ([Choice([])], "It has 0"),
        ([THREE[0]._replace(right=3)], "the right option has the number 3, and there are 0 to 2"),
        ([THREE[0]._replace(right="b")], "the right option has the number 'b'"),
        ([Choice([Option(" ", "The"), Option("b", "The")])], "an option is empty"),
        (
            [Choice([Option("\u200b", "A cat"), Option("b", "A cat")])],
            "The text .* after 'A cat ' has no wordpiece of its own",
        ),
        ([Choice([Option("\u200b"), Option("b")])], r"The text '\\u200b' has no wordpiece"),
    ],
)
def test_choices_that_are_none(make_nlp, items, message):
    with pytest.raises(ValueError, match=message):
        choices(make_nlp("bert"), items)


def test_a_column_of_groups_that_is_not_there(make_nlp):
    with pytest.raises(InputError, match="Choice 1: .* no column 'domain'.*: 'kind'"):
        scored().measurements(["domain"])


def test_a_choice_with_one_option_says_how_a_single_text_is_scored(make_nlp):
    with pytest.raises(InputError, match="needs two options or more. It has 1.*`context_column`"):
        choices(make_nlp("bert"), [Choice([Option("The cats sleep.", "So:")], 0)])
