"""A model that is in memory already, with its tokenizer."""

from copy import deepcopy
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .architectures import MaskedLanguageModel
from .base import TransformerLanguageModel
from .causal import CausalLanguageModel
from .checkpoint import Checkpoint
from .checks import check_precision, check_vocabulary
from .forward import Precision
from .torch_settings import usual_tensors


@usual_tensors()
def use_loaded(given: object, causal: bool = False, precision: Precision = "float32") -> TransformerLanguageModel:
    """Make a language model of one that is in memory: `make_pipeline` says what is done with it.

    given (Tuple[PreTrainedModel, PreTrainedTokenizerBase]): The model, with its language-modelling head, and its
        tokenizer.
    causal (bool): It is a left-to-right model. Only needed if its class is used for masked ones, too.
    RAISES (TypeError): There are no such two things.
    RAISES (ValueError): The model cannot be used to score text.
    """
    model, tokenizer = given if isinstance(given, tuple | list) and len(given) == 2 else (None, None)
    if not isinstance(model, PreTrainedModel) or not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise TypeError(
            "`model` must be the name or folder of a model, a spaCy pipeline, or a model and its tokenizer from "
            f"transformers: (model, tokenizer). It is {_described(given)}.{_advice(given)}"
        )
    name = model.name_or_path or type(model).__name__  # not None, which is the built-in model
    kinds: list[type[Any]] = [CausalLanguageModel] if causal else [MaskedLanguageModel, CausalLanguageModel]
    kind = next((kind for kind in kinds if isinstance(model, kind.configs.get(type(model.config), ()))), None)
    if kind is None:  # no class with a head for language
        raise ValueError(
            f"The model {name!r} is a {type(model).__name__}, which is no {'left-to-right' if causal else 'masked'} "
            f"language model that transformers knows. Load it with {kinds[0].auto_class.__name__}."
        )
    language_model: TransformerLanguageModel = kind(name, precision=precision)
    language_model._check(model.config, tokenizer, name)
    check_vocabulary(tokenizer, model, name)
    check_precision(precision, model.device)
    is_shared = model.dtype == torch.float32
    transformer = model if is_shared else deepcopy(model).float().eval()
    checkpoint = Checkpoint(transformer, deepcopy(tokenizer), model.dtype, {}, None)
    language_model.use(checkpoint, name, is_shared)
    return language_model


def _described(given: object) -> str:
    """What was given, without the modules that a model shows."""
    if isinstance(given, tuple | list):
        return f"({', '.join(map(_described, given))})"
    plain = given is None or isinstance(given, str | int | float | bytes)
    return f"{given!r:.100}" if plain else f"an object of the class {type(given).__name__}"


def _advice(given: object) -> str:
    """What to give in the place of something that has a model in it, or is a part of it."""
    parts = list(given) if isinstance(given, tuple | list) else [given]
    kinds = [type(part).__module__.partition(".")[0] for part in parts]
    if any(hasattr(part, "_orig_mod") for part in parts):
        return " Of a compiled model, give the one from which it was made: (model._orig_mod, tokenizer)."
    if "peft" in kinds:
        return " Of a model with adapters, give one with them in its weights: (model.merge_and_unload(), tokenizer)."
    if any(isinstance(getattr(part, "model", None), PreTrainedModel) and hasattr(part, "tokenizer") for part in parts):
        return " Of a pipeline of transformers, give (pipeline.model, pipeline.tokenizer)."
    if any(isinstance(getattr(part, "module", None), PreTrainedModel) for part in parts):
        return " Of a model that is distributed, give the one inside: (model.module, tokenizer)."
    if any(isinstance(part, Tokenizer) for part in parts):
        return " Of a tokenizer of tokenizers, make one of transformers: PreTrainedTokenizerFast(tokenizer_object=...)."
    if len(parts) == 2 and isinstance(parts[1], PreTrainedModel):
        return " The model comes first."
    if len(parts) == 1 and isinstance(parts[0], PreTrainedModel):
        return " Give its tokenizer, too."
    if any(isinstance(part, torch.nn.Module) and not isinstance(part, PreTrainedModel) for part in parts):
        return " The model must be of a class of transformers, or derived from one: transformers.PreTrainedModel."
    return ""
