"""Odd texts, and texts with little in them: a score or None, never a crash."""

import numpy as np
import pytest
import spacy
from hypothesis import given
from spacy.tokens import Doc

from ..conftest import ARCHITECTURES, SENTENCES, UNITS, get_tokenizer, odd_text
from ..reference import encode
from ..test_metrics import METRICS

STRIDED = {"@span_getters": "spacy-pll.strided_spans.v1", "window": 1, "stride": 1}


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
@pytest.mark.parametrize("text", ["", " ", "  \n", "\x00", "\u200b", "a\x00b"])
def test_texts_with_little_in_them(make_nlp, architecture, text):
    nlp = make_nlp(architecture)
    doc, neighbour = nlp.pipe([text, SENTENCES[0]])
    assert neighbour._.pll == pytest.approx(nlp(SENTENCES[0])._.pll, abs=1e-4)
    assert doc._.pll_pieces == sum(token._.pll_pieces for token in doc)
    if doc._.pll_pieces:
        assert isinstance(doc._.pll, float) and doc._.pll == pytest.approx(sum(token._.pll for token in doc))
    else:
        assert doc._.pll is doc._.pppl is None and [token._.pll for token in doc] == [0.0] * len(doc)


@pytest.mark.slow
@pytest.mark.parametrize("spans", [{}, {"get_spans": STRIDED}])
@pytest.mark.parametrize("words", UNITS)
@pytest.mark.parametrize("setting", [{"units": "key"}, {"targets": "key"}, {"mask_margin": 0}, {"mask_spacing": 2}])
def test_a_batch_without_a_wordpiece(make_nlp, setting, words, spans):
    nlp = make_nlp("bert", words=words, keep_pieces=True, distribution=True, **setting, **spans)
    docs = [nlp.make_doc(text) for text in (" ", "\n\n  ", "") * 2]
    for doc in docs:
        doc.spans["key"] = [doc[:]]
    for doc in [*nlp.pipe(docs[:3]), *map(nlp, docs[3:])]:
        assert doc._.pll is None and doc._.pll_pieces == 0 and doc._.pll_data["ids"] == []


def test_white_space_has_no_score_where_the_tokenizer_drops_it(make_nlp):
    doc = make_nlp("bert")("  \n")
    assert doc._.pll is None and doc._.pll_pieces == 0 and doc._.pppl is None and doc[0]._.pll == 0.0


def test_a_token_of_ten_thousand_characters(make_nlp):
    nlp = make_nlp("roberta")
    with pytest.warns(UserWarning, match="more pieces than the model reads at once"):
        doc = nlp("x" * 10_000 + " ends")
    assert len(doc) == 2 and doc._.pll_pieces > 5000 and np.isfinite(doc._.pll)


def test_no_doc_holds_a_lone_surrogate():
    """spaCy refuses such text before any component sees it, so there is nothing here for `pll` to get wrong."""
    for make in (spacy.blank("en").make_doc, lambda text: Doc(spacy.blank("en").vocab, words=[text])):
        with pytest.raises(UnicodeEncodeError):
            make("a \ud800 b")


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_a_lone_surrogate_in_a_stream_is_named_by_its_number(make_nlp, batch_size):
    nlp = make_nlp()
    with pytest.raises(ValueError, match=r"Text 3 of .* 'pll' has a lone surrogate, .*: '\\ud800'\. Clean it: text.en"):
        list(nlp.pipe([*SENTENCES[:2], "a \ud800 b", SENTENCES[3]], batch_size=batch_size))
    assert [doc._.pll_pieces > 0 for doc in nlp.pipe(SENTENCES[:2])] == [True] * 2


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_every_piece_once_and_sums_hold_for_odd_text(make_nlp, architecture):
    nlp = make_nlp(architecture, metrics=METRICS, keep_pieces=True)
    nlp.initialize()
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])

    @given(text=odd_text)
    def check(text):
        doc = nlp(text)
        encoding = encode(tokenizer, text)
        own = [i for i, special in zip(encoding.ids, encoding.special_tokens_mask) if not special]
        if not len(doc):
            return
        data = doc._.pll_data
        assert data["ids"] == own and doc._.pll_pieces == len(own)
        for metric in METRICS:
            total = doc._.get(f"pll_{metric}")
            assert (total is None) == (not own)
            assert (total or 0.0) == pytest.approx(sum(data["scores"][metric]), abs=1e-9)
            assert (total or 0.0) == pytest.approx(sum(t._.get(f"pll_{metric}") for t in doc))

    check()
