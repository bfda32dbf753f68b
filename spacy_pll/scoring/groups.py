"""All masks of a context in one forward pass: the context as it is, and beside it one group for each masked set.

A row of such a pass holds the *content*, the context unmasked with its special tokens, and behind it *groups*. The
group of a masked set has the masked positions and, with a margin, those so many pieces beside them: mask tokens at the
masked positions, the true pieces at the others. Each member stands for its true position. The content attends to the
content alone. A member of a group attends to its own group, and to the content wherever that is not in the group
(`language_model.group_attention`). If the group is the whole context, this is the exact masked pass. With a smaller
group it is an approximation, because the content outside the group has seen what is masked.

The construction is that of pseudo-masks (Bao et al. 2020, "UniLMv2") and of two-stream attention (Yang et al. 2019,
"XLNet"), which use it in training.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..metrics import BoolArray, FloatArray, IntArray
from .mask_blocks import MaskBlock, distinct_rows
from .sums import Sums
from .windows import Context

# The groups of a row are laid out in blocks of so many slots, and no group lies across two of them. So what a member
# attends to, apart from the content, lies in its block.
BLOCK = 32
# A row has up to so many slots for groups, or is up to so many times as long as its content. Longer ones save little:
# the content is then a small part of what is read.
SLOTS, GROUP_ROW = 512, 5


class GroupBatch(NamedTuple):
    """One forward pass with groups, and the targets whose log-probabilities it gives.

    A row has `content` slots for the content, then the slots for the groups. Both are padded.
    """

    ids: IntArray  # int32, shape (rows, content + slots)
    lengths: IntArray  # int, shape (rows,): the ids in the content of each row; its other slots are padding
    content: int
    true: IntArray  # int, shape (rows, content + slots): the position that each slot stands for
    group: IntArray  # int, shape (rows, slots): the number of the slot's group in its row; -1 for padding
    block: int  # slots in a block; the number of slots is a multiple of it
    row: IntArray  # int, shape (targets,), non-decreasing
    position: IntArray  # int, shape (targets,): the slot
    target: IntArray  # int32, shape (targets,)
    n_alternatives: int | None = None  # as in `Batch`

    @property
    def n_ids(self) -> int:
        """The ids that are read, without padding."""
        return int(self.lengths.sum() + (self.group >= 0).sum())

    @property
    def can_be_halved(self) -> bool:
        return len(self.ids) > 1 or self.group.shape[1] > self.block

    def halves(self) -> tuple["GroupBatch", "GroupBatch"]:
        """The same targets, in the same order, in two passes: half the rows each, or half of one row's groups."""
        if len(self.ids) == 1:
            middle = self.group.shape[1] // self.block // 2 * self.block
            before = self.position < self.content + middle
            return self._part(slice(0, 1), slice(middle), before), self._part(slice(0, 1), slice(middle, None), ~before)
        middle = len(self.ids) // 2
        before = self.row < middle
        return (
            self._part(slice(middle), slice(None), before),
            self._part(slice(middle, None), slice(None), ~before),
        )

    def _part(self, rows: slice, slots: slice, targets: BoolArray) -> "GroupBatch":
        keep = np.arange(self.ids.shape[1])
        keep = np.append(keep[: self.content], keep[self.content :][slots])
        return self._replace(
            ids=self.ids[rows][:, keep],
            lengths=self.lengths[rows],
            true=self.true[rows][:, keep],
            group=self.group[rows, slots],
            row=self.row[targets] - (rows.start or 0),
            position=self.position[targets] - (slots.start or 0),
            target=self.target[targets],
        )


class _Text(NamedTuple):
    """One distinct context, and its groups."""

    ids: IntArray
    size: IntArray  # int, shape (groups,): members of each group
    position: IntArray  # int, shape (members,): group by group
    member: IntArray  # int32, shape (members,): the ids
    target_group: IntArray  # int, shape (targets,), non-decreasing
    target_member: IntArray  # int, shape (targets,): index in its group


class _Row(NamedTuple):
    """Some groups of a context, which are read beside it."""

    text: int
    groups: slice
    start: IntArray  # int, shape (groups,): the first slot of each
    n_slots: int


class GroupPlan:
    """The forward passes with groups for some masked sets. Equal sets of equal contexts are one group.

    contexts (Sequence[Context]): What is read.
    blocks (Sequence[MaskBlock]): What is masked in them; at least one block.
    n_metrics (int): The number of metrics.
    mask_id (int): The id of the mask token.
    margin (int): How many pieces beside the masked ones are in a group, on each side.
    """

    def __init__(
        self, contexts: Sequence[Context], blocks: Sequence[MaskBlock], n_metrics: int, mask_id: int, margin: int
    ):
        by_ids: dict[bytes, list[int]] = {}
        for b, block in enumerate(blocks):
            by_ids.setdefault(contexts[block.context].ids.tobytes(), []).append(b)
        self._texts: list[_Text] = []
        answer: list[IntArray] = [np.zeros(0, dtype=np.int64)] * len(blocks)
        self.n_targets = 0
        for numbers in by_ids.values():
            context = contexts[blocks[numbers[0]].context]
            own = [blocks[b] for b in numbers]
            text, answers = _text_of(context, [contexts[block.context].first for block in own], own, mask_id, margin)
            ends = np.cumsum([len(block.piece) for block in own])
            for b, part in zip(numbers, np.split(answers, ends[:-1])):
                answer[b] = part + self.n_targets
            self._texts.append(text)
            self.n_targets += len(text.target_group)
        self._sums = Sums(contexts, blocks, n_metrics, np.concatenate(answer))
        self._order: IntArray = np.arange(0)  # the targets in the order of the batches
        self.n_rows = 0
        self.n_ids = 0

    def batches(
        self,
        max_tokens: int,
        max_targets: int,
        pad_id: int,
        pad: bool = True,
        n_alternatives: int | None = None,
    ) -> Iterator[GroupBatch]:
        """The forward passes, the longest rows first. The arguments are those of `Plan.batches`.

        pad (bool): Whether several rows may share a pass.
        """
        block = max([BLOCK, *(int(text.size.max()) for text in self._texts)])
        rows = [row for t, text in enumerate(self._texts) for row in _rows_of(t, text, block, max_tokens, max_targets)]
        width = [(len(self._texts[row.text].ids), row.n_slots) for row in rows]
        rows = [rows[r] for r in sorted(range(len(rows)), key=lambda r: (-sum(width[r]), -width[r][0]))]
        first_target = np.cumsum([0] + [len(text.target_group) for text in self._texts])
        targets = [self._targets(row) for row in rows]
        order = [first_target[row.text] + np.arange(part.start, part.stop) for row, part in zip(rows, targets)]
        self._order = np.concatenate(order)
        self.n_rows = len(rows)
        begin = 0
        while begin < len(rows):
            content = slots = n_targets = 0
            end = begin
            while end < len(rows):
                length, n_slots = len(self._texts[rows[end].text].ids), rows[end].n_slots
                wider = max(content, length) + _padded(max(slots, n_slots), block)
                more = n_targets + targets[end].stop - targets[end].start
                if end > begin and (not pad or wider * (end + 1 - begin) > max_tokens or more > max_targets):
                    break
                content, slots, n_targets, end = max(content, length), max(slots, n_slots), more, end + 1
            yield self._batch(rows[begin:end], targets[begin:end], content, slots, block, pad_id, n_alternatives)
            begin = end

    def _targets(self, row: _Row) -> slice:
        """The targets of a row's groups, among those of its text."""
        low, high = np.searchsorted(self._texts[row.text].target_group, [row.groups.start, row.groups.stop])
        return slice(int(low), int(high))

    def _batch(
        self,
        rows: list[_Row],
        targets: list[slice],
        content: int,
        slots: int,
        block: int,
        pad_id: int,
        n_alternatives: int | None,
    ) -> GroupBatch:
        if slots <= block:
            block = slots  # one block, as long as it has to be
        slots = _padded(slots, block)
        ids = np.full((len(rows), content + slots), pad_id, dtype=np.int32)
        true = np.zeros(ids.shape, dtype=np.int64)
        group = np.full((len(rows), slots), -1)
        lengths = np.zeros(len(rows), dtype=np.int64)
        where, ids_of_targets = [], []
        for r, (row, part) in enumerate(zip(rows, targets)):
            text = self._texts[row.text]
            n = lengths[r] = len(text.ids)
            ids[r, :n], true[r, :content] = text.ids, np.arange(content)
            ends = np.cumsum(text.size)
            members = slice(ends[row.groups.start] - text.size[row.groups.start], ends[row.groups.stop - 1])
            size = text.size[row.groups]
            slot = np.arange(members.stop - members.start) + np.repeat(row.start - np.cumsum(size) + size, size)
            ids[r, content + slot], true[r, content + slot] = text.member[members], text.position[members]
            group[r, slot] = np.repeat(np.arange(len(size)), size)
            position = content + row.start[text.target_group[part] - row.groups.start] + text.target_member[part]
            where.append(position)
            first_member = ends[text.target_group[part]] - text.size[text.target_group[part]]
            ids_of_targets.append(text.ids[text.position[first_member + text.target_member[part]]])
        return GroupBatch(
            ids,
            lengths,
            content,
            true,
            group,
            block,
            np.repeat(np.arange(len(rows)), [len(position) for position in where]),
            np.concatenate(where),
            np.concatenate(ids_of_targets),
            n_alternatives,
        )

    def release_inputs(self) -> None:
        """Free the ids once the batches have been read."""
        self._texts = []

    def scores(self, answers: FloatArray) -> list[FloatArray]:
        """The scores of each context, as `Sums.scores`, from the answers to the batches in their order."""
        in_order = np.empty_like(answers)
        in_order[:, self._order] = answers
        return self._sums.scores(in_order)


def _text_of(
    context: Context, first: list[int], blocks: list[MaskBlock], mask_id: int, margin: int
) -> tuple[_Text, IntArray]:
    """The groups of one distinct context, and for each entry of the blocks the number of its target.

    first (list[int]): For each block, the position of its context's first piece.
    """
    length = len(context)
    masked, inverse = distinct_rows(np.concatenate([masked_positions(b, f, length) for b, f in zip(blocks, first)]))
    near = near_positions(masked, margin)
    group, position = np.nonzero(near)
    member = np.where(masked[group, position], mask_id, context.ids[position]).astype(np.int32)
    before = np.cumsum([0] + [len(block.masked) for block in blocks])
    entry_group = np.concatenate([inverse[n + block.row] for n, block in zip(before, blocks)])
    entry_position = np.concatenate([block.piece + f for block, f in zip(blocks, first)])
    distinct, answer = np.unique(entry_group * length + entry_position, return_inverse=True)
    target_group, target_position = distinct // length, distinct % length
    index = np.cumsum(near, axis=1)[target_group, target_position] - 1
    return _Text(context.ids, near.sum(axis=1), position, member, target_group, index), answer


def masked_positions(block: MaskBlock, first: int, length: int) -> BoolArray:
    """Which positions of a context each row of a block masks. bool, shape (rows, length).

    first (int): The position of the context's first piece.
    """
    out = np.zeros((len(block.masked), length), dtype=bool)
    out[:, first + block.start : first + block.start + block.masked.shape[1]] = block.masked
    return out


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
    sizes = text.size.tolist()
    length = len(text.ids)
    slots = max(block, length, min(max_tokens - length, max(SLOTS, (GROUP_ROW - 1) * length)) // block * block)
    targets = np.bincount(text.target_group, minlength=len(sizes)).tolist()
    begin, start, end_of_last, n_targets = 0, [], 0, 0
    for g, size in enumerate(sizes):
        slot = end_of_last
        if slot % block + size > block:
            slot = (slot // block + 1) * block
        if g > begin and (slot + size > slots or n_targets + targets[g] > max_targets):
            yield _Row(t, slice(begin, g), np.array(start), end_of_last)
            begin, start, slot, n_targets = g, [], 0, 0
        start.append(slot)
        end_of_last = slot + size
        n_targets += targets[g]
    yield _Row(t, slice(begin, len(sizes)), np.array(start), end_of_last)


def _padded(slots: int, block: int) -> int:
    """The slots of whole blocks, or of one shorter block."""
    return slots if slots <= block else -(-slots // block) * block
