"""Nothing that a program sets outside a pipeline changes a score, whether the model is read there or used there."""

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

from spacy_pll import get_scorer, make_pipeline

from ..conftest import SENTENCES, build_transformer, get_tokenizer
from ..scoring.planned import log_probs_of

TEXTS = [SENTENCES[0], "", SENTENCES[4]]


@contextmanager
def setting(write, value, before):
    write(value)
    try:
        yield
    finally:
        write(before)


def default_device(device):
    return setting(torch.set_default_device, device, None)


def default_dtype(dtype):
    return setting(torch.set_default_dtype, dtype, torch.float32)


def products(precision):
    return setting(torch.set_float32_matmul_precision, precision, "highest")


def convolutions(allowed):
    return setting(lambda value: setattr(torch.backends.cudnn, "allow_tf32", value), allowed, True)


def everything(precision):  # PyTorch's name since 2.9
    if not hasattr(torch.backends, "fp32_precision"):
        return products("medium")
    return setting(lambda value: setattr(torch.backends, "fp32_precision", value), precision, "none")


def deterministic(value):
    return setting(torch.use_deterministic_algorithms, value, False)


PROGRAMS = {
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "autocast to float16": lambda: torch.autocast("cpu", torch.float16),
    "float64 by default": lambda: default_dtype(torch.float64),
    "float16 by default": lambda: default_dtype(torch.float16),
    "bfloat16 by default": lambda: default_dtype(torch.bfloat16),
    "another device by default": lambda: default_device("meta"),
    "on another device": lambda: torch.device("meta"),
    "products": lambda: products("medium"),
    "convolutions": lambda: convolutions(False),
    "new names, bf16": lambda: everything("bf16"),
    "new names, tf32": lambda: everything("tf32"),
    "inference mode": torch.inference_mode,
    "gradients": torch.enable_grad,
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True, check_nan=False),
    "deterministic": lambda: deterministic(True),
    "errors of numpy": lambda: np.errstate(all="raise"),
}
KINDS = {
    "bert": {},
    "esm": {"token_dropout": True},
    "convbert": {},
    "modernbert": {},
    "deberta-v2": {},
}
TOKENIZER = {"modernbert": "byte-level", "deberta-v2": "unigram"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """kept(kind, margin): the folder of a model, and what a pipeline of it gives."""
    found = {}

    def get(kind, margin):
        if kind not in found:
            folder, tokenizer = tmp_path_factory.mktemp(kind), get_tokenizer(TOKENIZER.get(kind, "wordpiece"))
            build_transformer(kind, tokenizer, **KINDS[kind]).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            found[kind] = folder
        if (kind, margin) not in found:
            nlp = pipeline(found[kind], margin)
            found[kind, margin] = nlp, everything_of(nlp)
        return found[kind], *found[kind, margin]

    return get


def pipeline(model, margin):
    return make_pipeline(model, mask_margin=margin, keep_pieces=True, alternatives=2, metrics=["word_l2r", "original"])


def everything_of(nlp):
    """The scores of each text, all that is recorded of its pieces, and what is asked for a few ids."""
    predictor = get_scorer(nlp).predictor
    contexts = predictor.tokenize([nlp.make_doc(TEXTS[0])]).contexts
    docs = [*nlp.pipe(TEXTS), nlp("")]
    scores = [[doc._.pll_word_l2r, doc._.pll_original] for doc in docs]
    return scores, [repr(doc._.pll_pieces) for doc in docs], log_probs_of(predictor, contexts, [5, 6]).tolist()


@pytest.mark.slow
@given(
    around=st.sets(st.sampled_from(sorted(PROGRAMS)), min_size=1, max_size=3),
    kind=st.sampled_from(sorted(KINDS)),
    margin=st.sampled_from([None, 1]),
    model_is=st.sampled_from(["loaded before", "loaded there", "in memory"]),
    training=st.booleans(),
)
def test_nothing_outside_a_pipeline_changes_a_score(kept, around, kind, margin, model_is, training):
    margin = None if kind == "convbert" else margin
    folder, nlp, expected = kept(kind, margin)
    if model_is == "in memory":
        tokenizer = get_tokenizer(TOKENIZER.get(kind, "wordpiece"))
        model = build_transformer(kind, tokenizer, **KINDS[kind]).train(training)
    with ExitStack() as contexts:
        for name in sorted(around):
            contexts.enter_context(PROGRAMS[name]())
        if model_is != "loaded before":
            nlp = pipeline(folder if model_is == "loaded there" else (model, tokenizer), margin)
        found = everything_of(nlp)
    assert found == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["float16 by default", "on another device", "inference mode"])
def test_a_model_that_is_read_there_is_as_good_as_any(kept, name):
    folder, _, expected = kept("bert", 1)
    with PROGRAMS[name]():
        nlp = pipeline(folder, 1)
    assert everything_of(nlp) == expected
    parameters = list(get_scorer(nlp).model.load().checkpoint.transformer.parameters())
    assert not any(parameter.is_inference() for parameter in parameters)
    assert {(parameter.dtype, parameter.device.type) for parameter in parameters} == {(torch.float32, "cpu")}
    assert everything_of(pipeline(folder, 1).from_bytes(nlp.to_bytes())) == expected


def test_other_sums_change_the_last_digits_at_most(kept):
    """The number of threads, and the implementations of attention."""
    _, nlp, expected = kept("bert", None)
    for context in (
        lambda: setting(torch.set_num_threads, 2, torch.get_num_threads()),
        lambda: setting(lambda value: setattr(torch.backends.mkldnn, "enabled", value), False, True),
        lambda: sdpa_kernel(SDPBackend.MATH),
    ):
        with context():
            found = everything_of(nlp)
        for i in (0, 2):
            np.testing.assert_allclose(np.array(found[i], dtype=float), np.array(expected[i], dtype=float), atol=1e-5)
