"""From logits to the log-probabilities of the targets, and to what the model expected there."""

from collections.abc import Sequence

import torch

from ...scoring.passes import Batch
from ...scoring.scores import Predictions, Wanted
from .forward import Forward

# Rows of logits that `expected_at` takes at once on a CPU: what fits into its cache takes a quarter of the time.
CPU_ROWS = 64
# An answer on the device: the log-probabilities, and what else is wanted, as in `Predictions`.
Tensors = tuple[torch.Tensor, ...]


class TargetLogProbs:
    """The log-probability of each target id at its position.

    shift (int): How many positions before a piece the model predicts it: 0 for a masked model, 1 for a
        left-to-right one.
    excluded (Optional[int]): An id that the model is not to predict.
    cfg (float): The weight of classifier-free guidance (Nie et al. 2025). Above 0, the logits are u + (1 + cfg) (p - u)
        of those with the prompt, p, and those with masks in its place, u.
    """

    positions_per_target = 1  # how many positions' logits one target needs

    def __init__(self, forward: Forward, shift: int, excluded: int | None = None, cfg: float = 0.0):
        self.forward = forward
        self.shift, self.excluded, self.cfg = shift, excluded, cfg
        if cfg:
            self.positions_per_target = 2

    def __call__(self, batch: Batch) -> Tensors:
        """The log-probabilities, and what else the batch asks for."""
        logits, target = self.forward.logits(batch.with_unprompted() if self.cfg else batch, self.shift)
        if self.cfg:
            logits, unprompted = logits.chunk(2)
            logits, target = unprompted + (1 + self.cfg) * (logits - unprompted), target[: len(logits)]
        if self.excluded is not None:
            logits[:, self.excluded] = -torch.inf
        log_sum = logits.logsumexp(dim=1)
        log_probs = logits.gather(1, target[:, None])[:, 0] - log_sum
        return log_probs, *expected_at(logits, log_sum, target, batch.wanted)


def expected_at(logits: torch.Tensor, log_sum: torch.Tensor, target: torch.Tensor, wanted: Wanted) -> Tensors:
    """The fields of `Distributions`, or the log-probabilities of the ids that are wanted, or nothing.

    Of equally probable pieces, all have the best rank, and the one with the smaller id is the better alternative. If
    the vocabulary has fewer pieces than alternatives are wanted, the rest have the id -1.

    logits, log_sum (float32 tensors, shape (targets, vocabulary) and (targets,)): And their logsumexp.
    """
    if wanted is None:
        return ()
    if not isinstance(wanted, int):
        ids = torch.tensor(wanted, device="cpu").to(logits.device, non_blocking=True)
        return ((logits[:, ids] - log_sum[:, None]).T,)
    size = CPU_ROWS if logits.device.type == "cpu" else max(1, len(logits))
    parts = []
    for rows, sums, targets in zip(logits.split(size), log_sum.split(size), target.split(size)):
        rank = 1 + (rows > rows.gather(1, targets[:, None])).sum(dim=1)
        entropy = torch.special.entr((rows - sums[:, None]).exp()).sum(dim=1)  # a probability of 0 adds 0
        best, ids = largest(rows, wanted)
        parts.append((rank, entropy, ids.T, (best - sums[:, None]).T))
    return concatenated(parts)


def largest(logits: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The n largest values of each row and their ids, equal values by id. Shape (rows, n) each.

    A row with fewer values is filled with minus infinity, under the id -1.
    """
    values, ids = logits.topk(min(n + 1, logits.shape[1]), dim=1)
    # `topk` leaves open which of several equal values come first, and which are left out.
    by_id = ids.argsort(dim=1)
    values, ids = values.gather(1, by_id), ids.gather(1, by_id)
    order = values.argsort(dim=1, descending=True, stable=True)
    values, ids = values.gather(1, order), ids.gather(1, order)
    if values.shape[1] > n > 0:
        tied = (values[:, n - 1] == values[:, n]).nonzero()[:, 0]
        if len(tied):
            ids[tied, :n] = logits[tied].argsort(dim=1, descending=True, stable=True)[:, :n]
    missing = max(0, n - values.shape[1])
    values = torch.nn.functional.pad(values[:, :n], (0, missing), value=-torch.inf)
    return values, torch.nn.functional.pad(ids[:, :n], (0, missing), value=-1)


def concatenated(parts: Sequence[Tensors]) -> Tensors:
    """The answers to several passes, one behind the other."""
    return tuple(torch.cat(fields, dim=-1) for fields in zip(*parts))


class DevicePredictions:
    """Predictions that a device may still be computing, from the answers to each forward pass."""

    def __init__(self, parts: Sequence[Tensors]):
        self._fields = concatenated(parts) or (torch.zeros(0, dtype=torch.float32, device="cpu"),)
        self._event = None
        if self._fields[0].device.type == "cuda":
            # Into pinned memory, which the device can write to without the host.
            pinned = [field.new_empty(field.shape, device="cpu", pin_memory=True) for field in self._fields]
            self._fields = tuple(into.copy_(field, non_blocking=True) for into, field in zip(pinned, self._fields))
            self._event = torch.cuda.Event()
            self._event.record()

    def result(self) -> Predictions:
        if self._event is not None:
            self._event.synchronize()
        log_probs, *wanted = (field.numpy() for field in self._fields)
        return Predictions(log_probs, wanted)
