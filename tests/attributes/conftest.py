"""Docs with records that were made by hand."""

from itertools import chain

import numpy as np
import pytest
import spacy
from spacy.tokens import Doc

from spacy_pll.attributes.joined import edges_of_runs
from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import install
from spacy_pll.attributes.stored import describe_text, store

VOCAB = spacy.blank("en").vocab
# Of each token, the scores of its pieces.
VALUES = [[-1.0, -0.5], [-0.25], [], [-2.0, -1.0, -1.0]]


@pytest.fixture
def attr(unregistered):
    """The name of attributes that no other test has."""
    yield "by_hand"
    unregistered("by_hand")


def register(attr, metrics):
    install(Names(attr, metrics))


def scored(attr, metrics, values=VALUES, words=None, spaces=None):
    """A doc whose tokens have pieces with these scores, one at each character, under each of the metrics. None stands
    for a token that was not scored.
    """
    return set_values(Doc(VOCAB, words=words or ["word"] * len(values), spaces=spaces), attr, metrics, values)


def set_values(doc, attr, metrics, values):
    register(attr, metrics)
    store(doc, Names(attr, metrics), record_of_values(doc, metrics, values))
    return doc


def record_of_values(doc, metrics, values):
    offset = [token.idx + min(i, len(token) - 1) for token, own in zip(doc, values) for i in range(len(own or ()))]
    of_pieces = tuple(chain.from_iterable(own or () for own in values))
    inside = np.zeros(len(doc.text), dtype=bool)
    for token, own in zip(doc, values):
        inside[token.idx : token.idx + len(token)] = own is not None
    return {
        **describe_text(doc.text, np.array(offset, dtype=np.int64)),
        "scored": tuple(edges_of_runs(inside)),
        "scores": dict.fromkeys(metrics, of_pieces),
    }
