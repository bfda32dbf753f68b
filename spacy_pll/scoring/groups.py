"""All masks of a context in one forward pass: the context as it is, and beside it one group for each masked set.

A row of such a pass holds the *content*, the context unmasked with its special tokens, and behind it *groups*. The
group of a masked set has mask tokens for the masked positions. With a margin, it also has the true pieces at so many
positions on each side. Each member has the position ids of its position in the context. The content attends to itself
alone. A group attends to itself, and to the content at all positions that are not in the group
(`language_model.group_attention`). If the group is the whole context, this is the exact masked pass. With a smaller
group it is an approximation, because the content outside the group has seen what is masked.

The construction is that of pseudo-masks (Bao et al. 2020, "UniLMv2") and of two-stream attention (Yang et al. 2019,
"XLNet"), which use it in training.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, IntArray
from .masks import MaskBlock, distinct_rows, masked_positions
from .passes import Batch, divide
from .scores import WeightedSums
from .windows import Context

# The groups of a row lie in blocks of so many slots, each group in one block. So a group attends to the content and
# to its block, and to no other block.
BLOCK = 32
# A row has up to so many slots for groups, or is up to so many times as long as its content. Longer ones save little:
# the content is then a small part of what is read.
SLOTS, GROUP_ROW = 512, 5


@dataclass(frozen=True, kw_only=True)
class GroupBatch(Batch):
    """One forward pass with groups. A row has the ids of the content, as many as its length, then slots for the groups,
    then padding.
    """

    true: IntArray  # int, shape (rows, longest): the position that each id stands for
    group: IntArray  # int, shape (rows, slots): the number of the slot's group in its row; -1 for an empty slot
    block: int  # slots in a block; the number of slots is a multiple of it

    @property
    def n_ids(self) -> int:
        return super().n_ids + int((self.group >= 0).sum())

    @property
    def can_be_halved(self) -> bool:
        return len(self.ids) > 1 or self.group.shape[1] > self.block

    def _in_first_half(self) -> BoolArray:
        if len(self.ids) > 1:
            return super()._in_first_half()
        before: BoolArray = self.position < self.lengths[0] + self.group.shape[1] // self.block // 2 * self.block
        return before

    def _part(self, part: BoolArray) -> "GroupBatch":
        half, rows = super()._part(part), np.unique(self.row[part])
        block = (half.position - half.lengths[half.row]) // self.block
        # The slots of these targets: all from the first one on, but for the second half of a single row.
        begin, end = block.min() * self.block, (block.max() + 1) * self.block
        columns = np.arange(min(half.lengths.max() + end, self.ids.shape[1]))
        read = np.ix_(rows, np.delete(columns, self.lengths[0] + np.arange(begin)))
        position, group = half.position - begin, self.group[rows, begin:end]
        return replace(half, ids=self.ids[read], true=self.true[read], group=group, position=position)


class _Text(NamedTuple):
    """One distinct context, and its groups."""

    ids: IntArray
    size: IntArray  # int, shape (groups,): members of each group
    first: IntArray  # int, shape (groups,): the index of the first one
    position: IntArray  # int, shape (members,): group by group
    member: IntArray  # int32, shape (members,): the ids
    target_group: IntArray  # int, shape (targets,), non-decreasing
    target_member: IntArray  # int, shape (targets,): index in its group


class _Row(NamedTuple):
    """Some groups of a context, which are read beside it."""

    text: int
    groups: slice
    targets: IntArray  # int, shape (targets,): their indices among those of the text
    start: IntArray  # int, shape (groups,): the first slot of each
    n_slots: int
    length: int  # of content and slots


class GroupPlan(WeightedSums):
    """The forward passes with groups for some masked sets, at least one. Equal sets of equal contexts are one group.

    margin (int): How many pieces beside the masked ones are in a group, on each side.
    """

    def __init__(
        self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, mask_id: int, margin: int
    ):
        by_ids: dict[bytes, list[MaskBlock]] = {}
        for block in blocks:
            by_ids.setdefault(contexts[block.context].ids.tobytes(), []).append(block)
        self._texts: list[_Text] = []
        numbers = []
        self.n_targets = 0
        for blocks_of_text in by_ids.values():
            text, number = _text_of(contexts, blocks_of_text, mask_id, margin)
            numbers.append(number + self.n_targets)
            self._texts.append(text)
            self.n_targets += len(text.target_group)
        self._number = np.concatenate(numbers)  # of each entry's target, text by text
        super().__init__(contexts, [block for blocks_of_text in by_ids.values() for block in blocks_of_text], n_metrics)
        self.n_rows = 0  # known, as the order of the targets, once the batches have been made

    def batches(
        self, max_tokens: int, max_targets: int, pad_id: int, pad: bool = True, n_alternatives: int | None = None
    ) -> Iterator[GroupBatch]:
        """As `RowPlan.batches`. pad (bool): Whether several rows may share a pass."""
        block = max([BLOCK, *(int(text.size.max()) for text in self._texts)])
        rows = [row for t, text in enumerate(self._texts) for row in _rows_of(t, text, block, max_tokens, max_targets)]
        rows.sort(key=lambda row: (-row.length, -row.n_slots))
        first_target = np.cumsum([0] + [len(text.target_group) for text in self._texts])
        order = [first_target[row.text] + row.targets for row in rows]
        self._target_of_entry = np.argsort(np.concatenate(order))[self._number]  # in the order of the batches
        self.n_rows = len(rows)
        lengths = np.array([row.length for row in rows])
        targets = np.cumsum([0] + [len(row.targets) for row in rows])
        for begin, end in divide(lengths, targets, max_tokens if pad else 0, max_targets):
            yield self._batch(rows[begin:end], block, pad_id, n_alternatives)

    def _batch(self, rows: list[_Row], block: int, pad_id: int, n_alternatives: int | None) -> GroupBatch:
        n_slots = max(row.n_slots for row in rows)
        if n_slots <= block:
            block = n_slots  # one block, as long as it has to be
        ids = np.full((len(rows), rows[0].length), pad_id, dtype=np.int32)
        true = np.zeros(ids.shape, dtype=np.int64)
        group = np.full((len(rows), -(-n_slots // block) * block), -1)
        lengths = np.array([len(self._texts[row.text].ids) for row in rows])
        positions, targets = [], []
        for r, (row, n) in enumerate(zip(rows, lengths.tolist())):
            text, first = self._texts[row.text], row.groups.start
            size = text.size[row.groups]
            ends = np.cumsum(size)
            slot = np.arange(ends[-1]) + np.repeat(row.start - ends + size, size)
            members = slice(text.first[first], text.first[first] + ends[-1])
            ids[r, :n], ids[r, n + slot] = text.ids, text.member[members]
            true[r, :n], true[r, n + slot] = np.arange(n), text.position[members]
            group[r, slot] = np.repeat(np.arange(len(size)), size)
            of_target, index = text.target_group[row.targets], text.target_member[row.targets]
            positions.append(n + row.start[of_target - first] + index)
            targets.append(text.ids[text.position[text.first[of_target] + index]])
        row_of_target = np.repeat(np.arange(len(rows)), [len(row.targets) for row in rows])
        position, target = np.concatenate(positions), np.concatenate(targets)
        return GroupBatch(
            ids, lengths, row_of_target, position, target, n_alternatives, true=true, group=group, block=block
        )

    def release_inputs(self) -> None:
        """Free the ids once the batches have been read."""
        self._texts = []


def _text_of(contexts: Sequence[Context], blocks: list[MaskBlock], mask_id: int, margin: int) -> tuple[_Text, IntArray]:
    """The groups of one distinct context, and for each entry of its blocks the number of its target."""
    context = contexts[blocks[0].context]
    length = len(context)
    masked, inverse = distinct_rows(np.concatenate([masked_positions(b, contexts[b.context]) for b in blocks]))
    near = near_positions(masked, margin)
    group, position = np.nonzero(near)
    member = np.where(masked[group, position], mask_id, context.ids[position]).astype(np.int32)
    before = np.cumsum([0] + [len(block.masked) for block in blocks])
    entry_group = np.concatenate([inverse[n + block.row] for n, block in zip(before, blocks)])
    entry_position = np.concatenate([block.piece + contexts[block.context].first for block in blocks])
    distinct, answer = np.unique(entry_group * length + entry_position, return_inverse=True)
    target_group, target_position = distinct // length, distinct % length
    index = np.cumsum(near, axis=1)[target_group, target_position] - 1
    size = near.sum(axis=1)
    return _Text(context.ids, size, np.cumsum(size) - size, position, member, target_group, index), answer


def near_positions(masked: BoolArray, margin: int) -> BoolArray:
    """The masked positions, and those at most `margin` positions beside them. bool, shape (rows, length)."""
    length = masked.shape[1]
    margin = min(margin, length)
    count = np.zeros((len(masked), length + 1), dtype=np.int32)
    np.cumsum(masked, axis=1, out=count[:, 1:])
    at = np.arange(length)
    return count[:, np.minimum(at + margin + 1, length)] > count[:, np.maximum(at - margin, 0)]


def _rows_of(t: int, text: _Text, block: int, max_tokens: int, max_targets: int) -> Iterator[_Row]:
    """Lay out the groups of a context in rows. A row has at least as many slots as ids in its content, so that reading
    the content again and again costs no more than the groups.
    """
    length = len(text.ids)
    slots = max(block, length, min(max_tokens - length, max(SLOTS, (GROUP_ROW - 1) * length)) // block * block)
    first_target = np.searchsorted(text.target_group, np.arange(len(text.size) + 1)).tolist()

    def row(begin: int, end: int, start: list[int], n_slots: int) -> _Row:
        targets = np.arange(first_target[begin], first_target[end])
        return _Row(t, slice(begin, end), targets, np.array(start), n_slots, length + n_slots)

    begin, following = 0, 0
    start: list[int] = []
    for g, size in enumerate(text.size.tolist()):
        slot = following
        if slot % block + size > block:
            slot = (slot // block + 1) * block
        if g > begin and (slot + size > slots or first_target[g + 1] - first_target[begin] > max_targets):
            yield row(begin, g, start, following)
            begin, start, slot = g, [], 0
        start.append(slot)
        following = slot + size
    yield row(begin, len(text.size), start, following)
