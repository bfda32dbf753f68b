"""From logits to the log-probabilities of the targets."""

import numpy as np
import numpy.typing as npt
import torch

from ..scoring.plan import Batch
from .forward import Forward


class TargetLogProbs:
    """The log-probability of each target id at its position.

    forward (Forward): Runs the model.
    shift (int): How many positions before a piece the model predicts it: 0 for a masked model, 1 for a
        left-to-right one.
    """

    positions_per_target = 1  # how many positions' logits one target needs

    def __init__(self, forward: Forward, shift: int):
        self.forward = forward
        self.shift = shift

    def __call__(self, batch: Batch) -> torch.Tensor:
        """Natural log. float32, shape (targets,), on the device."""
        logits, target = self.forward.logits(
            batch.ids, batch.lengths, batch.row, batch.position - self.shift, batch.target
        )
        return logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(dim=1)


class PendingLogProbs:
    """Log-probabilities that a device may still be computing.

    parts (list[Tensor]): One tensor of shape (targets,) per forward pass.
    """

    def __init__(self, parts: list[torch.Tensor]):
        values = torch.cat(parts) if parts else torch.zeros(0)
        self._event = None
        if values.device.type == "cuda":
            # One copy for all of them, into pinned memory, which the device can write to without the host.
            values = torch.empty(values.shape, pin_memory=True).copy_(values, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()
        self._values = values

    def result(self) -> npt.NDArray[np.float32]:
        """Wait for them. float32, shape (targets,), in the order of the batches' targets."""
        if self._event is not None:
            self._event.synchronize()
        return self._values.numpy()
