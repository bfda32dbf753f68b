"""The registered architectures: what the `model` block of a pipeline's config names."""

import math
from typing import Any

from spacy.util import SimpleFrozenDict, registry
from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM, PreTrainedTokenizerBase

from ..errors import PLLError
from .base import TransformerLanguageModel
from .causal import CausalLanguageModel
from .running.forward import Forward, Precision
from .running.log_probs import TargetLogProbs


class MaskedLanguageModel(TransformerLanguageModel):
    """A model that predicts a masked piece from both sides.

    shift (Optional[int]): 1 if the model predicts a masked piece one position before its mask (masked next-token
        prediction: GPT-BERT, Charpentier & Samuel 2024; LLM2Vec, BehnamGhader et al. 2024), otherwise 0. None: this is
        found out when the model is loaded.
    predicts_mask (bool): Whether the model may predict its mask token. False for MDLM (Sahoo et al. 2024), which was
        trained with a logit of minus infinity for the mask.
    cfg (float): The weight of classifier-free guidance (Nie et al. 2025). Above 0, each row is also read with masks
        instead of the text before the scored text. With u of that row, the logits are u + (1 + cfg) (p - u).
    RAISES (ValueError): `shift` or `cfg` is not valid.
    """

    kind = "masked"
    auto_class = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    example = "bert-base-cased"

    def __init__(
        self,
        name: str | None = None,
        revision: str = "main",
        tokenizer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        transformer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        mixed_precision: bool = False,
        shift: int | None = None,
        precision: Precision | None = None,
        predicts_mask: bool = True,
        cfg: float = 0.0,
    ):
        super().__init__(name, revision, tokenizer_config, transformer_config, mixed_precision, precision)
        if shift not in (None, 0, 1):
            raise PLLError(f"`shift` must be 0, or 1 for masked next-token prediction. It is {shift!r}.")
        if not 0 <= cfg < math.inf:
            raise PLLError(f"`cfg` must be a weight of 0 or more, for classifier-free guidance. It is {cfg!r}.")
        self.shift, self.predicts_mask, self.cfg = shift, predicts_mask, cfg

    def _log_probs(
        self, forward: Forward, shift: int, hf_tokenizer: PreTrainedTokenizerBase, *others: Any
    ) -> TargetLogProbs:
        excluded = None if self.predicts_mask else hf_tokenizer.mask_token_id
        return TargetLogProbs(forward, shift, excluded, self.cfg)


# Under the names of the entry points.
MaskedLM = registry.architectures.register("spacy-pll.MaskedLM.v1", func=MaskedLanguageModel)
CausalLM = registry.architectures.register("spacy-pll.CausalLM.v1", func=CausalLanguageModel)
