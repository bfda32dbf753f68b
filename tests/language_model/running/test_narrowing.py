"""The last steps of a model at the targets alone."""

import pickle

import numpy as np
import pytest
import torch

from spacy_pll.language_model.running.forward import Forward
from spacy_pll.language_model.running.narrowing import Narrowing
from spacy_pll.language_model.running.unable import Unable

from ...conftest import ARCHITECTURES, SENTENCES
from ...scoring.planned import make_batch
from .test_forward import narrowing_of


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_narrowed_passes_give_what_whole_ones_do(language_model, architecture):
    model = language_model(architecture)
    forward = model.loaded.forward
    assert forward.capabilities.narrowing == narrowing_of(architecture)
    long, short = (model.load().tokenizer.encode(text).ids for text in (SENTENCES[0], "I a."))
    if model.load().rows.pads:
        rows, asked = [long, short], [(0, len(long) - 2, 0), (1, 1, 1), (0, 3, 0), (0, 3, 0)]  # one place twice
    else:
        rows, asked = [long], [(0, len(long) - 2, 0), (0, 1, 0), (0, 1, 0)]
    whole = Forward(model.load().checkpoint.transformer)
    with torch.inference_mode():
        batch = make_batch(rows, asked, model.load().rows.pad_id)
        found, expected = forward.logits(batch)[0], whole.logits(batch)[0]
    np.testing.assert_allclose(found.cpu(), expected.cpu(), atol=1e-5)


@pytest.mark.parametrize(("architecture", "part"), [("bert", "intermediate"), ("modernbert", "mlp.Wi")])
def test_the_last_feed_forward_sees_the_targets_alone(make_nlp, architecture, part):
    nlp = make_nlp(architecture)
    nlp.initialize()
    scorer = nlp.get_pipe("pll")
    *_, before, last = scorer.model.loaded.forward.narrowing.layers()
    seen = {before: 0, last: 0}
    for layer in seen:

        def count(module, args, layer=layer):
            seen[layer] += args[0].shape[0] * args[0].shape[1]

        layer.get_submodule(part).register_forward_pre_hook(count)
    nlp(SENTENCES[0])
    assert seen[before] == scorer.predictor.counts.ids + scorer.predictor.counts.padding
    assert seen[last] == scorer.predictor.counts.targets < seen[before] / 5


def test_a_narrowed_model_can_be_pickled(language_model):
    model = language_model("modernbert")
    other = pickle.loads(pickle.dumps(model))
    assert other.loaded.forward.capabilities.narrowing == model.loaded.forward.capabilities.narrowing
    assert other.loaded.forward.model is other.load().checkpoint.transformer


def test_an_encoder_without_layers_is_an_error_that_the_trial_understands():
    narrowing = Narrowing(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    narrowing.model.base_model = narrowing.model
    with pytest.raises(Unable, match="Sequential has no list of layers"):
        narrowing.layers()
