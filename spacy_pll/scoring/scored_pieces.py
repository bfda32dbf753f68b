"""From the scores of contexts to those of a doc's pieces and tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..metrics import FloatArray, IntArray
from .answers import Distributions
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
        begin: Iterator[int],
        scores: FloatArray,
        distributions: Distributions | None,
    ) -> "ScoredPieces":
        """Take a doc's pieces out of those of all contexts.

        wordpieces (Sequence[Wordpieces]): One per span of the doc.
        begin (Iterator[int]): Gives for each of the doc's contexts the number of its first piece.
        """
        places = [np.full(len(pieces), -1) for pieces in wordpieces]
        for context, first in zip(contexts, begin):
            mine = np.flatnonzero(context.scored)
            places[context.span][context.offset + mine] = first + mine

        def column(values: Iterable[IntArray]) -> IntArray:
            # A doc without spans has empty arrays.
            parts = [own[place >= 0] for own, place in zip(values, places)]
            return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

        place = column(places)
        ids, start, end, token = (
            column(getattr(pieces, name) for pieces in wordpieces) for name in ("ids", "start", "end", "token")
        )
        return cls(ids, start, end, token, scores[:, place], distributions.at(place) if distributions else None)
