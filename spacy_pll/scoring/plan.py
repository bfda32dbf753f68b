"""The plans for some contexts: what is read with all masks of a context in one pass, and what is read row by row."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..arrays import BoolArray, Groups, begins
from ..metrics import Metric
from .groups import filled, group_passes, near_runs
from .masks import REACH, MaskedRows, extents, masked_rows
from .passes import PassLimits, PlannedPasses, row_passes
from .scores import Wanted
from .windows import Contexts

# The most ids in the masked contexts of one plan, if each scored piece has one row under each metric. It bounds a
# plan's memory to some 100 MB.
MAX_PLANNED_IDS = 4_000_000


def plan_passes(
    contexts: Contexts,
    metrics: Sequence[Metric],
    mask_id: int,
    limits: PassLimits,
    of_groups: PassLimits | None = None,
    mask_spacing: int | None = None,
    mask_margin: int | None = None,
    wanted: Wanted = None,
    prompts: bool = False,
    max_ids: int = MAX_PLANNED_IDS,
) -> Iterator[PlannedPasses]:
    """Plan the forward passes for some contexts, in plans of bounded size.

    Each target is in one plan, so the scores of a context are the sums over the plans.

    limits (PassLimits): Of passes that read rows as they are.
    of_groups (Optional[PassLimits]): Of passes with groups; needed with `mask_margin`.
    mask_spacing (Optional[int]): Masked words of one context that are at least this many pieces
        apart share a forward pass; None: each word has its own passes.
    mask_margin (Optional[int]): All masks of a context share a forward pass, in groups with so many pieces on each side
        of the masked ones (`scoring.groups`); None: each has its own row. A group that would be the whole context is a
        row of its own, which is the same and cheaper. In longer words than `REACH`, what is further away is hidden.
    prompts (bool): See `row_passes`.
    max_ids (int): As `MAX_PLANNED_IDS`.
    """
    # A margin that is the whole context gives the exact scores of long words, too.
    reach = None if mask_margin is None else max(REACH, mask_margin)
    for planned in _parts(contexts, len(metrics), mask_spacing is not None, max_ids):
        rows = masked_rows(planned, metrics, mask_spacing, mask_id, reach)
        alone = (
            np.ones(len(rows), dtype=bool) if mask_margin is None else _is_whole(planned, metrics, rows, mask_margin)
        )
        if mask_margin is not None and not alone.all():
            assert of_groups is not None  # they come with the margin
            yield group_passes(planned, rows.select(~alone), len(metrics), mask_id, mask_margin, of_groups, wanted)
        if alone.any():
            yield row_passes(planned, rows.select(alone), len(metrics), mask_id, limits, wanted, prompts)


def _parts(contexts: Contexts, n_metrics: int, merged: bool, max_ids: int) -> Iterator[Contexts]:
    """The contexts, with some of the words that are scored in each part, those of the longest contexts first.

    merged (bool): Masked sets of several words are merged, so a context is not divided.
    """
    cost = contexts.lengths[contexts.context] * contexts.scored * n_metrics
    if cost.sum() <= max_ids:
        if contexts.scored.any():
            yield contexts
        return
    whole = Groups.beginning(begins(contexts.context if merged else contexts.word))
    by_whole = np.add.reduceat(cost, whole.starts)
    longest_first = np.argsort(-contexts.lengths[contexts.context[whole.starts]], kind="stable")
    plan_of = np.zeros(len(by_whole), dtype=np.int64)
    plan_of[longest_first] = filled(by_whole[longest_first], np.arange(len(by_whole)) == 0, max_ids).cumsum()
    for number in range(1, plan_of.max() + 1):
        scored = contexts.scored & (plan_of[whole.owner] == number)
        if scored.any():
            yield replace(contexts, scored=scored)


def _is_whole(contexts: Contexts, metrics: Sequence[Metric], rows: MaskedRows, margin: int) -> BoolArray:
    """Which rows would be a group that is the whole context. bool, shape (rows,)."""
    for m, metric in enumerate(metrics):
        if not metric.within_words:  # it does not say, so its rows are checked
            extents(contexts, metric, rows.with_entries(rows.entries.metric == m), "mask_margin")
    length = contexts.lengths[rows.source]
    begin, end, row, _ = near_runs(rows.run_row, rows.begin, rows.end, rows.hidden, length, margin)
    return np.bincount(row, end - begin == length[row], len(length)) > 0


def estimate_ids(scored: int, length: int, masks: bool, spacing: int | None = None, margin: int | None = None) -> int:
    """About how many ids the passes for a context read under one metric, before anything is planned.

    scored (int): How many of its pieces are scored.
    length (int): How many ids it has.
    masks (bool): Whether the metric masks anything. If not, one pass reads it.
    """
    if not masks:
        return length
    if margin is not None:
        return min(scored * length, length + scored * (2 + 2 * margin))
    return (min(scored, 2 * spacing) if spacing else scored) * length
