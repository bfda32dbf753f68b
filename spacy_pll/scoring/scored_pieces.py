"""From the scores of contexts to those of a doc's pieces and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..metrics import FloatArray, IntArray
from .distributions import Distributions
from .windows import Context
from .wordpieces import Wordpieces


@dataclass(frozen=True)
class ScoredPieces:
    """The pieces of a doc that were scored, in the order of its spans. Each piece is there once."""

    ids: IntArray  # int32, shape (pieces,)
    start: IntArray  # int, shape (pieces,): where the piece begins in the doc's text
    end: IntArray  # int, shape (pieces,): where it ends
    token: IntArray  # int, shape (pieces,): index in the doc of the piece's token
    scores: FloatArray  # float64, shape (metrics, pieces), natural log
    distributions: Distributions | None  # under the first metric; None if they were not asked for

    @classmethod
    def gather(
        cls,
        wordpieces: Sequence[Wordpieces],
        contexts: Sequence[Context],
        context_values: Sequence[FloatArray],
        n_metrics: int,
        n_rows: int,
    ) -> "ScoredPieces":
        """Put the scores of a doc's contexts together.

        wordpieces (Sequence[Wordpieces]): One per span of the doc.
        contexts (Sequence[Context]): The windows of these spans.
        context_values (Sequence[float array, shape (n_rows, pieces)]): One per context, from `Plan.scores`: the scores
            under each metric, then the rows of `Distributions`, if there are any.
        """
        values = [np.zeros((n_rows, len(pieces))) for pieces in wordpieces]
        scored = [np.zeros(len(pieces), dtype=bool) for pieces in wordpieces]
        for context, own in zip(contexts, context_values, strict=True):
            mine = context.offset + np.flatnonzero(context.scored)
            values[context.span][:, mine] = own[:, context.scored]
            scored[context.span][mine] = True

        def column(name: str) -> IntArray:
            # A doc without spans has empty arrays.
            parts = [getattr(pieces, name)[kept] for pieces, kept in zip(wordpieces, scored)]
            return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

        rows = np.concatenate([np.zeros((n_rows, 0)), *(own[:, kept] for own, kept in zip(values, scored))], axis=1)
        return cls(
            column("ids"),
            column("start"),
            column("end"),
            column("token"),
            rows[:n_metrics],
            Distributions.from_rows(rows[n_metrics:]) if n_rows > n_metrics else None,
        )

    def count_by_token(self, n_tokens: int) -> IntArray:
        """How many pieces of each token were scored. int, shape (n_tokens,)."""
        return np.bincount(self.token, minlength=n_tokens)

    def sum_by_token(self, n_tokens: int) -> FloatArray:
        """The scores of each token: sums over its pieces. float64, shape (metrics, n_tokens)."""
        sums = [np.bincount(self.token, weights=row, minlength=n_tokens) for row in self.scores]
        return np.array(sums, dtype=np.float64).reshape(len(self.scores), n_tokens)

    def first_of_token(self, n_tokens: int) -> IntArray:
        """The first scored piece of each token. int, shape (n_tokens,); -1 for a token without one."""
        first = np.full(n_tokens, -1)
        tokens, index = np.unique(self.token, return_index=True)
        first[tokens] = index
        return first
