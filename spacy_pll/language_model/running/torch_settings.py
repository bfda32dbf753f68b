"""PyTorch's settings while a model runs. What a program has set for itself does not change a score, and is set again
after each pass.

Some settings hold for a thread. Others hold for the whole process: how products are rounded, which implementation of
attention is used. These are changed by the passes of all threads together.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Condition, get_ident
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.overrides import TorchFunctionMode


class Shared:
    """A setting of the whole process that passes of several threads change. The last one that leaves restores it."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._turn, self._state, self._undo = Condition(), None, ExitStack()
        self._inside: dict[object, int] = {}  # the thread of each pass

    @contextmanager
    def changed(self, state: Any = None) -> Iterator[ExitStack]:
        """A context for a pass, which leaves on the stack what undoes its changes, before it makes them.

        state (Any): To what the pass changes things. Passes that need another state wait for their turn.
        """
        this, thread = object(), get_ident()

        def may_begin() -> bool:  # a pass that runs within another one must not wait for it
            return self._state == state or not self._inside or thread in self._inside.values()

        try:
            with self._turn:
                self._turn.wait_for(may_begin)
                self._state, self._inside[this] = state, thread
            yield self._undo
        finally:
            with self._turn:
                self._inside.pop(this, None)
                if not self._inside:
                    self._undo.close()
                    self._turn.notify_all()

    def forget_threads(self) -> None:
        """In a process that was forked: the passes of the parent's other threads do not run here."""
        self._undo.close()
        self._begin()


_rounding, _attention = Shared(), Shared()
_modes: WeakKeyDictionary[torch.nn.Module, Shared] = WeakKeyDictionary()


def _forget_threads() -> None:
    for shared in (_rounding, _attention, *_modes.values()):
        shared.forget_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@contextmanager
def usual_tensors() -> Iterator[None]:
    """A context for loading: new tensors are on the CPU, and can be used outside the inference mode."""
    with torch.device("cpu"), torch.inference_mode(False):
        yield


@contextmanager
def rounded_products(device: torch.device, to_tf32: bool) -> Iterator[None]:
    """A context in which the factors of products and convolutions in float32 are rounded to TF32, or not at all.

    PyTorch 2.9 has new names for these settings, and refuses to read an old one that does not say the same. A new name
    without a value has that of a more general name. So the general ones are set first: what then differs has a value of
    its own, to which it can be set again.
    """
    backends: Any = torch.backends
    value, old_value = ("tf32", "high") if to_tf32 else ("ieee", "highest")
    fine = {value} if to_tf32 else {"ieee", "none"}
    with _rounding.changed(to_tf32) as undo:
        if not hasattr(backends, "fp32_precision"):
            _change(undo, backends.cudnn, "allow_tf32", to_tf32)
            _change_old(undo, torch.get_float32_matmul_precision(), old_value)
            yield
            return
        products = backends.cuda.matmul, backends.mkldnn.matmul
        on_gpu = backends.cuda.matmul, backends.cudnn.conv, backends.cudnn.rnn
        on_cpu = backends.mkldnn.matmul, backends.mkldnn.conv, backends.mkldnn.rnn
        used = on_gpu if device.type == "cuda" else on_cpu
        if any(level.fp32_precision not in fine for level in used):  # on a CPU, only if the program has changed them
            before = [level.fp32_precision for level in products]
            old = old_value if fine.issuperset(before) else _read_old(old_value)
            for level in (backends, backends.cudnn):
                _change(undo, level, "fp32_precision", value)
            if old != old_value:  # compiled models look at the old one, which sets the new ones, too
                for level, own in zip(products, before):
                    undo.callback(setattr, level, "fp32_precision", own if level.fp32_precision == own else "none")
                _change_old(undo, old, old_value)
            for level in used:
                _change(undo, level, "fp32_precision", value)
        yield


def _read_old(default: str) -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # the program has used the new names
        return default


def _change_old(undo: ExitStack, before: str, value: str) -> None:
    if before != value:
        undo.callback(torch.set_float32_matmul_precision, before)
        torch.set_float32_matmul_precision(value)


def _change(undo: ExitStack, owner: Any, name: str, value: Any) -> None:
    if (before := getattr(owner, name)) != value:
        undo.callback(setattr, owner, name, before)
        setattr(owner, name, value)


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """A context in which the attention is left to PyTorch's other implementations, in the whole process.

    In half precision, PyTorch may take cuDNN's on recent GPUs. That makes a plan for each new shape, and nearly every
    pass has one: on an H200, training steps with new shapes took 300 to 1,500 ms, and with old ones 50.
    """
    with _attention.changed() as undo:
        if torch.backends.cuda.cudnn_sdp_enabled():
            undo.callback(torch.backends.cuda.enable_cudnn_sdp, True)
            torch.backends.cuda.enable_cudnn_sdp(False)
        yield


@contextmanager
def in_evaluation_mode(model: torch.nn.Module) -> Iterator[None]:
    """A context in which a model of others is in evaluation mode. Then each part is in its own mode again."""
    # A milder form of the inference mode outside: what the model keeps from a pass, such as a table of positions, can
    # then be used in training.
    with _modes.setdefault(model, Shared()).changed() as undo, torch.inference_mode(False), torch.no_grad():
        for module in model.modules():
            if module.training:
                undo.callback(setattr, module, "training", True)
                module.training = False  # not by `eval`: in some packages it merges weights
        yield


class OwnAutocast(TorchFunctionMode):
    """While this context lasts, operations run as if the model opened no autocast itself, around its `forward`, as
    accelerate's `prepare` does, or in a layer. `was_open` says whether it did.

    half (Optional[torch.dtype]): In which autocast is open around the model. None: it is not.
    """

    def __init__(self, device: torch.device, half: torch.dtype | None = None):
        super().__init__()
        self.type, self.half, self.was_open = device.type, half, False

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # A model may close it for a part, such as angles. That stays.
        if torch.is_autocast_enabled(self.type) and torch.get_autocast_dtype(self.type) != self.half:
            self.was_open = True
            with torch.autocast(self.type, self.half, enabled=self.half is not None):
                return function(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))
