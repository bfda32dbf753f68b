"""What a model predicts at the targets of forward passes, and how that makes up the scores of pieces."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray
from .masks import MaskedRows
from .windows import Contexts

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

    def at(self, index: IntArray) -> "Distributions":
        """Those at some of the pieces."""
        return Distributions._make(values[..., index] for values in self)


class Predictions(NamedTuple):
    """What a model predicts at each target."""

    log_probs: FloatArray  # float32, shape (targets,), natural log
    # What else is wanted: the fields of `Distributions`, or the log-probabilities of ids, shape (ids, targets).
    # The last axis of each is that of the targets.
    wanted: Sequence[np.ndarray] = ()


class WeightedSums:
    """How log-probabilities make up scores: one entry for each metric, piece and row that scores it.

    contexts (Contexts): What is read. Their pieces are numbered one context after the other.
    rows (MaskedRows): Has the entries.
    """

    _target_of_entry: IntArray  # int, shape (entries,): the number of the target whose log-probability each entry takes

    def __init__(self, contexts: Contexts, rows: MaskedRows, n_metrics: int):
        self.n_metrics, self.n_pieces = n_metrics, len(contexts.word)
        entries = rows.entries
        self._weight, self._metric, self._piece = entries.weight, entries.metric, entries.piece
        self._primary_first = np.flatnonzero(
            entries.first & (entries.metric == 0)
        )  # that give a piece its distribution

    def scores(self, log_probs: FloatArray) -> FloatArray:
        """Of the pieces of all contexts; 0.0 where these rows score nothing. float64, shape (metrics, pieces).

        log_probs (float array, shape (targets,)): Those of the batches' targets, in their order.
        RAISES (RuntimeError): The batches, which say what that order is, have not been made.
        """
        if not hasattr(self, "_target_of_entry"):
            raise RuntimeError("Read the batches of a plan before its scores: they say in which order targets are.")
        place, values = self._metric * self.n_pieces + self._piece, self._weight * log_probs[self._target_of_entry]
        sums: FloatArray = np.bincount(place, values, self.n_metrics * self.n_pieces).astype(np.float64)
        return sums.reshape(self.n_metrics, -1)

    def fill(self, pieces: np.ndarray, targets: np.ndarray) -> None:
        """Fill in what the model says at the pieces that these rows score under the first metric.

        Each piece takes what is said in its first row, out of that at the batches' targets. The last axis is theirs.
        """
        pieces[..., self._piece[self._primary_first]] = targets[..., self._target_of_entry[self._primary_first]]
