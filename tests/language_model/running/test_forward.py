"""Forward passes: what is left out changes nothing, what does not fit is halved, what travels is counted."""

import logging
import multiprocessing
import os
import threading
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spacy_pll.scoring.groups import BLOCK

from ...conftest import PARAGRAPH, SENTENCES, masked_model, scores

TEXTS = [*SENTENCES, "I a.", "", "The souvenir travels."]


def narrowing_of(architecture):
    # ALBERT's layers are one and the same, those of the others have other parts: the head alone.
    if architecture in (
        "albert",
        "bart",
        "flaubert",
        "fnet",
        "ibert",
        "longformer",
        "luke",
        "mobilebert",
        "xlm",
        "xmod",
    ):
        return "before_head"
    # There the residual sum stands outside the attention.
    outside = ("distilbert", "esmc", "eurobert", "gte", "jina", "modernbert", "nomic")
    return "around_last_feed_forward" if architecture in outside else "after_last_attention"


def test_one_copy_to_the_device_and_one_back_a_plan(make_nlp, monkeypatch):
    nlp = make_nlp(max_batch_tokens=100)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    forward, calls = model.loaded.forward, Counter()

    def count(owner, name):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: (calls.update([name]), original(*args))[1])

    count(forward, "_run")
    count(forward, "upload")
    count(model, "submit")
    list(nlp.pipe(TEXTS))
    assert calls["_run"] > 3
    assert calls["upload"] == calls["submit"] == 1


@pytest.mark.parametrize("architecture", ["bert", "fnet"])
def test_tensors_on_the_device_are_not_taken_for_numpy_arrays(make_nlp, monkeypatch, architecture):
    """numpy reads a tensor on the CPU unasked, and raises a TypeError for one on a GPU."""

    def refuse(tensor, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    with pytest.raises(TypeError, match="cuda"):
        np.isfinite(torch.zeros(1))
    nlp = make_nlp(architecture)
    model = nlp.get_pipe("pll").model
    model.load()
    capabilities = model.loaded.forward.capabilities
    assert capabilities.pads == model.load().rows.pads == (architecture == "bert")
    assert capabilities.narrowing == narrowing_of(architecture)
    assert len([doc._.pll for doc in nlp.pipe(TEXTS)]) == len(TEXTS)


@pytest.mark.cpu
def test_only_padded_passes_have_a_mask(make_nlp):
    nlp = make_nlp()
    nlp.initialize()
    masks = []
    hook = lambda module, args, given: masks.append(given.get("attention_mask"))  # noqa: E731
    nlp.get_pipe("pll").model.loaded.forward.model.register_forward_pre_hook(hook, with_kwargs=True)
    nlp("The souvenir.")
    assert masks and masks == [None] * len(masks)
    masks.clear()
    found = [scores(doc) for doc in nlp.pipe(TEXTS)]
    padded = [mask for mask in masks if mask is not None]
    assert padded and all((mask == 0).any() for mask in padded)
    for text, values in zip(TEXTS, found):
        np.testing.assert_allclose(scores(nlp(text)), values, atol=1e-5)


@pytest.mark.parametrize("architecture", ["xlm", "flaubert", "bert"])
def test_a_piece_that_a_model_could_take_for_padding_is_none(make_nlp, architecture):
    """Without a mask, XLM and FlauBERT hide what is behind the pieces that are no padding."""
    nlp = make_nlp(architecture)
    text = "a [PAD] b"
    alone, (*_, beside) = nlp(text), nlp.pipe([SENTENCES[0], PARAGRAPH, text])
    assert nlp.get_pipe("pll").model.load().rows.pad_id in nlp.get_pipe("pll").model.load().tokenizer.encode(text).ids
    np.testing.assert_allclose(scores(alone), scores(beside), atol=1e-5)


@pytest.mark.cpu
def test_a_pass_that_does_not_fit_is_halved_and_the_size_kept(make_nlp, monkeypatch, caplog):
    plain = {doc.text: scores(doc) for doc in make_nlp().pipe(TEXTS)}
    nlp = make_nlp(max_batch_tokens=2000)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    nlp.set_error_handler(lambda *args: pytest.fail("no doc is to blame"))
    run, sizes = model.loaded.forward.run, []

    def limited(ids, lengths):
        sizes.append(ids.numel())
        if ids.numel() > 150:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        return run(ids, lengths)

    monkeypatch.setattr(model.loaded.forward, "run", limited)
    with caplog.at_level(logging.WARNING, "spacy_pll"):
        found = list(nlp.pipe(TEXTS, batch_size=3))
    assert [doc.text for doc in found] == TEXTS
    for doc in found:
        np.testing.assert_allclose(scores(doc), plain[doc.text], atol=1e-5)
    failed = [size for size in sizes if size > 150]
    assert failed == sorted(failed, reverse=True) and len(failed) == len(set(failed)) < 5  # no size is tried again
    assert len([line for line in caplog.messages if "does not fit into the memory of cpu" in line]) == len(failed)


def test_a_row_of_many_targets_is_answered_in_parts(make_nlp, monkeypatch):
    """A row of a left-to-right model asks for all its pieces: what does not fit are their logits."""
    nlp = make_nlp(metrics=["original"], mask_spacing=1)  # one row, all pieces masked
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    expected = scores(nlp(SENTENCES[0]))
    logits = model.loaded.forward.logits

    def limited(batch, *others):
        if batch.n_targets > 2:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 byte"
            )
        return logits(batch, *others)

    monkeypatch.setattr(model.loaded.forward, "logits", limited)
    np.testing.assert_allclose(scores(nlp(SENTENCES[0])), expected, atol=1e-5)


@pytest.mark.slow
@settings(max_examples=10)
@given(margin=st.sampled_from([None, 0]), pieces=st.integers(2, 100), fits=st.floats(0, 1))
@example(margin=None, pieces=100, fits=0.5)
@example(margin=0, pieces=100, fits=0.5)
def test_how_much_of_a_row_fits_is_found_once(make_nlp, margin, pieces, fits):
    """A row whose targets do not fit beside it is read in parts. They are as few as halving allows, from then on."""
    how = {"mask_spacing": 1} if margin is None else {"mask_margin": margin}  # one row, all of its pieces masked
    nlp, text = make_nlp(metrics=["original"], **how), "a " * pieces
    expected = scores(nlp(text))
    model = nlp.get_pipe("pll").model
    logits, passes = model.load().forward.logits, []
    most = max(1 if margin is None else BLOCK, int(pieces * fits))

    def limited(batch, *others):
        assert batch.n_rows == 1
        passes.append(batch.n_targets <= most)
        if not passes[-1]:
            raise RuntimeError("CUDA out of memory.")
        return logits(batch, *others)

    model.loaded.forward.logits = limited
    for n_failing in (pieces.bit_length(), 0):
        passes.clear()
        np.testing.assert_allclose(scores(nlp(text)), expected, atol=1e-5)
        assert passes.count(False) <= n_failing
        assert passes.count(True) <= 2 * -(-pieces // most)


def test_a_row_that_does_not_fit_at_all_says_nothing_about_others(make_nlp, monkeypatch):
    nlp = make_nlp(metrics=["original"], mask_spacing=1)
    text, expected = SENTENCES[0], scores(nlp(SENTENCES[0]))
    model = nlp.get_pipe("pll").model
    logits, widths = model.load().forward.logits, []

    def limited(batch, *others):
        widths.append(batch.width)
        if batch.width > 100:
            raise RuntimeError("CUDA out of memory.")
        return logits(batch, *others)

    monkeypatch.setattr(model.loaded.forward, "logits", limited)
    with pytest.raises(RuntimeError, match="not enough memory for a single row"):
        nlp("a " * 110)
    widths.clear()
    np.testing.assert_allclose(scores(nlp(text)), expected, atol=1e-5)
    assert len(widths) == 1


@pytest.mark.cpu
def test_what_does_not_fit_at_all_is_an_error_of_its_doc(make_nlp, monkeypatch):
    nlp = make_nlp(max_batch_tokens=500)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    run, limit = model.loaded.forward.run, len(model.load().tokenizer.encode(SENTENCES[0]).ids) - 1

    def limited(ids, lengths):
        if ids.shape[1] > limit:
            raise MemoryError
        return run(ids, lengths)

    monkeypatch.setattr(model.loaded.forward, "run", limited)
    with pytest.raises(RuntimeError, match='cpu has not enough memory .* `spans="strided"`'):
        nlp(SENTENCES[0])
    blamed = []
    nlp.set_error_handler(lambda name, scorer, docs, error: blamed.extend(doc.text for doc in docs))
    found = [doc.text for doc in nlp.pipe(["I a.", SENTENCES[0], "The."])]
    assert blamed == [SENTENCES[0]] and found == ["I a.", "The."]


@pytest.mark.cpu
def test_looking_ahead_changes_neither_order_nor_scores(make_nlp):
    """As on a GPU, where the next docs are begun before those in hand are finished."""
    expected = [scores(doc) for doc in make_nlp().pipe(TEXTS)]
    nlp = make_nlp()
    nlp.initialize()
    scorer = nlp.get_pipe("pll")
    scorer.model.loaded = replace(scorer.model.loaded, on_gpu=True)
    read = []
    stream = nlp.pipe((read.append(text) or text for text in TEXTS), batch_size=2)
    first = next(stream)
    assert TEXTS[:4] == read[:4] and len(read) < len(TEXTS)
    found = [first, *stream]
    assert [doc.text for doc in found] == TEXTS == read
    for doc, values in zip(found, expected):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
    run = scorer.model.loaded.forward.run

    def failing(ids, lengths):
        if (ids == scorer.model.load().tokenizer.encode("hooligans").ids[1]).any():
            raise RuntimeError("no")
        return run(ids, lengths)

    scorer.model.loaded.forward.run = failing
    blamed = []
    nlp.set_error_handler(lambda name, scorer, docs, error: blamed.extend(doc.text for doc in docs))
    found = [doc.text for doc in nlp.pipe(TEXTS, batch_size=2)]
    assert found == [text for text in TEXTS if text not in blamed] and SENTENCES[1] in blamed


def test_attention_is_fused(model_folder, monkeypatch):
    """transformers' default on every device; asserted, since it decides on speed and memory."""
    fused, calls = torch.nn.functional.scaled_dot_product_attention, []
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *args, **kw: (calls.append(1), fused(*args, **kw))[1],
    )
    model = masked_model(str(model_folder("bert")))
    model.load()
    assert len(calls) >= model.load().checkpoint.transformer.config.num_hidden_layers


def _score_in_child(nlp, texts, expected, queue):
    try:
        found = [scores(doc) for doc in nlp.pipe(texts)]
        queue.put(all(np.allclose(a, b, atol=1e-5) for a, b in zip(found, expected)))
    except BaseException as error:
        queue.put(repr(error))


@pytest.mark.cpu
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_that_are_forked_while_a_thread_scores_have_no_targets_of_that_thread(make_nlp):
    nlp = make_nlp()
    texts = SENTENCES[:3]
    expected = [scores(doc) for doc in nlp.pipe(texts)]
    context = multiprocessing.get_context("fork")
    stop = threading.Event()

    def work():
        while not stop.is_set():
            nlp(PARAGRAPH)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        queue = context.Queue()
        children = [context.Process(target=_score_in_child, args=(nlp, texts, expected, queue)) for _ in range(6)]
        for child in children:
            child.start()
        assert [queue.get(timeout=60) for _ in children] == [True] * len(children)
        for child in children:
            child.join(60)
    finally:
        stop.set()
        thread.join()
