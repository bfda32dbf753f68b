"""Checkpoints of a training run: one file each, which is replaced as a whole or not at all."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ..corpus.files import atomic_write

STATE = "state"  # the key of the metadata


def save_checkpoint(
    path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]
) -> None:
    """Write weights, the optimizer's tensors and the state of the run. An earlier checkpoint is kept until it is done.

    state (dict): Plain JSON values.
    """
    tensors = {f"model.{name}": parameter.detach() for name, parameter in model.named_parameters()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors.update({f"optimizer.{number}.{name}": value for name, value in values.items()})
    with atomic_write(path) as file:
        file.write(save({name: tensor.contiguous() for name, tensor in tensors.items()}, {STATE: json.dumps(state)}))


def read_state(path: Path) -> dict[str, Any] | None:
    """The state of the run in a checkpoint; None if there is no checkpoint.

    RAISES (OSError): The file is damaged.
    """
    if not path.exists():
        return None
    try:
        with safe_open(path, "pt") as file:
            state: dict[str, Any] = json.loads(file.metadata()[STATE])
            return state
    except (KeyError, SafetensorError, TypeError, ValueError) as error:
        raise OSError(f"The checkpoint {path} is damaged ({error}). Delete its folder, and start again.") from error


def load_checkpoint(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Restore weights and the optimizer's tensors."""
    device = next(model.parameters()).device
    optimizer_state = optimizer.state_dict()
    with safe_open(path, "pt") as file, torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(file.get_tensor(f"model.{name}"))
        for key in file.keys():  # noqa: SIM118 (it is no dict)
            if key.startswith("optimizer."):
                _, number, name = key.split(".", 2)
                tensor = file.get_tensor(key)
                # AdamW keeps its step count on the CPU.
                own = tensor if name == "step" else tensor.to(device)
                optimizer_state["state"].setdefault(int(number), {})[name] = own
    optimizer.load_state_dict(optimizer_state)
