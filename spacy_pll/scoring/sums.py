"""From the answers of a model to the scores of pieces."""

from collections.abc import Sequence

import numpy as np

from ..metrics import FloatArray, IntArray
from .distributions import Distributions
from .mask_blocks import MaskBlock
from .windows import Context


class Sums:
    """How log-probabilities make up scores: one entry for each metric, piece and mask row that scores it.

    contexts (Sequence[Context]): What is read. Their pieces are numbered one context after the other.
    blocks (Sequence[MaskBlock]): Where the entries come from, in their order.
    n_metrics (int): The number of metrics.
    answer (int array, shape (entries,)): The number of the target whose log-probability each entry takes.
    """

    def __init__(self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, answer: IntArray):
        self.n_metrics = n_metrics
        offsets = np.cumsum([0] + [len(context.word) for context in contexts])
        self.n_pieces = int(offsets[-1])
        self._answer = answer
        self._weight = np.concatenate([block.weight for block in blocks])
        self._metric = np.concatenate([np.full(len(block.piece), block.metric) for block in blocks])
        self._piece = np.concatenate([block.piece + offsets[block.context] for block in blocks])
        first = np.concatenate([block.first for block in blocks])
        self._described = np.flatnonzero(first & (self._metric == 0))  # the entries that give a piece its distribution

    def scores(self, log_probs: FloatArray) -> FloatArray:
        """Of the pieces of all contexts; 0.0 where these blocks score nothing. float64, shape (metrics, pieces).

        log_probs (float array, shape (targets,)): What the model said of the batches' targets, in their order.
        """
        out = np.zeros((self.n_metrics, self.n_pieces))
        np.add.at(out, (self._metric, self._piece), self._weight * log_probs[self._answer])
        return out

    def describe(self, pieces: Distributions, targets: Distributions) -> None:
        """Fill in what the model expected at the pieces that these blocks score under the first metric.

        pieces (Distributions): At the pieces of all contexts. It is filled in from the first mask row of each piece.
        targets (Distributions): At the batches' targets, in their order.
        """
        for into, values in zip(pieces, targets):
            into[..., self._piece[self._described]] = values[..., self._answer[self._described]]
