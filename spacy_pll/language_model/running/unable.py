"""A model that is tried may be unable to do what it is asked for. That is no defect: it then runs in another way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

# What models raise if they are asked for something that they cannot do, or do not have.
RAISED_BY_MODELS = (RuntimeError, ValueError, IndexError, TypeError, AttributeError)


class Unable(Exception):
    """In a trial: the model cannot do this, or does not have it."""


@contextmanager
def call_on_trial() -> Iterator[None]:
    """A context for a call of a model, or of one of its modules, and for nothing else. What makes the batch and what
    compares the logits stands outside: an error there is a defect, and must not look as if the model were unable.
    """
    try:
        yield
    except RAISED_BY_MODELS as error:
        raise Unable(str(error)) from error


def set_hook(register: Callable[..., RemovableHandle], hook: Callable[..., Any], **options: Any) -> RemovableHandle:
    """Set a hook on a module of a model. RAISES (Unable): The module takes none, as those of torch.jit."""
    with call_on_trial():
        return register(hook, **options)


def check_logits(logits: Any, rows: int, positions: int, target: torch.Tensor) -> None:
    """Check what a model gave for so many rows and positions. It may have more of both: they are not read.

    target (int64 tensor): Ids that it must have logits of.
    RAISES (Unable): It has fewer, or is something else.
    """
    if not isinstance(logits, torch.Tensor):
        raise Unable(f"its logits are of the type {type(logits).__name__}")
    shape, n_ids = tuple(logits.shape), 1 + max(target.tolist(), default=0)
    if len(shape) != 3 or any(has < needed for has, needed in zip(shape, (rows, positions, n_ids))):
        raise Unable(f"its logits have the shape {shape}, and {rows, positions, n_ids} is the least that is needed")


def check_narrowed(logits: Any, target: torch.Tensor) -> None:
    """As `check_logits`, of what was narrowed to one row, with a position for each target and no more."""
    check_logits(logits, 1, len(target), target)
    if logits.shape[1] > len(target):
        raise Unable(f"its logits have {logits.shape[1]} positions, and were narrowed to {len(target)}")
