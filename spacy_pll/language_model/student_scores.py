"""The scores of students, without the logits of all targets at once.

Where all pieces of a text are scored in one pass, the product with the output matrix and the sum over the vocabulary
are a large part of the work. So the output matrix gives one value per target in place of a logit per piece of the
vocabulary:

- the log-probability, computed for so few targets at a time that their logits fit into a CPU's cache;
- or, if the student is self-normalised, the logit of the target alone. The log-probability of a piece is its logit
  minus log Z, the logarithm of the sum of the exponentials of all logits. A model can be trained so that log Z is
  nearly 0 everywhere (Devlin et al. 2014, "Fast and Robust Neural Network Joint Models for Statistical Machine
  Translation").
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.nn.functional import linear
from transformers import PreTrainedModel

from ..scoring.plan import Batch
from . import forward as forward_module
from .forward import Forward
from .log_probs import TargetLogProbs, describe

# How many targets' logits are computed at once on a CPU: 5 MB of them for a vocabulary of 10,000.
CPU_TARGETS = 128


class StudentScores(TargetLogProbs):
    """The score of each target id at its position: its log-probability, or its logit.

    Rank, entropy and alternatives need all logits, and are computed from these.

    self_normalised (bool): Whether the logit is the score.
    at_output (bool): Whether to compute scores in place of the output matrix, where the head runs at the targets alone.
        That is possible if the output matrix is the last step of the head.
    """

    def __init__(self, forward: Forward, shift: int, self_normalised: bool, at_output: bool = True):
        super().__init__(forward, shift)
        self.self_normalised = self_normalised
        self.at_output = at_output and output_matrix(forward.model) is not None

    def __call__(self, batch: Batch) -> torch.Tensor:
        if batch.n_alternatives is None and self.forward.narrowing is not None and self.at_output:
            return self._scores_at_output(batch)
        if not self.self_normalised:
            return super().__call__(batch)
        logits, target = self.forward.logits(
            batch.ids, batch.lengths, batch.row, batch.position - self.shift, batch.target
        )
        found = logits.gather(1, target[:, None])[:, 0]
        if batch.n_alternatives is None:
            return found
        return torch.cat([found[None], describe(logits, logits.logsumexp(dim=1), target, batch.n_alternatives)])

    def _scores_at_output(self, batch: Batch) -> torch.Tensor:
        target = torch.from_numpy(batch.target.astype("int64")).to(self.forward.device)
        score = logits_of if self.self_normalised else log_probs_of
        with forward_module.lock, _output(self.forward.model, score, target):
            scores = self.forward.logits(batch.ids, batch.lengths, batch.row, batch.position - self.shift)[0]
        if scores.shape[1] != 1:  # when this is tried, it shows that the vocabulary is needed here
            raise RuntimeError("The head goes on after the output matrix.")
        return scores[:, 0]


def logits_of(states: torch.Tensor, target: torch.Tensor, layer: torch.nn.Linear) -> torch.Tensor:
    """The logit of each target. float32, shape (targets,).

    states (shape (targets, width)): What the output matrix is multiplied with.
    target (int64, shape (targets,)): Ids.
    """
    found = (states.float() * layer.weight[target].float()).sum(dim=1)
    return found if layer.bias is None else found + layer.bias[target].float()


def log_probs_of(states: torch.Tensor, target: torch.Tensor, layer: torch.nn.Linear) -> torch.Tensor:
    """The natural-log probability of each target. float32, shape (targets,). The arguments are those of `logits_of`."""
    size = CPU_TARGETS if states.device.type == "cpu" else max(1, len(states))
    parts = [
        linear(rows, layer.weight, layer.bias).float().log_softmax(dim=1).gather(1, ids[:, None])[:, 0]
        for rows, ids in zip(states.split(size), target.split(size))
    ]
    return torch.cat(parts)


def output_matrix(model: PreTrainedModel) -> torch.nn.Linear | None:
    """The last step of the head; None if it is no linear layer."""
    layer = model.get_output_embeddings()
    return layer if isinstance(layer, torch.nn.Linear) else None


@contextmanager
def _output(model: PreTrainedModel, score: Callable[..., torch.Tensor], target: torch.Tensor) -> Iterator[None]:
    """Let the output matrix give one value per position: the score of its target (int64, shape (positions,))."""
    layer = output_matrix(model)
    assert layer is not None
    # A forward method of its own comes before that of its class.
    layer.forward = lambda input: score(input[0], target, layer)[None, :, None]  # type: ignore[method-assign]
    try:
        yield
    finally:
        del layer.forward
