"""The rows of the page's tables."""

import math

import pytest

from spacy_pll import compare, score_continuations
from spacy_pll.explorer.tables import (
    alternative_rows,
    candidate_rows,
    say_difference,
    segment_rows,
    token_rows,
)

SHOWN = {"keep_pieces": True, "alternatives": 5, "distribution": True}


def test_tokens(make_nlp):
    docs = list(make_nlp(metrics=["original", "word_l2r"], **SHOWN).pipe(["The unhappiest\n house.", "A cat."]))
    rows = token_rows(docs, "pll")
    tokens = [token for doc in docs for token in doc if not token.is_space]
    assert [row["token"] for row in rows] == [token.text for token in tokens]
    assert [row["text"] for row in rows] == [1 if token.doc is docs[0] else 2 for token in tokens]
    for row, token in zip(rows, tokens):
        assert row["pll_original"] == token._.pll and row["pll_word_l2r"] == token._.pll_word_l2r
        assert (row["rank"], row["entropy"]) == (token._.pll_rank, token._.pll_entropy)
        assert len(row["wordpieces"].split()) == token._.pll_pieces
        assert row["expected"].count("%") == 3 and row["expected"].endswith("%")


def test_tokens_of_docs_that_have_only_scores(make_nlp):
    (row, *_) = token_rows([make_nlp()("The cat.")], "pll")
    assert set(row) == {"token", "pll_word_l2r"}


def test_alternatives(make_nlp):
    doc = make_nlp(**SHOWN)("The cat.")
    rows = alternative_rows(doc[1], "pll")
    scores = [score for _, score, _ in doc[1]._.pll_alternatives]
    assert [row["log-probability"] for row in rows] == pytest.approx(scores)
    assert all(row["probability"] == pytest.approx(math.exp(row["log-probability"])) for row in rows)
    assert len(rows) == 5 and alternative_rows(make_nlp()("The cat.")[1], "pll") == []


def test_segments_and_candidates(make_nlp):
    nlp = make_nlp()
    comparison = compare(nlp, "The cat sat.", "The cat is.")
    rows = segment_rows(comparison)
    assert math.fsum(row["b − a"] for row in rows) == pytest.approx(comparison.difference)
    assert {"a": "sat", "b": "is", "change": "replace"}.items() <= rows[2].items()
    candidates = candidate_rows(score_continuations(nlp, "The", ["cat", "house", "unhappiest"], "."))
    probabilities = [row["probability"] for row in candidates]
    assert probabilities == sorted(probabilities, reverse=True) and sum(probabilities) == pytest.approx(1)
    assert {row["candidate"] for row in candidates} == {"cat", "house", "unhappiest"}


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (2.5, "The **second** version"),
        (-2.5, "The **first** version"),
        (-0.001, "Both versions have the same"),
        (math.inf, "The **first** version has no wordpiece"),
        (-math.inf, "The **second** version has no wordpiece"),
    ],
)
def test_the_better_version_is_named(difference, words):
    assert say_difference(difference).startswith(words)
