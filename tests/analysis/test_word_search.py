"""`slots` with `top`, in scripts with vowel signs, and with tokenizers of other kinds."""

import re

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from spacy_pll import InputError, get_scorer, make_pipeline, slots
from spacy_pll.analysis.piece_words import begins_a_word, goes_on_a_word

from .. import reference
from .test_slots import MODELS

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


def test_parts_of_words_are_those_of_plain_forward_passes(make_nlp):
    """Under WordPiece, the text before and after the gap is read as it is alone, and any piece may stand between that
    continues a word, unless the tokenizer makes other pieces of the whole.
    """
    nlp = make_nlp("bert")
    model, tokenizer = reference.load_model(nlp.get_pipe("pll").model.name)
    tried = 0
    for before, after in (("The tra", "d left."), ("The tra", " left."), ("She was ", "ing."), ("un", "")):
        left = tokenizer(before).input_ids[:-1]
        letter = next(one for one in "bcdhk" if tokenizer(one + after).tokens()[1] == one)
        right = tokenizer(letter + after).input_ids[2:]
        said = reference.predict(model, (*left, tokenizer.mask_token_id, *right))[len(left)]
        inside = before[-1:].isalpha()
        names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        words = {
            name.removeprefix("##"): float(said[i])
            for i, name in enumerate(names)
            if name.startswith("##") == inside and name.removeprefix("##").isalnum()
        }
        apart = [word for word in words if tokenizer(before + word + after).input_ids[: len(left)] == left]
        apart = [word for word in apart if len(tokenizer(before + word).input_ids) == len(left) + 2]
        [found] = slots(nlp, [f"{before}___{after}"], top=len(tokenizer), max_pieces=1)
        assert {one.text for one in found if one.pieces == 1} <= {*apart}
        whole = [word for word in apart if tokenizer(before + word + after).input_ids[len(left) + 1 :] == right]
        scores = {one.text: one.score for one in found}
        tried += len(whole)
        assert [scores[word] for word in whole] == pytest.approx([words[word] for word in whole], abs=1e-4)
    assert tried > 20


BEFORE = st.sampled_from(["", "The ", "The tra", "un", "w", "re", "犬も", "(", "“", "l’", "her-", "x "])
AFTER = st.sampled_from(["", " left.", "ing", "able.", "s lost it", "d", "er", "棒に", ")", "’s", "-in-law", " y"])


@pytest.mark.parametrize("architecture, tokenizer", MODELS[:4])
@example("The tra", "d")
@given(BEFORE, AFTER)
@settings(max_examples=15)
def test_a_gap_that_touches_text_is_found_or_the_error_says_why(make_nlp, architecture, tokenizer, before, after):
    nlp = make_nlp(architecture, tokenizer)
    text, read = f"{before}___{after}", get_scorer(nlp).model.load().tokenizer
    try:
        [found] = slots(nlp, [text], top=4, max_pieces=2)
    except InputError as error:
        assert "no word of up to 2 wordpieces was found" in str(error) and "touches text" in str(error)
        return
    assert found and all(np.isfinite(one.score) for one in found)
    for one in found:  # no piece begins in the text before the gap and ends in the word
        offsets = read.encode(before + one.text + after, add_special_tokens=False).offsets
        assert not any(start < len(before) < end for start, end in offsets if before.strip() == before)
    [again] = slots(nlp, [text], [one.text for one in found], shared_pieces=True)
    assert [one.score for one in again] == pytest.approx([one.score for one in found], abs=1e-4)


def test_where_no_part_of_a_word_is_a_wordpiece_the_error_says_so():
    pieces = [*SPECIAL, *WORDS]
    model, tokenizer = build(models.WordLevel({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"), pieces)
    nlp = make_pipeline((model, tokenizer), lang="xx")
    for text, shown in (("घर un___able", "un___able"), ("___ing", "___ing"), ("a re___ home", "re___")):
        with pytest.raises(InputError, match=f"touches text, '{re.escape(shown)}', and the tokenizer makes wordpieces"):
            slots(nlp, ["घर ___ कल", text], top=3, max_pieces=1)
