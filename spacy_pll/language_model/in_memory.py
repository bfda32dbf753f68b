"""A model that is in memory already, with its tokenizer."""

from copy import deepcopy
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .architectures import MaskedLanguageModel
from .base import TransformerLanguageModel
from .causal import CausalLanguageModel
from .checkpoint import Checkpoint
from .checks import check_precision, check_vocabulary
from .forward import Precision


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
            f"transformers: (model, tokenizer). It is {given!r:.100}."
        )
    name = model.name_or_path or type(model).__name__  # not None, which is the built-in model
    kinds: list[type[Any]] = [MaskedLanguageModel, CausalLanguageModel]
    classes = {kind: kind.configs.get(type(model.config), ()) for kind in kinds}  # those with a head for language
    suitable = [kind for kind in (kinds[::-1] if causal else kinds) if isinstance(model, classes[kind])]
    if not suitable or causal and suitable[0] is not CausalLanguageModel:
        raise ValueError(
            f"The model {name!r} is a {type(model).__name__}, which is no {'left-to-right' if causal else 'masked'} "
            f"language model that transformers knows. Load it with {kinds[causal].auto_class.__name__}."
        )
    language_model: TransformerLanguageModel = suitable[0](name, precision=precision)
    language_model._check(model.config, tokenizer, name)
    check_vocabulary(tokenizer, model, name)
    check_precision(precision, model.device)
    is_shared = model.dtype == torch.float32
    transformer = (model if is_shared else deepcopy(model).float()).eval()
    checkpoint = Checkpoint(transformer, deepcopy(tokenizer), model.dtype, {}, None, frozenset())
    language_model.use(checkpoint, name, is_shared)
    return language_model
