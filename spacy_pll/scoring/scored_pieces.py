"""From the scores of contexts to those of a doc's pieces and tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..metrics import FloatArray, IntArray
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

    @classmethod
    def gather(
        cls,
        wordpieces: Sequence[Wordpieces],
        contexts: Sequence[Context],
        context_scores: Sequence[FloatArray],
        n_metrics: int,
    ) -> "ScoredPieces":
        """Put the scores of a doc's contexts together.

        wordpieces (Sequence[Wordpieces]): One per span of the doc.
        contexts (Sequence[Context]): The windows of these spans.
        context_scores (Sequence[float array, shape (metrics, pieces)]): One per context.
        """
        scores = [np.zeros((n_metrics, len(pieces))) for pieces in wordpieces]
        scored = [np.zeros(len(pieces), dtype=bool) for pieces in wordpieces]
        for context, values in zip(contexts, context_scores, strict=True):
            mine = context.offset + np.flatnonzero(context.scored)
            scores[context.span][:, mine] = values[:, context.scored]
            scored[context.span][mine] = True

        def column(name: str) -> IntArray:
            # A doc without spans has empty arrays.
            parts = [getattr(pieces, name)[kept] for pieces, kept in zip(wordpieces, scored)]
            return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

        by_span = [own[:, kept] for own, kept in zip(scores, scored)]
        return cls(
            column("ids"),
            column("start"),
            column("end"),
            column("token"),
            np.concatenate([np.zeros((n_metrics, 0)), *by_span], axis=1),
        )

    def count_by_token(self, n_tokens: int) -> IntArray:
        """How many pieces of each token were scored. int, shape (n_tokens,)."""
        return np.bincount(self.token, minlength=n_tokens)

    def sum_by_token(self, n_tokens: int) -> FloatArray:
        """The scores of each token: sums over its pieces. float64, shape (metrics, n_tokens)."""
        sums = [np.bincount(self.token, weights=row, minlength=n_tokens) for row in self.scores]
        return np.array(sums, dtype=np.float64).reshape(len(self.scores), n_tokens)
