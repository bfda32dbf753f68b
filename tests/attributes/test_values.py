"""The values of the attributes, without a model: they are set by hand."""

import math

import pytest
from spacy.tokens import Doc, DocBin

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.stored import SHARED

from .conftest import VALUES, scored

pytestmark = pytest.mark.core


def test_sums_over_docs_and_spans(attr):
    doc = scored(Names(attr, []))
    assert doc._.by_hand == -5.75 and doc._.by_hand_pieces == 6
    assert doc[1:4]._.by_hand == -4.25 and doc[1:4]._.by_hand_pieces == 4
    assert doc._.by_hand_pppl == pytest.approx(math.exp(5.75 / 6))
    assert doc[1:4]._.by_hand_pppl == pytest.approx(math.exp(4.25 / 4))


def test_tokens_without_a_score(attr):
    doc = scored(Names(attr, []), [(None, None), *VALUES, (None, None)])
    assert doc._.by_hand == -5.75 and doc[:1]._.by_hand is None and doc[:2]._.by_hand == -1.5
    assert doc[:1]._.by_hand_pppl is None
    # A token with no piece was scored. A sum without a piece is no score.
    assert doc[3]._.by_hand == 0.0 and doc[3:4]._.by_hand is doc[3:4]._.by_hand_pppl is None
    assert doc[3:4]._.by_hand_pieces == 0 and doc[3:5]._.by_hand == -4.0
    assert doc[0]._.by_hand is None


def test_long_docs(attr):
    """Longer than the first characters, whose keys docs share."""
    doc = scored(Names(attr, []), VALUES * 200)
    assert len(doc.text) > SHARED and doc._.by_hand == 200 * -5.75 and doc._.by_hand_pieces == 1200
    assert doc[400:404]._.by_hand == doc[796:]._.by_hand == -5.75


def test_one_value_is_read_as_it_was_set(attr):
    doc = scored(Names(attr, []), [(None, None), *VALUES[:1]])
    for value in ("n/a", [1], True):
        doc[1]._.by_hand = value
        assert doc[1]._.by_hand is doc[:2]._.by_hand is doc._.by_hand is value


def test_a_perplexity_that_no_float_holds(attr):
    doc = scored(Names(attr, []), [(-1000.0, 1), (-1000.0, 1)])
    assert doc._.by_hand_pppl == math.inf


def test_sums_stay_true_when_docs_are_cut_joined_and_stored(attr):
    doc = scored(Names(attr, []))
    assert doc[1:].as_doc(copy_user_data=True)._.by_hand == doc[1:]._.by_hand == -4.25
    assert Doc.from_docs([doc, doc])._.by_hand == 2 * doc._.by_hand
    (stored,) = DocBin(docs=[doc], store_user_data=True).get_docs(doc.vocab)
    assert [token._.by_hand for token in stored] == [token._.by_hand for token in doc]
    assert stored._.by_hand_pppl == doc._.by_hand_pppl
