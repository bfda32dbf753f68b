"""Forward passes: the logits at some positions of some rows, with no more work than they need."""

import inspect
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary, finalize, ref

import numpy as np
import torch
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from ...arrays import up_to
from ...scoring.groups import FlatGroups, GroupBatch
from ...scoring.passes import Batch, FlatRows
from ..reading.positions import position_embeddings
from .group_attention import GroupAttention
from .narrowing import Narrowing
from .onednn import OneDNNLinear, RoundedLinear, is_faster_here
from .row_attention import MAX_WIDTH, RowAttention
from .torch_settings import OwnAutocast, in_evaluation_mode, rounded_products, without_cudnn_attention
from .true_positions import ReplacedMethod, set_hooks
from .unable import call_on_trial, check_logits, check_narrowed

# How a model computes, and how its weights are kept.
Precision = Literal["float32", "tf32", "bfloat16", "float16"]
HALF = ("bfloat16", "float16")

_IMPORTED_IN = os.getpid()


def one_thread_after_fork() -> bool:
    """Whether this is a forked worker of `nlp.pipe(n_process=...)`. There, PyTorch is kept to one thread: those that
    the parent's OpenMP counts on do not exist in the child, which would wait for them for ever.
    """
    forked = os.getpid() != _IMPORTED_IN
    if forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return forked


class GroupPasses(NamedTuple):
    """How a model reads passes with groups, as `group_trial` finds it."""

    with_mask: bool = True  # whether they have an attention mask; if not, no host waits for a GPU
    several_texts: bool = False  # whether several texts may share a pass


@dataclass(frozen=True)
class Capabilities:
    """What a model allows, as `capabilities` finds it. The defaults are right for any model, and save nothing."""

    pads: bool = False  # rows of different lengths may share a pass
    narrowing: str | None = None  # what runs at the targets alone: one of `Narrowing.names`
    # What stands for padding where `RowAttention` hides it, and into how many ids short rows are put. None: the model
    # is told what is padding.
    filler: int | None = None
    tile: int = 0
    opens_autocast: bool = False  # whether the model does so itself, which then has no effect
    groups: GroupPasses = GroupPasses()


class Forward:
    """Runs a transformers model, with no more work than its capabilities ask for.

    model (PreTrainedModel): On its device, in evaluation mode.
    shared (bool): Others use the model, too, and may train it between two passes. It may be in any mode.
    precision (str): How it computes.
    """

    def __init__(self, model: PreTrainedModel, shared: bool = False, precision: Precision = "float32"):
        self.model, self.shared, self.precision = model, shared, precision
        self.capabilities = Capabilities()
        self._on_trial = False
        self._half: torch.dtype | None = None  # in which the weights are kept
        self.narrowing = Narrowing(model)
        # What XLM and FlauBERT hide where there is no mask, what others warn of, and from where positions are counted.
        self._padding = [first - 1 for _, first in position_embeddings(model) if first]
        named = (getattr(model.config, name, None) for name in ("pad_token_id", "pad_index"))
        self._padding += [pad_id for pad_id in named if pad_id is not None]
        self._parameters = set(inspect.signature(model.forward).parameters)
        self.takes_mask = "attention_mask" in self._parameters  # whether it can be told what is padding
        self._position_hooks: list[RemovableHandle | ReplacedMethod] | None = None  # until a pass has groups
        self._onednn: OneDNNLinear | None = None
        # The arrays of plans on the device, as long as the plans are used.
        self._copies = WeakKeyDictionary[FlatRows | FlatGroups, tuple[Any, np.ndarray]]()

    def use(self, capabilities: Capabilities) -> None:
        """Run passes as these allow. RAISES (Unable): The model has nothing to narrow by that name."""
        if capabilities.narrowing != self.capabilities.narrowing:
            self.capabilities = replace(self.capabilities, narrowing=None)
            self.narrowing.set(capabilities.narrowing)
        self.capabilities = capabilities

    @contextmanager
    def trying(self, capabilities: Capabilities) -> Iterator[None]:
        """A context in which passes run as if the model allowed this.

        RAISES (Unable): It does not: its call has failed, or has given something else than logits for the batch.
        """
        before, was_on_trial = self.capabilities, self._on_trial
        try:
            self._on_trial = True
            self.use(capabilities)
            yield
        finally:
            self._on_trial = was_on_trial
            self.use(before)

    def remove_hooks(self) -> None:
        self.use(replace(self.capabilities, narrowing=None))
        for hook in self._position_hooks or ():
            hook.remove()
        self._position_hooks = None

    def remove_hooks_after(self, user: object) -> None:
        """Remove them once this object is gone. It does not keep the model in memory, which it may replace before."""
        this = ref(self)

        def remove() -> None:
            if forward := this():
                forward.remove_hooks()

        finalize(user, remove).atexit = False

    @contextmanager
    def in_float32(self) -> Iterator[None]:
        """Compute in float32 whatever the settings, and read rows as they are, for a trial: rounding must not look like
        a difference. Weights that are kept in half precision are tried on the CPU, since a GPU may not have room for
        them in float32.
        """
        precision, half, device = self.precision, self._half, self.device
        try:
            self.precision, self._half = "float32", None
            if half is not None:
                _move_weights(self.model, torch.device("cpu"), torch.float32)
            with self.trying(replace(self.capabilities, filler=None)):
                yield
        finally:
            self.precision = precision
            if half is not None:
                self.keep_weights_in(half, device)

    def keep_weights_in(self, half: torch.dtype, device: torch.device) -> None:
        """Keep the weights in half precision, and compute in it."""
        _move_weights(self.model, device, half)
        self._half = half

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_onednn": None, "_copies": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _copies=WeakKeyDictionary())

    @property
    def device(self) -> torch.device:
        return self.model.device

    def tensors(self) -> AbstractContextManager[Any]:
        """A context in which new tensors are on the device."""
        # None if they are there anyway: it looks at each operation, in an eighth of the time of a short text.
        return nullcontext() if torch.empty(0).device == self.device else self.device

    def logits(
        self, batch: Batch, shift: int = 0, at: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The logits at some positions, float32, shape (positions, vocabulary), and the target ids of the batch, int64,
        both on the device.

        shift (int): The positions are those of the batch's targets minus this.
        at (Optional[tuple of int arrays]): Rows and positions in the place of those.
        RAISES (RuntimeError): This is a worker process, and the model is on a GPU.
        """
        if one_thread_after_fork() and self.device.type == "cuda":
            raise RuntimeError(
                "Worker processes cannot use the GPU that the parent process holds. Use nlp.pipe(..., n_process=1) "
                "on a GPU, or spacy.require_cpu() before the pipeline is made."
            )
        flat, may_be_padding = self._on_device(batch)
        if at is None:
            row, position = flat.row[batch.targets] - batch.rows.start, flat.position[batch.targets] - shift
            if isinstance(batch, GroupBatch):
                position = position - batch.slots.start
        else:
            row, position = self.upload(*at)
        with self.tensors(), self.narrowing.at(row, position):
            lengths, padded = flat.length[batch.rows], batch.lengths.min() < batch.lengths.max()
            if isinstance(batch, GroupBatch):
                ids, true, group, hidden = batch.read(torch, flat)
                content = int(batch.lengths.max())
                seen = ids if may_be_padding else None
                attention = GroupAttention(lengths, content, bool(padded), true, group, batch.block, seen, hidden)
                logits = self.run_groups(ids, attention)
            else:
                told = lengths if padded or may_be_padding else None
                filler = self.capabilities.filler
                if filler is not None and batch.width <= MAX_WIDTH and not may_be_padding:
                    ids = replace(batch, pad_id=filler).read(torch, flat)
                    logits = self.run_hidden(ids, told)
                else:
                    ids = batch.read(torch, flat)
                    logits = self.run(ids, told)
        target = flat.target[batch.targets]
        narrowed = self.capabilities.narrowing is not None
        if self._on_trial and narrowed:
            check_narrowed(logits, target)
        elif self._on_trial:
            check_logits(logits, len(ids), ids.shape[1], target)
        return (logits[0] if narrowed else logits[row, position]).float(), target

    def _on_device(self, batch: Batch) -> tuple[Any, bool]:
        """The arrays of a batch's plan as tensors, copied once; and whether its texts have what the model could take
        for padding.
        """
        flat = batch.flat
        if flat not in self._copies:
            padding = up_to(np.isin(flat.ids, self._padding))
            in_rows = padding[flat.begin + flat.length] > padding[flat.begin]
            self._copies[flat] = type(flat)(*self.upload(*flat.arrays)), in_rows
        tensors, in_rows = self._copies[flat]
        return tensors, bool(in_rows[batch.rows].any()) or batch.mask_id in self._padding

    def upload(self, *arrays: np.ndarray) -> list[torch.Tensor]:
        """Arrays with one axis as int64 tensors on the device, in one copy that the host does not wait for."""
        joined = torch.from_numpy(np.concatenate([array.astype(np.int32, copy=False) for array in arrays]))
        if self.device.type == "cuda":
            joined = joined.pin_memory()
        return list(joined.to(self.device, non_blocking=True).long().split([len(array) for array in arrays]))

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

    def run_hidden(self, ids: torch.Tensor, lengths: torch.Tensor | None) -> torch.Tensor:
        """As `run`, but the model is told of no padding, and the attention of short rows is computed for several as
        one. Logits may have more rows.
        """
        together = min(max(1, self.capabilities.tile // ids.shape[1]), len(ids))
        if more := -len(ids) % together:  # some rows are read twice: to take the last ones apart would cost a copy
            ids, lengths = (
                torch.cat([ids, ids[:more]]),
                None if lengths is None else torch.cat([lengths, lengths[:more]]),
            )
        with RowAttention(ids, lengths, together):
            return self._run(ids, {})

    def run_groups(self, ids: torch.Tensor, attention: GroupAttention) -> torch.Tensor:
        if self._position_hooks is None:
            self._position_hooks = set_hooks(self.model)
        arguments: dict[str, Any] = {}
        if self.takes_mask and (self.capabilities.groups.with_mask or attention.ids is not None):
            arguments["attention_mask"] = torch.ones_like(ids)
        if "position_ids" in self._parameters:
            arguments["position_ids"] = attention.true
        if "token_type_ids" in self._parameters and any("token_type" in n for n, _ in self.model.named_modules()):
            # By default a model takes them from a list that is as long as its positions. A row may be longer.
            arguments["token_type_ids"] = torch.zeros_like(ids)
        with attention:
            return self._run(ids, arguments)

    def _run(self, ids: torch.Tensor, arguments: dict[str, Any]) -> torch.Tensor:
        if "use_cache" in self._parameters:
            arguments["use_cache"] = False
        with ExitStack() as contexts:
            contexts.enter_context(self.evaluating())
            if self._is_rounded and self.device.type == "cpu":
                contexts.enter_context(RoundedLinear())  # keeps the kernels few that oneDNN compiles
            contexts.enter_context(self._arithmetic())
            return self.call(ids, **arguments)

    def call(self, ids: torch.Tensor, **arguments: Any) -> torch.Tensor:
        """What the model itself gives. RAISES (Unable): This is a trial, and the model raises an error."""
        with call_on_trial() if self._on_trial else nullcontext():
            logits: torch.Tensor = self.model(input_ids=ids, **arguments, return_dict=True).logits
        return logits

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """A context for passes of the model, whatever the program around has set. Those who use the model, too, find it
        as it was: each part in its mode.
        """
        half = half_of(self.precision, self.device) if self._is_rounded else None
        with ExitStack() as contexts:
            contexts.enter_context(torch.autocast(self.device.type, half, enabled=half is not None))
            if self.capabilities.opens_autocast:
                contexts.enter_context(OwnAutocast(self.device, half))
            contexts.enter_context(rounded_products(self.device, self.precision == "tf32"))
            if self.device.type == "cuda":
                contexts.enter_context(without_cudnn_attention())
            if self.shared:
                contexts.enter_context(in_evaluation_mode(self.model))
            yield

    @property
    def _is_rounded(self) -> bool:
        """Whether products are computed in half precision, of weights that are in float32."""
        return self._half is None and self.precision in HALF

    def _arithmetic(self) -> AbstractContextManager[None]:
        """The context in which the model's matrix products are computed."""
        if self.precision not in HALF and self.device.type == "cpu" and not self.shared and is_faster_here():
            # The copies that it makes of weights would grow old, if others could change them.
            if self._onednn is None:
                self._onednn = OneDNNLinear(self.model)
            return self._onednn
        return nullcontext()


def half_of(precision: str, device: torch.device) -> torch.dtype:
    """The type of numbers of half precision. A GPU without bfloat16 takes float16 in its place."""
    has_bfloat16 = device.type != "cuda" or torch.cuda.is_bf16_supported()
    return torch.bfloat16 if precision == "bfloat16" and has_bfloat16 else torch.float16


def _move_weights(model: PreTrainedModel, device: torch.device, dtype: torch.dtype) -> None:
    """Move a model. Its weights take a type of numbers, and what it computed once, such as angles, keeps its own."""
    for tensors, target in ((model.parameters(), dtype), (model.buffers(), None)):
        for tensor in tensors:
            is_weight = target is not None and tensor.is_floating_point()
            tensor.data = tensor.data.to(device, target if is_weight else tensor.dtype)
