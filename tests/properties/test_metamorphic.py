"""A piece's score depends on its text and the settings, and on nothing else: compared piece by piece, to 1e-5."""

import multiprocessing
import warnings
from dataclasses import replace

import numpy as np
import pytest
import spacy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spacy_pll.scoring.windows import split_long_words
from spacy_pll.scoring.wordpieces import get_wordpieces

from ..conftest import PARAGRAPH, SENTENCES, change, odd_text
from ..reference import is_masked, load_model, window_of
from ..test_metrics import METRICS

texts_strategy = st.lists(st.one_of(st.sampled_from(SENTENCES), odd_text), min_size=1, max_size=6)


def piece_scores(doc):
    data = doc._.pll_data
    return np.array([data["scores"][metric] for metric in METRICS])


def quiet(check):
    """Odd text has words that are longer than the window, of which each is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check()


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("roberta", "albert")]


@pytest.mark.parametrize("architecture", ["bert", *SLOW])
def test_alone_in_any_batch_and_in_any_order(make_nlp, architecture):
    nlp = make_nlp(architecture, metrics=METRICS, keep_pieces=True)
    scorer, alone = nlp.get_pipe("pll"), {}

    @settings(max_examples=10)
    @given(
        texts=texts_strategy,
        order=st.randoms(use_true_random=False),
        max_batch_tokens=st.one_of(st.none(), st.integers(1, 400)),
        batch_size=st.integers(1, 12),
    )
    def check(texts, order, max_batch_tokens, batch_size):
        change(scorer, {"max_batch_tokens": None})
        for text in texts:
            if text not in alone:
                alone[text] = piece_scores(nlp(text))
        change(scorer, {"max_batch_tokens": max_batch_tokens})
        texts = texts * 2  # equal texts share their forward passes
        order.shuffle(texts)
        for text, doc in zip(texts, nlp.pipe(texts, batch_size=batch_size), strict=True):
            assert doc.text == text
            np.testing.assert_allclose(piece_scores(doc), alone[text], atol=1e-5, rtol=1e-6)

    quiet(check)


@pytest.mark.skipif(multiprocessing.get_start_method() != "fork", reason="worker processes are not forked here")
def test_in_two_processes_and_after_a_round_trip(make_nlp, tmp_path):
    nlp = make_nlp("bert", metrics=METRICS, keep_pieces=True)
    nlp.to_disk(tmp_path)
    reloaded = spacy.load(tmp_path)

    @settings(max_examples=4)
    @given(texts=texts_strategy, batch_size=st.integers(1, 3))
    def check(texts, batch_size):
        expected = [piece_scores(doc) for doc in nlp.pipe(texts)]
        for found in (nlp.pipe(texts, n_process=2, batch_size=batch_size), reloaded.pipe(texts)):
            for values, doc in zip(expected, found, strict=True):
                np.testing.assert_allclose(piece_scores(doc), values, atol=1e-5, rtol=1e-6)

    quiet(check)


# Long text


def shorten(model, max_length):
    model.loaded = replace(model.loaded, max_length=max_length)


@pytest.fixture
def windowed(make_nlp):
    """A pipeline whose model reads 20 ids at once, though it could read 128."""
    nlp = make_nlp("bert", metrics=[*METRICS, "unmasked"], keep_pieces=True)
    nlp.initialize()
    shorten(nlp.get_pipe("pll").model, 20)
    return nlp


def test_windows_change_nothing_where_the_text_fits(make_nlp):
    whole = make_nlp("bert", metrics=METRICS, keep_pieces=True)
    narrow = make_nlp("bert", metrics=METRICS, keep_pieces=True)
    narrow.initialize()
    model = narrow.get_pipe("pll").model
    for text in SENTENCES:
        expected = whole(text)
        shorten(model, expected._.pll_pieces + 2)  # it just fits
        assert (piece_scores(narrow(text)) == piece_scores(expected)).all()
        shorten(model, model.load().max_length - 1)
        assert narrow(text)._.pll_pieces == expected._.pll_pieces
        assert (piece_scores(narrow(text)) != piece_scores(expected)).any()


def brute_force_in_windows(ids, word, size, model, metric, lookahead=None):
    """One forward pass a piece, in the window that is stated."""
    out = []
    transformer, tokenizer = load_model(model.name)
    prefix, suffix = tokenizer.cls_token_id, tokenizer.sep_token_id
    for target in range(len(ids)):
        start, end = window_of(target, word.tolist(), size, lookahead)
        masked = [model.load().mask_id if is_masked(metric, i, target, word) else ids[i] for i in range(start, end)]
        with torch.inference_mode():
            logits = transformer(input_ids=torch.tensor([[prefix, *masked, suffix]])).logits
        out.append(logits[0, 1 + target - start].double().log_softmax(-1)[ids[target]].item())
    return out


@pytest.mark.parametrize("metric", [*METRICS, "unmasked"])
def test_a_long_text_is_scored_in_the_windows_that_are_stated(windowed, metric):
    doc = windowed(PARAGRAPH)
    model = windowed.get_pipe("pll").model
    data = doc._.pll_data
    assert len(data["ids"]) > 4 * 18
    word = get_wordpieces([doc[:]], model.load().tokenizer, "spacy").word
    expected = brute_force_in_windows(data["ids"], word, 18, model, metric)
    np.testing.assert_allclose(data["scores"][metric], expected, atol=1e-5)


def test_a_metric_that_never_shows_what_follows_has_the_windows_with_the_most_before_it(make_nlp, windowed):
    nlp = make_nlp("bert", metrics=["sentence_l2r"], keep_pieces=True)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    shorten(model, 20)
    data = nlp(PARAGRAPH)._.pll_data
    word = get_wordpieces([nlp.make_doc(PARAGRAPH)[:]], model.load().tokenizer, "spacy").word
    expected = brute_force_in_windows(data["ids"], word, 18, model, "sentence_l2r", lookahead=0)
    np.testing.assert_allclose(data["scores"]["sentence_l2r"], expected, atol=1e-5)
    # With other metrics, it is read in their windows.
    assert not np.allclose(windowed(PARAGRAPH)._.pll_data["scores"]["sentence_l2r"], expected, atol=1e-2)


@pytest.mark.parametrize("metric", [*METRICS, "unmasked"])
def test_a_token_longer_than_the_window_is_scored_piece_by_piece(windowed, metric):
    text = "The " + "re" * 45 + " travels."
    with pytest.warns(UserWarning, match="word or unit at token 1, 'rerere.*more pieces than .* at once \\(18\\)"):
        doc = windowed(text)
    model = windowed.get_pipe("pll").model
    data = doc._.pll_data
    assert data["ids"] == model.load().tokenizer.encode(text).ids[1:-1] and doc[1]._.pll_pieces > 2 * 18
    word = split_long_words(np.array(data["token"]), 18)
    expected = brute_force_in_windows(data["ids"], word, 18, model, metric)
    np.testing.assert_allclose(data["scores"][metric], expected, atol=1e-5)
