"""What a model says of the targets of a batch: their log-probabilities, and in a few numbers what it expected there."""

from typing import NamedTuple

import numpy as np

from ..metrics import FloatArray, IntArray


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


class Answer(NamedTuple):
    """What a model says of each target."""

    log_probs: FloatArray  # float32, shape (targets,), natural log
    distributions: Distributions | None = None  # None if the batches did not ask for them
