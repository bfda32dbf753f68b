"""Forward passes: the logits at some positions of some rows, with no more work than they need."""

import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from .onednn import OneDNNLinear, is_faster_here

# Held while a model is loaded or runs with its hooks set. It belongs to the module, so that a model can be pickled.
lock = threading.RLock()


def _new_lock() -> None:
    global lock
    lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # Another thread may have held the lock at the moment of the fork, and that thread does not exist in the child.
    os.register_at_fork(after_in_child=_new_lock)

_IMPORTED_IN = os.getpid()


def one_thread_after_fork() -> bool:
    """In a forked worker of `nlp.pipe(n_process=...)`, keep PyTorch to one thread.

    The threads that the parent's OpenMP counts on do not exist in the child: it would wait for them for ever.

    RETURNS (bool): Whether this process is such a worker.
    """
    forked = os.getpid() != _IMPORTED_IN
    if forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return forked


# What layers call the part after the attention, which treats each position by itself.
FEED_FORWARD = ("mlp", "ffn", "feed_forward")


class Forward:
    """Runs a transformers model, and leaves out work that no target needs.

    The head of a language model, and the feed-forward part of its last layer, treat each position
    by itself, so they only need the positions of the targets. Hooks narrow the hidden states
    (rows, length, width) down to (1, positions, width), as if those positions were one row, and
    the model's own code does the rest. `narrowing` names the method that sets the hooks, one of
    `narrowings`, or is None. `capabilities.find_capabilities` finds by trying which of them leaves
    the logits of an architecture as they are.

    model (PreTrainedModel): On its device, in evaluation mode.
    """

    # The one that saves the most comes first.
    narrowings = ("after_last_attention", "around_last_feed_forward", "before_head")

    def __init__(self, model: PreTrainedModel):
        self.model = model
        self.narrowing: str | None = None
        self._parameters = set(inspect.signature(model.forward).parameters)
        self.set_arithmetic()

    def set_arithmetic(self, mixed_precision: bool = False, compile: bool = False) -> None:
        """Set how the model's matrix products are computed. By default: in float32, by the fastest library here.

        mixed_precision (bool): Under autocast, in bfloat16 (float16 on GPUs without bfloat16).
        compile (bool): Compile the layers during the first passes, except the last layer, which has the hooks.
        """
        self.mixed_precision = mixed_precision
        self.compiled = compile
        self._onednn: OneDNNLinear | None = None
        if compile:
            for layer in self._layers()[:-1]:
                layer.compile(dynamic=True)

    def __getstate__(self) -> dict:
        return {**vars(self), "_onednn": None}

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def takes_mask(self) -> bool:
        """Whether the model can be told what is padding."""
        return "attention_mask" in self._parameters

    def logits(
        self, ids: np.ndarray, lengths: np.ndarray, row: np.ndarray, position: np.ndarray, *others: np.ndarray
    ) -> list[torch.Tensor]:
        """The logits at some positions. float32, shape (positions, vocabulary), on the device.

        ids (int array, shape (rows, longest)): What is read.
        lengths (int array, shape (rows,)): The rest of a row is padding.
        row, position (int arrays, shape (positions,)): Where.
        others (int or bool arrays): Other arrays that are needed on the device. They are copied together with the rest.
        RETURNS (list[Tensor]): The logits, and the other arrays as int64.
        RAISES (RuntimeError): This is a worker process, and the model is on a GPU.
        """
        if one_thread_after_fork() and self.device.type == "cuda":
            raise RuntimeError(
                "Worker processes cannot use the GPU that the parent process holds. Use nlp.pipe(..., n_process=1) "
                "on a GPU, or spacy.require_cpu() before the pipeline is made."
            )
        inputs, lengths_, row_, position_, *rest = self.upload(ids, lengths, row, position, *others)
        if self.narrowing is None:
            return [self.run(inputs, lengths_)[row_, position_].float(), *rest]
        # All threads share the modules that the hooks are set on.
        with lock, getattr(self, self.narrowing)(row_, position_):
            return [self.run(inputs, lengths_)[0].float(), *rest]

    def upload(self, *arrays: np.ndarray) -> list[torch.Tensor]:
        """Arrays as int64 tensors on the device, in one copy that the host does not wait for."""
        flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]).astype(np.int64))
        if self.device.type == "cuda":
            flat = flat.pin_memory()
        parts = flat.to(self.device, non_blocking=True).split([array.size for array in arrays])
        return [part.view(array.shape) for part, array in zip(parts, arrays)]

    def run(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """One forward pass of the model. Logits, shape (rows, longest, vocabulary), or narrowed by hooks."""
        arguments: dict[str, Any] = {"input_ids": ids}
        if self.takes_mask:
            mask = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
            arguments["attention_mask"] = mask.long()
        if "use_cache" in self._parameters:
            arguments["use_cache"] = False
        with self._arithmetic():
            return self.model(**arguments, return_dict=True).logits

    def _arithmetic(self) -> AbstractContextManager:
        """The context in which the model's matrix products are computed."""
        if self.mixed_precision:
            half = self.device.type == "cuda" and not torch.cuda.is_bf16_supported()
            return torch.autocast(self.device.type, torch.float16 if half else torch.bfloat16)
        if self.device.type == "cpu" and not self.compiled and is_faster_here():
            if self._onednn is None:
                self._onednn = OneDNNLinear(self.model)
            return self._onednn
        return nullcontext()

    def before_head(self, row: torch.Tensor, position: torch.Tensor) -> AbstractContextManager:
        """Narrow the head alone."""
        return _hooked(self.model.base_model.register_forward_hook(_narrow_output(row, position)))

    def after_last_attention(self, row: torch.Tensor, position: torch.Tensor) -> AbstractContextManager:
        """Narrow everything after the last attention: in BERT and similar models, with the residual sum."""
        attention = self._layers()[-1].get_submodule("attention")
        return _hooked(attention.register_forward_hook(_narrow_output(row, position)))

    def around_last_feed_forward(self, row: torch.Tensor, position: torch.Tensor) -> AbstractContextManager:
        """Narrow the last feed-forward part and the head. Between them a residual of full length is added."""
        layer = self._layers()[-1]
        block = next((getattr(layer, name) for name in FEED_FORWARD if hasattr(layer, name)), None)
        if block is None:
            raise AttributeError(f"{type(layer).__name__} has none of {', '.join(FEED_FORWARD)}")
        shape: list[int] = []

        def narrow(module, args):
            shape[:] = args[0].shape
            return args[0][row, position][None], *args[1:]

        def widen(module, args, output):
            full = output.new_zeros(*shape[:-1], output.shape[-1])
            full[row, position] = output[0]
            return full

        return _hooked(
            block.register_forward_pre_hook(narrow),
            block.register_forward_hook(widen),
            self.model.base_model.register_forward_hook(_narrow_output(row, position)),
        )

    def _layers(self) -> torch.nn.ModuleList:
        """The longest list of modules in the encoder.

        RAISES (AttributeError): There is none.
        """
        lists = [module for module in self.model.base_model.modules() if isinstance(module, torch.nn.ModuleList)]
        if not lists:
            raise AttributeError(f"{type(self.model).__name__} has no list of layers")
        return max(lists, key=len)


def _narrow_output(row: torch.Tensor, position: torch.Tensor) -> Callable:
    """A hook that keeps a module's hidden states, its first output, at some positions only."""

    def hook(module, args, output):
        if isinstance(output, torch.Tensor):
            return output[row, position][None]
        if isinstance(output, tuple):
            return output[0][row, position][None], *output[1:]
        key = next(iter(output))
        output[key] = output[key][row, position][None]
        return output

    return hook


@contextmanager
def _hooked(*handles: RemovableHandle) -> Iterator[None]:
    """Remove the hooks again, whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
