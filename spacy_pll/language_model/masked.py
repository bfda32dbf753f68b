"""Masked language models: what stands behind a mask, seen from both sides."""

from typing import Any

from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM, PreTrainedTokenizerBase

from .base import TransformerLanguageModel
from .checks import check_mask_token


class MaskedLanguageModel(TransformerLanguageModel):
    """A model that predicts a masked piece from both sides."""

    kind = "masked"
    auto_class = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    shift = 0
    example = "bert-base-cased"

    def _check(self, config: Any, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
        check_mask_token(tokenizer, self.example, source)
        super()._check(config, tokenizer, source)
