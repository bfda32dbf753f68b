"""Forward passes: the logits at some positions of some rows, with no more work than they need."""

import inspect
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from ..scoring.groups import GroupBatch
from ..scoring.passes import Batch
from .group_attention import GroupAttention
from .narrowing import Narrowing
from .onednn import OneDNNLinear, RoundedLinear, is_faster_here
from .true_positions import ReplacedMethod, set_hooks, true_positions

_IMPORTED_IN = os.getpid()


def one_thread_after_fork() -> bool:
    """Whether this is a forked worker of `nlp.pipe(n_process=...)`. There, PyTorch is kept to one thread: those that
    the parent's OpenMP counts on do not exist in the child, which would wait for them for ever.
    """
    forked = os.getpid() != _IMPORTED_IN
    if forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return forked


class _WithoutCuDNNAttention:
    """A context in which the attention is left to PyTorch's other implementations, in the whole process.

    In half precision, PyTorch may take cuDNN's on recent GPUs. That makes a plan for each new shape, and nearly every
    pass has one: on an H200, training steps with new shapes took 300 to 1,500 ms, and with old ones 50.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, True

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = torch.backends.cuda.cudnn_sdp_enabled()
                torch.backends.cuda.enable_cudnn_sdp(False)
            self._inside += 1

    def __exit__(self, *args: Any) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.backends.cuda.enable_cudnn_sdp(self._before)


without_cudnn_attention = _WithoutCuDNNAttention()  # one, since threads may be inside at the same time


class _Evaluation:
    """A context in which a model is in evaluation mode. Behind it, each part has the mode that it had before.

    `eval` is not called: in some packages it merges weights.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._training = Lock(), 0, list[torch.nn.Module]()

    @contextmanager
    def of(self, model: torch.nn.Module) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            trained = [module for module in model.modules() if module.training]
            self._training += trained
            self._set(trained, False)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:  # another thread may be in the midst of a pass
                    self._set(self._training, True)
                    self._training = []

    @staticmethod
    def _set(modules: list[torch.nn.Module], training: bool) -> None:
        for module in modules:
            module.training = training


_evaluations: WeakKeyDictionary[torch.nn.Module, _Evaluation] = WeakKeyDictionary()


class Forward:
    """Runs a transformers model. `narrowing` leaves out work that no target needs.

    model (PreTrainedModel): On its device, in evaluation mode.
    shared (bool): Others use the model, too, and may train it between two passes. It may be in any mode.
    """

    def __init__(self, model: PreTrainedModel, shared: bool = False):
        self.model = model
        self.shared = shared
        self.mixed_precision = False  # under autocast, in bfloat16 (float16 on GPUs without it), instead of in float32
        self.narrowing = Narrowing(model)
        # What XLM and FlauBERT hide where there is no mask, and what others warn of.
        self._padding = [
            pad_id
            for name in ("pad_token_id", "pad_index")
            if (pad_id := getattr(model.config, name, None)) is not None
        ]
        self._parameters = set(inspect.signature(model.forward).parameters)
        self.takes_mask = "attention_mask" in self._parameters  # whether it can be told what is padding
        self._position_hooks: list[RemovableHandle | ReplacedMethod] | None = (
            None  # None until there is a pass with groups
        )
        self._onednn: OneDNNLinear | None = None

    def remove_hooks(self) -> None:
        """Take all hooks off the model."""
        self.narrowing.set(None)
        for hook in self._position_hooks or ():
            hook.remove()
        self._position_hooks = None

    @contextmanager
    def in_float32(self) -> Iterator[None]:
        """Compute in float32 whatever the settings, for a trial: rounding must not look like a difference."""
        mixed_precision, self.mixed_precision = self.mixed_precision, False
        try:
            yield
        finally:
            self.mixed_precision = mixed_precision

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_onednn": None}

    @property
    def device(self) -> torch.device:
        return self.model.device

    def logits(self, batch: Batch, *others: np.ndarray) -> list[torch.Tensor]:
        """The logits at a batch's positions. float32, shape (positions, vocabulary), on the device.

        others (int or bool arrays): Other arrays that are needed on the device. They are copied together with the rest.
        RETURNS (list[Tensor]): The logits, and the other arrays as int64.
        RAISES (RuntimeError): This is a worker process, and the model is on a GPU.
        """
        if one_thread_after_fork() and self.device.type == "cuda":
            raise RuntimeError(
                "Worker processes cannot use the GPU that the parent process holds. Use nlp.pipe(..., n_process=1) "
                "on a GPU, or spacy.require_cpu() before the pipeline is made."
            )
        layout = (batch.true, batch.group) if isinstance(batch, GroupBatch) else ()
        ids, lengths, row, position, *rest = self.upload(
            batch.ids, batch.lengths, batch.row, batch.position, *layout, *others
        )
        with self.narrowing.at(row, position):
            if isinstance(batch, GroupBatch):
                true, group, *rest = rest
                content = int(batch.lengths.max())
                logits = self.run_groups(ids, GroupAttention(lengths, content, true, group, batch.block))
            else:
                needs_mask = batch.lengths.min() < batch.ids.shape[1] or np.isin(batch.ids, self._padding).any()
                logits = self.run(ids, lengths if needs_mask else None)
        return [(logits[0] if self.narrowing.name else logits[row, position]).float(), *rest]

    def upload(self, *arrays: np.ndarray) -> list[torch.Tensor]:
        """Arrays as int64 tensors on the device, in one copy that the host does not wait for."""
        flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]).astype(np.int64))
        if self.device.type == "cuda":
            flat = flat.pin_memory()
        parts = flat.to(self.device, non_blocking=True).split([array.size for array in arrays])
        return [part.view(array.shape) for part, array in zip(parts, arrays)]

    def run(self, ids: torch.Tensor, lengths: torch.Tensor | None = None) -> torch.Tensor:
        """One forward pass of the model. Logits, shape (rows, longest, vocabulary), or narrowed by hooks.

        lengths (Optional[int tensor, shape (rows,)]): The rest of a row is padding. None: no row has padding, or what
            the model could take for it. Then the model gets no mask: transformers would look whether that hides
            anything, and so wait for all that a GPU has to do.
        """
        arguments: dict[str, Any] = {}
        if self.takes_mask and lengths is not None:
            mask = torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]
            arguments["attention_mask"] = mask.long()
        return self._run(ids, arguments)

    def run_groups(self, ids: torch.Tensor, attention: GroupAttention) -> torch.Tensor:
        """One forward pass with groups."""
        if self._position_hooks is None:
            self._position_hooks = set_hooks(self.model)
        arguments: dict[str, Any] = {"attention_mask": torch.ones_like(ids)} if self.takes_mask else {}
        if "position_ids" in self._parameters:
            arguments["position_ids"] = attention.true
        if "token_type_ids" in self._parameters and any("token_type" in n for n, _ in self.model.named_modules()):
            # By default a model takes them from a list that is as long as its positions. A row may be longer.
            arguments["token_type_ids"] = torch.zeros_like(ids)
        with true_positions(attention), attention:
            return self._run(ids, arguments)

    def _run(self, ids: torch.Tensor, arguments: dict[str, Any]) -> torch.Tensor:
        if "use_cache" in self._parameters:
            arguments["use_cache"] = False
        with ExitStack() as contexts:
            contexts.enter_context(self.evaluating())
            if self.mixed_precision and self.device.type == "cpu":
                contexts.enter_context(RoundedLinear())  # keeps the kernels few that oneDNN compiles
            if self.device.type == "cuda":
                contexts.enter_context(without_cudnn_attention)
            contexts.enter_context(self._arithmetic())
            logits: torch.Tensor = self.model(input_ids=ids, **arguments, return_dict=True).logits
        return logits

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """A context for passes of the model. Those who use it, too, find it as it was."""
        if not self.shared:
            yield
            return
        # A milder form of the inference mode outside: what the model keeps from a pass, such as a table of positions,
        # can then be used in training.
        evaluation = _evaluations.setdefault(self.model, _Evaluation())
        with evaluation.of(self.model), torch.inference_mode(False), torch.no_grad():
            yield

    def _arithmetic(self) -> AbstractContextManager[None]:
        """The context in which the model's matrix products are computed."""
        if self.mixed_precision:
            half = self.device.type == "cuda" and not torch.cuda.is_bf16_supported()
            return torch.autocast(self.device.type, torch.float16 if half else torch.bfloat16)
        if self.device.type == "cpu" and not self.shared and is_faster_here():  # its copies of weights would grow old
            if self._onednn is None:
                self._onednn = OneDNNLinear(self.model)
            return self._onednn
        return nullcontext()
