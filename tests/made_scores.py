"""Docs with scores that are made up for the purpose of a test."""

from spacy_pll.attributes.names import Names
from spacy_pll.attributes.registration import install


def set_scores(doc, scores, **columns):
    """Give a doc a record. By default, each token has one wordpiece.

    scores (dict): The scores of the wordpieces, by metric.
    columns: Other lists of the record, such as `offset`, where the wordpieces begin.
    """
    install(Names("pll", [*scores]))
    record = {"offset": [token.idx for token in doc], "scored": [0, len(doc.text)] if len(doc) else []}
    doc._.pll_data = {**record, "scores": scores, **columns}
    return doc


def change_scores(doc, **columns):
    """Replace lists of the record of a scored doc."""
    doc._.pll_data = doc._.pll_data | columns
    return doc
