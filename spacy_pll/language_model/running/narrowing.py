"""Narrowing: the last steps of a model at the targets' positions alone.

The head of a language model, and the feed-forward part of its last layer, treat each position by itself, so they only
need the positions of the targets. Hooks narrow the hidden states (rows, length, width) down to (1, positions, width),
as if those positions were one row, and the model's own code does the rest. `capabilities.find_capabilities` finds by
trying which narrowing leaves the logits of an architecture as they are.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from .unable import Unable, set_hook

# What layers call the part after the attention, which treats each position by itself.
FEED_FORWARD = ("mlp", "ffn", "feed_forward")


@dataclass(frozen=True)
class _Targets:
    """What the hooks of a model leave of the hidden states in the pass that is running."""

    narrowing: "Narrowing"  # of the pass that runs: the model may have hooks of several
    row: torch.Tensor
    position: torch.Tensor
    shape: list[int]  # of the last feed-forward part's input, while that runs


# Each thread has its own, so threads may run a model at the same time, and a forked process begins without one.
_targets: ContextVar[_Targets | None] = ContextVar("targets", default=None)


class Narrowing:
    """The hooks of a model. They are set once, and do nothing in passes of others."""

    # The one that saves the most comes first.
    names = ("after_last_attention", "around_last_feed_forward", "before_head")

    def __init__(self, model: PreTrainedModel):
        self.model = model
        self._hooks: list[RemovableHandle] = []

    def set(self, name: str | None) -> None:
        """Set what runs at the targets alone: one of `names`, or nothing. RAISES (Unable): It has no such part."""
        self._remove()
        try:
            for hook in getattr(self, name)() if name is not None else ():
                self._hooks.append(hook)
        except BaseException:  # some of several hooks may be set
            self._remove()
            raise

    def _remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    @contextmanager
    def at(self, row: torch.Tensor, position: torch.Tensor) -> Iterator[None]:
        """Let the hooks keep these positions (int64, shape (positions,)) in the passes of this thread."""
        token = _targets.set(_Targets(self, row, position, []))
        try:
            yield
        finally:
            _targets.reset(token)

    def before_head(self) -> Iterator[RemovableHandle]:
        if self.model.base_model is self.model:
            raise Unable(f"{type(self.model).__name__} has no model without its head")
        yield set_hook(self.model.base_model.register_forward_hook, self._narrow_output)

    def after_last_attention(self) -> Iterator[RemovableHandle]:
        """Narrow everything after the last attention: in BERT and similar models, with the residual sum."""
        yield set_hook(_part(self.layers()[-1], ("attention",)).register_forward_hook, self._narrow_output)

    def around_last_feed_forward(self) -> Iterator[RemovableHandle]:
        """Narrow the last feed-forward part and the head. Between them a residual of full length is added."""
        block = _part(self.layers()[-1], FEED_FORWARD)
        yield set_hook(block.register_forward_pre_hook, self._narrow_input)
        yield set_hook(block.register_forward_hook, self._widen_output)
        yield set_hook(self.model.base_model.register_forward_hook, self._narrow_output)

    def _own_targets(self) -> _Targets | None:
        targets = _targets.get()
        return targets if targets is not None and targets.narrowing is self else None

    def _narrow_input(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if (targets := self._own_targets()) is None:
            return None
        targets.shape[:] = args[0].shape
        return args[0][targets.row, targets.position][None], *args[1:]

    def _widen_output(self, module: Any, args: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
        if (targets := self._own_targets()) is None:
            return None
        full = output.new_zeros(*targets.shape[:-1], output.shape[-1])
        full[targets.row, targets.position] = output[0]
        return full

    def _narrow_output(self, module: Any, args: tuple[Any, ...], output: Any) -> Any:
        """Keep a module's hidden states, its first output, at the targets only."""
        if (targets := self._own_targets()) is None:
            return None
        row, position = targets.row, targets.position
        if isinstance(output, torch.Tensor):
            return output[row, position][None]
        if isinstance(output, tuple):
            return output[0][row, position][None], *output[1:]
        key = next(iter(output))
        output[key] = output[key][row, position][None]
        return output

    def layers(self) -> torch.nn.ModuleList:
        """The longest list of modules in the encoder. RAISES (Unable): There is none."""
        lists = [module for module in self.model.base_model.modules() if isinstance(module, torch.nn.ModuleList)]
        if not lists:
            raise Unable(f"{type(self.model).__name__} has no list of layers")
        return max(lists, key=len)


def _part(layer: torch.nn.Module, names: Sequence[str]) -> torch.nn.Module:
    """The first part of a layer that has one of some names. RAISES (Unable): None has."""
    for name in names:
        if isinstance(module := getattr(layer, name, None), torch.nn.Module):
            return module
    raise Unable(f"{type(layer).__name__} has no part that is called {' or '.join(names)}")
