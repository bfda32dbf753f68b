import builtins
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.evaluation.rescoring import (
    NBest,
    best_by,
    bleu,
    corpus_value,
    grid,
    oracle,
    ranking,
    tune,
    word_error_rate,
)
from spacy_pll.requirements import install_command

numbers = st.floats(-100, 0, width=16)
nbest_scores = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8).map(lambda rows: np.array(rows).T)
sentence = st.lists(st.sampled_from(["the", "cat", "sat", "on", "mat", "a"]), min_size=1, max_size=8).map(" ".join)


@given(nbest_scores)
def test_weight_zero_keeps_the_first_passes_order(scores):
    first_pass, pll = scores
    order = ranking(first_pass, pll, 0.0)
    assert order.tolist() == sorted(range(len(first_pass)), key=lambda i: -first_pass[i])  # sorted() is stable


@given(nbest_scores, st.floats(0, 3))
def test_a_ranking_holds_every_hypothesis_once_the_best_first(scores, weight):
    first_pass, pll = scores
    order = ranking(first_pass, pll, weight)
    assert sorted(order) == list(range(len(pll)))
    total = (first_pass + weight * pll)[order]
    assert (np.diff(total) <= 0).all()


def test_a_large_weight_leaves_the_choice_to_the_pll():
    first_pass, pll = np.array([-1.0, -2.0, -3.0]), np.array([-9.0, -5.0, -7.0])
    assert ranking(first_pass, pll, 1e6).tolist() == [1, 2, 0]
    # -1 - 9w against -2 - 5w: they meet at w = 1/4, where the first pass decides.
    assert ranking(first_pass, pll, 0.25)[0] == 0 and ranking(first_pass, pll, 0.26)[0] == 1


def test_word_errors_by_hand():
    wer = word_error_rate()
    # "now" is put in, "sat" became "sit", "mat" is dropped.
    assert wer.counts("now the cat sit on the", ["the cat sat on the mat"]) == [1, 1, 1, 6]
    assert wer.counts("", ["two words"]) == [0, 2, 0, 2]
    assert wer.counts("two words", [""]) == [0, 0, 2, 0]
    # Over the corpus edits are summed first: (3 + 1) edits by (6 + 2) words, not the mean of 50 % and 50 %.
    counts = [np.array([[1, 1, 1, 6]]), np.array([[0, 1, 0, 2], [0, 0, 0, 2]])]
    assert corpus_value(counts, [0, 0], wer) == 50.0
    assert corpus_value(counts, [0, 1], wer) == 37.5
    assert oracle(counts) == [0, 1]


def test_the_word_error_rate_takes_one_reference():
    with pytest.raises(ValueError, match="takes one reference, and there are 2"):
        word_error_rate().counts("a", ["a", "b"])


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5))
def test_word_error_rate_of_a_corpus_is_jiwers(rows):
    import jiwer

    hypotheses, references = map(list, zip(*rows))
    wer = word_error_rate()
    counts = [np.array([wer.counts(hypothesis, [reference])]) for hypothesis, reference in rows]
    assert corpus_value(counts, [0] * len(rows), wer) == pytest.approx(100 * jiwer.wer(references, hypotheses))


@given(st.lists(st.tuples(sentence, st.lists(sentence, min_size=1, max_size=3)), min_size=1, max_size=5))
def test_bleu_of_a_corpus_is_sacrebleus(rows):
    from sacrebleu.metrics import BLEU

    measure = bleu()
    counts = [np.array([measure.counts(*row)]) for row in rows]
    columns = [[references[i] if i < len(references) else None for _, references in rows] for i in range(3)]
    expected = BLEU().corpus_score([hypothesis for hypothesis, _ in rows], columns).score
    assert corpus_value(counts, [0] * len(rows), measure) == pytest.approx(expected)


def make_lists(*lists):
    """N-best lists and PLLs from (first pass, pll, word errors of ten words) rows."""
    nbests = [NBest([""] * len(rows), np.array([row[0] for row in rows]), [""]) for rows in lists]
    plls = [np.array([row[1] for row in rows]) for rows in lists]
    counts = [np.array([[row[2], 0, 0, 10] for row in rows]) for rows in lists]
    return nbests, plls, counts


def test_tuning_takes_the_smallest_of_the_best_weights():
    # The second hypothesis, the better one, wins from weight 0.5 on in one list and from 1 on in the other.
    lists, plls, counts = make_lists([(0.0, -4.0, 2), (-1.0, -1.9, 1)], [(0.0, -4.0, 3), (-1.9, -2.0, 0)])
    wer = word_error_rate()
    assert tune(lists, plls, counts, wer, grid(0, 2, 0.1)) == (1.0, 5.0)
    assert tune(lists, plls, counts, wer, [0.0, 0.2]) == (0.0, 25.0)
    assert best_by(lists, plls, 0.0) == [0, 0] and best_by(lists, plls, 0.6) == [1, 0]


def test_tuning_for_bleu_seeks_the_highest():
    measure = bleu()
    reference = "the cat sat on the mat today"
    texts = ["a dog lay on that rug now", reference]
    lists = [NBest(texts, np.array([0.0, -1.0]), [reference])]
    counts = [np.array([measure.counts(text, [reference]) for text in texts])]
    assert tune(lists, [np.array([-9.0, -5.0])], counts, measure, [0.0, 0.5, 1.0]) == (0.5, pytest.approx(100))


def test_a_grid_has_both_ends():
    assert grid(0, 2, 0.05)[::10] == [0.0, 0.5, 1.0, 1.5, 2.0] and len(grid(0, 2, 0.05)) == 41
    assert grid(0.1, 0.35, 0.1) == [0.1, 0.2, 0.3]
    assert grid(1, 1, 1) == [1.0]
    for wrong in ((0, 1, 0), (1, 0, 0.1), (0, 1, -0.1), (0, float("inf"), 1), (float("nan"), 1, 1)):
        with pytest.raises(ValueError, match="start <= stop, a step above 0"):
            grid(*wrong)


@pytest.mark.parametrize(("make", "library"), [(word_error_rate, "jiwer"), (bleu, "sacrebleu")])
def test_what_to_install(make, library, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] == library:
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=rf"needs {library}.*{re.escape(install_command('rescore'))}"):
        make()
