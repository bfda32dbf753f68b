"""The registered architectures: what the `model` block of a pipeline's config names."""

from typing import Any

from spacy.util import SimpleFrozenDict, registry
from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM

from .base import TransformerLanguageModel
from .causal import CausalLanguageModel, LeadingSpace


class MaskedLanguageModel(TransformerLanguageModel):
    """A model that predicts a masked piece from both sides."""

    kind = "masked"
    auto_class = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    shift = 0
    example = "bert-base-cased"


@registry.architectures("spacy-pll.MaskedLM.v1")
def MaskedLM(
    name: str | None = None,
    revision: str = "main",
    tokenizer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
    transformer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
    mixed_precision: bool = False,
) -> MaskedLanguageModel:
    """A masked language model of Hugging Face transformers.

    name (Optional[str]): A name on the Hugging Face hub, a local folder, or None for the
        English model that comes with this package.
    revision (str): Branch, tag or commit on the hub.
    tokenizer_config (dict): Settings for `AutoTokenizer.from_pretrained`.
    transformer_config (dict): Settings for `AutoConfig.from_pretrained`.
    mixed_precision (bool): Run the forward passes under autocast, in bfloat16 (float16 on
        GPUs without bfloat16). Log-probabilities are computed in float32 all the same.
    RETURNS (MaskedLanguageModel): Not loaded yet.
    """
    return MaskedLanguageModel(name, revision, tokenizer_config, transformer_config, mixed_precision)


@registry.architectures("spacy-pll.CausalLM.v1")
def CausalLM(
    name: str,
    revision: str = "main",
    tokenizer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
    transformer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
    mixed_precision: bool = False,
    leading_space: LeadingSpace = "word",
) -> CausalLanguageModel:
    """A left-to-right language model, for the metric `causal`: compares PLL with log-likelihood.

    name (str): A name on the Hugging Face hub or a local folder; there is no built-in one.
    leading_space (str): Which word gets the probability of a leading-space marker ("Ġ", "▁").
        "word": the word that it begins, so scores are plain sums over the pieces.
        "previous": the word that it ends (`LeadingSpaceLogProbs` has the equation).
    The other settings are those of `spacy-pll.MaskedLM.v1`.
    RAISES (ValueError): `leading_space` is neither. When the model is loaded: it is
        "previous" and the tokenizer does not mark leading spaces.
    """
    return CausalLanguageModel(name, revision, tokenizer_config, transformer_config, mixed_precision, leading_space)
