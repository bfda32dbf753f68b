"""What the metrics mask in each context: rows of masked positions, and the pieces that each row scores.

With `mask_spacing`, masked sets of different words that are far enough apart are merged into
one. Masked language models are trained with about 15 % of the pieces masked at once, so one
forward pass can serve several words. What is merged depends on the context and the metric
alone, so a score depends neither on the batch nor on the other metrics.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, Groups, IntArray, begins, distinct, spread
from ..errors import PLLError
from ..metrics import MaskRows, Metric
from .windows import Contexts

Entry = TypeVar("Entry", bound=np.generic)
Matrix = npt.NDArray[np.int8]

# The patterns of words of up to so many pieces are kept. Those of longer ones may take megabytes each.
KEPT_WORDS = 30
# In one pass, up to `WHOLE` masks are read for a piece; of more, those that are less than `REACH` pieces away. If all
# were, a URL of 100 pieces would read 5,050 ids.
WHOLE, REACH = 16, 12


class Entries(NamedTuple):
    """The log-probability of a piece, in a row, is a part of the piece's score. Arrays of shape (entries,)."""

    row: IntArray  # int
    position: IntArray  # int, where the piece stands in the row
    piece: IntArray  # int, its index among the pieces of all contexts
    metric: IntArray  # int, the metric's index
    weight: FloatArray  # float
    first: BoolArray  # bool, whether this is the first row that the metric has for the piece

    def at(self, index: IntArray | BoolArray) -> "Entries":
        """Some of them."""
        return Entries._make(column[index] for column in self)


class OwnIds(NamedTuple):
    """The ids of rows that are not made from a context, one row after the other."""

    ids: IntArray  # int32
    length: IntArray  # int, shape (rows,)


@dataclass
class MaskedRows:
    """Rows to be read, and which piece each of them scores under which metric.

    What is masked in a row is given by runs: positions beside each other. A run may be hidden: out of sight of the
    row's targets, without masks in its place. Only rows that are read in groups have such runs.
    """

    source: IntArray  # int, shape (rows,): the context that is read. From the number of contexts on: a row of `others`
    run_row: IntArray  # int, shape (runs,), non-decreasing
    begin: IntArray  # int, shape (runs,), increasing within a row: the first masked position
    end: IntArray  # int, shape (runs,): the position behind the last one
    hidden: BoolArray  # bool, shape (runs,)
    entries: Entries
    # Rows that lack pieces of their context, or have more masks (`metrics.MaskRows`), as they are read.
    others: OwnIds = OwnIds(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int64))  # noqa: RUF009

    def __len__(self) -> int:
        return len(self.source)

    def select(self, rows: BoolArray) -> "MaskedRows":
        """The same with some of the rows. bool, shape (rows,)."""
        if rows.all():
            return self
        number, runs, entries = np.cumsum(rows) - 1, rows[self.run_row], self.entries.at(rows[self.entries.row])
        run = number[self.run_row[runs]], self.begin[runs], self.end[runs], self.hidden[runs]
        return MaskedRows(self.source[rows], *run, entries._replace(row=number[entries.row]), self.others)

    def with_entries(self, wanted: BoolArray) -> "MaskedRows":
        """The same with some of the entries, and the rows that have them. bool, shape (entries,)."""
        if wanted.all():
            return self
        kept = replace(self, entries=self.entries.at(wanted))
        return kept.select(np.bincount(kept.entries.row, minlength=len(self)) > 0)

    @property
    def runs_of(self) -> Groups:
        """The runs of each row."""
        return Groups.by(self.run_row, len(self))

    def runs_in(self, rows: IntArray) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
        """The runs of some of the rows, one row after the other: the index of its row among these, `begin`, `end` and
        `hidden`.
        """
        runs_of = self.runs_of
        runs = runs_of.take(rows)
        return Groups(runs_of.lengths[rows]).owner, self.begin[runs], self.end[runs], self.hidden[runs]


def joined(parts: Sequence[MaskedRows], n_contexts: int) -> MaskedRows:
    """The rows of all parts."""
    if len(parts) < 2:
        return parts[0] if parts else _nothing()
    before, others_before = Groups.of(parts).starts, Groups.of([rows.others.length for rows in parts]).starts
    entries = [rows.entries._replace(row=rows.entries.row + n) for rows, n in zip(parts, before)]
    sources = [rows.source + n * (rows.source >= n_contexts) for rows, n in zip(parts, others_before)]
    return MaskedRows(
        np.concatenate(sources),
        np.concatenate([rows.run_row + n for rows, n in zip(parts, before)]),
        np.concatenate([rows.begin for rows in parts]),
        np.concatenate([rows.end for rows in parts]),
        np.concatenate([rows.hidden for rows in parts]),
        Entries._make(map(np.concatenate, zip(*entries))),
        OwnIds._make(map(np.concatenate, zip(*(rows.others for rows in parts)))),
    )


def masked_rows(
    contexts: Contexts,
    metrics: Sequence[Metric],
    mask_spacing: int | None,
    mask_id: int,
    reach: int | None = None,
) -> MaskedRows:
    """Everything that the metrics mask in some contexts, to score the pieces that are scored there.

    reach (Optional[int]): Where a row would mask more than `WHOLE` pieces, what is so many pieces away from its
        targets, or further, is hidden.
    RAISES (ValueError): Masked sets are to be merged, and a metric masks across words.
    """
    numbered = list(enumerate(metrics))
    within = [(m, metric) for m, metric in numbered if metric.within_words]
    others = [(m, metric) for m, metric in numbered if not metric.within_words]
    # Metrics that mask within words have rows in common, but for rows that are merged.
    together = [within] * bool(within) if mask_spacing is None else [[metric] for metric in within]
    parts = [_rows_of_words(contexts, of_together, reach) for of_together in together]
    parts += [_rows_of_contexts(contexts, m, metric, mask_id, reach) for m, metric in others]
    if mask_spacing is not None:
        parts = [_merge(contexts, metric, rows, mask_spacing) for (_, metric), rows in zip(within + others, parts)]
    return joined(parts, len(contexts))


def _first_of_target(target: IntArray) -> BoolArray:
    """Whether each row is the first one of its target."""
    first = np.zeros(len(target), dtype=bool)
    first[distinct(target)[0]] = True
    return first


# What a row has in the place of a piece.
SEEN, MASKED, HIDDEN = range(3)


def _in_reach(masked: BoolArray, target: IntArray, reach: int | None) -> Matrix:
    """What each row of one metric has in the places of the pieces. In a large set, what is out of reach of all that it
    scores is hidden. int8, shape (rows, pieces).
    """
    n = masked.shape[1]
    if reach is None or reach >= n:
        return masked.astype(np.int8)
    sets, row = distinct_rows(masked)
    places, near = sets.astype(np.int8), np.zeros(sets.shape, dtype=bool)
    for distance in range(1 - reach, reach):
        inside = (0 <= target + distance) & (target + distance < n)
        near[row[inside], target[inside] + distance] = True
    places[sets & ~near & (sets.sum(axis=1) > WHOLE)[:, None]] = HIDDEN
    return places[row]


def runs_of(places: Matrix) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """The runs of what is masked, or hidden, row by row: the row of each, its first column, the column behind its last,
    and whether it is hidden.
    """
    padded = np.full((len(places), places.shape[1] + 2), SEEN, dtype=np.int8)
    padded[:, 1:-1] = places
    changes = padded[:, 1:] != padded[:, :-1]
    row, begin = np.nonzero(changes & (padded[:, 1:] != SEEN))
    return row, begin, np.nonzero(changes & (padded[:, :-1] != SEEN))[1], places[row, begin] == HIDDEN


def _pattern(asked: Sequence[tuple[int, MaskRows]], reach: int | None) -> MaskedRows:
    """The rows of some metrics for one word, or one context. Equal rows of several metrics are one row. Positions and
    pieces count from 0 within the word or context: `_apply` moves them to where it stands.

    asked (Sequence[tuple[int, MaskRows]]): For each metric, its index and the rows that it gives.
    """
    of_metrics = []
    for m, (target, masked, weight, _) in asked:
        is_first = _first_of_target(target)
        of_metrics.append((_in_reach(masked, target, reach), target, np.full(len(target), m), weight, is_first))
    masks, target, *others = (np.concatenate(column) for column in zip(*of_metrics))
    masks, row = distinct_rows(masks)
    return MaskedRows(np.zeros(len(masks), int), *runs_of(masks), Entries(row, target, target, *others))


def _of_words(n: int, metrics: tuple[tuple[int, Metric], ...], reach: int | None) -> MaskedRows:
    """The pattern of words of n pieces. A metric that masks within words depends on nothing else."""
    return _pattern([(m, metric.mask_rows(np.zeros(n, dtype=np.int64))) for m, metric in metrics], reach)


_kept_of_words = lru_cache(maxsize=256)(_of_words)


def _rows_of_words(contexts: Contexts, metrics: Sequence[tuple[int, Metric]], reach: int | None = None) -> MaskedRows:
    """The rows of metrics that mask within words: word by word, all words of a length at once."""
    for _, metric in metrics:
        metric.check_claim()
    to_score = np.flatnonzero(contexts.to_score)
    words = Groups.beginning(begins(contexts.word[to_score]))
    scored = np.bincount(words.owner, contexts.scored[to_score], len(words)) > 0
    # Else other pieces stand between those to score.
    is_whole = to_score[words.ends - 1] - to_score[words.starts] == words.lengths - 1
    parts = list[MaskedRows]()
    for n in np.unique(words.lengths[scored]).tolist():
        pattern = (_kept_of_words if n <= KEPT_WORDS else _of_words)(n, tuple(metrics), reach)
        for whole in (True, False):
            first_pieces = words.starts[scored & (words.lengths == n) & (is_whole == whole)]
            if len(first_pieces):
                parts.append(_apply(contexts, to_score, first_pieces, pattern if whole else _by_piece(pattern)))
    return joined(parts, len(contexts))


def _apply(contexts: Contexts, to_score: IntArray, words: IntArray, pattern: MaskedRows) -> MaskedRows:
    """The rows of some words. words (int array, shape (words,)): Where each begins in `to_score`."""

    def in_each(before: IntArray, values: IntArray) -> IntArray:
        return (before[:, None] + values).ravel()

    rows_before = np.arange(len(words)) * len(pattern)
    piece, begin, last = (to_score[in_each(words, x)] for x in (pattern.entries.piece, pattern.begin, pattern.end - 1))
    entries = pattern.entries.at(np.tile(np.arange(len(pattern.entries.row)), len(words)))
    row = in_each(rows_before, pattern.entries.row)
    rows = MaskedRows(
        source=np.repeat(contexts.context[to_score[words]], len(pattern)),
        run_row=in_each(rows_before, pattern.run_row),
        begin=contexts.position[begin],
        end=contexts.position[last] + 1,
        hidden=np.tile(pattern.hidden, len(words)),
        entries=entries._replace(row=row, position=contexts.position[piece], piece=piece),
    )
    return rows.with_entries(contexts.scored[piece])


def _by_piece(pattern: MaskedRows) -> MaskedRows:
    """The same with a run for each piece."""
    run = Groups(pattern.end - pattern.begin).owner
    begin = spread(pattern.begin, pattern.end - pattern.begin)
    return replace(pattern, run_row=pattern.run_row[run], begin=begin, end=begin + 1, hidden=pattern.hidden[run])


def _rows_of_contexts(contexts: Contexts, m: int, metric: Metric, mask_id: int, reach: int | None = None) -> MaskedRows:
    """The rows of a metric that may mask across words: context by context."""
    # If a metric hides all that follows a piece, it does so though that is not to be scored. Of the other metrics, what
    # is not to be scored stays in sight.
    hides_what_follows, parts = not metric.shows_what_follows, list[MaskedRows]()
    for c in np.unique(contexts.context[contexts.scored]).tolist():
        own = contexts.pieces_of[c]
        asked = own.start + np.flatnonzero(contexts.to_score[own] | hides_what_follows)
        rows = metric.mask_rows(contexts.word[asked] - contexts.word[asked[0]])
        # What is in reach depends on all that a set scores. Without a limit, the others need not be looked at.
        if reach is None or rows.removed is not None:
            scored = contexts.scored[asked[rows.target]]
            rows = MaskRows._make(None if array is None else array[scored] for array in rows)
        if rows.removed is not None:
            parts.append(_rows_as_read(contexts, c, asked, m, rows, rows.removed, mask_id))
        else:
            pattern, is_whole = _pattern([(m, rows)], reach), asked[-1] - asked[0] == len(asked) - 1
            parts.append(_apply(contexts, asked, np.zeros(1, int), pattern if is_whole else _by_piece(pattern)))
    return joined(parts, len(contexts))


def _rows_as_read(
    contexts: Contexts, c: int, asked: IntArray, m: int, rows: MaskRows, removed: BoolArray, mask_id: int
) -> MaskedRows:
    """The rows of a context from which pieces are removed. asked (int array): What the metric was asked of."""
    masked, ids, asked_position = rows.masked, contexts.ids[contexts.ids_of[c]], contexts.position[asked]
    end = int(contexts.position[contexts.pieces_of.ends[c] - 1]) + 1
    added = masked.shape[1] - len(asked)  # masks behind the last piece
    ids = np.concatenate([ids[:end], np.full(added, mask_id, dtype=np.int32), ids[end:]])
    is_mask, kept = np.zeros((len(masked), len(ids)), dtype=bool), np.ones((len(masked), len(ids)), dtype=bool)
    is_mask[:, np.append(asked_position, end + np.arange(added))] = masked
    kept[:, asked_position], kept[:, end : end + added] = ~removed, masked[:, len(asked) :]
    row, none = np.arange(len(masked)), np.zeros(0, dtype=np.int64)
    position = (np.cumsum(kept, axis=1) - 1)[row, asked_position[rows.target]]
    of_metric, first = np.full(len(row), m), _first_of_target(rows.target)
    entries = Entries(row, position, asked[rows.target], of_metric, rows.weight, first)
    own_ids = OwnIds(np.where(is_mask, np.int32(mask_id), ids)[kept], kept.sum(axis=1))
    return MaskedRows(len(contexts) + row, none, none, none, none > 0, entries, own_ids)


def _nothing() -> MaskedRows:
    none = np.zeros(0, dtype=np.int64)
    entries = Entries(none, none, none, none, none.astype(float), none.astype(bool))
    return MaskedRows(none, none, none, none, none > 0, entries)


def _merge(contexts: Contexts, metric: Metric, rows: MaskedRows, spacing: int) -> MaskedRows:
    """Rows whose masked sets are unions of the sets of one metric."""
    first, last, word_end = extents(contexts, metric, rows, "mask_spacing")
    number, n_merged, source = np.zeros(len(first), dtype=np.int64), 0, [rows.source[:0]]
    by_source = np.argsort(rows.source, kind="stable")
    for own in map(by_source.__getitem__, Groups.beginning(begins(rows.source[by_source]))):
        shared = share_passes(first[own], last[own], word_end[own], spacing)
        number[own] = n_merged + shared
        source.append(np.full(shared.max() + 1, rows.source[own[0]]))
        n_merged += len(source[-1])
    run_row = number[rows.run_row]
    order = np.lexsort((rows.begin, run_row))
    run = run_row[order], rows.begin[order], rows.end[order], rows.hidden[order]
    return MaskedRows(np.concatenate(source), *run, rows.entries._replace(row=number[rows.entries.row]))


def extents(contexts: Contexts, metric: Metric, rows: MaskedRows, setting: str) -> tuple[IntArray, IntArray, IntArray]:
    """The first and the last masked position of each row, and the position behind the word that holds them.

    RAISES (ValueError): A row masks pieces of several words, or does not mask its target, or lacks pieces: such rows
        cannot share a forward pass, as a setting asks.
    """
    runs_of, entries = rows.runs_of, rows.entries
    if not len(rows.others.length) and (runs_of.lengths > 0).all():
        first, last = rows.begin[runs_of.starts], rows.end[runs_of.ends - 1] - 1
        shape = len(rows), int(contexts.lengths.max(initial=0)) + 1
        target = np.ravel_multi_index((entries.row, entries.position), shape)
        run = np.searchsorted(np.ravel_multi_index((rows.run_row, rows.begin), shape), target, side="right") - 1
        masks_target = (rows.run_row[run] == entries.row) & (entries.position < rows.end[run])
        first_piece = contexts.pieces_of.starts[rows.source]
        before = contexts.position[first_piece]
        word = contexts.word[first_piece + first - before]
        if masks_target.all() and (word == contexts.word[first_piece + last - before]).all():
            return first, last, np.searchsorted(contexts.word, word, side="right") - first_piece + before
    raise PLLError(
        f"The metric {metric.name!r} does not mask each scored piece together with pieces of its own word "
        "alone, so its forward passes cannot be shared.",
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


def distinct_rows(matrix: npt.NDArray[Entry]) -> tuple[npt.NDArray[Entry], IntArray]:
    """The distinct rows of a matrix, and for each row of the matrix the index of its distinct row."""
    matrix = np.ascontiguousarray(matrix)
    if len(matrix) and (matrix == matrix[0]).all():  # as where nothing is masked: long rows take long to sort
        return matrix[:1].copy(), np.zeros(len(matrix), dtype=np.int64)
    as_bytes = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return matrix[first], inverse
