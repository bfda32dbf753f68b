"""A model that a user has in memory is as it was after each call: finished, failed, or stopped wherever."""

import gc
import inspect
import os
import re
from collections import Counter
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

import spacy_pll
from spacy_pll import Choice, Option, PipelineSettings, make_pipeline
from spacy_pll.corpus.runs import score_to_file, score_to_stream
from spacy_pll.proteins.assays import Assay

from ..conftest import SENTENCES, build_transformer, get_tokenizer, write_jsonl
from ..corpus.running import make_run
from ..protein_models import PROTEIN, spaced_tokenizer

TEXTS = [SENTENCES[0], SENTENCES[2], "", "The souvenir travels."]
PAIRS = [("The souvenir travels.", "The souvenir travel."), ("It lost.", "It losts.")]
CHOICES = [Choice([Option(text, "The traveler") for text in ("lost it.", "travels.")])] * 2
NBEST = [{"hypotheses": [{"text": text, "score": -1.0} for text in pair]} for pair in PAIRS]
SEQUENCE, MUTANTS = PROTEIN[:8], ["M1A", "K2R:T3A", "A4G"]
ERRORS = [(RuntimeError, "broken"), (RuntimeError, "CUDA out of memory."), (ValueError, "odd"), (KeyboardInterrupt,)]
REPLACED = {"get_rel_pos", "compute_position_bias"}


class Stop:
    """Counts how often a call comes to each place, and raises an error at one of these times."""

    def begin(self, place="nowhere", at=0, error=None):
        self.place, self.at, self.error, self.times, self.raised = place, at, error, Counter(), False

    def __call__(self, place):
        self.times[place] += 1
        if place == self.place and self.times[place] == self.at:
            self.raised = True
            error, *message = self.error
            raise error(*message)


def state(model):
    """All that a pass could leave in a model."""
    modes = {name: module.training for name, module in model.named_modules()}
    tensors = {
        name: (tensor, tensor.clone(), tensor.requires_grad, tensor.is_inference(), tensor.grad)
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]
    }
    return modes, tensors


def check_same(found, expected):
    (modes, tensors), (modes_before, tensors_before) = found, expected
    assert modes == modes_before and tensors.keys() == tensors_before.keys()
    for (tensor, values, *others), (same, before, *as_before) in zip(tensors.values(), tensors_before.values()):
        assert tensor is same and torch.equal(values, before) and others == as_before


def hooks(model):
    return {
        name: (len(module._forward_hooks), len(module._forward_pre_hooks), sorted(REPLACED & vars(module).keys()))
        for name, module in model.named_modules()
    }


@torch.no_grad()
def own_pass(model):
    """What the user's own passes give, in whichever mode the parts of the model are."""
    torch.manual_seed(0)
    return model(input_ids=torch.arange(5, 15).view(2, 5)).logits


def lm_eval(user):
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    from spacy_pll.lm_eval import PLL

    requests = [("The traveler", " lost it."), ("", "The souvenir travels.")]
    model = PLL(user.nlp, show_progress=False)
    return model.loglikelihood([Instance("loglikelihood", {}, one, 0, ("task", 0, 1)) for one in requests])


def suite(user):
    path = user.folder / "suite.csv"
    path.write_text("sentence,label\nThe souvenir travels.,1\nThe souvenir travel.,0\n")
    return spacy_pll.read_suite(str(path), "acceptability")


def corpus(user):
    source = write_jsonl(user.folder / "texts.jsonl", *({"text": text} for text in TEXTS))
    return make_run(source, PipelineSettings(user.nlp), batch_size=2)


# What is called, with a pipeline of the model, or the model and its tokenizer; and, besides passes, the places that it
# comes to: the user's iterator of texts, the user's component, the user's loop over what is found, a write.
CALLS = {
    "doc": ("component", lambda user: [user.nlp(text) for text in TEXTS]),
    "pipe": ("texts component loop", lambda user: user.loop(user.nlp.pipe(user.each(TEXTS), batch_size=2))),
    "half a stream": ("texts component", lambda user: next(user.nlp.pipe(user.each(TEXTS), batch_size=1))),
    "to_disk": ("write", lambda user: user.nlp.to_disk(user.folder / "pipeline")),
    "to_bytes": ("write", lambda user: user.nlp.to_bytes()),
    "make_pipeline": ("", lambda user: make_pipeline(user.pair, mask_margin=0)),
    "as a left-to-right model": ("", lambda user: make_pipeline(user.pair, causal=True)),
    "with a metric that needs another": ("", lambda user: make_pipeline(user.pair, metrics="causal")),
    "score at once": ("texts", lambda user: spacy_pll.score(user.each(TEXTS), user.pair, mask_margin=1)),
    "score": ("texts component", lambda user: spacy_pll.score(user.each(TEXTS), user.nlp)),
    "score_docs": (
        "texts component loop",
        lambda user: user.loop(spacy_pll.score_docs(user.nlp, user.each(TEXTS), batch_size=2)),
    ),
    "score_words": (
        "texts component",
        lambda user: spacy_pll.score_words(
            user.each({"word": word} for word in TEXTS[0].split()), user.nlp, log_frequency=False
        ),
    ),
    "score_continuations": (
        "",
        lambda user: spacy_pll.score_continuations(user.nlp, "The traveler", ["lost", "travels"]),
    ),
    "slots": (
        "texts",
        lambda user: spacy_pll.slots(user.nlp, user.each(["The ___ lost it.", "She lost ___."]), ["traveler", "it"]),
    ),
    "words for slots": ("texts", lambda user: spacy_pll.slots(user.nlp, user.each(["The ___ lost it."]), top=2)),
    "compare": ("component", lambda user: spacy_pll.compare(user.nlp, *PAIRS[0])),
    "compare_pairs": (
        "texts component loop",
        lambda user: user.loop(spacy_pll.compare_pairs(user.nlp, user.each(PAIRS), batch_size=1)),
    ),
    "log_probability_bounds": (
        "texts component",
        lambda user: spacy_pll.log_probability_bounds(user.nlp, user.each(TEXTS), n_pairs=2),
    ),
    "minimal_pairs": ("texts component", lambda user: spacy_pll.minimal_pairs(user.nlp, user.each(PAIRS))),
    "choices": ("texts component", lambda user: spacy_pll.choices(user.nlp, user.each(CHOICES))),
    "rescore": ("texts component", lambda user: spacy_pll.rescore(user.nlp, user.each(NBEST), 0.5)),
    "tune_rescoring": (
        "texts component",
        lambda user: spacy_pll.tune_rescoring(user.nlp, user.each({**one, "reference": "It lost."} for one in NBEST)),
    ),
    "perplexity": ("texts component", lambda user: spacy_pll.perplexity(user.nlp, user.each(TEXTS))),
    "window_perplexities": ("component", lambda user: spacy_pll.window_perplexities(user.nlp, TEXTS, 2)),
    "agree": (
        "texts component",
        lambda user: spacy_pll.agree(user.nlp, make_pipeline(user.nlp, "original"), user.each(TEXTS)),
    ),
    "compare_margins": (
        "texts component",
        lambda user: spacy_pll.compare_margins(user.nlp, user.each(TEXTS), margins=[0]),
    ),
    "score_suite": ("component", lambda user: spacy_pll.score_suite(user.nlp, suite(user))),
    "variants": ("texts", lambda user: spacy_pll.variants(user.nlp, SEQUENCE, user.each(MUTANTS))),
    "score_assays": (
        "texts loop write",
        lambda user: user.loop(
            spacy_pll.score_assays(
                user.nlp,
                user.each(Assay(name, SEQUENCE, [spacy_pll.Variant(one) for one in MUTANTS]) for name in "ab"),
                user.folder,
            )
        ),
    ),
    "to a table": ("component write", lambda user: score_to_file(corpus(user), str(user.folder / "scores.csv"))),
    "to a stream of lines": ("component loop", lambda user: user.loop(score_to_stream(corpus(user)))),
    "lm-eval": ("component", lm_eval),
}
REFUSED = {
    "as a left-to-right model": "is no left-to-right language model",
    "with a metric that needs another": "causal|left-to-right",
}
OF_PROTEINS = {"variants", "score_assays"}
PASSES = {"pass", "middle of a pass"}
PLACES = [*sorted(PASSES), "texts", "component", "loop", "write"]


def test_each_public_call_is_here():
    """Those that take a pipeline, or a model, and use it for passes."""
    public = {name: getattr(spacy_pll, name) for name in spacy_pll.__all__}
    functions = {name: inspect.signature(one).parameters for name, one in public.items() if inspect.isfunction(one)}
    given = {name for name, parameters in functions.items() if {"nlp", "model"} & parameters.keys()} | {"agree"}
    assert given - {"get_scorer", "load_unigrams"} <= CALLS.keys()


@cache
def build(kind, of_proteins):
    tokenizer = get_tokenizer("unigram" if kind == "deberta-v2" else "wordpiece")
    if of_proteins:
        tokenizer = spaced_tokenizer()
    return build_transformer(kind, tokenizer, **({"token_dropout": True} if kind == "esm" else {})), tokenizer


@contextmanager
def watched(model, tokenizer, stop):
    """Passes of the model, and what is written, count for `stop`."""

    def before(module, *_):
        if module is model:
            stop("pass")

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in [(type(model), "save_pretrained"), (type(tokenizer), "save_pretrained"), (os, "fsync")]:
            original = getattr(owner, name)
            patch.setattr(owner, name, lambda *args, original=original, **how: (stop("write"), original(*args, **how)))
        handles = [
            register_module_forward_pre_hook(before),
            register_module_forward_hook(lambda *_: stop("middle of a pass")),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def turned(values, by):
    """Hypothesis begins with the first ones, and each call should begin with others."""
    return st.sampled_from(values[by % len(values) :] + values[: by % len(values)])


@pytest.mark.filterwarnings("default::DeprecationWarning", "default:::lm_eval")
@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_model_of_the_user_is_as_it_was(tmp_path_factory, call):
    """One after the other: nothing stops the call; then, at each place that it comes to, something does."""
    (expected_places, function), turn = CALLS[call], [*CALLS].index(call)

    @settings(max_examples=max(2, settings().max_examples // 10))
    @given(
        kind=turned(["bert", "esm", "deberta-v2", "mpnet"], turn),
        stops=st.fixed_dictionaries(
            {place: st.tuples(st.integers(0, 9999), turned(ERRORS, turn + i)) for i, place in enumerate(PLACES)}
        ),
        training=turned([True, False, "mixed"], turn),
        margin=turned([None, 1], turn // 4),
    )
    def check(kind, stops, training, margin):
        gc.freeze()  # so that looking for what is left of a call takes no time
        model, tokenizer = deepcopy(build(kind, call in OF_PROTEINS))
        model.train(training is True)
        if training == "mixed":
            for number, module in enumerate(model.modules()):
                module.training = number % 3 == 0
        next(model.parameters()).requires_grad_(False)
        before, without_hooks, logits = state(model), hooks(model), own_pass(model)
        user, stop = SimpleNamespace(pair=(model, tokenizer)), Stop()
        user.nlp = make_pipeline(user.pair, mask_margin=margin)
        user.nlp.add_pipe(component(stop))
        user.each = lambda items: (item for item in items if not stop("texts"))
        user.loop = lambda stream: [stop("loop") for _ in stream]

        def run(*where):
            """What stops the call, if something does."""
            stop.begin(*where)
            user.folder = tmp_path_factory.mktemp("folder")
            try:
                with watched(model, tokenizer, stop):
                    function(user)
            except (Exception, KeyboardInterrupt) as error:
                return f"{type(error).__name__}: {error}"
            return None

        def check_all(with_hooks):
            check_same(state(model), before)
            assert torch.equal(own_pass(model), logits)
            gc.collect()
            assert hooks(model) == with_hooks

        for _ in range(2):  # the first pass of some kind may be tried beforehand
            error = run()
            check_all(hooks(model))
            with_hooks = hooks(model)
            assert re.search(REFUSED[call], error) if call in REFUSED else error is None
        places = set(expected_places.split()) | PASSES
        if call in REFUSED:  # some kinds of models are tried first
            assert stop.times.keys() <= PASSES
        else:
            assert stop.times.keys() == places
        for place, times in stop.times.items():
            at, error = stops[place]
            run(place, at % times + 1, error)
            assert stop.raised
            check_all(with_hooks)
        del user.nlp  # the hooks go with it
        check_all(without_hooks)

    check()


def component(stop):
    name = f"stop-{id(stop)}"
    Language.component(name, func=lambda doc: (stop("component"), doc)[1])
    return name
