"""Which positions a model has, and how many ids they allow."""

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The most ids in a context, for a model that states no limit.
DEFAULT_MAX_LENGTH = 512


def position_embeddings(model: PreTrainedModel) -> list[tuple[torch.nn.Module, int]]:
    """The tables of absolute positions, with the index of the first one.

    RoBERTa and similar models count positions from after the padding id. I-BERT's tables are in a class of its own.
    """
    return [
        (module, 0 if module.padding_idx is None else int(module.padding_idx) + 1)
        for name, module in model.named_modules()
        if name.endswith("position_embeddings") and hasattr(module, "padding_idx")
    ]


def max_length_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The most ids, special tokens included, that the model's positions and its tokenizer allow."""
    limits = [tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions and positions > 0:
        limits.append(positions - max((first for _, first in position_embeddings(model)), default=0))
    limit = int(min(limits))
    return limit if limit < 1_000_000 else DEFAULT_MAX_LENGTH
