"""The scores of a test set: arrays over all its texts, or over parts of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from ..arrays import FloatArray, Groups, IntArray
from ..stream.contexts import Part, Placed, TextInContext
from ..stream.known import TextSums

# Of each distinct text in its place, the parts whose scores are wanted, with their numbers among them. None: the whole
# text. Without any, they are the wordpieces.
Asked = Mapping[Placed, Mapping[Part | None, int]]


@dataclass(frozen=True, eq=False)
class TextScores:
    """The scores of all texts of a test set under one metric. The arrays have the shape (parts,): what is scored of the
    first text, of the second, and so on. A text without parts is one part.
    """

    sums: FloatArray  # natural log, summed over wordpieces; 0.0 for a part without a wordpiece
    pieces: IntArray  # scored wordpieces
    of_text: Groups  # the parts of each text
    ids: IntArray | None = None  # in the vocabulary, if each part is a wordpiece
    per_piece: bool = False  # whether means per wordpiece are measured, instead of sums
    column: str = ""  # what columns of these scores begin with

    @property
    def compared(self) -> FloatArray:
        """What is measured: the sum of the scores of each part, or with `per_piece` its mean per wordpiece. float64, of
        the shape (parts,).
        """
        return self.sums / np.maximum(1, self.pieces) if self.per_piece else self.sums


def asked_of(texts: Sequence[TextInContext], places: Sequence[Placed], by_piece: bool) -> Asked:
    """What is to be scored of distinct texts in their places. by_piece (bool): Each wordpiece is a part."""
    asked = dict[Placed, dict[Part | None, int]]()
    for text, in_context in zip(texts, places, strict=True):
        numbers = asked.setdefault(in_context, {})
        for part in [] if by_piece else _parts_of(text):
            numbers.setdefault(part, len(numbers))
    return asked


def _parts_of(text: TextInContext) -> list[Part | None]:
    return [(start, end) for start, end in text.parts] if text.parts else [None]


def scores_of_texts(
    texts: Sequence[TextInContext],
    places: Sequence[Placed],
    asked: Asked,
    text_sums: Sequence[Sequence[TextSums]],
    n_metrics: int,
) -> list[TextScores]:
    """The scores of all texts, under each metric.

    places (Sequence[Tuple[Union[str, Doc], str, str]]): Of the texts, each in its place.
    text_sums (Sequence[Sequence[TextSums]]): What was found of each distinct text that is asked for, in that order.
    """
    number = {in_context: n for n, in_context in enumerate(asked)}
    text, of_place = np.array([number[in_context] for in_context in places], np.int64), Groups.of(text_sums)
    by_piece = not all(asked.values())
    if by_piece:
        at, of_text = of_place.take(text), Groups(of_place.lengths[text])
    else:
        parts = [[asked[in_context][part] for part in _parts_of(given)] for given, in_context in zip(texts, places)]
        of_text = Groups.of(parts)
        at = of_place.starts[text][of_text.owner] + np.array(list(chain.from_iterable(parts)), np.int64)
    each = [part_sums for of_one in text_sums for part_sums in of_one]
    sums = np.array([part_sums.scores for part_sums in each], np.float64).reshape(-1, n_metrics)[at]
    pieces = np.array([part_sums.pieces for part_sums in each], np.int64)[at]
    ids = np.array([part_sums.id for part_sums in each], np.int64)[at] if by_piece else None
    return [TextScores(of_metric, pieces, of_text, ids) for of_metric in sums.T]


def fake_scores(texts: Sequence[TextInContext]) -> TextScores:
    """Scores of the same form, each of another number, to see what is made of them."""
    of_text = Groups.of([text.parts or [text] for text in texts])
    n = len(of_text.owner)
    return TextScores(-1.0 - of_text.owner, np.ones(n, np.int64), of_text, np.zeros(n, np.int64))
