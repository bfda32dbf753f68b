"""From the answers of a model to the scores of contexts."""

from collections.abc import Sequence

import numpy as np

from ..metrics import FloatArray, IntArray
from .mask_blocks import MaskBlock
from .windows import Context


class Sums:
    """How log-probabilities make up scores: one entry for each metric, piece and mask row that scores it.

    contexts (Sequence[Context]): What is read.
    blocks (Sequence[MaskBlock]): Where the entries come from, in their order.
    n_metrics (int): The number of metrics.
    answer (int array, shape (entries,)): The number of the answer that each entry takes.
    """

    def __init__(self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, answer: IntArray):
        self.n_metrics = n_metrics
        self.offsets = np.cumsum([0] + [len(context.word) for context in contexts])
        self._answer = answer
        self._weight = np.concatenate([block.weight for block in blocks])
        self._metric = np.concatenate([np.full(len(block.piece), block.metric) for block in blocks])
        self._piece = np.concatenate([block.piece + self.offsets[block.context] for block in blocks])
        first = np.concatenate([block.first for block in blocks])
        self._described = np.flatnonzero(first & (self._metric == 0))  # the entries that give a piece its distribution

    def scores(self, answers: FloatArray) -> list[FloatArray]:
        """The scores of each context.

        answers (float array, shape (rows, answers)): What the model said of each target: a row of natural-log
            probabilities, and the rows of `Distributions` if they were asked for.
        RETURNS (list of float64 arrays, shape (metrics + rows - 1, pieces)): One per context: the scores under each
            metric, and the distributions under the first, from the first mask row of each piece. 0.0 where nothing is
            scored in these blocks.
        """
        out = np.zeros((self.n_metrics + len(answers) - 1, self.offsets[-1]))
        np.add.at(out, (self._metric, self._piece), self._weight * answers[0, self._answer])
        out[self.n_metrics :, self._piece[self._described]] = answers[1:, self._answer[self._described]]
        return np.split(out, self.offsets[1:-1], axis=1)
