import pytest
from tokenizers import Regex, Tokenizer
from tokenizers.normalizers import Replace

from spacy_pll.language_model.running.group_trial import N_LONG, N_SHORT
from spacy_pll.language_model.running.trials import make_texts

from ...conftest import get_tokenizer

WORDPIECE = get_tokenizer("wordpiece")


@pytest.mark.parametrize("max_length", [128, 12, 5, 4, 3])
@pytest.mark.parametrize("name", ["wordpiece", "byte-level", "unigram", "causal-gpt2"])
def test_the_texts_differ_in_ids_and_in_length(name, max_length):
    tokenizer = get_tokenizer(name)
    for sizes in ((), (N_LONG, N_SHORT)):
        texts = make_texts(tokenizer.backend_tokenizer, max_length, *sizes)
        n = len(tokenizer.backend_tokenizer.encode("").ids)
        own = slice(texts.before, -texts.after or None)
        assert texts.before + texts.after == n and len(texts.long) == len(texts.other) <= max_length
        assert len(texts.short) < len(texts.long) or len(texts.long) == n + 1
        for one, two in ((texts.long, texts.other), (texts.other, texts.short), (texts.long, texts.short)):
            assert all(a != b for a, b in zip(one[own], two[own]))
            assert not {*one[own], *two[own]} & set(tokenizer.all_special_ids)


def test_a_tokenizer_that_makes_nothing_of_letters():
    tokenizer = Tokenizer.from_str(WORDPIECE.backend_tokenizer.to_str())
    tokenizer.normalizer = Replace(Regex("."), "")
    texts = make_texts(tokenizer, 128)
    assert (texts.long[0], texts.long[-1]) == (WORDPIECE.cls_token_id, WORDPIECE.sep_token_id)
    assert (texts.before, texts.after) == (1, 1)
