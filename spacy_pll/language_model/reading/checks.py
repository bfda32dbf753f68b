"""What a language model must be to score text. A model that fails a check is refused on loading.

Each error says what was wrong and what to choose instead. A model whose head was not trained is
never used: its weights would be random, and so would the scores.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from tokenizers import Tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ...errors import PLLError, similar
from ...user_warnings import warn_user
from .hub import OF_HUB
from .special_tokens import check_mask_token

# What computes a part of a model, by the setting that names it. Any other name is that of code on the hub, or, as for
# FlashAttention, may be taken from there: transformers does so where the package `kernels` is installed.
OWN_CODE = {
    "attn_implementation": ("eager", "sdpa", "flex_attention"),
    "experts_implementation": ("eager", "batched_mm", "grouped_mm"),
}
# Settings of a tokenizer that say which files are read; and what it has, besides its backend, on which ids depend.
OF_FILES = {*OF_HUB, "revision", "subfolder", "use_fast"}
OF_TOKENIZERS = ("special_tokens_map", "model_max_length", "model_input_names", "split_special_tokens")


def in_block(source: str, **settings: Any) -> str:
    """What to type for settings that only the block `model` of a config has."""
    block = {"name": source, **settings}
    return (
        f'nlp.add_pipe("pll", config={{"model": {block}}}). Functions and commands take the pipeline, or the folder to '
        "which nlp.to_disk saves it, as their model."
    )


def check_no_remote_code(**settings: dict[str, Any]) -> None:
    """RAISES (ValueError): A setting asks to run code that comes with a model."""
    for setting, config in settings.items():
        if "trust_remote_code" in config:
            raise PLLError(
                f"`trust_remote_code` is set in {setting}. Code that comes with a model is never run here. "
                "Choose a model whose architecture is part of transformers, and remove the setting."
            )


def check_one_place(transformer_config: Mapping[str, Any], source: str) -> None:
    """RAISES (ValueError): The configuration is to be read from another place than the weights."""
    for key in ("gguf_file", "revision", "subfolder"):
        if key in transformer_config:
            raise PLLError(
                f"transformer_config has {key!r} ({transformer_config[key]!r}), which would hold for config.json, but "
                f"not for the weights of {source!r}: the scores would be those of another model. Remove it. Choose a "
                "revision with `revision`, beside `name`. Of a model in a subfolder, give that folder as `name`."
            )


def warn_of_ignored(
    tokenizer: PreTrainedTokenizerBase,
    tokenizer_config: Mapping[str, Any],
    read: Callable[..., PreTrainedTokenizerBase],
    source: str,
) -> None:
    """Warn of settings that do not change how a tokenizer reads texts: transformers ignores unknown ones.

    read (Callable): Reads the tokenizer with some of them.
    """

    def ids_depend_on(tokenizer: PreTrainedTokenizerBase) -> list[object]:
        return [tokenizer.backend_tokenizer.to_str(), *(getattr(tokenizer, name) for name in OF_TOKENIZERS)]

    for name in tokenizer_config.keys() - OF_FILES if tokenizer.is_fast else ():
        without = read(**{key: value for key, value in tokenizer_config.items() if key != name})
        is_so = getattr(without, name, None) == tokenizer_config[name]
        if not is_so and without.is_fast and ids_depend_on(without) == ids_depend_on(tokenizer):
            known = {*vars(tokenizer), *signature(type(tokenizer)).parameters} - {name}
            warn_user(
                f"tokenizer_config has {name!r} ({tokenizer_config[name]!r}), which does not change how the "
                f"{type(tokenizer).__name__} of {source!r} reads texts.{similar(name, known)} Correct or remove it. If "
                "the class has no such setting, change tokenizer.json instead."
            )


def check_own_code(settings: Mapping[str, Any], source: str) -> None:
    """Settings, and those within them, must name no code but that of transformers and PyTorch.

    source (str): Where they stand, for messages.
    RAISES (ValueError): They do.
    """
    for key, value in _entries(settings):
        setting = key.strip("_").removesuffix("_internal")
        # It may be a dictionary, which has a name for each part of a model.
        for _, name in _entries({setting: value}) if setting in OWN_CODE else ():
            if isinstance(name, str) and name not in OWN_CODE[setting]:
                raise PLLError(
                    f"`{key}` is {name!r} in {source}. Such a name can stand for code on the Hugging Face hub, which "
                    f"is never run here. Remove the setting, or choose one of {', '.join(OWN_CODE[setting])}."
                )
        if key == "attribute_map":  # it would give the settings above another name
            raise PLLError(f"`attribute_map` is set in {source}. It can hide other settings: remove it.")
        if key == "quantization_config" and value:
            raise PLLError(
                f"`quantization_config` is set in {source}. Quantized weights need code of other packages or from the "
                "Hugging Face hub, and are not read here. Choose the checkpoint from which these were made."
            )


def _entries(settings: Any) -> Iterator[tuple[str, Any]]:
    """All keys and values of a dictionary, and of the dictionaries and lists in it."""
    if isinstance(settings, Mapping):
        for key, value in settings.items():
            yield str(key), value
            yield from _entries(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from _entries(value)


def check_pieces(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    """RAISES (ValueError): There are special tokens alone: transformers 5 makes a tokenizer up for want of files."""
    if len(tokenizer) <= len({*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}):
        others = " and ".join(name for name in tokenizer.vocab_files_names.values() if name != "tokenizer.json")
        raise PLLError(
            f"The tokenizer of {source!r} knows no text, because its files are missing: tokenizer.json"
            f"{f', or {others}' if others else ''}. Copy them from where the model comes from, or save the tokenizer "
            "of its training there: tokenizer.save_pretrained(FOLDER)."
        )


def check_kind(
    config: Any, tokenizer: PreTrainedTokenizerBase, configs: Mapping[Any, Any], kind: str, example: str, source: str
) -> None:
    """RAISES (ValueError): A masked model has no mask token of its own, transformers has no model of this kind, or the
    model reads more than the text, or other types of pieces.
    """
    if kind == "masked" and tokenizer.mask_token_id is None:
        raise PLLError(
            f"The tokenizer of {source!r} has no mask token, so this is not a masked language model. Choose one, "
            f"such as {example!r}, or name the token: {in_block(source, tokenizer_config={'mask_token': '[MASK]'})}"
        )
    if kind == "masked":
        check_mask_token(tokenizer, source)
    if getattr(config, "use_lang_emb", False) and getattr(config, "n_langs", 1) > 1:  # XLM
        raise PLLError(
            f"The model {source!r} reads the language of a text beside the text, which is not done here, so its scores "
            "would be wrong. Choose a model that needs no language, such as FacebookAI/xlm-mlm-100-1280."
        )
    types = {0}
    if tokenizer.is_fast and "token_type_ids" in tokenizer.model_input_names:
        text = tokenizer.backend_tokenizer.encode("a")
        types |= {kind for kind, is_seen in zip(text.type_ids, text.attention_mask) if is_seen}  # not of padding
    # Funnel's type of its first token is related to each other type alike.
    if types - {0, getattr(tokenizer, "cls_token_type_id", 0)} and getattr(config, "type_vocab_size", 1) > 1:
        raise PLLError(
            f"The tokenizer of {source!r} gives the pieces of a text the types (token_type_ids) {sorted(types)}. Here "
            "all have the type 0, so the scores would be wrong. If the model was trained with that, write 0 for each "
            "type_id under 'single' in the post_processor of tokenizer.json. Otherwise choose another model."
        )
    if type(config) not in configs:
        raise PLLError(
            f"The model {source!r} is of type {config.model_type!r}, for which transformers has no {kind} "
            f"language model. Choose a checkpoint of one, such as {example!r}."
        )


def check_trained(report: Mapping[str, Iterable[str]], model: PreTrainedModel, source: str) -> None:
    """RAISES (ValueError): The checkpoint lacks weights, which transformers has filled at random."""
    missing, kind = sorted(report["missing_keys"]), type(model).__name__
    if missing:
        advice = f"Choose a checkpoint that was saved as {kind}, with its language-modelling head."
        if any(name.startswith(f"{model.base_model_prefix}.") for name in missing):
            advice = (
                "Not only the head lacks them, so config.json and the weights do not belong together. Get both again, "
                f"or correct config.json: its model_type ({model.config.model_type!r}), or the number of layers."
            )
        elif Path(source, "modules.json").is_file():
            advice = (
                "It is a model of sentence-transformers, for vectors of texts, without a language-modelling head. "
                "Choose the language model from which it was made: its model card says which that is."
            )
        elif not getattr(model.config, "tie_word_embeddings", True):
            advice += (
                " Or, if the head has the weights of the embeddings, set tie_word_embeddings in config.json to true."
            )
        if any(name.startswith("lm_predictions.") for name in report["unexpected_keys"]):  # DeBERTa, by its authors
            advice = (
                "Its head has other names: under transformers 5, it needs a setting: "
                f"{in_block(source, transformer_config={'legacy': False})}"
            )
        raise PLLError(
            f"The checkpoint {source!r} has no trained weights for {', '.join(missing[:8])}"
            f"{' ...' if len(missing) > 8 else ''}. They would be random, and so would the scores. {advice}"
        )


def check_left_over(report: Mapping[str, Iterable[str]], model: PreTrainedModel, source: str) -> None:
    """RAISES (ValueError): A checkpoint has weights of layers that its config leaves out."""
    # Some checkpoints name the weights as the model without a head does.
    roots = model, model.base_model
    if unused := sorted(name for name in report["unexpected_keys"] if any(_is_of_body(name, root) for root in roots)):
        raise PLLError(
            f"The checkpoint {source!r} has weights that its config.json leaves out: {', '.join(unused[:8])}"
            f"{' ...' if len(unused) > 8 else ''}. The scores would be those of another model. Correct config.json, "
            "such as its number of layers, or get it again. Of adapters, merge them into the weights. To score the "
            "model without them, load it with transformers, and give it with its tokenizer: (model, tokenizer)."
        )


def _is_of_body(name: str, model: torch.nn.Module) -> bool:
    """Whether a weight belongs to one layer more than a model has, or to a part that a layer does not have, or is one
    that a layer could have, such as a bias, or changes another one (loralib, rounded weights). Other weights that a
    model does not have are those of heads and poolers, or of other languages (X-MOD).
    """
    path, _, weight = name.rpartition(".")
    module, in_layers = cast(Any, model), False
    for name in path.split("."):
        in_layers |= isinstance(module, torch.nn.ModuleList)
        of_choice = isinstance(module, torch.nn.ModuleDict)
        if not isinstance(module := getattr(module, name, None), torch.nn.Module):
            return in_layers and not of_choice and weight in ("weight", "bias")
    return bool(module._parameters.get(weight, None if weight.startswith(("lora_", "weight_scale")) else ...) is None)


def check_positions(config: Any, source: str) -> None:
    """RAISES (ValueError): transformers would read other positions than a model was trained with: version 5 has only
    the absolute ones of BERT and its relatives, and says nothing.
    """
    kind = getattr(config, "position_embedding_type", "absolute")
    if kind not in ("absolute", "rope", None) and "position_embedding_type" not in signature(type(config)).parameters:
        raise PLLError(
            f"The model {source!r} has the position_embedding_type {kind!r}, which transformers "
            f"{transformers.__version__} takes for 'absolute', so its scores would be wrong. Install a version that "
            "has it: pip install 'transformers<5'."
        )


def count_embeddings(model: PreTrainedModel) -> int:
    """How many input embeddings there are. RAISES (ValueError): The model has no table of them."""
    # Not only in `Embedding`: I-BERT's are in a class of its own.
    weight = getattr(model.get_input_embeddings(), "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 2:
        raise PLLError(
            f"A {type(model).__name__} has no table with an embedding for each wordpiece, as a language model needs "
            f"it here. {choose_another(model)}"
        )
    return len(weight)


def choose_another(model: torch.nn.Module) -> str:
    """What to do about a model that cannot be used as it is."""
    for module in model.modules():
        weights = [*module._parameters.items(), *module._buffers.items()]
        is_rounded = any("weight" in name and x is not None and not x.is_floating_point() for name, x in weights)
        if is_rounded or "quantized" in type(module).__module__:
            return (
                f"Its weights are quantized (those of a {type(module).__name__}, for example). Give the model from "
                "which it was made."
            )
    return "Choose a model of another architecture."


def check_vocabulary(tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel, source: str) -> None:
    """RAISES (ValueError): The tokenizer has more entries than the model has embeddings."""
    n_embeddings = count_embeddings(model)
    if len(tokenizer) > n_embeddings:
        raise PLLError(
            f"The tokenizer of {source!r} has {len(tokenizer)} entries and the model {n_embeddings}. "
            "They do not belong together. Choose a folder in which they do."
        )


def check_room_for_text(tokenizer: Tokenizer, max_length: int, source: str) -> None:
    """RAISES (ValueError): The special tokens alone fill a context."""
    if max_length <= len(tokenizer.encode("").ids):
        raise PLLError(
            f"The model {source!r} reads at most {max_length} wordpieces, special tokens included, which "
            "leaves no room for text. Check model_max_length in its tokenizer_config.json, and its config.json."
        )


def check_direction(sees_before: bool, sees_after: bool, should_see: bool, example: str, source: str) -> None:
    """RAISES (ValueError): A masked model does not see what follows a piece, or a left-to-right one does; or the model
    does not even see what comes before it.

    transformers loads BERT as a decoder, too: with attention to both sides, so each piece would see itself.
    """
    if not sees_before:
        raise PLLError(
            f"The model {source!r} does not see what comes before a piece, so its scores would not depend on the text. "
            "The attention of some architectures, such as MRA, does nothing without a kernel for CUDA. Choose a model "
            f"of another architecture, such as {example!r}."
        )
    if should_see and not sees_after:
        raise PLLError(
            f"The model {source!r} does not see what follows a piece: it is a left-to-right model, or its "
            f"config.json makes it one. Choose a masked language model, such as {example!r}. Or score it as it is: "
            "`causal=True` (in a config, spacy-pll.CausalLM.v1 and the metric causal)."
        )
    if sees_after and not should_see:
        raise PLLError(
            f"The model {source!r} sees what follows a piece, so each piece would give itself away: it is not a "
            "left-to-right model, or its config.json makes it none. If it is a masked language model, leave out "
            f"`causal` (in a config, use spacy-pll.MaskedLM.v1). Or choose a left-to-right one, such as {example!r}."
        )


def check_finite(log_probs: torch.Tensor, source: str) -> None:
    """RAISES (ValueError): A log-probability is not finite."""
    if not log_probs.isfinite().all():
        raise PLLError(
            f"The model {source!r} gives log-probabilities that are not finite, even for a short text: its weights "
            "are damaged. Get the model again, or choose another one."
        )


def check_precision(precision: str, device: torch.device) -> None:
    """RAISES (ValueError): Models cannot compute with this precision on the device."""
    if device.type != "cuda" and precision in ("tf32", "float16"):
        raise PLLError(
            f"`precision` is {precision!r}, which only GPUs have, and the model is on the device {device.type!r}.",
            "Set `precision` to 'float32', or to 'bfloat16', which is faster on some CPUs.",
        )
