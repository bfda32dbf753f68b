"""What is drawn in a step, and predictions at the pieces to predict."""

from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch

from scripts.tuning.agreement import scores
from scripts.tuning.examples import APART, SPACING, Part, choose_pieces, draw_parts, planned_passes, predictions
from scripts.tuning.texts import ContextMaker

from .conftest import random_texts


@pytest.fixture
def model(language_model):
    return language_model("bert")


@pytest.fixture
def make_contexts(model):
    return ContextMaker(spacy.blank("en"), model.load().tokenizer, "spacy", model.load().max_length)


@pytest.fixture
def contexts(make_contexts):
    rng = np.random.default_rng(0)
    drawn = [choose_pieces(make_contexts(text)[0], False, 3, rng) for text in random_texts(12)]
    return [*drawn, replace(drawn[0]), replace(drawn[1], scored=np.zeros_like(drawn[1].scored))]


def test_a_step_has_the_targets_of_all_metrics_and_margins(make_settings, make_contexts):
    settings = make_settings(targets=200, margins=[0, 1, 3])
    passages = [(text, "And so on.") for text in random_texts(50)]
    parts = draw_parts(passages, make_contexts, settings, np.random.default_rng(0))
    assert sum(part.n_targets for part in parts) == 200
    assert {(part.metric, part.margin) for part in parts} == {
        (metric, margin) for metric in ("word_l2r", "original") for margin in (0, 1, 3)
    }
    of_margin = [sum(part.n_targets for part in parts if part.margin == margin) for margin in (0, 1, 3)]
    assert of_margin[0] > of_margin[1] > of_margin[2]
    again = draw_parts(passages, make_contexts, settings, np.random.default_rng(0))
    assert [[c.ids.tolist() for c in part.contexts] for part in parts] == [
        [c.ids.tolist() for c in part.contexts] for part in again
    ]
    other = draw_parts(passages, make_contexts, settings, np.random.default_rng(1))
    assert [len(part.contexts) for part in other] != [len(part.contexts) for part in parts]


def test_every_second_piece_of_a_passage_can_share_a_pass(model, make_contexts):
    context = make_contexts(" ".join(random_texts(40)))[0]
    assert len(context.word) > 3 * APART
    for seed in range(20):
        chosen = choose_pieces(context, True, 100, np.random.default_rng(seed))
        at = np.flatnonzero(chosen.scored)
        assert len(at) == len(context.word) // APART and np.diff(at).min() >= APART
        [(_, [batch])] = planned_passes(model, [chosen], "word_l2r", None, SPACING)
        assert len(batch.ids) <= 3 < len(at)
    assert choose_pieces(context, True, 2, np.random.default_rng(0)).scored.sum() == 2


def test_texts_without_pieces_do_not_hang(make_settings):
    assert draw_parts([("a",)], lambda text: [], make_settings(), np.random.default_rng(0)) == []


@pytest.mark.parametrize("margin", [None, 0, 1, 100])
@pytest.mark.parametrize("metric", ["word_l2r", "original", "whole_word"])
def test_predictions_are_those_of_the_scores(model, contexts, metric, margin):
    """Each piece to predict has one prediction, whose log-probability of the true id is the piece's score."""
    ids = np.concatenate([context.ids[context.first :][: len(context.word)] for context in contexts])
    found = np.full(len(ids), np.nan)
    with torch.no_grad():
        for logits, piece in predictions(model, model.load().forward, Part(metric, 0, contexts), margin):
            assert logits.shape == (len(piece), model.load().checkpoint.transformer.config.vocab_size)
            found[piece] = logits.log_softmax(1)[range(len(piece)), ids[piece]]
    scored = np.concatenate([context.scored for context in contexts])
    expected = np.zeros(len(ids))
    expected[scored] = scores(model, contexts, metric, margin)
    known = ~np.isnan(found)
    assert known.sum() == sum(int(context.scored.sum()) for context in contexts[:12])  # equal contexts have one
    np.testing.assert_allclose(found[known], expected[known], atol=1e-5)
    assert not known[~scored].any()
