"""What the metrics mask in each context: rows of masked positions, and the pieces that each row scores.

With `mask_spacing`, masked sets of different words that are far enough apart are merged into
one. Masked language models are trained with about 15 % of the pieces masked at once, so one
forward pass can serve several words. What is merged depends on the context and the metric
alone, so a score depends neither on the batch nor on the other metrics.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..arrays import BoolArray, FloatArray, IntArray, begins, bounds, spread
from ..errors import PLLError
from ..metrics import (
    MaskRows,
    Metric,
    cached,
    check_claim,
    check_mask_rows,
    masks_within_words,
    metric_name,
    shows_what_follows,
)
from .windows import Contexts

Item = TypeVar("Item", bound=np.generic)
Matrix = npt.NDArray[np.int8]

# The patterns of words of up to so many pieces are kept. Those of longer ones may take megabytes each.
KEPT = 30
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

    def with_entries(self, some: BoolArray) -> "MaskedRows":
        """The same with some of the entries, and the rows that have them. bool, shape (entries,)."""
        if some.all():
            return self
        kept = replace(self, entries=self.entries.at(some))
        return kept.select(np.bincount(kept.entries.row, minlength=len(self)) > 0)

    def run_edges(self) -> IntArray:
        """Where the runs of each row begin, and where the last ones end. int, shape (rows + 1,)."""
        return np.searchsorted(self.run_row, np.arange(len(self) + 1))


def joined(parts: Sequence[MaskedRows], n_contexts: int) -> MaskedRows:
    """The rows of all parts."""
    if len(parts) == 1:
        return parts[0]
    before = bounds(np.array([len(part) for part in parts])).tolist()
    others_before = bounds(np.array([len(part.others.length) for part in parts])).tolist()
    entries = [part.entries._replace(row=part.entries.row + n) for part, n in zip(parts, before)]
    sources = [part.source + n * (part.source >= n_contexts) for part, n in zip(parts, others_before)]
    return MaskedRows(
        np.concatenate(sources),
        np.concatenate([part.run_row + n for part, n in zip(parts, before)]),
        np.concatenate([part.begin for part in parts]),
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.hidden for part in parts]),
        Entries._make(map(np.concatenate, zip(*entries))),
        OwnIds._make(map(np.concatenate, zip(*(part.others for part in parts)))),
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
    within = [(m, metric) for m, metric in numbered if masks_within_words(metric)]
    others = [(m, metric) for m, metric in numbered if not masks_within_words(metric)]
    if mask_spacing is None:
        parts = [_rows_of_words(contexts, within, reach)] if within else []
        parts += [_rows_of_contexts(contexts, m, metric, mask_id, reach) for m, metric in others]
        return joined(parts, len(contexts))
    alone = [(metric, _rows_of_words(contexts, [(m, metric)])) for m, metric in within]
    alone += [(metric, _rows_of_contexts(contexts, m, metric, mask_id)) for m, metric in others]
    return joined([_merge(contexts, metric, rows, mask_spacing) for metric, rows in alone], len(contexts))


def _ask(metric: Metric, word: IntArray) -> MaskRows:
    rows = metric(word)
    check_mask_rows(rows, len(word), metric)
    return rows


def _is_first(target: IntArray) -> BoolArray:
    """Which rows are the first ones of their targets."""
    first = np.zeros(len(target), dtype=bool)
    first[np.unique(target, return_index=True)[1]] = True
    return first


def runs(masked: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """The runs of a mask matrix, row by row: the row, the first column and the column behind the last of each."""
    edges = np.zeros((len(masked), masked.shape[1] + 1), dtype=np.int8)
    edges[:, :-1] = masked
    edges[:, 1:] -= masked
    row, begin = np.nonzero(edges > 0)
    return row, begin, np.nonzero(edges < 0)[1]


# What a row has in the place of a piece.
SEEN, MASKED, HIDDEN = range(3)


def _in_reach(masked: BoolArray, target: IntArray, reach: int | None) -> tuple[Matrix, IntArray]:
    """The distinct sets of what one metric masks, and the number of the set of each row. In a large set, what is out of
    reach of all that it scores is hidden.

    RETURNS (int8 array, shape (sets, pieces), and int array, shape (rows,)).
    """
    sets, row = distinct_rows(masked)
    places = sets.astype(np.int8)
    n = sets.shape[1]
    if reach is not None and reach < n:
        near = np.zeros(sets.shape, dtype=bool)
        for distance in range(1 - reach, reach):
            inside = (0 <= target + distance) & (target + distance < n)
            near[row[inside], target[inside] + distance] = True
        places[sets & ~near & (sets.sum(axis=1) > WHOLE)[:, None]] = HIDDEN
    return places, row


def runs_of(places: Matrix) -> tuple[IntArray, IntArray, IntArray, BoolArray]:
    """As `runs`, of what is masked and of what is hidden, with which of them are hidden."""
    of_both = [runs(places == kind) for kind in (MASKED, HIDDEN)]
    row, begin, end = (np.concatenate(columns) for columns in zip(*of_both))
    order = np.lexsort((begin, row))
    return row[order], begin[order], end[order], order >= len(of_both[0][0])


@dataclass
class _Pattern:
    """What some metrics mask in any word of so many pieces. Equal sets of several metrics are one row."""

    n_rows: int
    run_row: IntArray  # int, shape (runs,)
    begin: IntArray  # int, shape (runs,): the first piece of the word
    end: IntArray  # int, shape (runs,)
    hidden: BoolArray  # bool, shape (runs,)
    entries: Entries  # with the piece of the word as the position and as the piece


def _pattern(n: int, metrics: tuple[tuple[int, Metric], ...], reach: int | None) -> _Pattern:
    """That of words of n pieces. A metric that masks within words depends on nothing else."""
    found = []
    for m, metric in metrics:
        rows = _ask(metric, np.zeros(n, dtype=np.int64))
        places, row = _in_reach(rows.masked, rows.target, reach)
        of_metric = np.full(len(rows.target), m)
        found.append((places[row], rows.target, of_metric, rows.weight, _is_first(rows.target)))
    places, target, *others = (np.concatenate(column) for column in zip(*found))
    places, row = distinct_rows(places)
    return _Pattern(len(places), *runs_of(places), Entries(row, target, target, *others))


_kept_pattern = cached(maxsize=256)(_pattern)


def _rows_of_words(contexts: Contexts, metrics: Sequence[tuple[int, Metric]], reach: int | None = None) -> MaskedRows:
    """The rows of metrics that mask within words: word by word, all words of a length at once."""
    for _, metric in metrics:
        check_claim(metric)
    to_score = np.flatnonzero(contexts.to_score)
    starts = np.flatnonzero(begins(contexts.word[to_score]))
    size = np.diff(np.append(starts, len(to_score)))
    scored = np.logical_or.reduceat(contexts.scored[to_score], starts) if len(starts) else starts > 0
    first, last = to_score[starts], to_score[starts + size - 1]
    is_whole = last - first == size - 1  # else other pieces stand between those to score
    parts = [_nothing()]
    for n in np.unique(size[scored]).tolist():
        pattern = (_kept_pattern if n <= KEPT else _pattern)(n, tuple(metrics), reach)
        for whole in (True, False):
            words = starts[scored & (size == n) & (is_whole == whole)]
            if len(words):
                parts.append(_apply(contexts, to_score, words, pattern if whole else _by_piece(pattern)))
    return joined(parts[1:] or parts, len(contexts))


def _apply(contexts: Contexts, to_score: IntArray, words: IntArray, pattern: _Pattern) -> MaskedRows:
    """The rows of some words. words (int array, shape (words,)): Where each begins in `to_score`."""
    before = (np.arange(len(words)) * pattern.n_rows)[:, None]
    entries = pattern.entries.at(np.tile(np.arange(len(pattern.entries.row)), len(words)))
    row = (before + pattern.entries.row).ravel()
    piece = to_score[words[:, None] + pattern.entries.piece].ravel()
    begin, last = (to_score[words[:, None] + x].ravel() for x in (pattern.begin, pattern.end - 1))
    rows = MaskedRows(
        source=np.repeat(contexts.context[to_score[words]], pattern.n_rows),
        run_row=(before + pattern.run_row).ravel(),
        begin=contexts.position[begin],
        end=contexts.position[last] + 1,
        hidden=np.tile(pattern.hidden, len(words)),
        entries=entries._replace(row=row, position=contexts.position[piece], piece=piece),
    )
    return rows.with_entries(contexts.scored[piece])


def _by_piece(pattern: _Pattern) -> _Pattern:
    """The same with a run for each piece."""
    size = pattern.end - pattern.begin
    begin, run_row = spread(pattern.begin, size), np.repeat(pattern.run_row, size)
    return replace(pattern, run_row=run_row, begin=begin, end=begin + 1, hidden=np.repeat(pattern.hidden, size))


def _rows_of_contexts(contexts: Contexts, m: int, metric: Metric, mask_id: int, reach: int | None = None) -> MaskedRows:
    """The rows of a metric that may mask across words: context by context."""
    # If a metric hides all that follows a piece, it does so though that is not to be scored. Of the other metrics, what
    # is not to be scored stays in sight.
    hides_what_follows = not shows_what_follows(metric)
    parts = [_nothing()]
    for c in np.unique(contexts.context[contexts.scored]).tolist():
        pieces = np.arange(contexts.first[c], contexts.first[c + 1])
        asked = pieces if hides_what_follows else pieces[contexts.to_score[pieces]]
        rows = _ask(metric, contexts.word[asked] - contexts.word[asked[0]])
        scored = contexts.scored[asked[rows.target]]
        piece = asked[rows.target[scored]]
        if rows.removed is None:
            # What is in reach depends on all that a set scores. Without a limit, the others need not be looked at.
            looked_at = scored | (reach is not None)
            of_asked, row = _in_reach(rows.masked[looked_at], rows.target[looked_at], reach)
            used, row = np.unique(row[scored[looked_at]], return_inverse=True)
            places = np.zeros((len(used), len(pieces)), dtype=np.int8)
            places[:, asked - pieces[0]] = of_asked[used]
            run_row, begin, end, hidden = runs_of(places)
            run = run_row, contexts.position[pieces[0]] + begin, contexts.position[pieces[0]] + end, hidden
            source, position, others = np.full(len(places), c), contexts.position[piece], _nothing().others
        else:
            row = np.arange(len(piece))
            run, source = (row[:0], row[:0], row[:0], row[:0] > 0), len(contexts) + row
            others, position = _as_read(contexts, c, asked, rows.masked[scored], rows.removed[scored], piece, mask_id)
        of_metric, first = np.full(len(piece), m), _is_first(rows.target)[scored]
        entries = Entries(row, position, piece, of_metric, rows.weight[scored], first)
        parts.append(MaskedRows(source, *run, entries, others))
    return joined(parts[1:] or parts, len(contexts))


def _as_read(
    contexts: Contexts, c: int, asked: IntArray, masked: BoolArray, removed: BoolArray, target: IntArray, mask_id: int
) -> tuple[OwnIds, IntArray]:
    """The rows of a context from which pieces are removed: `MaskedRows.others`, and where each target stands.

    asked, target (int arrays, shape (columns,) and (rows,)): Pieces.
    """
    ids = contexts.ids[contexts.bounds[c] : contexts.bounds[c + 1]]
    place, end = contexts.position[asked], int(contexts.position[contexts.first[c + 1] - 1]) + 1
    added = masked.shape[1] - len(asked)  # masks behind the last piece
    ids = np.concatenate([ids[:end], np.full(added, mask_id, dtype=np.int32), ids[end:]])
    is_mask, kept = np.zeros((len(masked), len(ids)), dtype=bool), np.ones((len(masked), len(ids)), dtype=bool)
    is_mask[:, np.append(place, end + np.arange(added))] = masked
    kept[:, place], kept[:, end : end + added] = ~removed, masked[:, len(asked) :]
    position = (np.cumsum(kept, axis=1) - 1)[np.arange(len(masked)), contexts.position[target]]
    return OwnIds(np.where(is_mask, np.int32(mask_id), ids)[kept], kept.sum(axis=1)), position


def _nothing() -> MaskedRows:
    none = np.zeros(0, dtype=np.int64)
    entries = Entries(none, none, none, none, none.astype(float), none.astype(bool))
    return MaskedRows(none, none, none, none, none > 0, entries)


def _merge(contexts: Contexts, metric: Metric, rows: MaskedRows, spacing: int) -> MaskedRows:
    """Rows whose masked sets are unions of the sets of one metric."""
    first, last, word_end = extents(contexts, metric, rows, "mask_spacing")
    number, n_merged, source = np.zeros(len(first), dtype=np.int64), 0, [rows.source[:0]]
    by_source = np.argsort(rows.source, kind="stable")
    for own in np.split(by_source, np.flatnonzero(np.diff(rows.source[by_source])) + 1) if len(rows) else ():
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
    edges = rows.run_edges()
    entries = rows.entries
    if not len(rows.others.length) and (np.diff(edges) > 0).all():
        first, last = rows.begin[edges[:-1]], rows.end[edges[1:] - 1] - 1
        width = int(contexts.lengths.max(initial=0)) + 1
        place = entries.row * width + entries.position
        run = np.searchsorted(rows.run_row * width + rows.begin, place, side="right") - 1
        masks_target = (rows.run_row[run] == entries.row) & (entries.position < rows.end[run])
        first_piece = contexts.first[rows.source]
        before = contexts.position[first_piece]
        word = contexts.word[first_piece + first - before]
        if masks_target.all() and (word == contexts.word[first_piece + last - before]).all():
            return first, last, np.searchsorted(contexts.word, word, side="right") - first_piece + before
    raise PLLError(
        f"The metric {metric_name(metric)!r} does not mask each scored piece together with pieces of its own word "
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


def distinct_rows(matrix: npt.NDArray[Item]) -> tuple[npt.NDArray[Item], IntArray]:
    """The distinct rows of a matrix, and for each row of the matrix the index of its distinct row."""
    matrix = np.ascontiguousarray(matrix)
    if len(matrix) and (matrix == matrix[0]).all():  # as where nothing is masked: long rows take long to sort
        return matrix[:1].copy(), np.zeros(len(matrix), dtype=np.int64)
    as_bytes = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel()
    _, first, inverse = np.unique(as_bytes, return_index=True, return_inverse=True)
    return matrix[first], inverse
