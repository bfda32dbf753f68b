"""Folders without a model that can be read: what is there instead, and what to do."""

import json
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from safetensors import SafetensorError, safe_open

from ...errors import PLLError

ADAPTER = "adapter_config.json"  # of PEFT
# The files from which transformers reads weights; of a model in several files, their list.
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# Weights of other programs, by the names of their files.
OTHER_PROGRAMS = {
    "*.onnx": "ONNX",
    "*.h5": "TensorFlow",
    "*.ckpt.index": "TensorFlow",
    "*.msgpack": "Flax",
    "*.gguf": "llama.cpp",
    "openvino*.xml": "OpenVINO",
}
POINTER = b"version https://git-lfs"  # how a file begins in the place of which Git has a pointer


def check_folder(source: str) -> None:
    """RAISES (OSError): It is a file.
    RAISES (ValueError): A folder has no config.json that can be read, or an adapter.
    """
    folder = Path(source)
    if folder.is_file():
        raise OSError(f"{source!r} is a file, and a model is a folder. Give the folder that has its config.json.")
    config = folder / constants.CONFIG_NAME
    if not folder.is_dir():
        return
    if (folder / ADAPTER).is_file():
        base = _read_object(folder / ADAPTER).get("base_model_name_or_path")
        raise PLLError(
            f"{source!r} has an adapter ({ADAPTER}), which is a part of a model. Merge it into its model"
            f"{f', {base!r}' if base else ''}: peft.PeftModel.from_pretrained(model, {source!r}).merge_and_unload(). "
            "Give what that returns with its tokenizer, or save both in a folder of their own. Or, if that is what "
            "this folder has, remove the file."
        )
    if config.is_file():
        _read_object(config)
        return
    if (folder / "config.cfg").is_file():
        raise PLLError(
            f"{source!r} is a spaCy pipeline, not a language model. Load it with spacy.load({source!r}), or give it to "
            "a function or a command as its model."
        )
    names = sorted(path.name for path in folder.iterdir())
    if inside := sorted((path.parent for path in folder.glob(f"*/{constants.CONFIG_NAME}")), key=_order):
        there = (
            f"These folders in it have one: {', '.join(path.name for path in inside)}. Give one of them: {inside[-1]}"
        )
    elif "modules.json" in names:
        there = "It is a model of sentence-transformers without a language model of transformers. Choose another one"
    elif other := _weights_of_others(folder):
        there = f"It has weights for {other}. Give the folder of the model from which they were made"
    else:
        there = (
            f"It has {', '.join(names[:8]) or 'no file'}{' ...' if len(names) > 8 else ''}. Give the folder to which "
            "model.save_pretrained and tokenizer.save_pretrained have written"
        )
    raise PLLError(f"The folder {source!r} has no config.json, so it is not that of a language model. {there}.")


def check_weights(source: str) -> None:
    """RAISES (OSError): A folder has no weights that transformers reads, or pointers in their place.
    RAISES (ValueError): They are rounded to whole numbers.
    """
    folder = Path(source)
    if not folder.is_dir():
        return
    if not any((folder / f"{name}{index}").is_file() for name in WEIGHTS for index in ("", ".index.json")):
        other = _weights_of_others(folder)
        raise OSError(
            f"The weights of {source!r} cannot be read: it has no {' or '.join(WEIGHTS)}"
            f"{f', but weights for {other}' if other else ''}. Get such a file from where the model comes from, or "
            "load the model with the program that made it, and save it as one of transformers."
        )
    for file in sorted((*folder.glob("*.safetensors"), *folder.glob("*.bin"))):
        with file.open("rb") as opened:
            if opened.read(len(POINTER)) == POINTER:
                raise OSError(
                    f"The weights of {str(file)!r} cannot be read: Git has a pointer in their place. Get them with git "
                    "lfs pull, or with hf download."
                )
        if file.suffix == ".safetensors" and (whole := _whole_numbers(file)):
            raise PLLError(
                f"{str(file)!r} has whole numbers in the place of weights: {', '.join(whole[:8])}. Quantized weights "
                "are not read here. Choose the checkpoint from which these were made."
            )


def _read_object(file: Path) -> dict[str, Any]:
    """RAISES (ValueError): A file is no JSON object."""
    try:
        contents = json.loads(file.read_text(encoding="utf8"))
    except ValueError as error:
        raise PLLError(f"{str(file)!r} is no valid JSON: {error}. Correct it, or get it again.") from None
    if not isinstance(contents, dict):
        raise PLLError(f"{str(file)!r} must hold an object of JSON. Get it again.")
    return contents


def _order(folder: Path) -> tuple[int, str]:
    """The order of folders: the checkpoints of a training by their steps."""
    step = folder.name.rpartition("-")[2]
    return int(step) if step.isdecimal() else -1, folder.name


def _weights_of_others(folder: Path) -> str:
    """Whose weights there are, with the file."""
    files = sorted(path.relative_to(folder) for path in (*folder.glob("*"), *folder.glob("*/*")) if path.is_file())
    others = ((program, file) for name, program in OTHER_PROGRAMS.items() for file in files if fnmatch(file.name, name))
    return next((f"{program} ({file.as_posix()})" for program, file in others), "")


def _whole_numbers(file: Path) -> list[str]:
    """The weights in a file that are whole numbers. What else may be such, as positions, has other names."""
    try:
        with safe_open(file, "numpy") as opened:
            names = [name for name in opened.keys() if name.endswith(".weight")]
            return [name for name in names if not opened.get_slice(name).get_dtype().lstrip("B").startswith("F")]
    except (OSError, SafetensorError):  # reading the weights says so
        return []
