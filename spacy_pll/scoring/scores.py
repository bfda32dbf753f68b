"""What a model predicts at the targets of forward passes, and how that makes up the scores of pieces."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from .masks import Entries

# What a model is asked for at each target, besides its log-probability: its rank, the entropy and so many alternatives,
# or the log-probabilities of these ids. None: nothing.
Wanted = int | Sequence[int] | None


class Distributions(NamedTuple):
    """The model's distribution over its vocabulary, at each of some targets or pieces."""

    rank: IntArray  # int, shape (pieces,): 1 if no piece of the vocabulary is more probable than the true one
    entropy: FloatArray  # float, shape (pieces,), nats
    ids: IntArray  # int, shape (alternatives, pieces): the most probable ids, the best first, equal ones by id
    log_probs: FloatArray  # float, shape (alternatives, pieces), natural log

    @classmethod
    def empty(cls, n_alternatives: int, n_pieces: int) -> "Distributions":
        """Zeros, to be filled in."""
        alternatives = n_alternatives, n_pieces
        return cls(np.zeros(n_pieces, int), np.zeros(n_pieces), np.zeros(alternatives, int), np.zeros(alternatives))

    def at(self, index: IntArray | slice) -> "Distributions":
        """Those at some of the pieces."""
        return Distributions._make(values[..., index] for values in self)


class Predictions(NamedTuple):
    """What a model predicts at each target."""

    log_probs: FloatArray  # float32, shape (targets,), natural log
    # What else is wanted: the fields of `Distributions`, or the log-probabilities of ids, shape (ids, targets).
    # The last axis of each is that of the targets.
    wanted: Sequence[np.ndarray] = ()


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """How log-probabilities make up scores: one entry for each metric, piece and row that scores it."""

    shape: tuple[int, int]  # metrics, and pieces of all contexts
    entries: Entries
    target: IntArray  # int, shape (entries,): the number of the target whose log-probability each entry takes

    def scores(self, log_probs: FloatArray) -> FloatArray:
        """Of the pieces of all contexts; 0.0 where these rows score nothing. float64, shape (metrics, pieces).

        log_probs (float array, shape (targets,)): Those of the batches' targets, in their order.
        """
        cell = np.ravel_multi_index((self.entries.metric, self.entries.piece), self.shape)
        values = self.entries.weight * log_probs[self.target]
        sums: FloatArray = np.bincount(cell, values, self.shape[0] * self.shape[1]).astype(np.float64)
        return sums.reshape(self.shape)

    def fill(self, pieces: np.ndarray, targets: np.ndarray) -> None:
        """Fill in what the model says at the pieces that these rows score under the first metric.

        Each piece takes what is said in its first row, out of that at the batches' targets. The last axis is theirs.
        """
        first = np.flatnonzero(self.entries.first & (self.entries.metric == 0))
        pieces[..., self.entries.piece[first]] = targets[..., self.target[first]]
