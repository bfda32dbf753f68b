"""From mask blocks to forward passes: each distinct masked context once, in batches of similar length."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

import numpy as np

from ..arrays import BoolArray, IntArray
from .masks import MaskBlock, distinct_rows, masked_positions
from .scores import WeightedSums
from .windows import Context

# What a pass costs besides the ids that it reads, in ids: measured with the built-in model (benchmarks/README.md).
PASS_COST = 100

Self = TypeVar("Self", bound="Batch")


@dataclass(frozen=True)
class Batch:
    """One forward pass, and the targets whose log-probabilities it gives. Every row has a target."""

    ids: IntArray  # int32, shape (rows, longest)
    lengths: IntArray  # int, shape (rows,): the rest of a row is padding
    row: IntArray  # int, shape (targets,), non-decreasing
    position: IntArray  # int, shape (targets,)
    target: IntArray  # int32, shape (targets,): the id whose log-probability is wanted, at this position of this row
    # How many alternatives to each target are wanted, with its rank and entropy. None: only its log-probability is.
    n_alternatives: int | None = None

    @property
    def n_ids(self) -> int:
        """The ids that are read, without padding."""
        return int(self.lengths.sum())

    @property
    def can_be_halved(self) -> bool:
        return len(self.target) > 1

    def halves(self: Self) -> tuple[Self, Self]:
        """The same targets, in the same order, in two passes: half the rows each, or the halves of one row."""
        if len(self.ids) == 1:
            return self._halves_of_row()
        middle = len(self.ids) // 2
        first, second = (self._rows(part) for part in (slice(middle), slice(middle, None)))
        before = self.row < middle
        return first._targets(before), replace(second._targets(~before), row=self.row[~before] - middle)

    def _halves_of_row(self: Self) -> tuple[Self, Self]:
        before = np.arange(len(self.target)) < len(self.target) // 2
        return self._targets(before), self._targets(~before)

    def _rows(self: Self, part: slice) -> Self:
        lengths = self.lengths[part]
        return replace(self, ids=self.ids[part, : lengths.max()], lengths=lengths)

    def _targets(self: Self, part: BoolArray) -> Self:
        return replace(self, row=self.row[part], position=self.position[part], target=self.target[part])


class RowPlan(WeightedSums):
    """The forward passes for some contexts, and how their log-probabilities make up the scores.

    Two mask rows whose masked ids are equal are one forward row, whichever metric, piece or
    text they come from. For a word of one piece `original`, `word_l2r` and `whole_word` give
    the same row. The distinct masked contexts are kept grouped by length.
    """

    def __init__(self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, mask_id: int):
        """blocks (Sequence[MaskBlock]): What is masked in the contexts; at least one block."""
        self._inputs: list[IntArray] = []  # int32 arrays (rows, length), one for each length, the longest first
        columns = []  # for each length: the row, position and id of each entry
        ordered: list[MaskBlock] = []  # the blocks in this order
        self.n_rows = 0
        lengths = np.array([len(contexts[block.context]) for block in blocks])
        for length in sorted(set(lengths.tolist()), reverse=True):
            masked_ids, records, before = [], [], 0
            for b in np.flatnonzero(lengths == length).tolist():
                block = blocks[b]
                context = contexts[block.context]
                masked_ids.append(np.where(masked_positions(block, context), np.int32(mask_id), context.ids))
                position = block.piece + context.first
                records.append((block.row + before, position, context.ids[position]))
                ordered.append(block)
                before += len(block.masked)
            rows, inverse = distinct_rows(np.concatenate(masked_ids))
            row, *others = (np.concatenate(column) for column in zip(*records))
            columns.append((inverse[row] + self.n_rows, *others))
            self._inputs.append(rows)
            self.n_rows += len(rows)
        self.n_ids = sum(rows.size for rows in self._inputs)
        # Sorted by forward row, so that the targets of a batch stand together.
        entries = np.stack([np.concatenate(column) for column in zip(*columns)])
        distinct, self._target_of_entry = np.unique(entries, axis=1, return_inverse=True)
        self._row, self._position, self._target = distinct
        super().__init__(contexts, ordered, n_metrics)

    @property
    def n_targets(self) -> int:
        """The number of distinct (row, position, id): how many log-probabilities the batches give."""
        return len(self._row)

    def batches(
        self, max_tokens: int, max_targets: int, pad_id: int, pad: bool = True, n_alternatives: int | None = None
    ) -> Iterator[Batch]:
        """The forward passes. The longest rows come first, so that a lack of memory shows at once.

        max_tokens, max_targets (int): The most ids, padding included, and targets in one pass. A single row with more
            goes alone.
        pad (bool): Whether rows of different lengths may share a pass.
        """
        lengths = np.repeat([rows.shape[1] for rows in self._inputs], [len(rows) for rows in self._inputs])
        first_target = np.searchsorted(self._row, np.arange(self.n_rows + 1))
        starts_of_length = np.cumsum([0] + [len(rows) for rows in self._inputs])
        for begin, end in divide(lengths, first_target, max_tokens, max_targets, pad):
            ids = np.full((end - begin, lengths[begin]), pad_id, dtype=np.int32)
            for rows, start in zip(self._inputs, starts_of_length):
                low, high = max(begin, start), min(end, start + len(rows))
                if low < high:
                    ids[low - begin : high - begin, : rows.shape[1]] = rows[low - start : high - start]
            targets = slice(first_target[begin], first_target[end])
            row, position, target = self._row[targets] - begin, self._position[targets], self._target[targets]
            yield Batch(ids, lengths[begin:end], row, position, target, n_alternatives)

    def release_inputs(self) -> None:
        """Free the ids once the batches have been read: they are most of a plan's memory, and `scores` needs none."""
        self._inputs = []


def divide(
    lengths: IntArray, first_target: IntArray, max_tokens: int, max_targets: int, pad: bool = True
) -> list[tuple[int, int]]:
    """Divide rows into passes so that padding and passes cost the least: the shortest path over where passes may end.

    A pass ends where it is full, or where shorter rows begin.

    lengths (int array, shape (rows,)): Of each row, the longest first.
    first_target (int array, shape (rows + 1,)): How many targets the rows before each have.
    max_tokens, max_targets, pad: As for `RowPlan.batches`.
    RETURNS (list[tuple[int, int]]): The first row of each pass, and the row behind its last.
    """
    n, row = len(lengths), np.arange(len(lengths))
    shorter = np.append(np.flatnonzero(np.diff(lengths)) + 1, n)
    by_targets = np.searchsorted(first_target, first_target[:-1] + max_targets, side="right") - 1
    full = np.minimum(row + np.maximum(1, max_tokens // lengths), np.maximum(row + 1, by_targets))
    if not pad:
        full = np.minimum(full, shorter[np.searchsorted(shorter, row, side="right")])
    length, last, borders = lengths.tolist(), np.minimum(full, n).tolist(), shorter.tolist()
    cost, begin_of = [0] + [inf] * n, [0] * (n + 1)
    for begin in range(n):
        if cost[begin] == inf:
            continue
        for end in (*borders[bisect_right(borders, begin) : bisect_left(borders, last[begin])], last[begin]):
            total = cost[begin] + length[begin] * (end - begin) + PASS_COST
            if total < cost[end]:
                cost[end], begin_of[end] = total, begin
    passes, end = [], n
    while end:
        passes.append((begin_of[end], end))
        end = begin_of[end]
    return passes[::-1]
