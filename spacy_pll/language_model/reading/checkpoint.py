"""Read a checkpoint from a folder or the hub, and write it to a folder."""

import json
import pickle
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import constants
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from safetensors import SafetensorError, safe_open
from transformers import (
    CONFIG_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from ...documentation import page
from ...errors import PLLError, similar
from .. import DOCUMENTS
from .checks import (
    check_left_over,
    check_one_place,
    check_own_code,
    check_pieces,
    check_positions,
    check_trained,
    check_vocabulary,
    warn_of_ignored,
)
from .folders import check_folder, check_weights
from .hub import cached_commit, connection_error, is_hub_name, of_hub
from .slow_tokenizers import backend_of


@dataclass(frozen=True)
class Checkpoint:
    """A language model as it was read, and what is needed to save it like that."""

    transformer: PreTrainedModel  # weights in float32
    tokenizer: PreTrainedTokenizerBase
    dtype: torch.dtype  # that config.json says: of the weights on file, or what they are for
    documents: Mapping[str, bytes]  # of the folder: the contents of the model card and the licence, by file name
    commit: str | None  # on the hub; None for a folder


def read_checkpoint(
    source: str,
    auto_class: Any,
    check: Callable[[Any, PreTrainedTokenizerBase, str], None],
    revision: str | None,
    tokenizer_config: dict[str, Any],
    transformer_config: dict[str, Any],
) -> Checkpoint:
    """Read tokenizer and model, and check that they are whole, trained and of the right kind.

    source (str): A folder or a hub name.
    check (Callable): Called with the config, the tokenizer and the source before the weights are read.
    RAISES (OSError): There is no such model, or its files are damaged.
    RAISES (ValueError): The model cannot be used to score text.
    """
    check_folder(source)
    check_one_place(transformer_config, source)
    hub_settings: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    hub_settings |= of_hub(transformer_config)
    no_connection = connection_error(source, revision)
    if no_connection is not None:  # the model may be in the cache
        hub_settings["local_files_only"] = True
    with _quiet_transformers():
        with _explained(source, no_connection):
            settings, _ = PretrainedConfig.get_config_dict(source, **{**hub_settings, **transformer_config})
        check_own_code(settings, f"config.json of {source!r}")
        check_own_code(transformer_config, "transformer_config")
        with _explained(source, no_connection, settings.get("model_type", "")):
            config, unused = AutoConfig.from_pretrained(
                source, return_unused_kwargs=True, **{**hub_settings, **transformer_config}
            )
        for name in unused.keys() & transformer_config.keys():
            raise PLLError(
                f"transformer_config has {name!r}, and config.json of {source!r} has no such entry."
                f"{similar(name, config.to_dict())} Correct or remove it."
            )
        with _explained(source, no_connection):
            read_tokenizer = partial(AutoTokenizer.from_pretrained, source, **hub_settings)
            tokenizer = read_tokenizer(**tokenizer_config)
            warn_of_ignored(tokenizer, tokenizer_config, read_tokenizer, source)
        backend_of(tokenizer, source)  # an error comes before the weights are read
        check_pieces(tokenizer, source)
        check(config, tokenizer, source)
        check_positions(config, source)
        check_weights(source)
        dtype = _dtype_of(config)
        # transformers 5 reads weights in that dtype unless it is told otherwise. Version 4 has no such argument.
        in_float32 = {"dtype": torch.float32} if hasattr(type(config), "torch_dtype") else {}
        try:
            model, report = auto_class.from_pretrained(
                source,
                config=config,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **hub_settings,
                **in_float32,
            )
        except (OSError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
            file = _damaged_file(source) or source
            raise OSError(f"The weights of {file!r} cannot be read: {error}. Get the model again.") from error
        except (LookupError, TypeError, ValueError, AssertionError, AttributeError, ArithmeticError) as error:
            if sys.flags.optimize > 1:
                raise PLLError(
                    f"transformers cannot make a model without docstrings, which `python -OO` leaves out: {error}",
                    "Use `python -O`, or PYTHONOPTIMIZE=1.",
                ) from error
            entry = _entry_with(config, re.findall(r"[\w.-]+", str(error)))
            raise PLLError(
                f"No model can be made as config.json of {source!r} says: {type(error).__name__}: {error}. Correct "
                f"{entry}, or get the model again."
            ) from error
    check_left_over(report, model, source)
    for mismatch in sorted(report["mismatched_keys"]):
        # transformers 4 gives the name alone.
        name, *on_file = (mismatch, None) if isinstance(mismatch, str) else mismatch[:2]
        by_config = tuple(model.state_dict()[name].shape)
        other = tuple(on_file[0] or ())
        sizes = [wrong for right, wrong in zip(other, by_config) if right != wrong] or by_config
        raise OSError(
            f"The weights of {source!r} cannot be read as config.json says: {name} has "
            f"{f'the size {other}' if other else 'another size'}, and by config.json {by_config}. Correct "
            f"{_entry_with(config, sizes)}, or get the model again."
        )
    _share_bias(report, model)
    check_trained(report, model, source)
    check_vocabulary(tokenizer, model, source)
    documents = {name: Path(source, name).read_bytes() for name in DOCUMENTS if Path(source, name).is_file()}
    commit = cached_commit(source, revision, transformer_config.get("cache_dir"))
    return Checkpoint(model.float().eval(), tokenizer, dtype, documents, commit)


def _share_bias(report: Mapping[str, Any], model: PreTrainedModel) -> None:
    """The bias of a head that has weights of its own: transformers 4 has it under two names, and saves it under one.
    For version 5 these are two, of which one is then missing.
    """
    missing, weights = report["missing_keys"], model.state_dict()
    for name in [name for name in missing if name.endswith(".decoder.bias")]:
        same = name.replace(".decoder.bias", ".bias")
        if same in weights and same not in missing:
            weights[name].copy_(weights[same])
            missing.remove(name)


def _entry_with(config: PretrainedConfig, values: Iterable[object]) -> str:
    """Which entry of config.json may be wrong: one that has one of some values."""
    looked_for = {str(value) for value in values} - {"0", "1"}  # many have these
    entries = [f"{key} ({value!r})" for key, value in config.to_dict().items() if str(value) in looked_for]
    return f"the entry {' or '.join(entries)}" if entries else "its entries"


def is_left_to_right(block: Mapping[str, Any]) -> bool:
    """Whether transformers has a left-to-right language model for a checkpoint, and no masked one.

    The hub is asked only if the cache does not say: it is asked anyway when the model is read.

    block (Mapping): The block `model` of a config, with a name.
    """
    source, revision = block["name"], block.get("revision") or "main"
    hub_settings = of_hub(block.get("transformer_config", {}))
    settings = {"revision": revision, "trust_remote_code": False, **hub_settings}
    for local in (True, False):
        try:
            config = AutoConfig.from_pretrained(source, **{**settings, "local_files_only": local})
        except Exception:  # loading the model will say why
            if local and not settings.get("local_files_only") and connection_error(source, revision) is None:
                continue
            return False
        return type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and type(config) not in MODEL_FOR_MASKED_LM_MAPPING
    return False


def read_unrounded(rounded: Checkpoint, source: str, read: Callable[[], Checkpoint]) -> Checkpoint:
    """The checkpoint whose weights were rounded, as it is on file.

    RAISES (ValueError): It is not there any more, or is another one.
    """
    kept, problem = rounded.transformer.state_dict(), "have changed since they were read"
    try:
        on_file = read()
    except (OSError, ValueError) as error:
        problem = f"cannot be read again ({error})"
    else:
        weights = on_file.transformer.state_dict()
        if weights.keys() == kept.keys() and all(
            torch.equal(weights[name].to(weight.dtype), weight.cpu()) for name, weight in kept.items()
        ):
            return on_file
    raise PLLError(
        f"The weights of this model were rounded to {rounded.transformer.dtype}, and are saved as they were before. "
        f"The files of {source!r}, from which they were read, {problem}.",
        "Load the model with `precision='float32'`, and save that pipeline. Whoever loads it can set `precision` anew.",
    )


def write_checkpoint(checkpoint: Checkpoint, folder: Path) -> None:
    """Write a plain Hugging Face folder: config.json, model.safetensors, tokenizer files, model card and licence.

    The weights are written in the dtype that config.json says, as far as that loses nothing; float32 in float16, if
    that loses nothing of any. (The built-in model is so on file, and its config.json says what it computes in.)

    RAISES (ValueError): There are adapters beside the weights.
    """
    if has_adapters(checkpoint.transformer):
        raise PLLError(
            "This model has adapters beside its weights, and a folder of transformers would not have both.",
            "Give a model with them in its weights: peft.PeftModel.from_pretrained(model, FOLDER).merge_and_unload().",
        )
    weights = checkpoint.transformer.state_dict()
    in_half = checkpoint.dtype == torch.float32 and all(
        fits(weight, torch.float16) for weight in weights.values() if weight.is_floating_point()
    )
    weights = _in_dtype(weights, torch.float16 if in_half else checkpoint.dtype)
    if checkpoint.tokenizer.split_special_tokens:  # otherwise saved only if it was set when the tokenizer was made
        checkpoint.tokenizer.init_kwargs["split_special_tokens"] = True
    with _quiet_transformers():
        checkpoint.transformer.save_pretrained(folder, state_dict=weights)
        checkpoint.tokenizer.save_pretrained(folder)
    config = folder / constants.CONFIG_NAME
    # transformers writes the dtype in which the model runs.
    settings = json.loads(config.read_text(encoding="utf8"))
    settings.update((key, str(checkpoint.dtype).split(".")[1]) for key in ("dtype", "torch_dtype") if key in settings)
    config.write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf8")
    for file in folder.glob("*.safetensors"):
        shutil.copymode(config, file)  # safetensors makes files that only their owner can read
    for name in DOCUMENTS:
        (folder / name).unlink(missing_ok=True)  # of another model that was saved here before
    for name, content in checkpoint.documents.items():
        (folder / name).write_bytes(content)


def has_adapters(model: torch.nn.Module) -> bool:
    """Whether a model has adapters of PEFT beside its weights."""
    return any(type(module).__module__.startswith("peft.") for module in model.modules())


def _dtype_of(config: Any) -> torch.dtype:
    """The dtype of the weights on file, as config.json says: under `torch_dtype`, or `dtype` since transformers 5."""
    name = str(getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)).removeprefix("torch.")
    return {"float16": torch.float16, "bfloat16": torch.bfloat16}.get(name, torch.float32)


def fits(weight: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether a dtype holds a weight, which is in float32, exactly."""
    return torch.equal(weight.to(dtype).float(), weight)


def _in_dtype(weights: Mapping[str, torch.Tensor], dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Tensors in a dtype, those excepted that it cannot represent exactly. Tensors that are tied stay so."""
    cast: dict[tuple[Any, ...], torch.Tensor] = {}
    out = {}
    for name, tensor in weights.items():
        memory = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if memory not in cast:
            cast[memory] = tensor.to(dtype) if tensor.dtype == torch.float32 and fits(tensor, dtype) else tensor
        out[name] = cast[memory]
    return out


def _is_damaged_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except OSError:
        return False
    except ValueError:
        return True
    return False


@contextmanager
def _explained(source: str, no_connection: BaseException | None, kind: str | None = None) -> Iterator[None]:
    """Say what it means when transformers cannot read a configuration or a tokenizer.

    kind (Optional[str]): The type of the model, as config.json says; empty if it does not.
    """
    try:
        yield
    except OSError:
        if not is_hub_name(source):
            raise OSError(
                f"The model {source!r} was not found: no folder of that name holds config.json and tokenizer files. "
                "Give such a folder, or the name of a model on the Hugging Face hub, such as bert-base-cased. The "
                "built-in English model has the name builtin."
            ) from None
        hub = "the Hugging Face hub has no such model or cannot be reached"
        if constants.HF_HUB_OFFLINE:
            hub = "HF_HUB_OFFLINE is set"
        elif no_connection is not None:
            hub = f"the Hugging Face hub at {constants.ENDPOINT} cannot be reached ({no_connection})"
        # Without its cause, which the message sums up: commands of spaCy show the whole traceback.
        raise OSError(
            f"The model {source!r} was not found: no folder of that name holds config.json and tokenizer files, and "
            f"{hub}. Download it while online (hf download {source}), or give its folder in place of the name. "
            "The built-in English model needs no download: its name is builtin."
        ) from None
    except Exception as error:  # an unknown architecture, one that needs its own code, a damaged file
        # transformers lists all architectures that it knows, after a first sentence.
        reason = re.split(r"(?<=\.) |, or contain|\n", str(error).strip(), maxsplit=1)[0][:200]
        advice = (
            "Its architecture must be one that this version of transformers knows, and it must have a tokenizer.json. "
            f"With a SentencePiece file instead, it needs: pip install sentencepiece protobuf. ({reason})"
        )
        if kind in CONFIG_MAPPING:
            reason = " ".join(str(error).split())[:300]
            advice = f"An entry of config.json, or of transformer_config, is wrong: {reason}. Correct it."
        elif kind == "":  # transformers wrote none before 2020
            advice = (
                'Its config.json does not say which kind of model it is. Add that as its first entry: "model_type": '
                '"bert", for a BERT with a vocab.txt.'
            )
        elif kind:
            registered = ", ".join(getattr(CONFIG_MAPPING, "_extra_content", ())) or "none"
            advice = (
                f"It is of the type {kind!r}, which transformers {transformers.__version__} does not know. Install a "
                "version that does. Or, if you have its classes, give a Python file that registers them as `code` "
                f"({page('models.md')}). Types that were registered so far: {registered}."
            )
        if isinstance(error, ImportError):  # after a first line that may be blank
            advice = f"It needs a package that is not installed: {str(error).strip()[:300]}"
        if _is_damaged_json(Path(source, "tokenizer.json")):  # transformers 4 then looks for other files
            advice = "Its tokenizer.json is damaged. Get it again."
        if "trust_remote_code" in str(error):
            advice = (
                "It needs code that comes with it, which is not run here unasked. If you trust that code, give a "
                f"Python file that registers its classes as `code` ({page('models.md')}), or choose another model."
            )
        raise PLLError(f"The configuration or tokenizer of {source!r} cannot be read. {advice}") from error


def to_device(model: PreTrainedModel, device: torch.device) -> None:
    """Move a model to a device. RAISES (RuntimeError): PyTorch cannot use the device."""
    try:
        model.to(device)  # type: ignore[arg-type]  # transformers' decorator hides that `to` is a method
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"spaCy is set to use {device}, but PyTorch {torch.__version__} cannot: {error}. Install a PyTorch "
            "built for your GPU, or call spacy.require_cpu() before the pipeline is made."
        ) from error


def _damaged_file(source: str) -> str | None:
    """The file of weights in a folder that cannot be read, where that is clear."""
    files = sorted(Path(source).glob("*.safetensors"))
    for file in files:
        try:
            with safe_open(file, "numpy"):
                pass
        except (OSError, SafetensorError):
            return str(file)
    pickled = [] if files else [*Path(source).glob("*.bin")]  # read only where there are no others
    return str(pickled[0]) if len(pickled) == 1 else None


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Silence transformers' remarks on unused weights: what matters is checked, and raised, here.

    And its progress bars: reading a file takes a moment. Those of downloads stay.
    """
    verbosity = transformers_logging.get_verbosity()
    bars, download_bars = transformers_logging.is_progress_bar_enabled(), not are_progress_bars_disabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()  # switches those of downloads as well
    if download_bars:
        enable_progress_bars()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()
            if not download_bars:
                disable_progress_bars()
