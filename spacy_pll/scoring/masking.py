"""What the metrics ask of a context: distinct sets of masked pieces, and the questions that each answers.

With `mask_spacing`, sets of different words that keep their distance are merged into one:
masked language models are trained with about 15 % of the pieces masked at once, so a pass
can serve several words. What is merged follows from the context and the metric alone, so
that a score depends neither on the batch nor on the other metrics.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..metrics import Metric, masks_within_words
from .wordpieces import Context

# How many pieces a metric that masks within words is shown at once: its masks grow with the square.
MAX_SLICE = 256


class Questions(NamedTuple):
    """Some of what one metric asks of one context."""

    context: int  # index among the contexts
    metric: int  # index among the metrics
    start: int  # the context's piece that the first column of `masked` stands for
    masked: np.ndarray  # bool, shape (rows, columns): distinct
    row: np.ndarray  # int, shape (questions,)
    piece: np.ndarray  # int, shape (questions,): how likely is it, with that row's pieces masked?
    weight: np.ndarray  # float, shape (questions,)

    def split(self, max_rows: int) -> Iterator["Questions"]:
        """The same in blocks of at most so many rows."""
        if len(self.masked) <= max_rows:
            yield self
            return
        for low in range(0, len(self.masked), max_rows):
            mine = (low <= self.row) & (self.row < low + max_rows)
            row, piece, weight = self.row[mine] - low, self.piece[mine], self.weight[mine]
            yield self._replace(masked=self.masked[low : low + max_rows], row=row, piece=piece, weight=weight)


def ask(
    contexts: Sequence[Context], metrics: Sequence[Metric], mask_spacing: int | None, max_ids: int
) -> Iterator[Questions]:
    """All that the metrics ask of the contexts, the longest first.

    mask_spacing (Optional[int]): Merge masked sets that keep this distance; None merges nothing.
    max_ids (int): The most ids in the masked contexts of one block; one row goes alone if it is longer.
    RAISES (ValueError): Masked sets are to be merged, and a metric masks across words.
    """
    for c in sorted(range(len(contexts)), key=lambda c: -len(contexts[c])):
        context = contexts[c]
        max_rows = max(1, max_ids // len(context))
        slices = list(_slices(context, max(1, min(MAX_SLICE, max_rows // len(metrics)))))
        if not slices:
            continue
        if mask_spacing is None:
            # Slice by slice, so that metrics whose rows are equal ask for them close together.
            blocks = (_of_slice(c, context, m, metric, part) for part in slices for m, metric in enumerate(metrics))
        else:
            blocks = (
                _merge([_of_slice(c, context, m, metric, part) for part in slices], context, metric, mask_spacing)
                for m, metric in enumerate(metrics)
            )
        for block in blocks:
            yield from block.split(max_rows)


def _slices(context: Context, size: int) -> Iterator[slice]:
    """Runs of whole words, of at most `size` pieces or one word, that hold all scored pieces."""
    if len(context.word) <= size:
        if context.scored.any():
            yield slice(0, len(context.word))
        return
    starts = np.unique(context.word, return_index=True)[1]
    ends = np.append(starts[1:], len(context.word))
    word = 0
    while word < len(starts):
        following = max(np.searchsorted(ends, starts[word] + size, side="right"), word + 1)
        part = slice(int(starts[word]), int(ends[following - 1]))
        if context.scored[part].any():
            yield part
        word = following


def _of_slice(c: int, context: Context, m: int, metric: Metric, part: slice) -> Questions:
    """What a metric asks about the scored pieces of a slice."""
    # A metric that masks within words needs to see no more than these words.
    start, seen = (part.start, part) if masks_within_words(metric) else (0, slice(None))
    rows = metric(context.word[seen])
    piece = rows.target + start
    keep = context.scored[piece] & (part.start <= piece) & (piece < part.stop)
    masked, row = distinct_rows(rows.masked[keep])
    return Questions(c, m, start, masked, row, piece[keep], rows.weight[keep])


def _merge(blocks: list[Questions], context: Context, metric: Metric, spacing: int) -> Questions:
    """One block with masked sets that are unions of theirs."""
    first, last, word = (np.concatenate(x) for x in zip(*(_extent(block, context, metric) for block in blocks)))
    ends = np.searchsorted(context.word, word, side="right")
    shared = share_passes(first, last, ends, spacing)
    masked = np.zeros((shared.max(initial=-1) + 1, len(context.word)), dtype=bool)
    before = np.cumsum([0] + [len(block.masked) for block in blocks])
    for block, n in zip(blocks, before):
        row, column = np.nonzero(block.masked)
        masked[shared[n + row], block.start + column] = True
    row, piece, weight = (
        np.concatenate(x)
        for x in zip(*((n + block.row, block.piece, block.weight) for block, n in zip(blocks, before)))
    )
    return Questions(blocks[0].context, blocks[0].metric, 0, masked, shared[row], piece, weight)


def _extent(block: Questions, context: Context, metric: Metric):
    """The first and the last masked piece of each row, and the word that they lie in.

    RAISES (ValueError): A row masks pieces of several words, or not what is asked: such rows cannot be merged.
    """
    first = block.start + block.masked.argmax(axis=1)
    last = block.start + block.masked.shape[1] - 1 - block.masked[:, ::-1].argmax(axis=1)
    word = context.word[first]
    asked_is_masked = block.masked[block.row, block.piece - block.start].all()
    if not asked_is_masked or (word != context.word[last]).any():
        raise ValueError(
            f"The metric {getattr(metric, '__name__', metric)!r} does not mask each scored piece together with pieces "
            "of its own word alone, so its forward passes cannot be shared. Set `mask_spacing` to null."
        )
    return first, last, word


def share_passes(first: np.ndarray, last: np.ndarray, word_end: np.ndarray, spacing: int) -> np.ndarray:
    """Distribute the mask rows of one context over as few forward passes as their distance allows.

    Rows of one pass come from different words, and between the masked pieces of any two of
    them there are at least `spacing` steps. So a row blocks its pass from its first masked
    piece to `spacing` behind its last, or to the end of its word: intervals, for which it is
    optimal to take them in the order of their beginnings and to use any pass that is free
    again. The one that has been free for longest is taken, which spreads the masks evenly.

    first, last (int arrays, shape (rows,)): A row's first and last masked piece.
    word_end (int array, shape (rows,)): Where the row's word ends, as in a slice.
    spacing (int): The least distance, in pieces.
    RETURNS (int array, shape (rows,)): The pass of each row, numbered from 0.
    """
    order = np.lexsort((last, first))
    free_from = np.maximum(last + spacing, word_end)
    passes = np.zeros(len(order), dtype=np.int64)
    heap: list[tuple[int, int]] = []  # of each pass: the first piece that it is free for again, and its number
    for row, begin, end in zip(order.tolist(), first[order].tolist(), free_from[order].tolist()):
        if heap and heap[0][0] <= begin:
            passes[row] = heap[0][1]
            heapq.heapreplace(heap, (end, heap[0][1]))
        else:
            passes[row] = len(heap)
            heapq.heappush(heap, (end, len(heap)))
    return passes


def distinct_rows(matrix: np.ndarray):
    """The distinct rows of a matrix, and for each of its rows which of them it is."""
    matrix = np.ascontiguousarray(matrix)
    as_bytes = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return matrix[first], inverse
