"""Models with random weights and real vocabularies. Neither time nor memory depends on the weights."""

import argparse
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM

SIZES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert-base": (BertForMaskedLM, BertConfig, {}),
    "roberta-large": (
        RobertaForMaskedLM,
        RobertaConfig,
        dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
             max_position_embeddings=514, type_vocab_size=1),
    ),
    "small": (
        BertForMaskedLM,
        BertConfig,
        dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128),
    ),
}  # fmt: skip
# The tokenizer that belongs to each size.
TOKENIZERS = {"bert-base": "bert-base-cased", "roberta-large": "roberta-base", "small": "bert-base-cased"}


def add_size_option(parser: argparse.ArgumentParser, size: str):
    """Add the option --SIZE [TOKENIZER], which asks for a model of that size."""
    parser.add_argument(
        f"--{size}",
        nargs="?",
        const=TOKENIZERS[size],
        metavar="TOKENIZER",
        help=f"Measure a model of the size of {size} with random weights and this tokenizer: a folder, or the name of "
        "one in DATA/tokenizers. Default: %(const)s",
    )


def save_random(size: str, tokenizer_folder: Path, folder: Path):
    """Write a model of a size of `SIZES`, with random weights, and a tokenizer to a folder."""
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    model_cls, config_cls, settings = SIZES[size]
    config = config_cls(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **settings)
    model_cls(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
