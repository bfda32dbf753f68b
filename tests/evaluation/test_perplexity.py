import math

import numpy as np
import pytest
import spacy
from hypothesis import given

from spacy_pll.evaluation.perplexity import Perplexity, perplexity, pieces_per_word, word_starts
from spacy_pll.scoring.wordpieces import WORDS, get_wordpieces

from ..conftest import SENTENCES, TINY_TOKENIZERS, get_tokenizer, odd_text

BLANK = spacy.blank("en")


def test_perplexity_by_hand():
    corpus = Perplexity(words=2, pieces=4, log_likelihood={"m": -4 * math.log(8), "n": -1e6})
    assert corpus.per_piece["m"] == pytest.approx(8) and corpus.per_word["m"] == pytest.approx(64)
    assert corpus.per_piece["n"] == math.inf
    written = corpus.to_dict()
    assert (written["words"], written["pppl_per_piece"], written["pppl_per_word"]) == (
        2,
        corpus.per_piece,
        corpus.per_word,
    )
    nothing = Perplexity()
    assert nothing.per_piece == nothing.per_word == {} and nothing.split_share == 0


def piece_starts(doc, tokenizer):
    return get_wordpieces(doc[:], tokenizer, "spacy").start


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("spacy", ["I", "ca", "n't", "lose", "the", "souvenir", "."]),
        ("whitespace", ["I", "can't", "lose", "the", "souvenir."]),
        ("tokenizer", ["I", "can", "'", "t", "lose", "the", "souvenir", "."]),
    ],
)
def test_units_of_words(words, expected):
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    text = "I can't  lose the souvenir."
    doc = BLANK(text)
    starts = word_starts(doc, words, tokenizer)
    assert len(starts) == len(expected)
    assert all(text.startswith(word, start) for start, word in zip(starts, expected))
    per_word = pieces_per_word(piece_starts(doc, tokenizer), starts)
    assert per_word.min() >= 1
    assert per_word[expected.index("lose")] == len(tokenizer.encode("lose", add_special_tokens=False).ids)


@pytest.mark.parametrize("kind", TINY_TOKENIZERS)
@given(text=odd_text)
def test_every_piece_is_in_one_word(kind, text):
    tokenizer = get_tokenizer(kind).backend_tokenizer
    doc = BLANK(text)
    starts_of_pieces = piece_starts(doc, tokenizer) if len(doc) else np.zeros(0)
    for words in WORDS:
        starts = word_starts(doc, words, tokenizer)
        per_word = pieces_per_word(starts_of_pieces, starts)
        assert len(per_word) == len(starts) and (np.diff(starts) > 0).all()
        assert not any(text[start].isspace() for start in starts)
        if len(starts):
            assert per_word.sum() == len(starts_of_pieces)


def test_words_as_spacy_counts_them_have_the_tokens_pieces(make_nlp):
    nlp = make_nlp("bert", keep_pieces=True)
    for doc in nlp.pipe(SENTENCES):
        starts = word_starts(doc, "spacy", None)
        expected = [token._.pll_pieces for token in doc if not token.is_space]
        assert pieces_per_word(doc._.pll_data["start"], starts).tolist() == expected


def test_any_pipeline_has_a_perplexity_and_stays_as_it_is(make_nlp):
    nlp = make_nlp("bert", metrics=["word_l2r", "original"])
    result = perplexity(nlp, SENTENCES, n_process=1)
    docs = list(nlp.pipe(SENTENCES))
    pieces, total = sum(doc._.pll_pieces for doc in docs), sum(doc._.pll_original for doc in docs)
    assert result.pieces == pieces and result.per_piece["original"] == pytest.approx(
        math.exp(-total / pieces), rel=1e-4
    )
    assert docs[0]._.pll_data is None
