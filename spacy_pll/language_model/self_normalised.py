"""Scores without the sum over the vocabulary, for models that were trained to need none.

The log-probability of a piece is its logit minus log Z, the logarithm of the sum of the exponentials of all logits. A
model can be trained so that log Z is nearly 0 everywhere ("self-normalised": Devlin et al. 2014, "Fast and Robust
Neural Network Joint Models for Statistical Machine Translation"). Then the logit alone is the score, and of the output
matrix one row per target is needed instead of the whole vocabulary. Where all pieces of a text are scored in one pass,
that matrix is a large part of the work.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import PreTrainedModel

from ..scoring.plan import Batch
from . import forward as forward_module
from .forward import Forward
from .log_probs import TargetLogProbs, describe


class TargetLogits(TargetLogProbs):
    """The logit of each target id at its position, in place of its log-probability.

    Rank, entropy and alternatives need all logits, and are computed from these.

    skips_vocabulary (bool): Whether to leave out the logits of all other ids, where the head runs at the targets alone.
        That is possible if the last step of the head is the output matrix.
    """

    def __init__(self, forward: Forward, shift: int, skips_vocabulary: bool = True):
        super().__init__(forward, shift)
        self.skips_vocabulary = skips_vocabulary and output_matrix(forward.model) is not None

    def __call__(self, batch: Batch) -> torch.Tensor:
        if batch.n_alternatives is not None or self.forward.narrowing is None or not self.skips_vocabulary:
            logits, target = self.forward.logits(
                batch.ids, batch.lengths, batch.row, batch.position - self.shift, batch.target
            )
            found = logits.gather(1, target[:, None])[:, 0]
            if batch.n_alternatives is None:
                return found
            rows = describe(logits, logits.logsumexp(dim=1), target, batch.n_alternatives)
            return torch.cat([found[None], rows])
        target = torch.from_numpy(batch.target.astype("int64")).to(self.forward.device)
        with forward_module.lock, _only(self.forward.model, target):
            logits = self.forward.logits(batch.ids, batch.lengths, batch.row, batch.position - self.shift)[0]
        if logits.shape[1] != 1:  # when this is tried, it shows that the vocabulary is needed here
            raise RuntimeError("The head goes on after the output matrix.")
        return logits[:, 0]


def output_matrix(model: PreTrainedModel) -> torch.nn.Linear | None:
    """The last step of the head; None if it is no linear layer."""
    layer = model.get_output_embeddings()
    return layer if isinstance(layer, torch.nn.Linear) else None


@contextmanager
def _only(model: PreTrainedModel, target: torch.Tensor) -> Iterator[None]:
    """Let the output matrix give one logit per position, that of its target. target (int64, shape (positions,))."""
    layer = output_matrix(model)
    assert layer is not None

    def logits(input: torch.Tensor) -> torch.Tensor:
        found = (input[0].float() * layer.weight[target].float()).sum(dim=1)
        if layer.bias is not None:
            found = found + layer.bias[target].float()
        return found[None, :, None]

    layer.forward = logits  # type: ignore[method-assign]
    try:
        yield
    finally:
        del layer.forward
