"""What the metrics mask in each context, as blocks of masked sets and the pieces that each set scores.

With `mask_spacing`, masked sets of different words that are far enough apart are merged into
one. Masked language models are trained with about 15 % of the pieces masked at once, so one
forward pass can serve several words. What is merged depends on the context and the metric
alone, so a score depends neither on the batch nor on the other metrics.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, IntArray
from ..errors import PLLError
from ..metrics import Metric, check_mask_rows, masks_within_words
from .windows import Context
from .wordpieces import word_begins

Item = TypeVar("Item", bound=np.generic)

# How many pieces a metric that masks within words is given at once: its masks grow with the square of that number.
MAX_SLICE = 256


class MaskBlock(NamedTuple):
    """Some of the masked sets of one metric in one context, and the targets that each of them scores."""

    context: int  # index among the contexts
    metric: int  # index among the metrics
    start: int  # the context's piece that the first column of `masked` stands for
    masked: BoolArray  # bool, shape (rows, columns): distinct masked sets
    row: IntArray  # int, shape (targets,): the row of `masked` that scores the target
    piece: IntArray  # int, shape (targets,): the context's piece that is the target
    weight: FloatArray  # float, shape (targets,)
    first: BoolArray  # bool, shape (targets,): whether this is the first mask row that the metric has for the piece
    # What the rows do not have at all: bool, the shape of `masked`, which then begins with the context's first piece,
    # and may have columns behind its last one (`MaskRows`). None: the rows have all pieces, and nothing else.
    removed: BoolArray | None = None

    def split(self, max_rows: int) -> Iterator["MaskBlock"]:
        """The same in blocks of at most `max_rows` rows, all of one length."""
        part = np.arange(len(self.masked)) // max_rows
        if self.removed is not None:  # rows that lack more pieces are shorter
            part += len(part) * self.removed.sum(axis=1)
        return (self.select(part == one) for one in np.unique(part))

    def select(self, rows: BoolArray) -> "MaskBlock":
        """The same with some of the rows. bool, shape (rows,)."""
        if rows.all():
            return self
        mine = rows[self.row]
        return self._replace(
            masked=self.masked[rows],
            row=(np.cumsum(rows) - 1)[self.row[mine]],
            piece=self.piece[mine],
            weight=self.weight[mine],
            first=self.first[mine],
            removed=self.removed if self.removed is None else self.removed[rows],
        )


def iter_mask_blocks(
    contexts: Sequence[Context], metrics: Sequence[Metric], mask_spacing: int | None, max_ids: int
) -> Iterator[MaskBlock]:
    """Everything that the metrics mask in the contexts, the longest contexts first.

    max_ids (int): The most ids in the masked contexts of one block. A single row may have more.
    RAISES (ValueError): Masked sets are to be merged, and a metric masks across words.
    """
    for c in sorted(range(len(contexts)), key=lambda c: -len(contexts[c])):
        context = contexts[c]
        max_rows = max(1, max_ids // len(context))
        slices = list(_slices(context, max(1, min(MAX_SLICE, max_rows // len(metrics)))))
        if not slices:
            continue
        numbered = list(enumerate(metrics))
        if mask_spacing is None:
            # Slice by slice, so that equal rows of different metrics come close together and run once.
            blocks = (_block_of_slice(c, context, m, metric, part) for part in slices for m, metric in numbered)
        else:
            blocks = (_merge(c, context, m, metric, slices, mask_spacing) for m, metric in numbered)
        for block in blocks:
            yield from block.split(max_rows)


def _slices(context: Context, size: int) -> Iterator[slice]:
    """Cut a context into runs of whole words, each of at most `size` pieces or a single word. Runs without a scored
    piece are left out.
    """
    starts = np.flatnonzero(word_begins(context.word))
    ends = np.append(starts[1:], len(context.word))
    word = 0
    while word < len(starts):
        following = max(np.searchsorted(ends, starts[word] + size, side="right"), word + 1)
        part = slice(int(starts[word]), int(ends[following - 1]))
        if context.scored[part].any():
            yield part
        word = following


def _block_of_slice(c: int, context: Context, m: int, metric: Metric, part: slice) -> MaskBlock:
    """What a metric masks to score the pieces of a slice."""
    # A metric that masks within words needs no more than these words.
    start, seen = (part.start, part) if masks_within_words(metric) else (0, slice(None))
    rows = metric(context.word[seen])
    check_mask_rows(rows, len(context.word[seen]), _name(metric))
    piece = rows.target + start
    keep = context.scored[piece] & (part.start <= piece) & (piece < part.stop)
    first = np.zeros(len(piece), dtype=bool)
    first[np.unique(piece, return_index=True)[1]] = True
    masked, removed = rows.masked[keep], None
    n, columns = len(context.word), masked.shape[1]
    if rows.removed is None:
        masked, row = distinct_rows(masked)
    else:
        if masks_within_words(metric):
            raise ValueError(
                f"The metric {_name(metric)!r} says that it masks within words, and its rows have other lengths than "
                "their contexts. Set its attribute `within_words` to False."
            )
        removed = ~masked  # behind the last piece, there is a mask or nothing
        removed[:, :n] = rows.removed[keep]
        both, row = distinct_rows(np.concatenate([masked, removed], axis=1))
        masked, removed = both[:, :columns], both[:, columns:]
    return MaskBlock(c, m, start, masked, row, piece[keep], rows.weight[keep], first[keep], removed)


def _name(metric: Metric) -> str:
    return getattr(metric, "__name__", repr(metric))


def _merge(c: int, context: Context, m: int, metric: Metric, slices: list[slice], spacing: int) -> MaskBlock:
    """One block whose masked sets are unions of masked sets of the blocks of some slices."""
    blocks = [_block_of_slice(c, context, m, metric, part) for part in slices]
    first, last, word = (
        np.concatenate(x) for x in zip(*(extent(block, context, metric, "mask_spacing") for block in blocks))
    )
    word_end = np.searchsorted(context.word, word, side="right")
    shared = share_passes(first, last, word_end, spacing)
    masked = np.zeros((shared.max(initial=-1) + 1, len(context.word)), dtype=bool)
    before = np.cumsum([0] + [len(block.masked) for block in blocks])
    for block, n in zip(blocks, before):
        row, column = np.nonzero(block.masked)
        masked[shared[n + row], block.start + column] = True
    row, piece, weight, first_row = (
        np.concatenate(x)
        for x in zip(*((n + block.row, block.piece, block.weight, block.first) for block, n in zip(blocks, before)))
    )
    return MaskBlock(c, m, 0, masked, shared[row], piece, weight, first_row)


def extent(block: MaskBlock, context: Context, metric: Metric, setting: str) -> tuple[IntArray, IntArray, IntArray]:
    """The first and the last masked piece of each row, and the word that holds them.

    RAISES (ValueError): A row masks pieces of several words, or does not mask its target, or removes pieces: such rows
        cannot share a forward pass, as a setting asks.
    """
    if block.removed is None:
        first = block.start + block.masked.argmax(axis=1)
        last = block.start + block.masked.shape[1] - 1 - block.masked[:, ::-1].argmax(axis=1)
        word = context.word[first]
        if block.masked[block.row, block.piece - block.start].all() and (word == context.word[last]).all():
            return first, last, word
    raise PLLError(
        f"The metric {_name(metric)!r} does not mask each scored piece together with pieces of its own word alone, so "
        "its forward passes cannot be shared.",
        f"Leave out `{setting}`.",
    )


def share_passes(first: IntArray, last: IntArray, word_end: IntArray, spacing: int) -> IntArray:
    """Distribute the masked sets of one context over as few forward passes as their distance allows.

    The sets in one pass belong to different words, and the masked pieces of any two of them are
    at least `spacing` pieces apart. So each set occupies its pass from its first masked piece
    until `spacing` after its last one, or until the end of its word if that is later. Sharing passes
    is then the assignment of intervals to as few resources as possible. It is optimal to take the intervals by
    their beginnings and to use any pass that is free again. The pass that has been free for
    the longest time is taken, which spreads the masks evenly.

    first, last (int arrays, shape (rows,)): The first and the last masked piece of each set.
    word_end (int array, shape (rows,)): The end of the set's word, exclusive.
    RETURNS (int array, shape (rows,)): The pass of each set, numbered from 0.
    """
    order = np.lexsort((last, first))
    free_from = np.maximum(last + spacing, word_end)
    passes = np.zeros(len(order), dtype=np.int64)
    heap: list[tuple[int, int]] = []  # for each pass: the first piece at which it is free again, and its number
    for row, begin, end in zip(order.tolist(), first[order].tolist(), free_from[order].tolist()):
        if heap and heap[0][0] <= begin:
            passes[row] = heap[0][1]
            heapq.heapreplace(heap, (end, heap[0][1]))
        else:
            passes[row] = len(heap)
            heapq.heappush(heap, (end, len(heap)))
    return passes


def read_rows(block: MaskBlock, context: Context, mask_id: int) -> tuple[IntArray, IntArray]:
    """What the model reads in each row of a block, and where each target stands there.

    RETURNS: The ids, int32, shape (rows, length), and the positions, int, shape (targets,).
    """
    position = block.piece + context.first
    if block.removed is None:
        return np.where(masked_positions(block, context), np.int32(mask_id), context.ids), position
    n, added = len(block.masked), added_masks(block, context)
    end = context.first + len(context.word)
    ids = np.concatenate([context.ids[:end], np.full(added, mask_id, dtype=np.int32), context.ids[end:]])
    masked, kept = np.zeros((n, len(ids)), dtype=bool), np.ones((n, len(ids)), dtype=bool)
    masked[:, context.first : end + added], kept[:, context.first : end + added] = block.masked, ~block.removed
    rows = np.where(masked, np.int32(mask_id), ids)[kept].reshape(n, -1)
    return rows, (np.cumsum(kept, axis=1) - 1)[block.row, position]


def row_length(block: MaskBlock, context: Context) -> int:
    """How many ids each row of a block has."""
    removed = 0 if block.removed is None else int(block.removed[0].sum()) - added_masks(block, context)
    return len(context) - removed


def added_masks(block: MaskBlock, context: Context) -> int:
    """How many columns of a block that removes pieces are behind the last piece. Such a block is of a whole context."""
    return int(block.masked.shape[1]) - len(context.word)


def masked_positions(block: MaskBlock, context: Context) -> BoolArray:
    """Which positions of its context each row of a block masks. bool, shape (rows, length)."""
    out = np.zeros((len(block.masked), len(context)), dtype=bool)
    begin = context.first + block.start
    out[:, begin : begin + block.masked.shape[1]] = block.masked
    return out


def distinct_rows(matrix: npt.NDArray[Item]) -> tuple[npt.NDArray[Item], IntArray]:
    """The distinct rows of a matrix, and for each row of the matrix the index of its distinct row."""
    matrix = np.ascontiguousarray(matrix)
    if len(matrix) and (matrix == matrix[0]).all():  # as where nothing is masked: long rows take long to sort
        return matrix[:1].copy(), np.zeros(len(matrix), dtype=np.int64)
    as_bytes = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return matrix[first], inverse
