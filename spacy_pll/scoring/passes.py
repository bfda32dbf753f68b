"""From rows to forward passes: each distinct row once, in batches of similar length.

Nothing is made row by row here. A plan has flat arrays of all its rows, which are copied to the device once. There each
pass makes its ids from its part of them (`Batch.read`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..arrays import Groups, IntArray, distinct, inverse, lazy
from .digests import Digests, scrambled
from .masks import MaskedRows
from .scores import Wanted, WeightedSums
from .windows import Contexts

Self = TypeVar("Self", bound="Batch")


class PassLimits(NamedTuple):
    """How rows share forward passes."""

    max_tokens: int  # the most ids, padding included. A single row with more goes alone
    max_targets: int  # the most targets. A single row with more goes alone
    pad_id: int
    pads: bool = True  # whether rows of different lengths may share a pass
    pass_cost: int = 100  # what a pass costs besides the ids that it reads, in ids
    one_row: bool = False  # whether each row has a pass of its own
    apart: int | None = None  # rows of more ids share no pass with others; None: they may


class Flat:
    """Arrays with one axis, of numpy or as tensors on a device."""

    @property
    def arrays(self) -> list[Any]:
        return list(vars(self).values())


@dataclass(frozen=True, eq=False)
class FlatRows(Flat):
    """The rows of a plan, and its targets."""

    ids: Any  # int32: of all sequences that the rows are made from
    begin: Any  # where the sequence of each row begins
    length: Any  # its length
    prompt: Any  # how many of its ids stand before the text; 0 where that is not asked
    run_row: Any  # the row of each run of masked positions
    run_begin: Any  # its first position
    run_end: Any  # the position behind its last
    row: Any  # the row of each target, non-decreasing
    position: Any  # its position
    target: Any  # the id whose log-probability is wanted there


@dataclass(frozen=True, eq=False)
class Batch:
    """One forward pass: some rows of a plan, and the targets in them. Every row has a target."""

    flat: FlatRows  # of the plan
    rows: slice  # of the plan's rows
    runs: slice  # those of these rows
    targets: slice  # those in these rows
    mask_id: int
    pad_id: int
    wanted: Wanted = None  # at each target, besides its log-probability

    @classmethod
    def of(cls, ids: IntArray, lengths: IntArray, row: IntArray, position: IntArray, target: IntArray) -> "Batch":
        """A pass that reads these ids, shape (rows, longest), without what is behind the length of each row."""
        none = np.zeros(0, dtype=np.int32)
        begin = np.arange(len(ids)) * ids.shape[1]
        flat = FlatRows(ids.ravel(), begin, lengths, 0 * begin, none, none, none, row, position, target)
        pad_id = int(ids[np.argmin(lengths), -1])
        return cls(flat, slice(0, len(ids)), slice(0, 0), slice(0, len(row)), -1, pad_id)

    @property
    def lengths(self) -> IntArray:
        """int, shape (rows,): the rest of a row is padding."""
        lengths: IntArray = self.flat.length[self.rows]
        return lengths

    @lazy
    def width(self) -> int:
        return int(self.lengths.max())

    @property
    def row(self) -> IntArray:
        """int, shape (targets,), non-decreasing."""
        row: IntArray = self.flat.row[self.targets] - self.rows.start
        return row

    @property
    def position(self) -> IntArray:
        """int, shape (targets,)."""
        position: IntArray = self.flat.position[self.targets]
        return position

    @property
    def target(self) -> IntArray:
        """int, shape (targets,): the id whose log-probability is wanted, at this position of this row."""
        target: IntArray = self.flat.target[self.targets]
        return target

    @property
    def ids(self) -> IntArray:
        """What is read. int32, shape (rows, longest)."""
        ids: IntArray = self.read(np, self.flat)
        return ids

    @property
    def n_rows(self) -> int:
        return int(self.rows.stop - self.rows.start)

    @property
    def n_targets(self) -> int:
        return int(self.targets.stop - self.targets.start)

    @property
    def n_ids(self) -> int:
        """The ids that are read, without padding."""
        return int(self.lengths.sum())

    @property
    def size(self) -> int:
        """The ids that are read, padding included."""
        return self.n_rows * self.width

    def read(self, xp: ModuleType, flat: FlatRows) -> Any:
        """What is read, shape (rows, longest).

        xp (module): numpy, or torch, which has the same functions.
        flat (FlatRows): `self.flat`, as arrays of `xp`.
        """
        begin, length = flat.begin[self.rows, None], flat.length[self.rows, None]
        row = flat.run_row[self.runs] - self.rows.start
        at = xp.arange(self.width)
        ids = flat.ids[(begin + at).clip(max=len(flat.ids) - 1)]
        if len(row):
            edges = xp.zeros((self.n_rows, self.width + 1), dtype=xp.int8)
            edges[row, flat.run_begin[self.runs]] += 1
            edges[row, flat.run_end[self.runs]] -= 1
            ids = xp.where(edges.cumsum(1)[:, :-1] > 0, self.mask_id, ids)
        return ids if self.lengths.min() == self.width else xp.where(at < length, ids, self.pad_id)

    def with_unprompted(self) -> "Batch":
        """The same rows and targets, and behind them both again, with masks in the place of the prompts."""
        ids, prompt = self.ids, self.flat.prompt[self.rows, None]
        ids = np.concatenate([ids, np.where(np.arange(self.width) < prompt, self.mask_id, ids)])
        row = np.concatenate([self.row, self.row + self.n_rows])
        length, position, target = (np.tile(x, 2) for x in (self.lengths, self.position, self.target))
        return Batch.of(ids, length, row, position, target)

    @property
    def can_be_halved(self) -> bool:
        return self.n_targets > 1

    def halves(self: Self) -> tuple[Self, Self]:
        """The same targets, in the same order, in two passes: half the rows each, or the halves of one row."""
        if self.n_rows > 1:
            middle = self.rows.start + self.n_rows // 2
            return self.with_rows(slice(self.rows.start, middle)), self.with_rows(slice(middle, self.rows.stop))
        middle = self.targets.start + self.n_targets // 2
        halves = slice(self.targets.start, middle), slice(middle, self.targets.stop)
        return replace(self, targets=halves[0]), replace(self, targets=halves[1])

    def with_rows(self: Self, rows: slice) -> Self:
        """The same with other rows of the plan, and all their targets."""
        runs, targets = (of_rows(x, rows) for x in (self.flat.run_row, self.flat.row))
        return replace(self, rows=rows, runs=runs, targets=targets)

    def divided(self: Self, lengths: IntArray, limits: PassLimits) -> Iterator[Self]:
        """All rows of the plan, in passes. lengths (int array, shape (rows,)): As `divide` takes them."""
        for begin, end in divide(lengths, Groups.by(self.flat.row, len(lengths)).edges, limits):
            yield self.with_rows(slice(begin, end))


def of_rows(row: IntArray, rows: slice) -> slice:
    """Where some rows stand in a non-decreasing array of rows."""
    return slice(bisect_left(row, rows.start), bisect_left(row, rows.stop))


class PlannedPasses(NamedTuple):
    """The forward passes of a plan under some limits."""

    batches: Iterator[Batch]  # the longest rows come first, so that a lack of memory shows at once
    sums: WeightedSums  # how their log-probabilities make up scores. The rows, not these, are most of a plan's memory


def row_passes(
    contexts: Contexts,
    rows: MaskedRows,
    n_metrics: int,
    mask_id: int,
    limits: PassLimits,
    wanted: Wanted = None,
    prompts: bool = False,
) -> PlannedPasses:
    """The forward passes that read rows as they are. Two rows whose ids are equal are one, whichever metric, piece or
    text they come from: for a word of one piece `original`, `word_l2r` and `whole_word` give the same row.

    rows (MaskedRows): At least one.
    prompts (bool): Whether batches must know which ids of a row stand before the text, as `with_unprompted` needs it.
    """
    other_ids, other_lengths = rows.others
    ids, ids_of = np.concatenate([contexts.ids, other_ids]), Groups(np.append(contexts.lengths, other_lengths))
    digests = Digests(ids, ids_of, mask_id).of_rows(rows.source, rows.runs_of, rows.begin, rows.end)
    prompt = np.zeros(len(rows), dtype=np.int64)
    if prompts:
        prompt[rows.entries.row] = contexts.before[contexts.context[rows.entries.piece]]
        digests = scrambled(prompt, 7) + digests
    first, number = distinct(digests)
    length, longest = ids_of.lengths[rows.source[first]], int(ids_of.lengths.max())
    by_length = np.ravel_multi_index((longest - length, first), (longest + 1, len(rows)))
    order = np.argsort(by_length)  # the longest first
    kept, length, entries = first[order], length[order], rows.entries
    # Sorted by row, so that the targets of a batch stand together.
    true = contexts.true_ids[entries.piece].astype(np.int64)
    shape = len(kept), int(length.max()) + 1, int(true.max(initial=0)) + 1
    targets = np.ravel_multi_index((inverse(order)[number[entries.row]], entries.position, true), shape)
    of_targets, target_of_entry = distinct(targets)
    runs, begin = rows.runs_in(kept)[:3], ids_of.starts[rows.source[kept]]
    flat = FlatRows(ids, begin, length, prompt[kept], *runs, *np.unravel_index(targets[of_targets], shape))
    none = slice(0, 0)
    every = Batch(flat, none, none, none, mask_id, limits.pad_id, wanted)
    sums = WeightedSums((n_metrics, len(contexts.word)), entries, target_of_entry)
    return PlannedPasses(every.divided(length, limits), sums)


def divide(lengths: IntArray, first_target: IntArray, limits: PassLimits) -> list[tuple[int, int]]:
    """Divide rows into passes so that padding and passes cost the least: the shortest path over where passes may end.

    A pass ends where it is full, or where shorter rows begin.

    lengths (int array, shape (rows,)): Of each row, the longest first.
    first_target (int array, shape (rows + 1,)): How many targets the rows before each have.
    RETURNS (list[tuple[int, int]]): The first row of each pass, and the row behind its last.
    """
    n, row = len(lengths), np.arange(len(lengths))
    shorter = np.append(np.flatnonzero(np.diff(lengths)) + 1, n)
    by_targets = np.searchsorted(first_target, first_target[:-1] + limits.max_targets, side="right") - 1
    most = 1 if limits.one_row else np.maximum(1, limits.max_tokens // lengths)
    full = np.minimum(row + most, np.maximum(row + 1, by_targets))
    if not limits.pads:
        full = np.minimum(full, shorter[np.searchsorted(shorter, row, side="right")])
    if limits.apart is not None:
        n_longer = int((lengths > limits.apart).sum())
        full[:n_longer] = np.minimum(full[:n_longer], n_longer)
    length, last, borders = lengths.tolist(), np.minimum(full, n).tolist(), shorter.tolist()
    cost, begin_of = [0] + [inf] * n, [0] * (n + 1)
    reached = [0]  # in increasing order, because a full pass that begins later does not end earlier
    for begin in reached:
        for end in (*borders[bisect_right(borders, begin) : bisect_left(borders, last[begin])], last[begin]):
            total = cost[begin] + length[begin] * (end - begin) + limits.pass_cost
            if cost[end] == inf and end < n:
                reached.append(end)
            if total < cost[end]:
                cost[end], begin_of[end] = total, begin
    passes, end = [], n
    while end:
        passes.append((begin_of[end], end))
        end = begin_of[end]
    return passes[::-1]
