"""A model that a user has in memory is as it was after each call: finished, failed, or stopped wherever."""

import gc
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language

import spacy_pll
from spacy_pll import make_pipeline

from ..conftest import SENTENCES, build_transformer, get_tokenizer

TEXTS = [*SENTENCES[:3], "", "The souvenir travels."]
ERRORS = [(RuntimeError, "broken"), (RuntimeError, "CUDA out of memory."), (ValueError, "odd"), (KeyboardInterrupt,)]
REPLACED = {"get_rel_pos", "compute_position_bias"}


class Stop:
    """Raises an error at one of the calls, of whatever place counts them."""

    def __init__(self, at, error):
        self.left, self.error = at, error

    def __call__(self, *_, **__):
        self.left -= 1
        if not self.left:
            error, *message = self.error
            raise error(*message)


def state(model):
    """All that a pass could leave in a model."""
    modes = {name: module.training for name, module in model.named_modules()}
    tensors = {
        name: (tensor, tensor.clone(), tensor.requires_grad, tensor.is_inference(), tensor.grad)
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    }
    hooks = {
        name: (len(module._forward_hooks), len(module._forward_pre_hooks), sorted(REPLACED & vars(module).keys()))
        for name, module in model.named_modules()
    }
    return modes, tensors, hooks


def check_same(found, expected):
    modes, tensors, *hooks = found
    assert modes == expected[0] and hooks in ([], [expected[2]])
    assert tensors.keys() == expected[1].keys()
    for (tensor, values, *others), (same, before, *as_before) in zip(tensors.values(), expected[1].values()):
        assert tensor is same and torch.equal(values, before) and others == as_before


def consume(stream, stop):
    for _ in stream:
        stop()


# What is called, with a pipeline of the model, or the model and its tokenizer.
CALLS = {
    "doc": lambda nlp, pair, stop, folder: [nlp(text) for text in TEXTS],
    "pipe": lambda nlp, pair, stop, folder: consume(nlp.pipe(TEXTS, batch_size=2), stop),
    "half a stream": lambda nlp, pair, stop, folder: next(nlp.pipe(TEXTS, batch_size=1)),
    "score": lambda nlp, pair, stop, folder: spacy_pll.score(TEXTS, nlp),
    "score_docs": lambda nlp, pair, stop, folder: consume(spacy_pll.score_docs(nlp, TEXTS), stop),
    "minimal_pairs": lambda nlp, pair, stop, folder: spacy_pll.minimal_pairs(
        [("The souvenir travels.", "The souvenir travel.")], nlp
    ),
    "continuations": lambda nlp, pair, stop, folder: spacy_pll.score_continuations(
        "The traveler", ["lost", "travels"], nlp
    ),
    "compare_margins": lambda nlp, pair, stop, folder: spacy_pll.compare_margins(TEXTS[:2], nlp, margins=[0]),
    "to_disk": lambda nlp, pair, stop, folder: nlp.to_disk(folder / "pipeline"),
    "to_bytes": lambda nlp, pair, stop, folder: nlp.to_bytes(),
    "make_pipeline": lambda nlp, pair, stop, folder: make_pipeline(pair, mask_margin=0),
    "as a left-to-right model": lambda nlp, pair, stop, folder: make_pipeline(pair, causal=True),
    "with a metric that needs another": lambda nlp, pair, stop, folder: make_pipeline(pair, metrics="causal"),
    "score at once": lambda nlp, pair, stop, folder: spacy_pll.score(TEXTS, pair, mask_margin=1),
}
PLACES = ["nowhere", "pass", "middle of a pass", "component", "consumer", "write"]


@given(
    kind=st.sampled_from(["bert", "esm", "deberta-v2", "mpnet"]),
    call=st.sampled_from(sorted(CALLS)),
    place=st.sampled_from(PLACES),
    at=st.integers(1, 12),
    error=st.sampled_from(ERRORS),
    training=st.sampled_from([True, False, "mixed"]),
    margin=st.sampled_from([None, 1]),
)
def test_a_model_of_the_user_is_as_it_was(tmp_path_factory, kind, call, place, at, error, training, margin):
    tokenizer = deepcopy(get_tokenizer("unigram" if kind == "deberta-v2" else "wordpiece"))
    model = build_transformer(kind, tokenizer, **({"token_dropout": True} if kind == "esm" else {}))
    model.train(training is True)
    if training == "mixed":
        for number, module in enumerate(model.modules()):
            module.training = number % 3 == 0
    next(model.parameters()).requires_grad_(False)
    before, stop, nothing = state(model), Stop(at, error), Stop(0, None)
    nlp, folder = make_pipeline((model, tokenizer), mask_margin=margin), tmp_path_factory.mktemp("folder")
    nlp.add_pipe(component(stop if place == "component" else nothing))
    with pytest.MonkeyPatch.context() as patch:
        hooks = []
        if place == "pass":
            hooks.append(model.register_forward_pre_hook(stop))
        elif place == "middle of a pass":
            hooks.append(list(model.modules())[-1].register_forward_hook(stop))
        elif place == "write":
            original = tokenizer.__class__.save_pretrained
            patch.setattr(
                tokenizer.__class__, "save_pretrained", lambda *args, **more: (stop(), original(*args, **more))
            )
        try:
            CALLS[call](nlp, (model, tokenizer), stop if place == "consumer" else nothing, folder)
        except (Exception, KeyboardInterrupt):
            pass
        for hook in hooks:
            hook.remove()
    check_same(state(model)[:2], before)
    del nlp  # the hooks go with it
    gc.collect()
    check_same(state(model), before)


def component(stop):
    name = f"stop-{id(stop)}"
    Language.component(name, func=lambda doc: (stop(), doc)[1])
    return name
