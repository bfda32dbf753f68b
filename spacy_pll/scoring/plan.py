"""The plans for some contexts: what is read with all masks of a context in one pass, and what is read row by row."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..arrays import BoolArray
from ..metrics import Metric, masks_within_words
from .groups import GroupPlan, near_positions
from .masks import MaskBlock, extent, iter_mask_blocks, masked_positions
from .passes import RowPlan
from .windows import Context

# The most ids in the masked contexts of one plan. It bounds a plan's memory to some 100 MB.
MAX_PLANNED_IDS = 4_000_000


def make_plans(
    contexts: Sequence[Context],
    metrics: Sequence[Metric],
    mask_id: int,
    mask_spacing: int | None = None,
    mask_margin: int | None = None,
    max_ids: int = MAX_PLANNED_IDS,
) -> Iterator[RowPlan | GroupPlan]:
    """Plan the forward passes for some contexts, the longest first, in plans of bounded size.

    Each target is in one plan, so the scores of a context are the sums over the plans.

    mask_spacing (Optional[int]): Masked words of one context that are at least this many pieces
        apart share a forward pass; None: each word has its own passes.
    mask_margin (Optional[int]): All masks of a context share a forward pass, in groups with so many pieces on each side
        of the masked ones (`scoring.groups`); None: each has its own row. A group that would be the whole context is a
        row of its own, which is the same and cheaper.
    max_ids (int): The most ids in the masked contexts of one plan, before equal contexts are joined.
    """
    # By the margin of the groups in which they are read; None: those that are read row by row.
    waiting: dict[int | None, list[MaskBlock]] = {None: [], mask_margin: []}
    cost = dict.fromkeys(waiting, 0)

    def plan(margin: int | None) -> RowPlan | GroupPlan:
        blocks, waiting[margin], cost[margin] = waiting[margin], [], 0
        if margin is None:
            return RowPlan(contexts, blocks, len(metrics), mask_id)
        return GroupPlan(contexts, blocks, len(metrics), mask_id, margin)

    for whole in iter_mask_blocks(contexts, metrics, mask_spacing, max_ids):
        for margin, block in _by_margin(whole, contexts[whole.context], metrics[whole.metric], mask_margin):
            size = len(block.masked) * len(contexts[block.context])
            if waiting[margin] and cost[margin] + size > max_ids:
                yield plan(margin)
            waiting[margin].append(block)
            cost[margin] += size
    yield from (plan(margin) for margin in waiting if waiting[margin])


def estimate_ids(scored: int, length: int, mask_id: int, spacing: int | None = None, margin: int | None = None) -> int:
    """About how many ids the passes for a context read under one metric, before anything is planned.

    scored (int): How many of its pieces are scored.
    length (int): How many ids it has.
    mask_id (int): Negative for a model that reads left to right, in one pass without masks.
    """
    if mask_id < 0:
        return length
    if margin is not None:
        return min(scored * length, length + scored * (2 + 2 * margin))
    return min(scored, 2 * spacing if spacing else scored) * length


def _by_margin(
    block: MaskBlock, context: Context, metric: Metric, margin: int | None
) -> Iterator[tuple[int | None, MaskBlock]]:
    """A block, in parts: those rows of it that are read as they are (None), and those in groups, with their margin."""
    if margin is None:
        yield None, block
        return
    if not masks_within_words(metric):  # it does not say, so its rows are checked
        extent(block, context, metric, "mask_margin")
    near = near_positions(masked_positions(block, context), margin)
    whole: BoolArray = np.asarray(near.all(axis=1))
    for its_margin, rows in ((None, whole), (margin, ~whole)):
        if rows.any():
            yield its_margin, block.select(rows)
