"""Tokenizers that do not put their own special tokens around a text, from a folder and in memory."""

import warnings
from copy import deepcopy

import pytest
import spacy
import torch
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from spacy_pll import make_pipeline

from ...conftest import ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer

TEXT = SENTENCES[0]
BOTH = ["[CLS]", "[SEP]"]


def tokenizer_that_puts(before, after, kind="wordpiece", ids=None, **names):
    """A tokenizer with another post-processor, and with other names of its special tokens."""
    tokenizer = deepcopy(get_tokenizer(kind))
    tokens = [(token, (ids or {}).get(token, tokenizer.convert_tokens_to_ids(token))) for token in (*before, *after)]
    single = [*before, "$A", *after]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=tokens)
    for name, token in names.items():
        setattr(tokenizer, name, token)
    return tokenizer


@torch.no_grad()
def by_itself(model, tokenizer, before, after):
    """The score of the text under `original` with these tokens around it: one pass a piece, with transformers alone."""
    pieces = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
    ids = [*tokenizer.convert_tokens_to_ids(before), *pieces, *tokenizer.convert_tokens_to_ids(after)]
    total = 0.0
    for i in range(len(before), len(before) + len(pieces)):
        masked = torch.tensor([[*ids[:i], tokenizer.mask_token_id, *ids[i + 1 :]]])
        total += model(input_ids=masked).logits[0, i].log_softmax(-1)[ids[i]].item()
    return total


def scored(model, tokenizer, folder):
    """The scores of the text from memory and from a folder; and what was warned of."""
    for one in (model, tokenizer):
        one.save_pretrained(folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        nlps = [make_pipeline(given, "original") for given in ((model, tokenizer), folder)]
    values = [nlp(TEXT)._.pll for nlp in nlps]
    assert values[0] == pytest.approx(values[1], abs=1e-4)
    return values[0], [str(one.message) for one in caught if "special tokens" in str(one.message)]


@pytest.mark.parametrize(
    ("before", "after", "ids"),
    [([], [], None), (BOTH[:1], [], None), ([], BOTH[1:], None), (BOTH[:1], BOTH[1:], {"[CLS]": 40, "[SEP]": 41})],
)
def test_its_own_special_tokens_are_put_there_and_that_is_said(before, after, ids, tmp_path):
    tokenizer = tokenizer_that_puts(before, after, ids=ids)
    model = build_transformer("bert", tokenizer)
    value, said = scored(model, tokenizer, tmp_path)
    assert value == pytest.approx(by_itself(model, tokenizer, BOTH[:1], BOTH[1:]), abs=1e-4)
    assert len(said) == 2  # from memory, and from the folder
    assert all("[CLS], [SEP]" in message and "tokenizer.cls_token = None" in message for message in said)
    if ids:
        assert tokenizer.convert_ids_to_tokens(40) in said[0]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("put", [[], BOTH[:1]])
def test_padding_is_not_put_around_a_text(side, put, tmp_path):
    """A tokenizer is saved as it was last called: it may fill up each text, or cut it off."""
    tokenizer = tokenizer_that_puts(put, [])
    tokenizer.padding_side = side
    tokenizer(TEXT, padding="max_length", max_length=20)
    model = build_transformer("bert", tokenizer)
    value, said = scored(model, tokenizer, tmp_path)
    assert value == pytest.approx(by_itself(model, tokenizer, BOTH[:1], BOTH[1:]), abs=1e-4)
    assert len(said) == 2 and not any("[PAD]" in message for message in said)


def test_a_tokenizer_that_cuts_all_text_off(tmp_path):
    tokenizer = tokenizer_that_puts(BOTH[:1], BOTH[1:])
    model = build_transformer("bert", tokenizer)
    expected = by_itself(model, tokenizer, BOTH[:1], BOTH[1:])
    tokenizer(TEXT, truncation=True, max_length=2)
    value, said = scored(model, tokenizer, tmp_path)
    assert value == pytest.approx(expected, abs=1e-4) and not said


@pytest.mark.cpu
@pytest.mark.parametrize("put", [BOTH, []])
@pytest.mark.filterwarnings("ignore:The tokenizer of")
def test_special_tokens_that_are_read_as_text(put, tmp_path):
    """A copy of a tokenizer has forgotten that they are to be split, and so has its folder."""
    tokenizer, text = tokenizer_that_puts(put[:1], put[1:]), "The [MASK] lost [SEP] it."
    tokenizer.split_special_tokens = True
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.mask_token_id not in ids
    nlp = make_pipeline((build_transformer("bert", tokenizer), tokenizer), keep_pieces=True)
    nlp.to_disk(tmp_path)
    for one in (nlp, deepcopy(nlp), spacy.load(tmp_path)):
        assert one(text)._.pll_data["ids"] == ids


@pytest.mark.parametrize(
    ("kind", "before", "after", "names"),
    [
        ("wordpiece", BOTH[:1], [], {"sep_token": None, "eos_token": None}),
        ("wordpiece", [], [], {"sep_token": None, "cls_token": None, "bos_token": None, "eos_token": None}),
        ("wordpiece", BOTH[:1], BOTH[1:], {"bos_token": "the"}),  # it has `cls_token` for that
        (
            "byte-level",
            ["<s>"],
            [],
            {"cls_token": None, "sep_token": None, "eos_token": "</s>"},
        ),  # as left-to-right models, trained further
    ],
)
def test_what_it_does_not_name_is_not_missing(kind, before, after, names, tmp_path):
    tokenizer = tokenizer_that_puts(before, after, kind, **names)
    model = build_transformer("bert", tokenizer)
    value, said = scored(model, tokenizer, tmp_path)
    assert value == pytest.approx(by_itself(model, tokenizer, before, after), abs=1e-4) and not said


@pytest.mark.parametrize("names", [{"cls_token": None, "sep_token": None}, {"sep_token": None}, {}])
def test_those_of_roberta_have_two_names_each(names, tmp_path):
    tokenizer = tokenizer_that_puts([], [], "byte-level", bos_token="<s>", eos_token="</s>", **names)
    model = build_transformer("bert", tokenizer)
    value, said = scored(model, tokenizer, tmp_path)
    assert value == pytest.approx(by_itself(model, tokenizer, ["<s>"], ["</s>"]), abs=1e-4) and len(said) == 2


def test_the_tokenizer_is_saved_as_it_came(tmp_path):
    tokenizer = tokenizer_that_puts([], [])
    with pytest.warns(UserWarning, match="special tokens"):
        make_pipeline((build_transformer("bert", tokenizer), tokenizer)).to_disk(tmp_path)
    saved = PreTrainedTokenizerFast.from_pretrained(tmp_path / "pll" / "model")
    assert saved(TEXT)["input_ids"] == saved(TEXT, add_special_tokens=False)["input_ids"]
    with pytest.warns(UserWarning, match="special tokens"):
        make_pipeline(tmp_path)


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name != "longformer"])
def test_nothing_is_said_of_tokenizers_as_they_are(architecture):
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    model = build_transformer(architecture, tokenizer)  # the import of an architecture may warn of PyTorch
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline((model, tokenizer))


@pytest.mark.parametrize("token", ["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
def test_a_mask_that_is_another_special_token(token, tmp_path):
    tokenizer = deepcopy(get_tokenizer("wordpiece"))
    model = build_transformer("bert", tokenizer)
    tokenizer.mask_token = token
    for one in (model, tokenizer):
        one.save_pretrained(tmp_path)
    for given in ((model, tokenizer), tmp_path):
        with pytest.raises(ValueError, match=rf"mask token.*'\{token}'.*tokenizer\.mask_token = "):
            make_pipeline(given)
