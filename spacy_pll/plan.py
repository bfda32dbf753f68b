"""From contexts and metrics to forward passes: each distinct masked context once, in batches of like length."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .metrics import Metric
from .wordpieces import Context


class Batch(NamedTuple):
    """One forward pass and what is asked of it."""

    ids: np.ndarray  # int32, shape (rows, longest)
    lengths: np.ndarray  # int, shape (rows,): the rest of a row is padding
    row: np.ndarray  # int, shape (questions,)
    position: np.ndarray  # int, shape (questions,)
    target: np.ndarray  # int32, shape (questions,): how likely is this id, at this position of this row?
    question: np.ndarray  # int, shape (questions,): their numbers in the plan


class Plan:
    """The distinct questions that give the scores of some contexts under some metrics.

    Two mask rows whose masked ids are equal are one forward row, whichever metric,
    piece or text they came from; for a word of one piece `original`, `word_l2r` and
    `whole_word` coincide. `rows` are the distinct masked contexts, grouped by length.
    """

    def __init__(self, contexts: Sequence[Context], metrics: Sequence[Metric], mask_id: int):
        """
        contexts (Sequence[Context]): What is read, and which pieces of it are scored.
        metrics (Sequence[Metric]): The masking schemes.
        mask_id (int): The id of the mask token.
        """
        self.n_metrics = len(metrics)
        self.offsets = np.cumsum([0] + [len(context.word) for context in contexts])
        self.rows: list[np.ndarray] = []  # int32 arrays (rows, length), one a length, the longest first
        asked = []  # one record a (mask row, metric): forward row, position, target id, metric, piece, weight
        n_rows = 0
        lengths = np.array([len(context) for context in contexts])
        for length in sorted(set(lengths.tolist()), reverse=True):
            masked_ids, records = [], []
            for c in np.flatnonzero(lengths == length):
                for m, metric in enumerate(metrics):
                    ids, *record = _mask(contexts[c], metric, mask_id)
                    piece = record.pop() + self.offsets[c]
                    masked_ids.append(ids)
                    records.append((*record, np.full(len(ids), m), piece))
            rows, inverse = _distinct_rows(np.concatenate(masked_ids))
            position, target, weight, metric_index, piece = (np.concatenate(column) for column in zip(*records))
            asked.append((inverse + n_rows, position, target, weight, metric_index, piece))
            self.rows.append(rows)
            n_rows += len(rows)
        self.n_rows = n_rows
        if not asked:
            asked.append(tuple(np.zeros(0, dtype=np.int64) for _ in range(6)))
        row, position, target, self._weight, self._metric, self._piece = (np.concatenate(c) for c in zip(*asked))
        # Sorted by forward row, so that the questions of a batch stand together.
        questions, self._question = np.unique(np.stack([row, position, target]), axis=1, return_inverse=True)
        self._row, self._position, self._target = questions

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

    def scores(self, answers: np.ndarray) -> list[np.ndarray]:
        """Put the answers together.

        answers (float array, shape (n_questions,)): Natural-log probabilities.
        RETURNS (list of float64 arrays, shape (metrics, pieces)): A context's scores; 0.0 where not scored.
        """
        out = np.zeros((self.n_metrics, self.offsets[-1]))
        np.add.at(out, (self._metric, self._piece), self._weight * answers[self._question])
        return np.split(out, self.offsets[1:-1], axis=1)


def _mask(context: Context, metric: Metric, mask_id: int):
    """The masked ids (rows, length) of the scored pieces, with position, true id, weight and piece of each row."""
    rows = metric(context.word)
    keep = context.scored[rows.target]
    piece = rows.target[keep]
    ids = np.repeat(context.ids[None], len(piece), axis=0)
    ids[:, context.first : context.first + len(context.word)][rows.masked[keep]] = mask_id
    position = piece + context.first
    return ids, position, context.ids[position], rows.weight[keep], piece


def _distinct_rows(ids: np.ndarray):
    """Distinct rows of a matrix, and for each row which of them it is."""
    ids = np.ascontiguousarray(ids)
    as_bytes = ids.view(np.dtype((np.void, ids.dtype.itemsize * ids.shape[1]))).ravel()
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return ids[first], inverse


def group_contexts(contexts: Sequence[Context], n_metrics: int, max_ids: int) -> Iterator[list[tuple[int, Context]]]:
    """The contexts with their indices, the longest first, in groups small enough to be planned at once.

    A plan holds, for each scored piece and metric, a masked copy of the piece's context.
    A context with more than `max_ids` of that comes in parts, each with some of its scored pieces.
    """
    group, total = [], 0
    for i in sorted(range(len(contexts)), key=lambda i: -len(contexts[i])):
        for part in _parts(contexts[i], max(1, max_ids // (len(contexts[i]) * n_metrics))):
            cost = len(part) * n_metrics * int(part.scored.sum())
            if group and total + cost > max_ids:
                yield group
                group, total = [], 0
            group.append((i, part))
            total += cost
    if group:
        yield group


def _parts(context: Context, max_pieces: int) -> Iterator[Context]:
    scored = np.flatnonzero(context.scored)
    for start in range(0, len(scored), max_pieces):
        mask = np.zeros(len(context.scored), dtype=bool)
        mask[scored[start : start + max_pieces]] = True
        yield replace(context, scored=mask)
