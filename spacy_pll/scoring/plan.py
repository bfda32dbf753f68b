"""From questions to forward passes: each distinct masked context once, in batches of like length."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..metrics import Metric
from .masking import Questions, ask, distinct_rows
from .wordpieces import Context

# How many ids the masked contexts of a plan may have: bounds its memory to some 100 MB.
MAX_PLANNED_IDS = 4_000_000


class Batch(NamedTuple):
    """One forward pass and what is asked of it."""

    ids: np.ndarray  # int32, shape (rows, longest)
    lengths: np.ndarray  # int, shape (rows,): the rest of a row is padding
    row: np.ndarray  # int, shape (questions,)
    position: np.ndarray  # int, shape (questions,)
    target: np.ndarray  # int32, shape (questions,): how likely is this id, at this position of this row?
    question: np.ndarray  # int, shape (questions,): their numbers in the plan, one after the other

    @property
    def can_be_halved(self) -> bool:
        return len(self.question) > 1  # no row is without a question

    def halves(self) -> tuple["Batch", "Batch"]:
        """The same questions, in the same order, in two passes: half of the rows in each, or the one row for both."""
        if len(self.ids) == 1:
            middle = len(self.question) // 2
            return tuple(self._replace(**self._questions(part)) for part in (slice(middle), slice(middle, None)))
        middle = len(self.ids) // 2
        at = np.searchsorted(self.row, middle)
        first = self._rows(slice(middle))._replace(**self._questions(slice(at)))
        second = self._rows(slice(middle, None))._replace(**self._questions(slice(at, None)))
        return first, second._replace(row=second.row - middle)

    def _rows(self, part: slice) -> "Batch":
        lengths = self.lengths[part]
        return self._replace(ids=self.ids[part, : lengths.max()], lengths=lengths)

    def _questions(self, part: slice) -> dict:
        return {name: getattr(self, name)[part] for name in ("row", "position", "target", "question")}


class Plan:
    """Forward rows that answer questions about some contexts, and how the answers make up scores.

    Two mask rows whose masked ids are equal are one forward row, whichever metric,
    piece or text they came from; for a word of one piece `original`, `word_l2r` and
    `whole_word` coincide. `rows` are the distinct masked contexts, grouped by length.
    """

    def __init__(self, contexts: Sequence[Context], questions: Sequence[Questions], n_metrics: int, mask_id: int):
        """
        contexts (Sequence[Context]): What is read.
        questions (Sequence[Questions]): What is asked of them, by `ask`; at least one block.
        n_metrics (int): The number of metrics that ask.
        mask_id (int): The id of the mask token.
        """
        self.n_metrics = n_metrics
        self.offsets = np.cumsum([0] + [len(context.word) for context in contexts])
        self.rows: list[np.ndarray] | None = []  # int32 arrays (rows, length), one a length, the longest first
        asked = []  # one record a (mask row, metric): forward row, position, target id, metric, piece, weight
        n_rows = 0
        lengths = np.array([len(contexts[block.context]) for block in questions])
        for length in sorted(set(lengths.tolist()), reverse=True):
            masked_ids, records, before = [], [], 0
            for b in np.flatnonzero(lengths == length):
                block = questions[b]
                context = contexts[block.context]
                masked_ids.append(_masked_ids(context, block, mask_id))
                position = block.piece + context.first
                piece = block.piece + self.offsets[block.context]
                metric = np.full(len(piece), block.metric)
                records.append((block.row + before, position, context.ids[position], block.weight, metric, piece))
                before += len(block.masked)
            rows, inverse = distinct_rows(np.concatenate(masked_ids))
            row, *columns = (np.concatenate(column) for column in zip(*records))
            asked.append((inverse[row] + n_rows, *columns))
            self.rows.append(rows)
            n_rows += len(rows)
        self.n_rows = n_rows
        row, position, target, self._weight, self._metric, self._piece = (np.concatenate(c) for c in zip(*asked))
        # Sorted by forward row, so that the questions of a batch stand together.
        distinct, self._question = np.unique(np.stack([row, position, target]), axis=1, return_inverse=True)
        self._row, self._position, self._target = distinct

    def batches(self, max_tokens: int, max_targets: int, pad_id: int, pad: bool = True) -> Iterator[Batch]:
        """The forward passes, the longest rows first, so that memory fails at once if it fails.

        max_tokens (int): The most ids in one pass, padding included; one row goes alone if it is longer.
        max_targets (int): The most questions in one pass; one row goes alone if it has more.
        pad_id (int): What fills the shorter rows.
        pad (bool): Whether rows of different lengths may share a pass.
        """
        lengths = np.repeat([rows.shape[1] for rows in self.rows], [len(rows) for rows in self.rows])
        first_question = np.searchsorted(self._row, np.arange(self.n_rows + 1))
        starts_of_length = np.cumsum([0] + [len(rows) for rows in self.rows])
        begin = 0
        while begin < self.n_rows:
            end = min(self.n_rows, begin + max(1, max_tokens // lengths[begin]))
            by_targets = np.searchsorted(first_question, first_question[begin] + max_targets, side="right") - 1
            end = min(end, max(begin + 1, by_targets))
            if not pad:
                end = min(end, begin + int((lengths[begin:end] == lengths[begin]).sum()))
            ids = np.full((end - begin, lengths[begin]), pad_id, dtype=np.int32)
            for rows, start in zip(self.rows, starts_of_length):
                low, high = max(begin, start), min(end, start + len(rows))
                if low < high:
                    ids[low - begin : high - begin, : rows.shape[1]] = rows[low - start : high - start]
            asked = slice(first_question[begin], first_question[end])
            yield Batch(
                ids,
                lengths[begin:end],
                self._row[asked] - begin,
                self._position[asked],
                self._target[asked],
                np.arange(asked.start, asked.stop),
            )
            begin = end

    @property
    def n_questions(self) -> int:
        return len(self._row)

    def forget_rows(self):
        """Once they have been read: they are most of a plan's memory, and `scores` can do without."""
        self.rows = None

    def scores(self, answers: np.ndarray) -> list[np.ndarray]:
        """Put the answers together.

        answers (float array, shape (n_questions,)): Natural-log probabilities.
        RETURNS (list of float64 arrays, shape (metrics, pieces)): A context's scores; 0.0 where not asked.
        """
        out = np.zeros((self.n_metrics, self.offsets[-1]))
        np.add.at(out, (self._metric, self._piece), self._weight * answers[self._question])
        return np.split(out, self.offsets[1:-1], axis=1)


def _masked_ids(context: Context, block: Questions, mask_id: int) -> np.ndarray:
    """int32, shape (rows, length): the context's ids with each row's pieces masked."""
    ids = np.repeat(context.ids[None], len(block.masked), axis=0)
    begin = context.first + block.start
    ids[:, begin : begin + block.masked.shape[1]][block.masked] = mask_id
    return ids


def make_plans(
    contexts: Sequence[Context],
    metrics: Sequence[Metric],
    mask_id: int,
    mask_spacing: int | None = None,
    max_ids: int = MAX_PLANNED_IDS,
) -> Iterator[Plan]:
    """Plan everything that the metrics ask of the contexts, the longest first, in plans of bounded size.

    Each question is in one plan, so the contexts' scores are the sums of the plans'.

    mask_id (int): The id of the mask token.
    mask_spacing (Optional[int]): Masked words of one context that are this many pieces apart
        share a forward pass; None: each has one for itself.
    max_ids (int): The most ids in the masked contexts of one plan, before equal ones are joined.
    """
    group, total = [], 0
    for block in ask(contexts, metrics, mask_spacing, max_ids):
        cost = len(block.masked) * len(contexts[block.context])
        if group and total + cost > max_ids:
            yield Plan(contexts, group, len(metrics), mask_id)
            group, total = [], 0
        group.append(block)
        total += cost
    if group:
        yield Plan(contexts, group, len(metrics), mask_id)
