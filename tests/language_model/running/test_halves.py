"""A pass that is halved, again and again, answers as the whole pass does: every kind of pass."""

import numpy as np
import pytest
import torch

from spacy_pll import make_pipeline
from spacy_pll.scoring.groups import GroupBatch

from ...conftest import PARAGRAPH, SENTENCES, build_transformer, get_tokenizer
from ...scoring.planned import batches_of_docs

MARGIN = {"metrics": ["word_l2r", "original"], "mask_margin": 1}
# name: architecture, its settings, the settings of the component, texts, rows of the largest pass (None: several).
PASSES = {
    "rows": ("bert", {}, {"metrics": ["word_l2r", "whole_word"]}, SENTENCES[:2], None),
    "rows of one length": ("convbert", {}, {"metrics": ["word_l2r"]}, SENTENCES[:1], None),
    "rows that lack pieces": ("bert", {}, {"metrics": ["left_context", "original"]}, SENTENCES[:2], None),
    "one row of many targets": ("bert", {}, {"words": "piece", "mask_spacing": 1}, SENTENCES[1:2], 1),
    "rows of many targets": ("bert", {}, {"metrics": ["original"], "mask_spacing": 2}, SENTENCES[:2], None),
    "rows with shares of masks": ("esm", {"token_dropout": True}, {"metrics": ["word_l2r"]}, SENTENCES[:2], None),
    "groups in several rows": ("bert", {}, MARGIN, SENTENCES, None),
    "one row of several blocks": ("roberta", {}, MARGIN, [PARAGRAPH], 1),
    "padding ids in groups": ("roberta", {}, MARGIN, ["The <pad> traveler <pad> lost it." + PARAGRAPH[:150]], 1),
    "groups of one piece": ("deberta", {}, {**MARGIN, "mask_margin": 0}, SENTENCES, None),
    "shares of masks, one row": ("esm", {"token_dropout": True}, MARGIN, ["a [MASK] b " + PARAGRAPH], 1),
    "shares of masks, more groups than ids in a half": (
        "esm",
        {"token_dropout": True},
        {"metrics": ["word_l2r", "original", "word_any_order"], "mask_margin": 0},
        ["souvenirsouvenirsouvenirsouvenir"],
        1,
    ),
    "shares of masks, several rows": ("esm", {"token_dropout": True}, {**MARGIN, "mask_margin": 2}, SENTENCES, None),
    "shares of masks, no neighbours": ("esm", {"token_dropout": True}, {**MARGIN, "mask_margin": 0}, SENTENCES, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PASSES)
def test_halves_answer_as_the_whole_does(kind):
    architecture, more, settings, texts, n_rows = PASSES[kind]
    tokenizer = get_tokenizer({"roberta": "byte-level", "deberta": "byte-level"}.get(architecture, "wordpiece"))
    nlp = make_pipeline((build_transformer(architecture, tokenizer, **more), tokenizer), **settings)
    predictor = nlp.get_pipe("pll").predictor
    loaded = predictor.prepare()
    n_halved = 0
    for batch in batches_of_docs(predictor, [nlp.make_doc(text) for text in texts]):
        if isinstance(batch, GroupBatch) and n_rows == 1:
            assert batch.n_rows == 1 and batch.n_slots > 2 * batch.block
        whole, parts = answer(loaded, [batch]), [batch]
        while any(part.can_be_halved for part in parts):
            parts = [half for part in parts for half in (part.halves() if part.can_be_halved else [part])]
            np.testing.assert_allclose(answer(loaded, parts), whole, atol=1e-5)
            n_halved += 1
        assert n_rows is None or batch.n_rows == n_rows
        assert max(part.size for part in parts) < batch.size or batch.n_rows == 1
    assert n_halved > 1


@torch.inference_mode()
def answer(loaded, batches):
    return np.concatenate([loaded.log_probs(batch)[0].cpu().numpy() for batch in batches])


def test_two_pipelines_of_one_model_in_memory_count_its_masks_once():
    """Each sets its hooks on the same model. The share of masks was put in by both, and the scores were wrong."""
    tokenizer = get_tokenizer("wordpiece")
    pair = build_transformer("esm", tokenizer, token_dropout=True), tokenizer
    first = make_pipeline(pair, mask_margin=1)
    expected = first(SENTENCES[0])._.pll
    second = make_pipeline(pair, mask_margin=1)
    assert [nlp(SENTENCES[0])._.pll for nlp in (first, second)] == pytest.approx([expected] * 2, abs=1e-5)
