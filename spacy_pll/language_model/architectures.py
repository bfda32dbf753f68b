"""The registered architectures: what the `model` block of a pipeline's config names."""

from spacy.util import registry
from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM

from .base import TransformerLanguageModel
from .causal import CausalLanguageModel


class MaskedLanguageModel(TransformerLanguageModel):
    """A model that predicts a masked piece from both sides."""

    kind = "masked"
    auto_class = AutoModelForMaskedLM
    configs = MODEL_FOR_MASKED_LM_MAPPING
    shift = 0
    example = "bert-base-cased"


# Under the names of the entry points.
MaskedLM = registry.architectures.register("spacy-pll.MaskedLM.v1", func=MaskedLanguageModel)
CausalLM = registry.architectures.register("spacy-pll.CausalLM.v1", func=CausalLanguageModel)
