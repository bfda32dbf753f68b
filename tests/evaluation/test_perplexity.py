import math

import pytest
import spacy
from hypothesis import given

from spacy_pll import PLLError, log_probability_bounds
from spacy_pll.attributes.record import PieceRecord
from spacy_pll.attributes.stored import read_record
from spacy_pll.evaluation.perplexity import Perplexity, perplexity, pieces_per_word
from spacy_pll.scoring.wordpieces import get_wordpieces

from ..conftest import SENTENCES, TINY_TOKENIZERS, UNITS, get_tokenizer, odd_text

BLANK = spacy.blank("en")


def test_perplexity_by_hand():
    corpus = Perplexity(words=2, pieces=4, log_likelihood={"m": -4 * math.log(8), "n": -1e6})
    assert corpus.per_piece["m"] == pytest.approx(8) and corpus.per_word["m"] == pytest.approx(64)
    assert corpus.per_piece["n"] == math.inf
    assert (corpus.counts["words"], corpus.counts["pieces"], corpus.counts["split_share"]) == (2, 4, 0)
    assert [(one.scorer, one.measure, one.n, one.value) for one in corpus.measurements()][:3] == [
        ("m", "pseudo-perplexity per piece", 4, corpus.per_piece["m"]),
        ("m", "pseudo-perplexity per word", 2, corpus.per_word["m"]),
        ("m", "log-likelihood", 0, corpus.log_likelihood["m"]),
    ]
    nothing = Perplexity()
    assert nothing.per_piece == nothing.per_word == {} and nothing.measurements() == [] and nothing.split_share == 0


def record_of(doc, tokenizer, words):
    """The record of a doc that is read as a whole."""
    if not len(doc):
        return PieceRecord(offset=[], scores={}, scored=[])
    pieces = get_wordpieces([doc[:]], tokenizer, words)
    names = ("ids", "start", "end", "token", "word")
    lists = {name: getattr(pieces, name).tolist() for name in names}
    return PieceRecord(offset=lists["start"], scores={}, scored=[], **lists)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("spacy", [1, 1, 2, 3, 1, 2, 1]),  # I ca n't lose the souvenir .
        ("whitespace", [1, 3, 3, 1, 3]),  # I can't lose the souvenir.
        ("tokenizer", [1, 1, 1, 1, 3, 1, 2, 1]),  # I can ' t lose the souvenir .
    ],
)
def test_units_of_words(words, expected):
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    doc = BLANK("I can't  lose the souvenir.")
    assert tokenizer.encode(doc.text).tokens[1:-1] == "I can ' t lo ##s ##e the souveni ##r .".split()
    assert pieces_per_word(doc, record_of(doc, tokenizer, words), words).tolist() == expected


@pytest.mark.parametrize("kind", TINY_TOKENIZERS)
@given(text=odd_text)
def test_every_piece_is_in_one_word(kind, text):
    tokenizer = get_tokenizer(kind).backend_tokenizer
    doc = BLANK(text)
    for words in UNITS:
        record = record_of(doc, tokenizer, words)
        per_word = pieces_per_word(doc, record, words)
        assert len(per_word) == 0 or per_word.sum() == len(record.ids)
        if words == "piece":  # also where several stand for one character
            assert per_word.tolist() == [1] * len(record.ids)
        elif words == "tokenizer":
            assert (per_word > 0).all()
        else:
            assert len(per_word) == (len(text.split()) if words == "whitespace" else sum(not t.is_space for t in doc))


def test_words_as_spacy_counts_them_have_the_tokens_pieces(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True)
    for doc in nlp.pipe(SENTENCES):
        expected = [token._.pll_pieces for token in doc if not token.is_space]
        assert pieces_per_word(doc, read_record(doc, "pll"), "spacy").tolist() == expected


def test_any_pipeline_has_a_perplexity_and_stays_as_it_is(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    result = perplexity(nlp, SENTENCES, n_process=1)
    docs = list(nlp.pipe(SENTENCES))
    pieces, total = sum(doc._.pll_pieces for doc in docs), sum(doc._.pll_original for doc in docs)
    assert result.pieces == pieces and result.per_piece["original"] == pytest.approx(
        math.exp(-total / pieces), rel=1e-4
    )
    assert "pieces" not in docs[0]._.pll_data


def test_a_bound_has_an_error_by_the_draw(make_nlp):
    """The errors of texts of one length, which have the same draws, add up."""
    nlp = make_nlp("bert", metrics=["sentence_any_order"])
    texts = [SENTENCES[1], "", SENTENCES[1], SENTENCES[3]]
    found = perplexity(nlp, texts)
    (one, three) = log_probability_bounds(nlp, [SENTENCES[1], SENTENCES[3]])
    assert found.log_likelihood["sentence_any_order"] == pytest.approx(2 * one.score + three.score, abs=1e-3)
    alone = perplexity(nlp, texts[:3])
    assert alone.standard_error["sentence_any_order"] == pytest.approx(2 * one.standard_error, rel=1e-3)
    assert found.bytes == sum(len(text.encode()) for text in texts) > 0
    assert found.per_byte["sentence_any_order"] == pytest.approx(math.exp(-(2 * one.score + three.score) / found.bytes))
    (ladder,) = log_probability_bounds(nlp, [SENTENCES[3]], n_passes=16, seed=2)
    again = perplexity(nlp, SENTENCES[3:4], n_passes=16, seed=2)
    assert again.log_likelihood["sentence_any_order"] == pytest.approx(ladder.score, abs=1e-3)
    assert again.standard_error["sentence_any_order"] == pytest.approx(ladder.standard_error, rel=1e-3)
    assert perplexity(nlp, [""]).log_likelihood == {} == perplexity(nlp, [""]).per_byte


@pytest.mark.parametrize("metrics, arguments", [(["original"], {"n_passes": 16}), (["original"], {"seed": 1}),
                                                (["sentence_any_order"], {"n_process": 2})])  # fmt: skip
def test_arguments_that_a_bound_does_not_have(make_nlp, metrics, arguments):
    with pytest.raises(PLLError, match=f"`{next(iter(arguments))}`"):
        perplexity(make_nlp("bert", metrics=metrics), SENTENCES, **arguments)
