"""The registered architectures: what the `model` block of a pipeline's config names."""

from spacy.util import SimpleFrozenDict, registry

from .base import CausalLanguageModel, LeadingSpace, MaskedLanguageModel


@registry.architectures("spacy-pll.MaskedLM.v1")
def MaskedLM(
    name: str | None = None,
    revision: str = "main",
    tokenizer_config: dict = SimpleFrozenDict(),  # noqa: B008
    transformer_config: dict = SimpleFrozenDict(),  # noqa: B008
    mixed_precision: bool = False,
    compile: bool = False,
) -> "MaskedLanguageModel":
    """A masked language model of Hugging Face transformers.

    name (Optional[str]): A name on the Hugging Face hub, a local folder, or None for the
        English model that comes with this package.
    revision (str): Branch, tag or commit on the hub.
    tokenizer_config (dict): Settings for `AutoTokenizer.from_pretrained`.
    transformer_config (dict): Settings for `AutoConfig.from_pretrained`.
    mixed_precision (bool): Run the forward passes under autocast, in bfloat16 (float16 on
        GPUs without it). Log-probabilities are taken in float32 all the same.
    compile (bool): Have PyTorch compile the layers (`torch.compile`): slow at first, for long
        runs. On a CPU it needs a C++ compiler.
    RETURNS (MaskedLanguageModel): Not loaded yet.
    """
    return MaskedLanguageModel(name, revision, tokenizer_config, transformer_config, mixed_precision, compile)


@registry.architectures("spacy-pll.CausalLM.v1")
def CausalLM(
    name: str,
    revision: str = "main",
    tokenizer_config: dict = SimpleFrozenDict(),  # noqa: B008
    transformer_config: dict = SimpleFrozenDict(),  # noqa: B008
    mixed_precision: bool = False,
    leading_space: LeadingSpace = "word",
    compile: bool = False,
) -> "CausalLanguageModel":
    """A left-to-right language model, for the metric `causal`: to compare PLL with log-likelihood.

    name (str): A name on the Hugging Face hub or a local folder; there is no built-in one.
    leading_space (str): Whose probability a leading-space marker ("Ġ", "▁") is. "word": the
        word's that it begins; scores are the plain sums of the log-probabilities of the pieces.
        "previous": the word's that it ends (`CausalLanguageModel` has the equation).
    The other settings are those of `spacy-pll.MaskedLM.v1`.
    RAISES (ValueError): `leading_space` is neither; or, once the model is loaded, it is
        "previous" and the tokenizer marks no leading spaces.
    """
    return CausalLanguageModel(
        name, revision, tokenizer_config, transformer_config, mixed_precision, leading_space, compile
    )
