"""From mask blocks to forward passes: each distinct masked context once, in batches of similar length."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import inf
from typing import TypeVar

import numpy as np

from ..arrays import BoolArray, IntArray
from .masks import MaskBlock, distinct_rows, read_rows, row_length
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
        before = self._in_first_half()
        return self._part(before), self._part(~before)

    def _in_first_half(self) -> BoolArray:
        """Which targets are in the first half. bool, shape (targets,)."""
        if len(self.ids) > 1:
            return self.row < len(self.ids) // 2
        return np.arange(len(self.target)) < len(self.target) // 2

    def _part(self: Self, part: BoolArray) -> Self:
        """Some of the targets, with the rows that have them."""
        rows, row = np.unique(self.row[part], return_inverse=True)
        lengths = self.lengths[rows]
        ids, position, target = self.ids[rows, : lengths.max()], self.position[part], self.target[part]
        return replace(self, ids=ids, lengths=lengths, row=row, position=position, target=target)


class RowPlan(WeightedSums):
    """The forward passes for some contexts, and how their log-probabilities make up the scores.

    Two mask rows whose masked ids are equal are one forward row, whichever metric, piece or
    text they come from. For a word of one piece `original`, `word_l2r` and `whole_word` give
    the same row.
    """

    def __init__(self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, mask_id: int):
        """blocks (Sequence[MaskBlock]): What is masked in the contexts; at least one block."""
        self._rows: list[IntArray] = []  # the ids of each row, int32, the longest first
        columns = []  # for each length: the row, position and id of each entry

        def length(block: MaskBlock) -> int:
            return row_length(block, contexts[block.context])

        blocks = sorted(blocks, key=length, reverse=True)
        for _, of_length in groupby(blocks, key=length):
            masked_ids, records, before = [], [], 0
            for block in of_length:
                context = contexts[block.context]
                ids, position = read_rows(block, context, mask_id)
                masked_ids.append(ids)
                records.append((block.row + before, position, context.ids[block.piece + context.first]))
                before += len(block.masked)
            rows, inverse = distinct_rows(np.concatenate(masked_ids))
            row, *others = (np.concatenate(column) for column in zip(*records))
            columns.append((inverse[row] + len(self._rows), *others))
            self._rows.extend(rows)
        self.n_rows, self.n_ids = len(self._rows), sum(map(len, self._rows))
        # Sorted by forward row, so that the targets of a batch stand together.
        entries = np.stack([np.concatenate(column) for column in zip(*columns)])
        distinct, self._target_of_entry = np.unique(entries, axis=1, return_inverse=True)
        self._row, self._position, self._target = distinct
        self.n_targets = len(self._row)  # how many log-probabilities the batches give
        super().__init__(contexts, blocks, n_metrics)

    def batches(
        self, max_tokens: int, max_targets: int, pad_id: int, pad: bool = True, n_alternatives: int | None = None
    ) -> Iterator[Batch]:
        """The forward passes. The longest rows come first, so that a lack of memory shows at once.

        max_tokens, max_targets (int): The most ids, padding included, and targets in one pass. A single row with more
            goes alone.
        pad (bool): Whether rows of different lengths may share a pass.
        """
        lengths = np.array([len(ids) for ids in self._rows])
        first_target = np.searchsorted(self._row, np.arange(self.n_rows + 1))
        for begin, end in divide(lengths, first_target, max_tokens, max_targets, pad):
            ids = padded(self._rows[begin:end], pad_id)
            targets = slice(first_target[begin], first_target[end])
            row, position, target = self._row[targets] - begin, self._position[targets], self._target[targets]
            yield Batch(ids, lengths[begin:end], row, position, target, n_alternatives)

    def release_inputs(self) -> None:
        """Free the ids once the batches have been read: they are most of a plan's memory, and `scores` needs none."""
        self._rows = []


def padded(rows: Sequence[IntArray], pad_id: int) -> IntArray:
    """Rows of ids, with padding behind the shorter ones. int32, shape (rows, longest)."""
    out = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int32)
    for padded_row, row in zip(out, rows):
        padded_row[: len(row)] = row
    return out


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
