"""What a model expected at a target, in a few numbers: rank, entropy and alternatives.

They travel as rows of one array, below the row of log-probabilities, so that they go the same way as these.
"""

from typing import NamedTuple

from ..metrics import FloatArray, IntArray


class Distributions(NamedTuple):
    """The model's distribution over its vocabulary, for each of some pieces."""

    rank: IntArray  # int, shape (pieces,): 1 if no piece of the vocabulary is more probable than the true one
    entropy: FloatArray  # float, shape (pieces,), nats
    ids: IntArray  # int, shape (alternatives, pieces): the most probable ids, the best first, equal ones by id
    log_probs: FloatArray  # float, shape (alternatives, pieces), natural log

    @classmethod
    def from_rows(cls, rows: FloatArray) -> "Distributions":
        """rows (float array, shape (n_rows(alternatives), pieces)): Rank, entropy, ids, log-probabilities."""
        n = (len(rows) - 2) // 2
        return cls(rows[0].astype(int), rows[1], rows[2 : 2 + n].astype(int), rows[2 + n :])


def n_rows(n_alternatives: int | None) -> int:
    """How many rows describe a distribution. None: it is not described."""
    return 0 if n_alternatives is None else 2 + 2 * n_alternatives
