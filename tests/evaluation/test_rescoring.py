import builtins
import itertools

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import rescore, tune_rescoring
from spacy_pll.cli.rescore import parse_grid
from spacy_pll.evaluation.readers import NBest, parse_nbest
from spacy_pll.evaluation.rescoring import (
    TRIED_WEIGHTS,
    best_weights,
    character_error_rate,
    choose_error_rate,
    errors_at,
    is_silence_last,
    ranking,
    word_error_rate,
)

numbers = st.floats(-100, 0, width=16)
nbest_scores = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8).map(lambda rows: np.array(rows).T)
sentence = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", "a"]), min_size=1, max_size=8).map(" ".join)


def nbest(scores, texts=None, reference=""):
    """A list from the first-pass scores and PLLs of its hypotheses."""
    first_pass, pll = np.array(scores)
    return NBest(texts or [""] * len(pll), first_pass, [reference], {}, pll)


@given(nbest_scores)
def test_weight_zero_keeps_the_first_passes_order(scores):
    order = ranking(nbest(scores), 0.0)
    assert order.tolist() == sorted(range(len(order)), key=lambda i: -scores[0][i])  # sorted() is stable


@given(nbest_scores, st.floats(0, 3))
def test_a_ranking_holds_every_hypothesis_once_the_best_first(scores, weight):
    order = ranking(nbest(scores), weight)
    assert sorted(order) == list(range(len(order)))
    total = (scores[0] + weight * scores[1])[order]
    assert (np.diff(total) <= 0).all()


@given(nbest_scores, st.sets(st.integers(0, 7)), st.floats(-3, 3), st.floats(-2, 2))
def test_a_list_that_begins_with_silence_keeps_its_order(scores, silent, weight, word_weight):
    """By a loop: what has no PLL is last, unless the first pass has it first."""
    first_pass, pll = scores[0], [np.nan if i in silent else one for i, one in enumerate(scores[1])]
    found = ranking(nbest([first_pass, pll]), weight, word_weight).tolist()
    order = sorted(range(len(pll)), key=lambda i: -first_pass[i])
    if weight and order[0] not in silent:
        order.sort(key=lambda i: (1, 0) if i in silent else (0, -(first_pass[i] + weight * scores[1][i])))
    assert found == order


@pytest.mark.parametrize(
    ("texts", "reference", "weight", "expected"),
    [
        (["a", "", "b"], "", 1.0, True),
        (["a", " ", "b"], " ", -1.0, True),
        (["a", "", "b"], "", 0.0, False),
        (["", "a", "b"], "", 1.0, False),  # which keeps its order
        (["a", "", "b"], "b", 1.0, False),
        (["a", "b", "c"], "", 1.0, False),
    ],
)
def test_silence_that_is_right_and_comes_last(texts, reference, weight, expected):
    plls = [-1.0 if text.strip() else np.nan for text in texts]
    one = nbest([(-1.0, -2.0, -3.0), plls], texts, reference)
    assert is_silence_last(one, weight) == expected
    assert not is_silence_last(one._replace(references=[]), weight)
    if expected:
        assert not texts[ranking(one, weight)[-1]].strip()


def test_a_large_weight_leaves_the_choice_to_the_pll():
    one = nbest([(-1.0, -2.0, -3.0), (-9.0, -5.0, -7.0)])
    assert ranking(one, 1e6).tolist() == [1, 2, 0]
    # -1 - 9w against -2 - 5w: they meet at w = 1/4, where the first pass decides.
    assert ranking(one, 0.25)[0] == 0 and ranking(one, 0.26)[0] == 1


def test_word_errors_by_hand():
    # "now" is put in, "sat" became "sit", "mat" is dropped.
    first = ("now the cat sit on the", "the cat sat on the mat")
    kinds = {"substitutions": 1, "deletions": 1, "insertions": 1}
    assert word_error_rate(*zip(first)) == {"WER": 50.0, **kinds, "words": 6}
    # Over the corpus edits are summed first: (3 + 1) edits by (6 + 3) words, not the mean of 50 % and 33 %.
    found = word_error_rate(*zip(first, ("three words", "three words here")))
    assert found["WER"] == pytest.approx(400 / 9) and found["words"] == 9
    assert word_error_rate(["", "two words"], ["two words", ""])["WER"] == 200.0
    # Words are between white space of any kind, as those that `word_weight` counts.
    found = word_error_rate(["\u3000the\tcat\u00a0sat", "a\nb"], ["the cat sat ", "a \t b"])
    assert (found["WER"], found["words"]) == (0.0, 5)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5))
def test_word_error_rate_of_a_corpus_is_jiwers(rows):
    import jiwer

    hypotheses, references = map(list, zip(*rows))
    found = word_error_rate(hypotheses, references)
    assert found["WER"] == pytest.approx(100 * jiwer.wer(references, hypotheses))


WORDS = "one two three four five six seven eight nine ten"


def with_errors(n):
    return " ".join(["x"] * n + WORDS.split()[n:])


def test_tuning_takes_the_smallest_of_the_best_weights():
    # The second hypothesis, the better one, wins from weight 0.5 on in one list and from 1 on in the other.
    lists = [
        nbest([(0.0, -1.0), (-4.0, -1.9)], [with_errors(2), with_errors(1)], WORDS),
        nbest([(0.0, -1.9), (-4.0, -2.0)], [with_errors(3), with_errors(0)], WORDS),
    ]
    assert best_weights(lists, parse_grid("0:2:0.1")) == (1.0, 0.0)
    assert best_weights(lists, [0.2, 0.0]) == (0.0, 0.0)
    assert [errors_at(lists, weight)["WER"] for weight in (0.0, 0.6, 1.0)] == [25.0, 20.0, 5.0]


@given(
    st.lists(st.lists(st.tuples(sentence, numbers, numbers), min_size=1, max_size=5), min_size=1, max_size=4), sentence
)
def test_two_weights_are_those_of_a_brute_force(rows, reference):
    """Every pair of weights, the errors by jiwer, the best hypothesis by a loop."""
    import jiwer

    grid, word_grid = [0.0, 0.5, 1.0, 2.0], [-1.0, 0.0, 1.0, 2.0]
    tried = {}
    for alpha in grid:
        for beta in word_grid:
            best = [
                max(one, key=lambda h: (h[1] + alpha * h[2] + beta * len(h[0].split()), h[1]))[0] for one in rows
            ]  # fmt: skip
            tried[alpha, beta] = jiwer.wer([reference] * len(rows), best)
    lists = [nbest(np.array([h[1:] for h in one]).T, [h[0] for h in one], reference) for one in rows]
    least = [both for both in tried if tried[both] == min(tried.values())]
    assert best_weights(lists, grid, word_grid) == min(least, key=lambda both: (both[0], abs(both[1])))


def test_a_grid_has_both_ends():
    assert parse_grid("0:2:0.05")[::10] == [0.0, 0.5, 1.0, 1.5, 2.0] and len(parse_grid("0:2:0.05")) == 41
    assert parse_grid("0.1:0.35:0.1") == [0.1, 0.2, 0.3]
    assert parse_grid("1:1:1") == [1.0]
    for wrong in ("0:1:0", "1:0:0.1", "0:1:-0.1", "0:inf:1", "nan:1:1", "inf:inf:1"):
        with pytest.raises(typer.BadParameter, match="START <= STOP, STEP above 0"):
            parse_grid(wrong)


def test_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == "jiwer":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"jiwer.*pip install .*\[rescore\]"):
        word_error_rate(["a"], ["a"])


def test_lists_are_rescored_in_python(make_nlp):
    nlp = make_nlp("bert", metrics=["original"])
    texts = ["The traveler.", "The souvenir lost.", ""]
    hypotheses = [{"text": text, "score": -float(i), "id": i} for i, text in enumerate(texts)]
    [row] = rescore(nlp, [{"name": "u1", "hypotheses": hypotheses}], 0.5)
    plls = [nlp(text)._.pll_original for text in texts[:2]]
    totals = {text: 0.5 * pll - i for i, (text, pll) in enumerate(zip(texts, plls))}
    assert [one["text"] for one in row["hypotheses"]] == [*sorted(totals, key=totals.get, reverse=True), ""]
    for one in row["hypotheses"][:2]:
        assert one["rescored"] == pytest.approx(totals[one["text"]], abs=1e-4) and one["score"] == -one["id"]
    assert row["name"] == "u1" and np.isnan(row["hypotheses"][2]["pll"])
    [same] = rescore(nlp, [{"hypotheses": hypotheses}], 0.0)
    assert [one["id"] for one in same["hypotheses"]] == [0, 1, 2]
    with pytest.raises(ValueError, match="list 1: 'hypotheses' must be a list"):
        rescore(nlp, [{"texts": texts}], 0.5)
    with pytest.raises(ValueError, match="`weight` must be a finite .*It is nan"):
        rescore(nlp, [], float("nan"))
    longest = rescore(nlp, [{"hypotheses": hypotheses}], 0.0, word_weight=10.0)[0]["hypotheses"]
    assert [(one["id"], one["rescored"]) for one in longest] == [(1, 29.0), (0, 20.0), (2, -2.0)]
    with pytest.raises(ValueError, match="`word_weight` must be a finite number"):
        rescore(nlp, [], 0.5, word_weight=float("inf"))


@pytest.mark.parametrize("per_piece", [False, True])
def test_tuned_weights_make_the_fewest_errors_of_all(per_piece, make_nlp):
    """By `rescore` with each pair of weights, and the errors of what it has first."""
    nlp, texts = make_nlp("bert"), ["the traveler lost it", "the traveler lost", "the the traveler", "it"]
    rows = [
        {"hypotheses": [{"text": text, "score": -float(i)} for i, text in enumerate(order)], "reference": right}
        for order, right in ((texts, texts[2]), (texts[::-1], texts[0]), (texts[1:], texts[1]))
    ]
    weights, word_weights = [-0.3, 0.0, 0.1, 0.5, 2.0], [-1.0, 0.0, 3.0]

    def rate(weight, word_weight):
        found = rescore(nlp, rows, weight, word_weight=word_weight, per_piece=per_piece)
        best = [row["hypotheses"][0]["text"] for row in found]
        return word_error_rate(best, [row["reference"] for row in rows])["WER"]

    tried = [(rate(*both), both[0], abs(both[1]), both) for both in itertools.product(weights, word_weights)]
    unscored = [{**rows[0], "reference": None}, {**rows[0], "reference": None, "references": ["a", "b"]}]
    found = tune_rescoring(nlp, [*rows, *unscored], weights, word_weights, per_piece=per_piece)
    assert found == min(tried)[3] and max(tried)[0] > min(tried)[0]
    assert tune_rescoring(nlp, rows, per_piece=per_piece) in itertools.product(parse_grid("0:2:0.05"), [0.0])


def test_weights_that_cannot_be_tuned(make_nlp):
    row = {"hypotheses": [{"text": "a", "score": -1.0}]}
    with pytest.raises(ValueError, match="No list has one reference"):
        tune_rescoring(make_nlp("bert"), [row])
    for weights in ([], [0.0, float("nan")]):
        with pytest.raises(ValueError, match="`weights` must be finite numbers"):
            tune_rescoring(make_nlp("bert"), [{**row, "reference": "a"}], weights)


def test_the_weights_that_are_tried_are_the_grid_of_the_command():
    assert list(TRIED_WEIGHTS) == parse_grid("0:2:0.05")


@given(
    st.lists(st.tuples(st.text("ab 的", max_size=6), st.text("ab 的", min_size=1, max_size=6)), min_size=1, max_size=4)
)
def test_character_error_rate_of_a_corpus_is_jiwers(rows):
    jiwer = pytest.importorskip("jiwer")
    hypotheses, references = zip(*rows)
    joined = [["".join(text.split()) for text in texts] for texts in (references, hypotheses)]
    found = character_error_rate(hypotheses, references)
    n = sum(map(len, joined[0]))
    assert found["characters"] == n
    if n:
        assert found["CER"] == pytest.approx(100 * jiwer.cer(*joined))


@pytest.mark.parametrize(
    ("references", "chosen"),
    [
        (["我们今天去学校"], character_error_rate),
        (["他们 喝 茶 tea"], character_error_rate),
        (["the cat sat", "茶"], word_error_rate),
        (["드디어 왔다"], word_error_rate),  # Korean has spaces
        (["12 34"], word_error_rate),
    ],
)
def test_the_error_rate_fits_the_script_of_the_references(references, chosen):
    lists = [
        parse_nbest({"hypotheses": [{"text": "a", "score": -1.0}], "reference": one}, "here") for one in references
    ]
    assert choose_error_rate(lists) is chosen
    assert (
        choose_error_rate(lists, "wer") is word_error_rate and choose_error_rate(lists, "cer") is character_error_rate
    )
