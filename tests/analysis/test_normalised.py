"""Normalised scores against numbers that were computed from the equations with `bc -l`."""

from itertools import product

import pytest
import spacy
from spacy.tokens import Doc

from spacy_pll import Unigrams
from spacy_pll.analysis.normalised import NORMALISATIONS, normalise

from ..made_scores import set_scores

PIECES = ["The", "cats", "sleep", ".", "cat", "##s", "<byte>"]
# With one added to each, their sum is 1000: the probabilities are 0.2, 0.025, 0.075, 0.5, 0.1, 0.05 and 0.05.
UNIGRAMS = Unigrams(PIECES, [199, 24, 74, 499, 99, 49, 49])


def make_doc(words, spaces, rows):
    """A doc with a record of wordpieces. rows: piece, score, where it begins and ends, token."""
    doc = Doc(spacy.blank("en").vocab, words, spaces)
    pieces, scores, start, end, token = map(list, zip(*rows) if rows else [()] * 5)
    by_metric = {"word_l2r": scores, "original": [score / 2 for score in scores]}
    columns = {"pieces": pieces, "ids": [*map(PIECES.index, pieces)], "start": start, "end": end}
    set_scores(doc, by_metric, offset=start, **columns)
    assert doc._.pll_data["token"] == token
    return doc


def three_docs():
    rows = [("The", -1.0, 0, 3, 0), ("cats", -6.0, 4, 8, 1), ("sleep", -5.0, 9, 14, 2), (".", -0.5, 14, 15, 3)]
    plain = make_doc(["The", "cats", "sleep", "."], [True, True, False, False], rows)
    rows = [("The", -3.0, 1, 4, 1), ("cat", -4.0, 5, 8, 2), ("##s", -2.0, 8, 9, 2)]
    spaced = make_doc([" ", "The", "cats", "\n"], [False, True, False, False], rows)
    # Two pieces are bytes of the same character.
    rows = [("cats", -10.0, 0, 4, 0), ("<byte>", -10.0, 5, 6, 1), ("<byte>", -0.25, 5, 6, 1)]
    return plain, spaced, make_doc(["cats", "🙂"], [True, False], rows)


EXPECTED = {
    "mean_lp": [-3.125, -3.0, -6.75],
    "pen_lp": [-9.0372647600, -7.1497609271, -16.0869620859],
    "norm_lp": [-1.4565824729, -1.3028834457, -2.0918678094],
    "slor": [-0.9795670719, -0.6974149070, -3.5232186663],
    "per_word": [-3.125, -4.5, -10.125],
    "per_character": [-0.9615384615, -1.2857142857, -4.05],
}


@pytest.mark.parametrize("method", NORMALISATIONS)
def test_the_equations(method):
    found = [normalise(doc, method, UNIGRAMS) for doc in three_docs()]
    assert found == pytest.approx(EXPECTED[method], abs=1e-9)


def test_a_span_has_its_own_wordpieces():
    span = three_docs()[1][2:4]  # "cats" and the newline: two pieces
    found = [normalise(span, method, UNIGRAMS) for method in EXPECTED]
    assert found == pytest.approx([-3.0, -5.3038815762, -1.1324349949, -0.3508413167, -6.0, -1.5], abs=1e-9)


def test_the_other_metric():
    doc = three_docs()[0]
    assert normalise(doc, "mean_lp", metric="original") == -3.125 / 2
    assert normalise(doc, "slor", UNIGRAMS, metric="original") == pytest.approx((-6.25 + 8.5817317126) / 4)


def test_without_a_wordpiece_there_is_no_score():
    doc = make_doc([" ", "\n"], [False, False], [])
    assert {normalise(doc, method, UNIGRAMS) for method in NORMALISATIONS} == {None}
    assert normalise(three_docs()[1][:1], "mean_lp") is None


def test_what_is_missing_is_an_error():
    doc = three_docs()[0]
    with pytest.raises(ValueError, match="no way .* 'SLOR'.* mean_lp, pen_lp"):
        normalise(doc, "SLOR", UNIGRAMS)
    with pytest.raises(ValueError, match="'slor' needs a table of unigrams"):
        normalise(doc, "slor")
    with pytest.raises(ValueError, match="no scores under 'causal', only under word_l2r, original"):
        normalise(doc, "mean_lp", metric="causal")
    for without in (spacy.blank("en")("The cats."), set_scores(spacy.blank("en")("The cats."), {"m": [-1.0] * 3})):
        with pytest.raises(ValueError, match="'The cats.' has no wordpieces in its record, _.pll_data. .*keep_pieces"):
            normalise(without, "mean_lp")


def test_a_table_of_another_vocabulary_is_an_error():
    others = Unigrams(PIECES[1:], UNIGRAMS.counts[1:]), Unigrams([*PIECES[:3], "!", *PIECES[4:]], UNIGRAMS.counts)
    for other in others:
        with pytest.raises(ValueError, match="for another vocabulary"):
            normalise(three_docs()[0], "slor", other)


def test_scored_docs(make_nlp):
    nlp = make_nlp(metrics=["word_l2r", "original"], keep_pieces=True)
    texts = ["The traveler lost the souvenir.", " Two\nlines ", "can't"]
    scorer = nlp.get_pipe("pll")
    unigrams = Unigrams.count(scorer.model.load().tokenizer, texts)
    for doc in nlp.pipe(texts):
        assert normalise(doc, "mean_lp") == pytest.approx(doc._.pll / doc._.pll_pieces)
        assert normalise(doc, "mean_lp", metric="original") == pytest.approx(doc._.pll_original / doc._.pll_pieces)
        log_p_u = sum(unigrams.log_probs[i] for i in doc._.pll_data["ids"])
        assert normalise(doc, "slor", unigrams) == pytest.approx((doc._.pll - log_p_u) / doc._.pll_pieces)


@pytest.mark.parametrize("part", [0.1, 0.5, 1.0])
def test_a_part_of_the_words_is_not_normalised(make_nlp, part):
    """Nor is a span of which a part is drawn. If all of it is, its score is that without a sample."""
    nlp, text = make_nlp(keep_pieces=True), "The traveler lost the souvenir."
    unigrams = Unigrams.count(nlp.get_pipe("pll").model.load().tokenizer, [text])
    whole, doc = nlp(text), make_nlp(keep_pieces=True, sample_words=part)(text)
    n_drawn = 0
    for start, end, method in product(range(len(doc)), range(1, len(doc) + 1), NORMALISATIONS):
        span = doc[start : max(start + 1, end)]
        drawn = {bool(token._.pll_pieces) for token in span}
        n_drawn += drawn == {True}
        if len(drawn) > 1:
            with pytest.raises(ValueError, match="drawn by `sample_words`"):
                normalise(span, method, unigrams)
        else:
            expected = normalise(whole[span.start : span.end], method, unigrams) if drawn == {True} else None
            assert normalise(span, method, unigrams) == (expected and pytest.approx(expected, abs=1e-4))
    assert n_drawn
    for one in (doc, Doc(doc.vocab).from_bytes(doc.to_bytes())) if part < 1 else ():
        with pytest.raises(ValueError, match="were drawn by `sample_words`"):
            normalise(one, "mean_lp")


def test_another_name_and_merged_tokens(make_nlp):
    nlp = make_nlp(attr="bert", keep_pieces=True)
    doc = nlp("The traveler lost the souvenir.")
    whole, span = doc._.bert, doc[3:5]._.bert / doc[3:5]._.bert_pieces
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    assert normalise(doc[2:4], "mean_lp", attr="bert") == pytest.approx(span)
    assert normalise(doc, "per_word", attr="bert") == pytest.approx(whole / 5)
