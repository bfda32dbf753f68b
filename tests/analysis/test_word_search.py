"""`slots` with `top`, in scripts with vowel signs, and with tokenizers of other kinds."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from spacy_pll import make_pipeline, slots
from spacy_pll.analysis.slots import begins_a_word, goes_on_a_word

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "वह घर कल है में पानी क्या नाम ไม่ கடல் বই бас tea \u0646\u0645\u06cc\u200c\u0634\u0648\u062f".split()
OTHERS = ["don't", ".", "e-mail", "\u0940", "\u200d"]  # no words of letters and marks


def build(model, words, unknown="[UNK]"):
    """A tiny model of a tokenizer in which each word is a piece."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    around = [(name, words.index(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=around)
    names = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    names |= {"unk_token": unknown} if unknown else {}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=32, **names)
    sizes = dict(vocab_size=len(fast), hidden_size=24, num_hidden_layers=2, num_attention_heads=2)
    torch.manual_seed(0)
    return BertForMaskedLM(BertConfig(intermediate_size=48, initializer_range=0.3, **sizes)).eval(), fast


def ranked(model, tokenizer, words):
    """The words by a plain forward pass, the most probable first."""
    row = tokenizer("घर [MASK] कल", return_tensors="pt")
    at = int((row["input_ids"][0] == tokenizer.mask_token_id).nonzero()[0])
    with torch.no_grad():
        said = model(**row).logits[0, at].log_softmax(-1)
    return sorted(words, key=lambda word: -said[tokenizer.convert_tokens_to_ids(word)].item())


@pytest.mark.filterwarnings("ignore:The tokenizer does not mark")
@pytest.mark.parametrize("kind", ["WordPiece", "WordLevel", "letters, without an unknown piece"])
def test_words_with_vowel_signs_are_found(kind):
    of_letters = kind not in ("WordPiece", "WordLevel")
    words = [*"घरकलअआ"] if of_letters else WORDS
    pieces = [*SPECIAL, *OTHERS, *words]
    numbers = {piece: i for i, piece in enumerate(pieces)}
    if of_letters:
        made = models.BPE(numbers, [])
    elif kind == "WordPiece":
        made = models.WordPiece({**numbers, "##ing": len(numbers)}, unk_token="[UNK]")
    else:
        made = models.WordLevel(numbers, unk_token="[UNK]")
    model, tokenizer = build(made, pieces, None if of_letters else "[UNK]")
    [found] = slots(make_pipeline((model, tokenizer), lang="xx"), ["घर ___ कल"], top=len(words), max_pieces=1)
    assert [one.text for one in found] == ranked(model, tokenizer, words)
    assert np.isfinite([one.score for one in found]).all()


def test_without_marks_of_pieces_that_continue_a_word_that_is_said():
    words = [word for word in WORDS if word != "ไม่"]  # Thai has no spaces, so any piece may continue a word
    pieces = [*SPECIAL, *words]
    model, tokenizer = build(models.WordLevel({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"), pieces)
    with pytest.warns(UserWarning, match="only words of one piece are searched"):
        [found] = slots(make_pipeline((model, tokenizer), lang="xx"), ["घर ___ कल"], top=3)
    assert [one.text for one in found] == ranked(model, tokenizer, words)[:3]


@given(st.text(max_size=4))
def test_what_a_word_is(text):
    is_word = begins_a_word(text) and goes_on_a_word(text)
    if text.isalnum():
        assert is_word
    if any(character.isspace() or character in "'-.,_" for character in text):
        assert not is_word
