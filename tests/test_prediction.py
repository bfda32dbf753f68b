"""How much is computed: nothing twice, little padding, and no doc waits longer than it must."""

from dataclasses import replace

import numpy as np
import pytest

from spacy_pll.prediction import Predictor, WorkDone

from .conftest import SENTENCES, scores


def test_several_metrics_share_forward_rows(make_nlp):
    def rows(metrics, text):
        nlp = make_nlp("bert", metrics=metrics)
        nlp(text)
        return nlp.get_pipe("pll").predictor.counts.rows

    three = ["word_l2r", "original", "whole_word"]
    assert rows(three, "I a .") == rows(["word_l2r"], "I a .") == 3  # words of one piece: the three coincide
    assert rows(three, SENTENCES[0]) < 3 * rows(["word_l2r"], SENTENCES[0])


def test_equal_texts_of_a_batch_are_computed_once(make_nlp):
    nlp = make_nlp("bert")
    scorer = nlp.get_pipe("pll")
    docs = list(nlp.pipe([SENTENCES[0]] * 5))
    assert scorer.predictor.counts.targets == scorer.predictor.counts.rows == docs[0]._.pll_pieces
    assert scorer.predictor.counts.padding == 0


def test_counts_of_a_padded_pass(make_nlp):
    nlp = make_nlp("bert", max_batch_tokens=10_000)
    counts = nlp.get_pipe("pll").predictor.counts
    short, long = nlp.pipe(["I a.", SENTENCES[0]])
    n, m = short._.pll_pieces, long._.pll_pieces
    assert counts.rows == counts.targets == n + m
    assert counts.ids == n * (n + 2) + m * (m + 2)
    assert counts.padding == n * (m - n)


@pytest.mark.parametrize("mask_margin", [None, 0])
def test_docs_leave_as_soon_as_some_work_is_done(make_nlp, monkeypatch, mask_margin):
    """Whatever the batch size, and with the same scores."""
    nlp = make_nlp("bert", mask_margin=mask_margin)
    expected = [scores(doc) for doc in nlp.pipe(SENTENCES * 4)]
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=100))
    predictor.counts, read = WorkDone(), []
    for doc, values in zip(nlp.pipe(SENTENCES * 4), expected, strict=True):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
        read.append(predictor.counts.ids)
    assert read[0] < read[-1] / 2 and len(set(read)) > 3


def test_no_text_waits_for_the_work_of_a_longer_one(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=10))
    predictor.counts = WorkDone()
    next(nlp.pipe(["A text.", "The souvenir. " * 20]))
    assert predictor.counts.rows == 3


def test_no_more_docs_are_taken_than_a_batch_has(make_nlp, monkeypatch):
    """Or a corpus of long docs would fill the memory, and the first would be scored late."""
    nlp = make_nlp("bert")
    predictor, taken = nlp.get_pipe("pll").predictor, []
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=1))
    next(nlp.pipe(taken.append(text) or text for text in SENTENCES))
    assert len(taken) == 1


@pytest.mark.parametrize("fails", [False, True])
def test_a_batch_has_the_settings_and_the_model_with_which_it_was_submitted(make_nlp, monkeypatch, fails):
    """While a GPU works on it, they may be replaced. If it fails, its docs are scored again with them."""
    settings = {"keep_pieces": True, "alternatives": 2}, {"keep_pieces": True, "mask_margin": 0, "distribution": True}
    before, after = make_nlp("bert", **settings[0]), make_nlp("roberta", "byte-level", **settings[1])
    expected = [nlp(text)._.pll_data for nlp, text in zip([before] * 2 + [after] * 2, SENTENCES)]
    nlp = make_nlp("bert", **settings[0])
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), on_gpu=True))
    gather, calls = Predictor.gather, []

    def fail_once(self, pending):
        calls.append(pending)
        if len(calls) == 1:
            raise RuntimeError("out of luck")
        return gather(self, pending)

    def texts():
        yield from SENTENCES[:2]
        predictor.settings = after.get_pipe("pll").settings
        predictor.model = after.get_pipe("pll").model
        yield from SENTENCES[2:4]

    monkeypatch.setattr(Predictor, "gather", fail_once if fails else gather)
    for doc, record in zip(nlp.pipe(texts(), batch_size=2), expected, strict=True):
        found = doc._.pll_data
        assert found.keys() == record.keys()
        assert (found["pieces"], found["mask_margin"]) == (record["pieces"], record["mask_margin"])
        np.testing.assert_allclose(found["scores"]["word_l2r"], record["scores"]["word_l2r"], atol=1e-5)


@pytest.mark.parametrize(
    "on_gpu, batch_size, sizes",
    [
        (True, 1000, [1000, 2000, 4000, 8000, 8000, 1000]),
        (True, 9000, [9000, 9000, 6000]),
        (True, 999, [999] * 24 + [24]),
        (False, 1000, [1000] * 24),
    ],
)
def test_the_batches_of_a_gpu_grow(make_nlp, monkeypatch, on_gpu, batch_size, sizes):
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    loaded = replace(predictor.prepare(), ids_at_once=10**9, on_gpu=on_gpu)
    monkeypatch.setattr(predictor.model, "loaded", loaded)
    docs = [nlp.make_doc("A text.")] * 24_000
    assert list(map(len, predictor.batches(docs, batch_size))) == sizes
