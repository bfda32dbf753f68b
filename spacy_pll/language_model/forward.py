"""Forward passes: what a transformers model says at some positions of some rows, for no more work than that takes."""

import inspect
import os
import threading
from contextlib import contextmanager, nullcontext

import numpy as np
import torch

from .onednn import OneDNNLinear, is_faster_here

# Held while a model is loaded or runs with its hooks set; a module's, so that a model can be pickled.
lock = threading.RLock()


def _new_lock():
    global lock
    lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    # Another thread may have held it at the moment of the fork, and that thread is not there in the child.
    os.register_at_fork(after_in_child=_new_lock)

# What layers call the part that follows their attention and treats each position by itself.
FEED_FORWARD = ("mlp", "ffn", "feed_forward")


class Forward:
    """Runs a transformers model, and leaves out what no question asks for.

    The head of a language model, and the feed-forward part of its last layer, treat each position
    by itself, so they need to see no more than the positions that are asked for. Hooks narrow the
    hidden states (rows, length, width) down to (1, positions, width), as if those positions were
    one row, and the model's own code does the rest. `narrowing` names the method that does so, one
    of `narrowings`, or is None. Which of them leaves the answers of an architecture as they are
    is found by trying (`LanguageModel.load`).

    model (PreTrainedModel): On its device, in evaluation mode.
    """

    # The one that saves most first.
    narrowings = ("after_last_attention", "around_last_feed_forward", "before_head")

    def __init__(self, model):
        self.model = model
        self.narrowing: str | None = None
        self.uploads = 0  # copies from the host to the device
        self._parameters = set(inspect.signature(model.forward).parameters)
        self.set_arithmetic()

    def set_arithmetic(self, mixed_precision: bool = False, compile: bool = False):
        """How the model's matrix products are computed: without a word, in float32, by what is fastest here.

        mixed_precision (bool): Under autocast, in bfloat16 (float16 on GPUs without it).
        compile (bool): Compile the layers on the first passes, all but the last, which has the hooks.
        """
        self.mixed_precision = mixed_precision
        self.compiled = compile
        self._onednn = None
        if compile:
            for layer in self._layers()[:-1]:
                layer.compile(dynamic=True)

    def __getstate__(self):
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
        """What the model's head says at some positions. float32, shape (positions, vocabulary), on the device.

        ids (int array, shape (rows, longest)): What is read.
        lengths (int array, shape (rows,)): The rest of a row is padding.
        row, position (int arrays, shape (positions,)): Where.
        others (int or bool arrays): What else is needed on the device: it travels with the rest.
        RETURNS (list[Tensor]): The logits, and the others, int64.
        """
        ids, lengths, row, position, *others = self._upload(ids, lengths, row, position, *others)
        if self.narrowing is None:
            return [self._run(ids, lengths)[row, position].float(), *others]
        # The hooks are set on modules that all threads share.
        with lock, getattr(self, self.narrowing)(row, position):
            return [self._run(ids, lengths)[0].float(), *others]

    def _upload(self, *arrays: np.ndarray) -> list[torch.Tensor]:
        """Arrays as int64 tensors on the device, in one copy that the host does not wait for."""
        flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]).astype(np.int64))
        if self.device.type == "cuda":
            flat = flat.pin_memory()
        self.uploads += 1
        parts = flat.to(self.device, non_blocking=True).split([array.size for array in arrays])
        return [part.view(array.shape) for part, array in zip(parts, arrays)]

    def _run(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        arguments = {"input_ids": ids}
        if self.takes_mask:
            mask = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
            arguments["attention_mask"] = mask.long()
        if "use_cache" in self._parameters:
            arguments["use_cache"] = False
        with self._arithmetic():
            return self.model(**arguments, return_dict=True).logits

    def _arithmetic(self):
        """The context in which the model's matrix products are computed."""
        if self.mixed_precision:
            half = self.device.type == "cuda" and not torch.cuda.is_bf16_supported()
            return torch.autocast(self.device.type, torch.float16 if half else torch.bfloat16)
        if self.device.type == "cpu" and not self.compiled and is_faster_here():
            if self._onednn is None:
                self._onednn = OneDNNLinear(self.model)
            return self._onednn
        return nullcontext()

    def before_head(self, row: torch.Tensor, position: torch.Tensor):
        """The head alone is narrowed."""
        return _hooked(self.model.base_model.register_forward_hook(_narrow_output(row, position)))

    def after_last_attention(self, row: torch.Tensor, position: torch.Tensor):
        """All that follows the last attention is: in BERT and its kin, where the residual sum is part of it."""
        return _hooked(self._layers()[-1].attention.register_forward_hook(_narrow_output(row, position)))

    def around_last_feed_forward(self, row: torch.Tensor, position: torch.Tensor):
        """The last feed-forward and the head are, between which a residual of full length is added."""
        layer = self._layers()[-1]
        block = next((getattr(layer, name) for name in FEED_FORWARD if hasattr(layer, name)), None)
        if block is None:
            raise AttributeError(f"{type(layer).__name__} has none of {', '.join(FEED_FORWARD)}")
        shape = []

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

        RAISES (AttributeError): It has none.
        """
        lists = [module for module in self.model.base_model.modules() if isinstance(module, torch.nn.ModuleList)]
        if not lists:
            raise AttributeError(f"{type(self.model).__name__} has no list of layers")
        return max(lists, key=len)


def _narrow_output(row: torch.Tensor, position: torch.Tensor):
    """A hook that keeps a module's hidden states, the first thing it returns, at some positions only."""

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
def _hooked(*handles):
    """Take the hooks off again, whatever happens."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
