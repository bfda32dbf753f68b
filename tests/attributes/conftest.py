"""Docs with values that were set by hand."""

import pytest
import spacy
from spacy.tokens import Doc

from spacy_pll.attributes.registration import install

VALUES = [(-1.5, 2), (-0.25, 1), (0.0, 0), (-4.0, 3)]


@pytest.fixture
def attr(unregistered):
    """The name of attributes that no other test has."""
    yield "by_hand"
    unregistered("by_hand")


def scored(names, values=VALUES):
    """A doc whose tokens have these scores and numbers of pieces, under each of the names' metrics."""
    install(names)
    doc = Doc(spacy.blank("en").vocab, words=["word"] * len(values))
    for token, (score, pieces) in zip(doc, values):
        for name in (names.score, *names.metrics.values()):
            token._.set(name, score)
        token._.set(names.pieces, pieces)
    return doc
