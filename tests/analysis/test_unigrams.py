import pytest
import spacy

from spacy_pll import load_unigrams


def test_the_built_in_model_has_a_table(make_nlp):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll")
    unigrams = load_unigrams(nlp)
    assert sum(unigrams.counts) > 30_000_000
    by_piece = dict(zip(unigrams.pieces, unigrams.counts))
    assert by_piece["the"] > by_piece["cats"] > by_piece["[MASK]"] == 0
    with pytest.raises(ValueError, match="table of unigrams .* another vocabulary .*bert"):
        load_unigrams(make_nlp())
