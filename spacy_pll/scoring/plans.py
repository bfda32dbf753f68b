"""The plans for some contexts: what is read with all masks of a context in one pass, and what is read row by row."""

from collections.abc import Iterator, Sequence

import numpy as np

from ..metrics import BoolArray, Metric, masks_within_words
from .groups import GroupPlan, masked_positions, near_positions
from .mask_blocks import MaskBlock, extent, iter_mask_blocks
from .plan import Plan
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
) -> Iterator[Plan | GroupPlan]:
    """Plan the forward passes for some contexts, the longest first, in plans of bounded size.

    Each target is in one plan, so the scores of a context are the sums over the plans.

    mask_id (int): The id of the mask token.
    mask_spacing (Optional[int]): Masked words of one context that are at least this many pieces
        apart share a forward pass; None: each word has its own passes.
    mask_margin (Optional[int]): All masks of a context share a forward pass, in groups with so many pieces on each side
        of the masked ones (`scoring.groups`); None: each has its own row. A group that would be the whole context is a
        row of its own, which is the same and cheaper.
    max_ids (int): The most ids in the masked contexts of one plan, before equal contexts are joined.
    """
    rows = _Collected(contexts, len(metrics), mask_id, None, max_ids)
    groups = _Collected(contexts, len(metrics), mask_id, mask_margin, max_ids)
    for block in iter_mask_blocks(contexts, metrics, mask_spacing, max_ids):
        if mask_margin is None:
            yield from rows.add(block)
            continue
        context, metric = contexts[block.context], metrics[block.metric]
        if not masks_within_words(metric):  # it does not say, so its rows are checked
            extent(block, context, metric, "mask_margin")
        near = near_positions(masked_positions(block, context.first, len(context)), mask_margin)
        whole: BoolArray = np.asarray(near.all(axis=1))
        if whole.any():
            yield from rows.add(block.select(whole))
        if not whole.all():
            yield from groups.add(block.select(~whole))
    yield from rows.plan()
    yield from groups.plan()


class _Collected:
    """Blocks, until they are enough for a plan."""

    def __init__(
        self, contexts: Sequence[Context], n_metrics: int, mask_id: int, mask_margin: int | None, max_ids: int
    ):
        self.contexts, self.n_metrics, self.mask_id = contexts, n_metrics, mask_id
        self.mask_margin, self.max_ids = mask_margin, max_ids
        self.blocks: list[MaskBlock] = []
        self.cost = 0

    def add(self, block: MaskBlock) -> Iterator[Plan | GroupPlan]:
        cost = len(block.masked) * len(self.contexts[block.context])
        if self.blocks and self.cost + cost > self.max_ids:
            yield from self.plan()
        self.blocks.append(block)
        self.cost += cost

    def plan(self) -> Iterator[Plan | GroupPlan]:
        """The plan for what there is, if anything."""
        blocks, self.blocks, self.cost = self.blocks, [], 0
        if not blocks:
            return
        if self.mask_margin is None:
            yield Plan(self.contexts, blocks, self.n_metrics, self.mask_id)
        else:
            yield GroupPlan(self.contexts, blocks, self.n_metrics, self.mask_id, self.mask_margin)
