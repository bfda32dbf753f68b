"""How much is computed: nothing twice, and little padding; and what belongs to which doc."""

from dataclasses import replace
from functools import cache
from random import Random

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll.prediction.predictor import Predictor
from spacy_pll.scoring.wordpieces import Encoded

from ..conftest import SENTENCES, change
from ..scoring.planned import batches_of_docs


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


URL = "http://www.example.org/" + "/".join(f"a{i}.b-{i * 37 % 11}" for i in range(60))
CODE = "".join(f"if(a{i}>b[{i * 7919 % 103}]){{c={i};return!d}}" for i in range(80))
WORDS = "the of a house water saw hundred traveler souvenir, which has been in said it .".split()
KINDS = {"URL": URL, "code": CODE, "dots": "." * 500, "a.a": f"http://{'a.' * 250}", "cells": CODE.replace("if", ",")}


@cache
def make_builtin(metric, margin):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"words": "whitespace", "metrics": [metric], "mask_margin": margin})
    return nlp


def read_for(texts, metric="word_l2r", margin=None):
    """The ids that are read for some texts under the built-in model, per piece, without running it."""
    nlp = make_builtin(metric, margin)
    predictor = nlp.get_pipe("pll").predictor
    docs = [nlp.make_doc(text) for text in texts]
    ids = sum(batch.n_ids for batch in batches_of_docs(predictor, docs))
    return ids / len(predictor.tokenize(docs).wordpieces)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The word or unit at token")
@pytest.mark.parametrize("metric", ["word_l2r", "whole_word", "word_r2l"])
@pytest.mark.parametrize("margin", [0, 1])
def test_a_few_long_words_do_not_cost_more_than_all_others(metric, margin):
    """Where each piece had all masks of its word, a line of code without spaces took as long as a hundred others."""
    random = Random(0)
    lines = [" ".join(random.choices(WORDS, k=24)) for _ in range(100)]
    assert 30 <= read_for(lines) - 2 <= 34  # exactly, a line is read for each of its pieces
    normal = read_for(lines, metric, margin)
    for both in (False, True):  # in two of the lines, an address and the code, or an address, and the code beside them
        long = [f"{line} {URL[:200]}{f' {CODE[:900]}' * both}" for line in lines[:2]]
        mixed = [*long, *lines[2:], *[CODE[:900]] * (not both)]
        assert read_for(mixed, metric, margin) <= 2.5 * normal
    for text in KINDS.values():
        assert read_for([text], metric, margin) <= 12 * normal


@pytest.mark.filterwarnings("ignore:The word or unit at token", "ignore:A text of .* is one word")
@given(st.lists(st.integers(1, 150), min_size=1, max_size=12), st.integers(0, 2))
def test_no_text_costs_twelve_times_as_much_as_one_of_words(lengths, margin):
    texts = " ".join("." * length for length in lengths), " ".join(Random(0).choices(WORDS, k=sum(lengths)))
    long, normal = (read_for([text], margin=margin) for text in texts)
    assert long <= 12 * normal


def test_what_the_model_expected_is_that_of_the_doc(make_nlp, caplog):
    """Whatever else is in its batch, which is scored in one go."""
    nlp = make_nlp("bert", keep_pieces=True, alternatives=2, distribution=True)
    with caplog.at_level("DEBUG", "spacy_pll"):
        docs = list(nlp.pipe(SENTENCES))
    assert "in parts" not in caplog.text  # of docs that are scored again, one by one
    for doc in docs:
        alone = nlp(doc.text)
        assert doc._.pll_data["rank"] == alone._.pll_data["rank"]
        assert [token._.pll_rank for token in doc] == [token._.pll_rank for token in alone]
        for token, other in zip(doc, alone):
            assert [one.text for one in token._.pll_alternatives] == [one.text for one in other._.pll_alternatives]


@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_keeps_the_predictor_with_which_it_began(make_nlp, monkeypatch, fails):
    """Whatever its component has meanwhile, and also where a batch fails and its docs are scored again."""
    settings = {"keep_pieces": True, "alternatives": 2}, {"keep_pieces": True, "mask_margin": 0, "distribution": True}
    before, after = make_nlp("bert", **settings[0]), make_nlp("roberta", "byte-level", **settings[1])
    expected = [before(text)._.pll_data for text in SENTENCES[:4]]
    nlp, gather, calls = make_nlp("bert", **settings[0]), Predictor.gather, []
    scorer = nlp.get_pipe("pll")
    monkeypatch.setattr(scorer.model, "loaded", replace(scorer.predictor.prepare(), on_gpu=True))

    def fail_once(self, pending):
        calls.append(pending)
        if len(calls) == 1:
            raise RuntimeError("out of luck")
        return gather(self, pending)

    def texts():
        yield from SENTENCES[:2]
        change(scorer, model=after.get_pipe("pll").model, settings=vars(after.get_pipe("pll").settings))
        yield from SENTENCES[2:4]

    monkeypatch.setattr(Predictor, "gather", fail_once if fails else gather)
    for doc, record in zip(nlp.pipe(texts(), batch_size=2), expected, strict=True):
        found = doc._.pll_data
        assert found.keys() == record.keys()
        assert (found["pieces"], found["mask_margin"]) == (record["pieces"], record["mask_margin"])
        np.testing.assert_allclose(found["scores"]["word_l2r"], record["scores"]["word_l2r"], atol=1e-5)


def test_a_model_is_loaded_once_for_a_batch(make_nlp, monkeypatch):
    """One in memory is compared with what it was each time, which takes milliseconds."""
    nlp = make_nlp("bert", mask_margin=0, keep_pieces=True, alternatives=1)
    model, calls = nlp.get_pipe("pll").model, []
    load = model.load
    monkeypatch.setattr(model, "load", lambda groups=False: calls.append(groups) or load(groups))
    nlp(SENTENCES[0])
    assert calls == [True]
    calls.clear()
    assert len(list(nlp.pipe(SENTENCES * 2, batch_size=len(SENTENCES)))) == 2 * len(SENTENCES)
    assert calls == [True] * 3  # before the first batch, and for each


@pytest.mark.parametrize("n", [1, 3])
def test_pieces_without_a_character_behind_the_last_token_are_of_it(make_nlp, monkeypatch, n):
    """A tokenizer may put some there. The pieces of a record are in the order of the tokens all the same."""
    encode, nlp = Encoded.of.__func__, make_nlp("bert", metrics=["original"])
    texts = ["The traveler lost the souvenir", "Souvenirs", *SENTENCES]
    expected = [nlp(text + " ." * n)._.pll for text in texts]

    def with_dots(cls, texts, *more):
        encoded = encode(cls, [text + " ." * n for text in texts], *more)
        ends = np.array(list(map(len, texts)))[encoded.pieces_of.owner, None]
        return replace(encoded, offsets=np.minimum(encoded.offsets, ends))

    monkeypatch.setattr(Encoded, "of", classmethod(with_dots))
    for doc, score in zip(nlp.pipe(texts), expected, strict=True):
        assert doc._.pll == pytest.approx(score, abs=1e-4)
        assert sum(token._.pll for token in doc) == pytest.approx(score, abs=1e-4)
        assert doc[-1]._.pll_pieces == nlp(doc[-1].text)._.pll_pieces
        assert doc._.pll_data["offset"] == sorted(doc._.pll_data["offset"])
