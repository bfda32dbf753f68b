"""Read a checkpoint from a folder or the hub."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from .checks import check_fast, check_trained, check_vocabulary

# The most ids in a context, for a model that states no limit.
DEFAULT_MAX_LENGTH = 512


def read_checkpoint(
    source: str,
    auto_class: Any,
    check: Callable[[Any, PreTrainedTokenizerBase, str], None],
    *,
    revision: str | None,
    tokenizer_config: dict,
    transformer_config: dict,
) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    """Read tokenizer and model, and check that they are whole, trained and of the right kind.

    source (str): A folder or a hub name.
    auto_class (type): The class of transformers that loads the model, such as `AutoModelForMaskedLM`.
    check (Callable): Called with the config, the tokenizer and the source before the weights are read.
    revision (Optional[str]): Branch, tag or commit on the hub.
    RAISES (OSError): There is no such model, or its files are damaged.
    RAISES (ValueError): The model cannot be used to score text.
    """
    hub_settings = {"revision": revision, "trust_remote_code": False}
    with _quiet_transformers():
        try:
            config = AutoConfig.from_pretrained(source, **hub_settings, **transformer_config)
            tokenizer = AutoTokenizer.from_pretrained(source, **hub_settings, **tokenizer_config)
        except OSError as error:
            raise OSError(_not_found(source)) from error
        except Exception as error:  # an unknown architecture, one that needs its own code, a damaged file
            raise ValueError(_unreadable(source, error)) from error
        check_fast(tokenizer, source)
        check(config, tokenizer, source)
        try:
            model, report = auto_class.from_pretrained(source, config=config, output_loading_info=True, **hub_settings)
        except (OSError, RuntimeError, SafetensorError) as error:
            file = _damaged_file(source) or source
            raise OSError(f"The weights of {file!r} cannot be read: {error}. Get the model again.") from error
    check_trained(report["missing_keys"], type(model).__name__, source)
    check_vocabulary(tokenizer, model, source)
    return tokenizer, model


def _not_found(source: str) -> str:
    offline = os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0")
    hub = "HF_HUB_OFFLINE is set" if offline else "the Hugging Face hub has no such model or cannot be reached"
    return (
        f"The model {source!r} was not found: no folder of that name holds config.json and tokenizer files, and {hub}. "
        f"Download it while online (hf download {source}), or set `name` to the folder that holds it. Without "
        "`name`, the built-in English model is used, which needs no download."
    )


def _unreadable(source: str, error: Exception) -> str:
    if "trust_remote_code" in str(error):
        advice = "It needs code that comes with it, which is never run here: choose another model."
    else:
        advice = (
            "Its architecture must be one that this version of transformers knows, and it must have a tokenizer.json. "
            f"With a SentencePiece file instead, it needs: pip install sentencepiece protobuf. ({error})"
        )
    return f"The configuration or tokenizer of {source!r} cannot be read. {advice}"


def to_device(model: PreTrainedModel, device: torch.device) -> PreTrainedModel:
    """RAISES (RuntimeError): PyTorch cannot use the device."""
    try:
        return model.to(device)  # type: ignore[arg-type]  # transformers' decorator hides that `to` is a method
    except (RuntimeError, AssertionError) as error:
        raise RuntimeError(
            f"spaCy is set to use {device}, but PyTorch {torch.__version__} cannot: {error}. Install a PyTorch "
            "built for your GPU, or call spacy.require_cpu() before the pipeline is made."
        ) from error


def max_length_of(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """The most ids, special tokens included, that the model's positions and its tokenizer allow."""
    limits = [tokenizer.model_max_length]
    positions = getattr(model.config, "max_position_embeddings", None)
    if positions and positions > 0:
        # RoBERTa and similar models count positions from after the padding id.
        offset = max(
            (
                module.padding_idx + 1
                for name, module in model.named_modules()
                if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None
            ),
            default=0,
        )
        limits.append(positions - offset)
    limit = min(limits)
    return limit if limit < 1_000_000 else DEFAULT_MAX_LENGTH


def _damaged_file(source: str) -> str | None:
    """The first safetensors file of a folder that cannot be opened."""
    for file in sorted(Path(source).glob("*.safetensors")):
        try:
            with safe_open(file, "numpy"):
                pass
        except (OSError, SafetensorError):
            return str(file)
    return None


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """Silence transformers' remarks on unused weights: what matters is checked, and raised, here."""
    verbosity = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
