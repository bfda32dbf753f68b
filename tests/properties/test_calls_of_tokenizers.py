"""How somebody called the tokenizer of a model before changes nothing: transformers leaves it told to cut texts off, to
fill them up, or to split special tokens.
"""

from copy import deepcopy
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spacy_pll
from spacy_pll import Unigrams, get_scorer, make_pipeline

from ..conftest import SENTENCES, build_transformer, get_tokenizer

TEXTS = [SENTENCES[0], "It lost.", "", SENTENCES[2]]
WITH_MASK = "It [MASK] it."
TOKENIZERS = {"bert": "wordpiece", "roberta": "byte-level", "deberta-v2": "unigram"}

calls = st.fixed_dictionaries(
    {
        "padding": st.sampled_from([True, False, "max_length"]),
        "truncation": st.booleans(),
        "max_length": st.integers(1, 12),
        "padding_side": st.sampled_from(["left", "right"]),
        "split_special_tokens": st.booleans(),
    }
)


def pipeline(kind):
    tokenizer = deepcopy(get_tokenizer(TOKENIZERS[kind]))
    return make_pipeline((build_transformer(kind, tokenizer), tokenizer), keep_pieces=True, alternatives=2), tokenizer


def everything_of(nlp):
    tokenizer = get_scorer(nlp).model.load().tokenizer
    return [
        *(repr(doc._.pll_data) for doc in nlp.pipe(TEXTS)),
        spacy_pll.slots(nlp, ["The ___ lost it."], ["cat", "souvenirs"]),
        Unigrams.count(tokenizer, TEXTS).counts,
    ]


@cache
def kept(kind):
    nlp, tokenizer = pipeline(kind)
    return nlp, tokenizer, everything_of(nlp), repr(nlp(WITH_MASK)._.pll_data)


@pytest.mark.filterwarnings("ignore:The model reads", "ignore:.max_length. is ignored")
@given(
    kind=st.sampled_from(sorted(TOKENIZERS)),
    whose=st.sampled_from(["the user's", "the model's"]),
    call=calls,
    side=st.sampled_from(["left", "right"]),
)
def test_no_call_of_a_tokenizer_changes_a_score(kind, whose, call, side):
    nlp, tokenizer, expected, with_mask = kept(kind)
    if whose == "the model's":
        tokenizer = get_scorer(nlp).model.load().checkpoint.tokenizer
    tokenizer.truncation_side = side
    tokenizer(TEXTS, **call)
    assert repr(nlp(WITH_MASK)._.pll_data) == with_mask
    tokenizer(TEXTS, **call)
    assert everything_of(nlp) == expected


@pytest.mark.filterwarnings("ignore:.max_length. is ignored")
@settings(max_examples=8)
@given(kind=st.sampled_from(sorted(TOKENIZERS)), call=calls)
def test_a_call_before_the_pipeline_is_made_changes_no_score_and_no_count(kind, call):
    _, _, expected, _ = kept(kind)
    tokenizer = deepcopy(get_tokenizer(TOKENIZERS[kind]))
    call |= {"split_special_tokens": False}
    tokenizer(TEXTS, **call)
    nlp = make_pipeline((build_transformer(kind, tokenizer), tokenizer), keep_pieces=True, alternatives=2)
    assert everything_of(nlp) == expected
    tokenizer(TEXTS, **call)
    assert Unigrams.count(tokenizer.backend_tokenizer, TEXTS).counts == expected[-1]
