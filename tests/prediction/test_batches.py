"""Where a batch ends: no doc waits longer than it must, and a GPU gets full batches."""

import weakref
from contextlib import nullcontext
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc

from spacy_pll.prediction.batches import batches_of, with_next_ahead
from spacy_pll.prediction.predictor import Predictor

from ..conftest import SENTENCES, change, scores


@pytest.mark.parametrize("mask_margin", [None, 0])
def test_docs_leave_as_soon_as_some_work_is_done(make_nlp, monkeypatch, mask_margin):
    """Whatever the batch size, and with the same scores."""
    nlp = make_nlp("bert", mask_margin=mask_margin)
    expected = [scores(doc) for doc in nlp.pipe(SENTENCES * 4)]
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=100))
    read = []
    predictor.counts.clear()
    for doc, values in zip(nlp.pipe(SENTENCES * 4), expected, strict=True):
        np.testing.assert_allclose(scores(doc), values, atol=1e-5)
        read.append(predictor.counts.ids)
    assert read[0] < read[-1] / 2 and len(set(read)) > 3


def test_no_text_waits_for_the_work_of_a_longer_one(make_nlp, monkeypatch):
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=8))
    predictor.counts.clear()
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
def test_a_doc_that_was_given_is_not_kept_with_its_batch(make_nlp, fails):
    """Otherwise all docs of a batch, with what was read of them, would wait for Python's garbage collector."""
    nlp, given, texts = make_nlp("bert"), list[weakref.ref[Doc]](), [*SENTENCES, *SENTENCES]
    scorer = nlp.get_pipe("pll")
    if fails:  # so halves of the batch are scored
        spans_of = scorer.predictor.get_spans
        change(scorer, get_spans=lambda docs: spans_of(docs)[: len(docs) if len(docs) < 4 else 0])
    for doc in nlp.pipe(texts, batch_size=len(texts)):
        assert doc._.pll < 0
        assert all(of_doc() is None for of_doc in given)  # but for the one that is given now
        given.append(weakref.ref(doc))
        del doc
    assert len(given) == len(texts)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("stops", [False, True])
def test_each_doc_is_read_with_its_own_text(make_nlp, monkeypatch, on_gpu, stops):
    """Also where the stream, or what says where a batch ends, fails in between."""
    nlp, given = make_nlp("bert"), list[list[str]]()
    scorer, submit, texts = nlp.get_pipe("pll"), Predictor.submit, [*SENTENCES, "", *SENTENCES, " "]
    monkeypatch.setattr(scorer.model, "loaded", replace(scorer.predictor.prepare(), on_gpu=on_gpu))

    def compare(self, docs, known=None):
        assert known is None or known == [doc.text for doc in docs]
        given.append(known)
        return submit(self, docs, known)

    def ends_batch(doc):
        if stops and doc.text == " ":
            raise RuntimeError("no more")
        return len(doc.text) % 2 == 0

    monkeypatch.setattr(Predictor, "submit", compare)
    found = []
    with pytest.raises(RuntimeError, match="no more") if stops else nullcontext():
        found.extend(doc.text for doc in scorer.pipe(map(nlp.make_doc, texts), ends_batch=ends_batch))
    assert found == texts and [text for known in given for text in known] == texts and len(given) > 2


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
    assert list(map(len, batches_of(docs, predictor.ends_of_batches(batch_size)))) == sizes


def test_a_token_is_at_least_a_piece_where_batches_end(make_nlp, monkeypatch):
    """A protein has one for each letter: by its characters alone, a batch would have sixteen times the work."""
    nlp = make_nlp("bert")
    predictor = nlp.get_pipe("pll").predictor
    monkeypatch.setattr(predictor.model, "loaded", replace(predictor.prepare(), ids_at_once=20 * 22))
    letters = Doc(nlp.vocab, list("MKTAYIAKQRQISFVKSHFS"), [False] * 20)
    assert list(map(len, batches_of([letters] * 3, predictor.ends_of_batches(100)))) == [1, 1, 1]
    assert list(map(len, batches_of([letters.text] * 3, predictor.ends_of_batches(100)))) == [3]


@given(st.integers(0, 6), st.booleans(), st.booleans())
def test_what_was_submitted_is_finished_in_order_also_before_an_error(n, on_gpu, fails):
    """While a GPU works on one, the next is submitted before it is waited for; a CPU has none ahead."""
    events = []

    def submitted():
        for number in range(n):
            events.append(number)
            yield number
        if fails:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError) if fails else nullcontext():
        for number in with_next_ahead(submitted(), on_gpu):
            events.append(-number - 1)
    waiting = list(accumulate(1 if event >= 0 else -1 for event in events))
    assert [event for event in events if event < 0] == [-number - 1 for number in range(n)]
    assert waiting == ([1, *[2, 1] * (n - 1), 0] if on_gpu and n else [1, 0] * n)
