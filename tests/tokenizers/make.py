"""Make the tests' tiny tokenizers, one folder each beside this file:

    python tests/tokenizers/make.py

The folders are kept in the repository, because the tokenizers library breaks ties at random when it trains: no two runs
give quite the same vocabulary. Make them again only to change them, and then run all tests.
"""

import sys
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

MAX_LENGTH = 128
BERT_ROLES = dict(cls_token="[CLS]", pad_token="[PAD]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]")
ROBERTA_ROLES = dict(cls_token="<s>", pad_token="<pad>", sep_token="</s>", unk_token="<unk>", mask_token="<mask>")


def make_wordpiece(texts: list[str]) -> PreTrainedTokenizerFast:
    """As BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=190, special_tokens=list(BERT_ROLES.values()))
    tokenizer.train_from_iterator(texts, trainer)
    return with_special_tokens(tokenizer, BERT_ROLES)


def make_byte_level(texts: list[str]) -> PreTrainedTokenizerFast:
    """As RoBERTa's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = list(ROBERTA_ROLES.values())
    trainer = trainers.BpeTrainer(vocab_size=330, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(texts, trainer)
    return with_special_tokens(tokenizer, ROBERTA_ROLES)


def make_unigram(texts: list[str]) -> PreTrainedTokenizerFast:
    """As ALBERT's and XLM-RoBERTa's: the first word of a text is marked, too."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = list(BERT_ROLES.values())
    tokenizer.train_from_iterator(
        texts, trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="[UNK]")
    )
    return with_special_tokens(tokenizer, BERT_ROLES)


def with_special_tokens(tokenizer: Tokenizer, roles: dict[str, str]) -> PreTrainedTokenizerFast:
    begin, end = roles["cls_token"], roles["sep_token"]
    ids = [(piece, tokenizer.token_to_id(piece)) for piece in (begin, end)]
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{begin} $A {end}", special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_LENGTH, **roles)


def make_causal(
    tokenizer: PreTrainedTokenizerFast, adds_begin: bool, begin: str, end: str, **roles: str
) -> PreTrainedTokenizerFast:
    """The same vocabulary for a left-to-right model.

    adds_begin (bool): Whether the tokenizer puts the special token at the beginning itself (Llama), or not (GPT-2).
    """
    backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    if adds_begin:
        ids = [(begin, backend.token_to_id(begin))]
        backend.post_processor = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=ids)
    else:
        backend.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=begin, eos_token=end, model_max_length=MAX_LENGTH, **roles
    )


def make_all(texts: list[str]) -> dict[str, PreTrainedTokenizerFast]:
    """All tokenizers by the name of their folder."""
    byte_level, unigram = make_byte_level(texts), make_unigram(texts)
    return {
        "wordpiece": make_wordpiece(texts),
        "byte-level": byte_level,
        "unigram": unigram,
        "causal-gpt2": make_causal(byte_level, False, "<s>", "</s>"),
        "causal-llama": make_causal(byte_level, True, "<s>", "</s>"),
        "causal-llama2": make_causal(unigram, True, "[CLS]", "[SEP]", unk_token="[UNK]"),
    }


def main():
    root = Path(__file__).parents[2]
    sys.path.insert(0, str(root))
    from tests.conftest import SENTENCES

    for name, tokenizer in make_all(SENTENCES).items():
        tokenizer.save_pretrained(Path(__file__).parent / name)


if __name__ == "__main__":
    main()
