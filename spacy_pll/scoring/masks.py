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

    def split(self, max_rows: int) -> Iterator["MaskBlock"]:
        """The same in blocks of at most `max_rows` rows."""
        rows = np.arange(len(self.masked)) // max_rows
        return (self.select(rows == part) for part in np.unique(rows))

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
    starts = np.unique(context.word, return_index=True)[1]
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
    check_mask_rows(rows, len(context.word[seen]), getattr(metric, "__name__", repr(metric)))
    piece = rows.target + start
    keep = context.scored[piece] & (part.start <= piece) & (piece < part.stop)
    masked, row = distinct_rows(rows.masked[keep])
    first = np.zeros(len(piece), dtype=bool)
    first[np.unique(piece, return_index=True)[1]] = True
    return MaskBlock(c, m, start, masked, row, piece[keep], rows.weight[keep], first[keep])


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

    RAISES (ValueError): A row masks pieces of several words, or does not mask its target: such rows cannot share a
        forward pass, as a setting asks.
    """
    first = block.start + block.masked.argmax(axis=1)
    last = block.start + block.masked.shape[1] - 1 - block.masked[:, ::-1].argmax(axis=1)
    word = context.word[first]
    target_is_masked = block.masked[block.row, block.piece - block.start].all()
    if not target_is_masked or (word != context.word[last]).any():
        raise PLLError(
            f"The metric {getattr(metric, '__name__', metric)!r} does not mask each scored piece together with pieces "
            f"of its own word alone, so its forward passes cannot be shared.",
            f"Leave out `{setting}`.",
        )
    return first, last, word


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
