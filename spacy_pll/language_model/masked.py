"""Masked language models: what stands behind a mask, seen from both sides."""

from typing import Any

from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM, PreTrainedTokenizerBase

from .base import TransformerLanguageModel


class MaskedLanguageModel(TransformerLanguageModel):
    """A model that predicts a masked piece from both sides."""

    kind = "masked"
    auto_class = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    shift = 0
    sees_both_sides = True
    example = "bert-base-cased"

    @property
    def mask_id(self) -> int:
        return self.load().hf_tokenizer.mask_token_id

    def _check(self, config: Any, tokenizer: PreTrainedTokenizerBase, source: str) -> None:
        if tokenizer.mask_token_id is None:
            raise ValueError(
                f"The tokenizer of {source!r} has no mask token, so this is not a masked language model. Choose one, "
                f"such as {self.example!r}, or name the token: tokenizer_config = {{'mask_token': '[MASK]'}}."
            )
        super()._check(config, tokenizer, source)
