"""What a student learns from: pieces that are drawn, and what is masked for the teacher and the student while they are
predicted.

The student learns what the teacher says at a piece when the metric's pieces are masked and nothing else. To ask that of
the teacher exactly, each piece takes a pass of its own. Here several pieces of different words share a pass, as with
`mask_spacing`: their masks are at least `distance` pieces apart.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..metrics import BoolArray, FloatArray, IntArray, get_metric, masks_within_words, pll_metrics
from ..scoring.mask_blocks import distinct_rows, share_passes
from ..scoring.windows import Context

# Words to try a metric on.
TRIAL = np.array([0, 0, 0, 1, 2, 2])


class Examples(NamedTuple):
    """One training step: what the two models read, and where their predictions are compared."""

    student_ids: IntArray  # int32, shape (texts, longest)
    student_lengths: IntArray  # int, shape (texts,)
    teacher_ids: IntArray  # int32, shape (teacher's rows, longest)
    teacher_lengths: IntArray  # int, shape (teacher's rows,)
    student_row: IntArray  # int, shape (targets,)
    teacher_row: IntArray  # int, shape (targets,)
    position: IntArray  # int, shape (targets,): in both
    target: IntArray  # int, shape (targets,): the true id


def check_can_be_distilled(metric_name: str) -> None:
    """RAISES (ValueError): The metric does not mask within words, or scores a piece by several masked contexts."""
    if not _has_one_row_per_piece(metric_name):
        able = sorted(name for name in pll_metrics.get_all() if _has_one_row_per_piece(name))
        raise ValueError(
            f"The metric {metric_name!r} cannot be distilled: that needs a metric that scores each piece by one masked "
            f"context, in which pieces of its own word are masked. Give one of these: {', '.join(able)}."
        )


def _has_one_row_per_piece(metric_name: str) -> bool:
    metric = get_metric(metric_name)
    if not masks_within_words(metric):
        return False
    rows = metric(TRIAL)
    return np.array_equal(np.sort(rows.target), np.arange(len(TRIAL))) and bool((rows.weight == 1).all())


@lru_cache(maxsize=1024)
def masks_of_word(metric_name: str, k: int) -> BoolArray:
    """What a metric masks in a word of k pieces. bool, shape (k, k): row t while piece t is the target."""
    rows = get_metric(metric_name)(np.zeros(k, dtype=np.int64))
    return rows.masked[np.argsort(rows.target)]


@lru_cache(maxsize=16)
def first_draw(distance: int) -> FloatArray:
    """The cumulative probabilities of the first piece that is drawn, such that all are drawn equally often.

    The draws are a renewal process, whose steps are evenly distributed over `distance` to 2 `distance` - 1 pieces. The
    first piece is at k with a probability in proportion to that of a step longer than k.
    """
    k = np.arange(2 * distance - 1)
    longer = np.minimum(1.0, (2 * distance - 1 - k) / distance)
    return np.cumsum(longer) / longer.sum()


class MaskedSets:
    """For each piece of a context, the set of pieces that a metric masks to score it.

    word (int array, shape (pieces,)): The word of each piece.
    """

    def __init__(self, metric_name: str, word: IntArray):
        self.metric_name = metric_name
        starts, lengths = np.unique(word, return_index=True, return_counts=True)[1:]
        self.start = np.repeat(starts, lengths)  # int, shape (pieces,): where the piece's word begins
        self.word_end = np.repeat(starts + lengths, lengths)  # int, shape (pieces,): where it ends
        self.first = self.start.copy()  # int, shape (pieces,): the first piece of the set
        self.last = self.start.copy()  # int, shape (pieces,): the last piece of the set
        self.number = np.zeros(len(word), dtype=np.int64)  # shape (pieces,): equal for equal sets of a word
        for k in np.unique(lengths).tolist():
            masks = masks_of_word(metric_name, k)
            pieces = starts[lengths == k][:, None] + np.arange(k)
            self.first[pieces] += masks.argmax(axis=1)
            self.number[pieces] = distinct_rows(masks)[1]
            self.last[pieces] += k - 1 - masks[:, ::-1].argmax(axis=1)

    def mask(self, ids: IntArray, first: int, targets: Sequence[int], mask_id: int) -> None:
        """Mask the sets of some targets in a context's ids. first (int): The position of the first piece."""
        for t in targets:
            start, end = int(self.start[t]), int(self.word_end[t])
            ids[first + start : first + end][masks_of_word(self.metric_name, end - start)[t - start]] = mask_id

    def in_one_pass(self, spacing: int, rng: np.random.Generator) -> IntArray:
        """The targets of one of the passes in which `mask_spacing` scores the context, drawn at random. Increasing."""
        # Targets with the same set, as those of a word under `whole_word`, are in one pass.
        same = np.stack([self.first, self.last, self.number])
        _, one, inverse = np.unique(same, axis=1, return_index=True, return_inverse=True)
        passes = share_passes(self.first[one], self.last[one], self.word_end[one], spacing)[inverse.ravel()]
        return np.flatnonzero(passes == rng.integers(passes.max() + 1))

    def draw(self, candidates: Sequence[int], distance: int, rng: np.random.Generator) -> list[int]:
        """Draw targets whose sets are at least `distance` pieces apart, and on average half as much further.

        candidates (Sequence[int]): The pieces to draw from, increasing.
        RETURNS (list[int]): At least one.
        """
        n = len(self.first)
        gaps = rng.integers(0, distance, size=n // distance + 2).tolist()
        begin = int(np.searchsorted(first_draw(distance), rng.random(), side="right"))
        i = bisect_left(candidates, begin)
        if i == len(candidates):
            i = int(rng.integers(len(candidates)))
        chosen: list[int] = []
        free = 0
        while i < len(candidates):
            t = candidates[i]
            if self.first[t] < free:
                i += 1
                continue
            chosen.append(t)
            free = max(int(self.last[t]) + distance, int(self.word_end[t]))
            i = bisect_left(candidates, free + gaps[len(chosen)], i + 1)
        return chosen


def make_examples(
    contexts: Sequence[Context],
    metric_name: str,
    mask_spacing: int | None,
    *,
    distance: int,
    passes: int,
    max_targets: int,
    mask_id: int,
    pad_id: int,
    rng: np.random.Generator,
) -> Examples:
    """Draw what is learned in one step.

    contexts (Sequence[Context]): The texts.
    mask_spacing (Optional[int]): How far apart the pieces are that are masked for the student; None: nothing is masked.
    distance (int): The least distance, in pieces, of the sets that are masked in one row of the teacher.
    passes (int): The teacher's rows per text. Each has other targets, and the student predicts all of them in one row.
    max_targets (int): The most targets. If there are more, some are left out at random.
    """
    longest = max(map(len, contexts))
    student_ids = np.full((len(contexts), longest), pad_id, dtype=np.int32)
    teacher_ids = np.full((len(contexts) * passes, longest), pad_id, dtype=np.int32)
    targets: list[tuple[int, int, int, int]] = []  # student's row, teacher's row, position, id
    for row, context in enumerate(contexts):
        sets = MaskedSets(metric_name, context.word)
        student_ids[row, : len(context)] = context.ids
        candidates = list(range(len(context.word)))
        if mask_spacing is not None:
            candidates = sets.in_one_pass(mask_spacing, rng).tolist()
            sets.mask(student_ids[row], context.first, candidates, mask_id)
        for teacher_row in range(row * passes, (row + 1) * passes):
            teacher_ids[teacher_row, : len(context)] = context.ids
            drawn = sets.draw(candidates, distance, rng)
            sets.mask(teacher_ids[teacher_row], context.first, drawn, mask_id)
            targets.extend((row, teacher_row, context.first + t, int(context.ids[context.first + t])) for t in drawn)
    columns = np.array(targets, dtype=np.int64)
    if len(columns) > max_targets:
        columns = columns[np.sort(rng.permutation(len(columns))[:max_targets])]
    lengths = np.array([len(context) for context in contexts])
    return Examples(student_ids, lengths, teacher_ids, np.repeat(lengths, passes), *columns.T)
