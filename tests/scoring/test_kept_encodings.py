"""A text that was checked is not tokenized again to be scored."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_pll import minimal_pairs
from spacy_pll.scoring.kept_encodings import KeptEncodings
from spacy_pll.scoring.wordpieces import Encoded

from ..conftest import SENTENCES, TINY_TOKENIZERS, get_tokenizer

ALIKE = ["aT", " aT", "aT ", "\ufeffaT", "\n aT"]  # but for what stands around them
TEXTS = st.lists(st.text(st.sampled_from([*"aTé東😀.-' \n\ufeff"]), max_size=8), max_size=6)


@given(st.lists(TEXTS, min_size=1, max_size=3), TEXTS, st.data(), st.sampled_from(TINY_TOKENIZERS))
def test_what_is_kept_is_what_the_tokenizer_makes(blocks, others, data, name):
    """In any order, again and again, with other white space at the end, and beside texts that are not kept."""
    tokenizer, blocks = get_tokenizer(name).backend_tokenizer, [["", " "], ALIKE, *blocks]
    with_words = data.draw(st.booleans())
    kept = KeptEncodings(tokenizer, [(block, Encoded.of(block, tokenizer, with_words)) for block in blocks])
    known = [text for block in blocks for text in block]
    texts = ALIKE + data.draw(st.lists(st.sampled_from([*known, *(f"{text} \n" for text in known)])))
    texts += others if data.draw(st.booleans()) else []
    for pretokens in (False, True):
        found, expected = kept.of(texts, tokenizer, pretokens), Encoded.of(texts, tokenizer, pretokens)
        for of_kept, value in zip(vars(found).values(), vars(expected).values()):
            of_kept, value = (one.edges if hasattr(one, "edges") else one for one in (of_kept, value))
            assert np.array_equal(of_kept, value) and getattr(of_kept, "dtype", None) == getattr(value, "dtype", None)


@pytest.mark.parametrize("words", ["spacy", "tokenizer"])
def test_the_texts_of_a_suite_are_tokenized_once(make_nlp, monkeypatch, words):
    """But for what is more than is kept."""
    nlp = make_nlp("bert", words=words)
    pairs = [(SENTENCES[0], SENTENCES[1]), ("The traveler lost it. ", "It lost the souvenir.")]
    tokenized, encode = [], Encoded.of.__func__

    def count(cls, texts, *more):
        tokenized.extend(texts)
        return encode(cls, texts, *more)

    def sums():
        return minimal_pairs(nlp, pairs).scores["word_l2r"].sums.tolist()

    expected = sums()
    monkeypatch.setattr(Encoded, "of", classmethod(count))
    assert sums() == expected
    assert len(tokenized) == 4
    tokenized.clear()
    monkeypatch.setattr("spacy_pll.stream.contexts.MAX_KEPT_IDS", 0)
    assert sums() == expected
    assert len(tokenized) == 8
    assert nlp.get_pipe("pll").predictor.kept is None


def test_a_copy_in_another_process_has_none():
    tokenizer = get_tokenizer("wordpiece").backend_tokenizer
    assert pickle.loads(pickle.dumps(KeptEncodings(tokenizer, [(["a"], Encoded.of(["a"], tokenizer))]))) is None
