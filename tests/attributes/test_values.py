"""The values of the attributes, without a model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokens import Doc, Span, Token

from spacy_pll.attributes.stored import record_of
from spacy_pll.attributes.values import sums_in

from .conftest import VALUES, VOCAB, register, scored

pytestmark = pytest.mark.core
ORIGINAL = ["original"]


def test_sums_over_docs_and_spans(attr):
    doc = scored(attr, ORIGINAL)
    assert [token._.by_hand for token in doc] == [-1.5, -0.25, 0.0, -4.0]
    assert [token._.by_hand_pieces for token in doc] == [2, 1, 0, 3]
    assert doc._.by_hand == doc._.by_hand_original == -5.75 and doc._.by_hand_pieces == 6
    assert doc[1:4]._.by_hand == -4.25 and doc[1:4]._.by_hand_pieces == 4
    assert doc._.by_hand_pppl == pytest.approx(math.exp(5.75 / 6))
    assert doc[1:4]._.by_hand_pppl == pytest.approx(math.exp(4.25 / 4))


def test_tokens_without_a_score(attr):
    doc = scored(attr, ORIGINAL, [None, *VALUES, None])
    assert doc._.by_hand == -5.75 and doc[:1]._.by_hand is None and doc[:2]._.by_hand == -1.5
    assert doc[:1]._.by_hand_pppl is doc[:1]._.by_hand_pieces is None
    # A token with no piece was scored. A sum without a piece is no score.
    assert doc[3]._.by_hand == 0.0 and doc[3:4]._.by_hand is doc[3:4]._.by_hand_pppl is None
    assert doc[3]._.by_hand_pieces == doc[3:4]._.by_hand_pieces == 0 and doc[3:5]._.by_hand == -4.0
    assert doc[0]._.by_hand is doc[0]._.by_hand_pieces is None
    assert doc[2:2]._.by_hand is None and doc[2:2]._.by_hand_pieces == 0
    nothing = Doc(VOCAB, words=["not", "scored"])
    assert nothing._.by_hand is nothing._.by_hand_pieces is nothing[0]._.by_hand is None


def test_a_perplexity_that_no_float_holds(attr):
    doc = scored(attr, ORIGINAL, [[-1000.0], [-1000.0]])
    assert doc._.by_hand_pppl == math.inf


def test_values_cannot_be_set(attr):
    """A setter makes spaCy's own error ("no setter") one that says why."""
    doc = scored(attr, ORIGINAL)
    for tokens in (doc, doc[:2], doc[0]):
        for name in ("by_hand", "by_hand_pieces", "by_hand_original"):
            with pytest.raises(ValueError, match=rf"_.{name} cannot be set: .*wordpieces, _.by_hand_data.*to_json"):
                tokens._.set(name, -1.0)


@given(st.lists(st.one_of(st.none(), st.lists(st.floats(-50, 0), max_size=4)), min_size=1, max_size=8))
def test_sums_are_those_of_the_attributes(values):
    doc = scored("any", ORIGINAL, values)
    record = record_of(doc, "any_data")
    for token in doc:
        score, scores, n = sums_in(record, ORIGINAL, token.idx, token.idx + len(token))
        assert score == scores["original"] == doc[token.i : token.i + 1]._.any
        assert n == (token._.any_pieces or 0)
    assert doc._.any_pieces == (sum(map(len, filter(None, values))) if any(own is not None for own in values) else None)


def test_attributes_are_registered_for_each_class(attr):
    register(attr, ORIGINAL)
    assert all(cls.has_extension(name) for cls in (Doc, Span, Token) for name in ("by_hand", "by_hand_original"))
    assert Span.has_extension("by_hand_data") and not Token.has_extension("by_hand_data")
