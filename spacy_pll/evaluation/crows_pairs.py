"""CrowS-Pairs (Nangia et al. 2020): whether a masked model prefers sentences with more of a stereotype.

Two scores are compared, each under any metric. The result is the share of pairs whose `sent_more` scores higher. Under
the metrics that their authors take, they are

    the sum over shared pieces, under `original`: the score of CrowS-Pairs. Only pieces that both sentences have are
        masked, one at a time.
    the mean over all pieces, under `unmasked`: AUL (Kaneko & Bollegala 2022). Nothing is masked.

The authors of CrowS-Pairs round sums to three decimals, leave pairs whose sums are then equal out of the shares of
stereotypes and of antistereotypes, and count them as 0 in the share of all. For AUL a tie is 0, and nothing is rounded.
Here nothing is rounded, and a tie is a half.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from ..errors import InputError, NoColumnError
from ..stream.contexts import TextInContext
from ..tables.rows import check_columns
from .items import Pair, levels
from .measurements import MACRO, Measurement, accuracies, outcomes_of
from .pair_readers import read_pairs
from .suites import Suite
from .text_scores import TextScores

MORE, LESS = "sent_more", "sent_less"
GROUPS = ("stereo_antistereo", "bias_type")  # columns
MEASURES = ("sum over shared pieces", "mean over all pieces")
# The values of a pair: for each measure what is compared, and how many pieces there are.
VALUES = ("shared_more", "shared_less", "mean_more", "mean_less", "pieces_more", "pieces_less")


class CrowsPairs(Suite):
    """items (Sequence[Pair]): The good sentence is the one with more of the stereotype.

    RAISES (InputError): A pair has no direction or no type of bias.
    """

    by_piece = True

    def __init__(self, items: Sequence[Pair]):
        levels(items, GROUPS)
        self.items, self.texts = items, [TextInContext(text) for pair in items for text in pair[:2]]

    def check(self, per_piece: bool) -> None:
        if per_piece:
            raise InputError("CrowS-Pairs has a measure of sums and one of means.", "Leave out `per_piece`.")

    def _values(self, scores: TextScores) -> Iterator[list[float]]:
        """Of each pair: see `VALUES`."""
        assert scores.ids is not None  # as the suite is by piece
        read = [(scores.ids[own].tolist(), scores.sums[own].tolist()) for own in scores.of_text]
        for both in zip(read[::2], read[1::2]):
            n_pieces = [len(sums) for _, sums in both]
            means = [math.fsum(sums) / n for (_, sums), n in zip(both, n_pieces)]
            yield [*shared_sums(*both), *means, *n_pieces]

    def measurements(self, scores: Mapping[str, TextScores]) -> Iterator[Measurement]:
        more = np.zeros(len(self.items), dtype=np.int64)
        for scorer, of_scorer in scores.items():
            values = np.array(list(self._values(of_scorer)))
            for measure, two in zip(MEASURES, (values[:, :2], values[:, 2:4])):
                for measurement in accuracies(self.items, {scorer: outcomes_of(two, more)}, GROUPS, measure):
                    if measurement.level != MACRO or measurement.group:
                        value, low, high = (100 * share for share in measurement.estimate)
                        yield measurement._replace(value=value, low=low, high=high)

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        for scorer, of_scorer in scores.items():
            for number, (pair, values) in enumerate(zip(self.items, self._values(of_scorer)), 1):
                row = {"metric": scorer, "pair": number, MORE: pair.good, LESS: pair.bad}
                row |= dict(zip(VALUES, values, strict=True))
                check_columns(pair.fields, row, getattr(pair.fields, "place", "A pair"))
                yield {**row, **pair.fields}


def shared_sums(*both: tuple[Sequence[int], Sequence[float]]) -> list[float]:
    """For each of two sentences, the sum of the scores of the pieces that both have.

    Their ends, which have no score, are aligned as well: difflib begins with the longest stretch of equal pieces.

    both (tuple[Sequence[int], Sequence[float]]): Of each sentence its wordpieces, and their scores.
    """
    first, second = ([-1, *ids, -2] for ids, _ in both)
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    sums = []
    for side, (_, own) in enumerate(both):
        scores = [0.0, *own, 0.0]
        sums.append(math.fsum(x for block in blocks for x in scores[block[side] : block[side] + block.size]))
    return sums


def read_crows_pairs(path: str, **file_options: Any) -> CrowsPairs:
    """Read crows_pairs_anonymized.csv, or a table with its columns.

    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RAISES (InputError): A pair cannot be read, or has no direction or no type of bias.
    """
    try:
        return CrowsPairs(read_pairs(path, MORE, LESS, **file_options))
    except NoColumnError as error:
        needed = ", ".join((MORE, LESS, *GROUPS))
        raise InputError(error.problem, f"CrowS-Pairs has {needed}. Rename yours.") from None
