"""A model that is in memory already, with its tokenizer."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from tempfile import TemporaryDirectory
from typing import Any
from weakref import ref

import torch
from tokenizers import Tokenizer
from torch.overrides import TorchFunctionMode
from transformers import AutoTokenizer, PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from ..documentation import page
from ..errors import PLLError
from .architectures import MaskedLanguageModel
from .base import TransformerLanguageModel
from .causal import CausalLanguageModel
from .reading.checkpoint import Checkpoint, has_adapters
from .reading.checks import check_precision, check_vocabulary, count_embeddings
from .running.forward import Precision
from .running.torch_settings import usual_tensors
from .running.trials import are_close, make_texts

# What each module has: its weights, its parts, hooks, and its mode.
OF_MODULES = {*vars(torch.nn.Module())}
PLAIN = (bool, int, float, str, list, tuple, dict)
# A text in which each usual step of a tokenizer shows.
EXAMPLE = "In 1984 the Café can't  open: «A.B.»\n— 日本 e\u0301 "


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
        raise PLLError(
            f"The model {name!r} is a {type(model).__name__}, which is no {'left-to-right' if causal else 'masked'} "
            f"language model that transformers knows. Load it with {kinds[0].auto_class.__name__}"
            f"{', or leave out `causal`' if causal else ''}."
        )
    language_model: TransformerLanguageModel = kind(name, precision=precision)
    language_model.owned = InMemory(model, tokenizer)
    language_model.load()
    return language_model


class InMemory:
    """A model of transformers and its tokenizer. Whoever has them may train and change them: that is followed.

    A model in float32 is used as it is. Of another one, there is a copy in float32, which gets the weights anew before
    passes: for BERT-base, 54 ms on one core of a CPU. To find out first whether they have changed takes longer.
    """

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase):
        self._model, self._tokenizer = ref(model), ref(tokenizer)  # what nobody else has, nobody changes
        self._state: object = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of a pipeline, such as in another process, has a model of its own

    def follow(self, language_model: TransformerLanguageModel) -> None:
        """Use them, unless they are used already as they are now.

        RAISES (ValueError): They cannot be used to score text.
        """
        model, tokenizer = self._model(), self._tokenizer()
        if model is None or tokenizer is None:
            return
        in_float32 = all(weight.dtype == torch.float32 for weight in model.parameters())
        state = (
            *(model.dtype, model.device, count_embeddings(model)),
            *(len(tokenizer), tokenizer.added_tokens_decoder, tokenizer.special_tokens_map),
            *(tokenizer.model_max_length, tokenizer.split_special_tokens, *_described_steps(tokenizer)),
            # Hooks are set on layers, which may be moved or replaced. With those of others, a model may allow less. Of
            # a copy, all but the weights is as it was.
            [
                (ref(module), _of_others(module), {} if in_float32 else _described_module(module))
                for module in model.modules()
            ],
        )
        if state == self._state:
            return
        if language_model.loaded:
            language_model.loaded.forward.remove_hooks()
        self._state = language_model.loaded = None  # if it cannot be used now, perhaps it can later
        name = str(language_model.name)
        language_model._check(model.config, tokenizer, name)
        check_vocabulary(tokenizer, model, name)
        check_precision(language_model.precision, model.device)
        with usual_tensors():
            transformer = model if in_float32 else deepcopy(model).float().eval()
            checkpoint = Checkpoint(transformer, deepcopy(tokenizer), model.dtype, {}, None)
            with _reading_its_own(transformer, model):
                language_model.use(checkpoint, name, shared=True)
        self._state = state

    @torch.no_grad()
    def copy_weights(self, transformer: PreTrainedModel) -> None:
        """Give a copy of the model the weights that the model has now."""
        model = self._model()
        if model is not None and model is not transformer:
            for copy, weight in zip(*([*x.parameters(), *x.buffers()] for x in (transformer, model))):
                copy.copy_(weight)

    def check_saving(self, language_model: TransformerLanguageModel) -> None:
        """Compare the model, with its weights of now, with what transformers makes of its configuration and weights.

        RAISES (PLLError): Their scores differ: the class is the user's own, or layers were replaced, or have hooks.
        """
        loaded = language_model.load()
        model, forward = loaded.checkpoint.transformer, loaded.forward
        self.copy_weights(model)
        if has_adapters(model):  # `write_checkpoint` says so
            return
        ids = torch.from_numpy(make_texts(loaded.tokenizer, loaded.max_length).long[None]).to(model.device)
        with torch.random.fork_rng([]), usual_tensors(), torch.no_grad(), forward.in_float32(), forward.evaluating():
            try:
                plain = language_model.auto_class.from_config(deepcopy(model.config), trust_remote_code=False).float()
                plain.load_state_dict(model.state_dict())
            except (RuntimeError, ValueError):  # its weights have other names or sizes; there is no such class
                same = False
            else:
                plain.to(model.device).eval()
                same = are_close(model(ids).logits.log_softmax(-1), plain(ids).logits.log_softmax(-1))
        if not same:
            raise PLLError(
                f"This {type(model).__name__} cannot be saved: of its configuration and weights, transformers would "
                "make a model with other scores, or none. It has a class of its own, hooks, or layers that were "
                "replaced or compiled.",
                "Save it as it was before. Or correct its configuration (model.config), such as tie_word_embeddings. "
                f"Or give its class to transformers ({page('models.md#models-with-code-of-their-own')}).",
            )
        _check_saving_of(loaded.checkpoint.tokenizer, model.config)


@contextmanager
def _reading_its_own(copy: PreTrainedModel, model: PreTrainedModel) -> Iterator[None]:
    """A context for trials of a copy in float32, or of the model itself.

    RAISES (PLLError): A function that runs in the place of a `forward`, and has been copied as it is, reads the weights
        of the model.
    """
    pairs = zip(model.modules(), copy.modules())
    replaced = [module for module, copied in pairs if vars(module).get("forward", 0) is vars(copied).get("forward", 1)]
    weights = (weight for module in replaced for weight in module.parameters())
    reading = _Reading(weight for weight in weights if weight.dtype != torch.float32)
    try:
        with reading if reading.weights else nullcontext():
            yield
    except ValueError:
        if not reading.has_read:
            raise
    if reading.has_read:
        raise PLLError(
            f"The weights of this {type(model).__name__} are in {model.dtype}, and scores are computed by a copy in "
            "float32. But a function that was put in the place of a `forward`, such as torch.autocast around it, reads "
            "the weights of the model itself.",
            "Give the model in float32: model.float().",
        )


class _Reading(TorchFunctionMode):
    """While this context lasts, notice whether an operation reads one of some weights."""

    def __init__(self, weights: Iterable[torch.Tensor]):
        super().__init__()
        self.weights, self.has_read = set(map(id, weights)), False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.has_read |= not self.weights.isdisjoint(map(id, (*args, *(kwargs or {}).values())))
        return function(*args, **(kwargs or {}))


def _check_saving_of(tokenizer: PreTrainedTokenizerBase, config: PretrainedConfig) -> None:
    """RAISES (PLLError): A tokenizer, read again, would give other ids: its class makes steps anew (transformers 5)."""
    if not tokenizer.is_fast:
        return
    with TemporaryDirectory() as folder:
        for saved in (tokenizer, config):
            saved.save_pretrained(folder)
        read = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    before, after = (x.backend_tokenizer.encode(EXAMPLE).ids for x in (tokenizer, read))
    if before != after:
        raise PLLError(
            f"This tokenizer, a {type(tokenizer).__name__}, cannot be saved: transformers would read it with other "
            "steps, such as its normalizer, as they are in this class.",
            "Give the tokenizer without this class: transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer."
            "backend_tokenizer, model_max_length=tokenizer.model_max_length, **tokenizer.special_tokens_map).",
        )


def _described_steps(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """What a fast tokenizer does to a text before it divides it, and what it puts around it."""
    steps = ("normalizer", "pre_tokenizer", "post_processor") if tokenizer.is_fast else ()
    return [repr(getattr(tokenizer.backend_tokenizer, name)) for name in steps]


def _of_others(module: torch.nn.Module) -> tuple[int, set[int]]:
    """What others have set on a module: a function that runs in its place, and hooks."""
    hooks = {**module._forward_pre_hooks, **module._forward_hooks}
    from_where = {number: getattr(getattr(hook, "func", hook), "__module__", "") for number, hook in hooks.items()}
    own = {number for number, name in from_where.items() if str(name).startswith(__package__)}
    return id(vars(module).get("forward")), hooks.keys() - own


def _described_module(module: torch.nn.Module) -> dict[str, object]:
    """What a module has besides the values of its weights and its mode, such as which adapter is in use."""
    shapes = [None if x is None else x.shape for x in (*module._parameters.values(), *module._buffers.values())]
    others = [(name, value) for name, value in vars(module).items() if name not in OF_MODULES]
    functions = {name: id(value) for name, value in others if callable(value)}
    return {"": shapes, **functions, **{name: repr(value) for name, value in others if isinstance(value, PLAIN)}}


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
