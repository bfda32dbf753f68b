"""All masks of a context in one forward pass: the context as it is, and beside it one group for each masked set.

A row of such a pass holds the *content*, the context unmasked with its special tokens, and behind it *groups*. The
group of a masked set has mask tokens for the masked positions. With a margin, it also has the true pieces at so many
positions on each side. Each member has the position ids of its position in the context. The content attends to itself
alone. A group attends to itself, and to the content at all positions that are neither in the group nor hidden from it
(`masks.REACH`). `language_model.running.group_attention` sees to that. If the group is the whole context, this is the
exact masked pass. With a smaller group it is an approximation, because the content outside the group has seen what is
masked.

The construction is that of pseudo-masks (Bao et al. 2020, "UniLMv2") and of two-stream attention (Yang et al. 2019,
"XLNet"), which use it in training.
"""

from dataclasses import KW_ONLY, dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..arrays import BoolArray, Groups, IntArray, begins, distinct, inverse, lazy, spread, up_to
from .digests import Digests, in_each, scrambled
from .masks import MaskedRows
from .passes import Batch, Flat, PassLimits, PlannedPasses, of_rows
from .scores import Wanted, WeightedSums
from .windows import Contexts

# The groups of a row lie in blocks of so many slots, each group in one block. So a group attends to the content and
# to its block, and to no other block.
BLOCK = 32
# A row has up to so many slots for groups, or is up to so many times as long as its content. Longer ones save little:
# the content is then a small part of what is read.
SLOTS, GROUP_ROW = 512, 5


@dataclass(frozen=True, eq=False)
class FlatGroups(Flat):
    """The rows of a plan with groups, and its targets, as `FlatRows` has those of a plan without."""

    ids: Any  # int32: of all contents
    begin: Any  # where the content of each row begins
    length: Any  # its length
    slots: Any  # the slots of each row that groups take
    member_row: Any  # the row of each member of a group, non-decreasing
    slot: Any  # its slot, increasing within a row
    member: Any  # its id
    true: Any  # the position that it stands for
    group: Any  # the number of its group in its row
    row: Any  # the row of each target, non-decreasing
    position: Any  # where it stands in the row
    target: Any  # the id whose log-probability is wanted there
    hidden_row: Any  # the row of each run of the content that is hidden from a group, non-decreasing
    hidden_group: Any  # the number of the group in its row, non-decreasing within a row
    hidden_begin: Any  # its first position
    hidden_end: Any  # the position behind its last


@dataclass(frozen=True, eq=False)
class GroupBatch(Batch):
    """One forward pass with groups. A row has the ids of the content, as many as its length, then slots for the groups,
    then padding. `runs` are the members of groups in these rows.
    """

    flat: FlatGroups  # type: ignore[assignment]
    _: KW_ONLY
    hidden: slice  # the runs that are hidden from these groups
    largest_block: int  # slots in a block, if there are several
    slots: slice  # those that are read; all of a row, or, if there is one row, some of its blocks

    @property
    def n_slots(self) -> int:
        """Slots in each row: a multiple of `block`."""
        n = self.slots.stop - self.slots.start
        return int(n if n <= self.largest_block else -(-n // self.largest_block) * self.largest_block)

    @property
    def block(self) -> int:
        """Slots in a block."""
        return min(self.largest_block, self.n_slots)

    @lazy
    def width(self) -> int:
        used = self.flat.slots[self.rows].clip(max=self.slots.stop) - self.slots.start
        return int((self.lengths + used).max())

    @property
    def position(self) -> IntArray:
        position: IntArray = super().position - self.slots.start
        return position

    @property
    def n_ids(self) -> int:
        return int(super().n_ids + self.runs.stop - self.runs.start)

    def read(self, xp: ModuleType, flat: Any) -> Any:
        """The ids; the position that each stands for; both of shape (rows, longest); the group of each slot, shape
        (rows, slots), -1 for an empty slot; and what of the content is hidden from each group, shape (rows, slots,
        longest content), None for nothing.
        """
        begin, length, at = flat.begin[self.rows, None], flat.length[self.rows, None], xp.arange(self.width)
        is_content = at < length
        ids = xp.where(is_content, flat.ids[(begin + at).clip(max=len(flat.ids) - 1)], self.pad_id)
        true = xp.where(is_content, at, 0)
        row, slot = flat.member_row[self.runs] - self.rows.start, flat.slot[self.runs] - self.slots.start
        column = length[row, 0] + slot
        ids[row, column], true[row, column] = flat.member[self.runs], flat.true[self.runs]
        group = xp.full((self.n_rows, self.n_slots), -1)
        # Counted from the first of these: half a row may have fewer ids than groups before it.
        group[row, slot] = flat.group[self.runs] - flat.group[self.runs.start]
        if self.hidden.start == self.hidden.stop:
            return ids, true, group, None
        edges = xp.zeros((self.n_rows, self.n_slots, int(self.lengths.max()) + 1), dtype=xp.int8)
        of_group = flat.hidden_group[self.hidden] - flat.group[self.runs.start]
        of_row = flat.hidden_row[self.hidden] - self.rows.start
        edges[of_row, of_group, flat.hidden_begin[self.hidden]] += 1
        edges[of_row, of_group, flat.hidden_end[self.hidden]] -= 1
        return ids, true, group, edges.cumsum(2)[:, :, :-1] > 0

    @property
    def ids(self) -> IntArray:
        ids: IntArray = self.read(np, self.flat)[0]
        return ids

    @property
    def can_be_halved(self) -> bool:
        return self.n_rows > 1 or self.n_slots > self.block

    def halves(self) -> "tuple[GroupBatch, GroupBatch]":
        if self.n_rows > 1:
            return super().halves()
        middle = self.slots.start + self.n_slots // self.block // 2 * self.block
        member = self.runs.start + int(np.searchsorted(self.flat.slot[self.runs], middle))
        target = self.targets.start + int(np.searchsorted(super().position, self.lengths[0] + middle))
        run = self.hidden.start + int(np.searchsorted(self.flat.hidden_group[self.hidden], self.flat.group[member]))
        middles = {"slots": middle, "runs": member, "targets": target, "hidden": run}
        first: dict[str, Any] = {name: slice(getattr(self, name).start, at) for name, at in middles.items()}
        second: dict[str, Any] = {name: slice(at, getattr(self, name).stop) for name, at in middles.items()}
        return replace(self, **first), replace(self, **second)

    def with_rows(self, rows: slice) -> "GroupBatch":
        members, targets = of_rows(self.flat.member_row, rows), of_rows(self.flat.row, rows)
        slots, hidden = slice(0, int(self.flat.slots[rows].max())), of_rows(self.flat.hidden_row, rows)
        return replace(self, rows=rows, runs=members, targets=targets, slots=slots, hidden=hidden)


class _MaskedGroups(NamedTuple):
    """The groups of some masked sets. Equal sets of equal contexts are one group."""

    text: IntArray  # of each group: the number of its context
    begin: IntArray  # where its content begins
    length: IntArray  # how long that is
    hidden: tuple[IntArray, IntArray, IntArray]  # the runs of pieces that a group does not see: group, begin, end
    members: Groups  # of each group
    member: IntArray  # their ids
    true: IntArray  # their positions in the content
    target_group: IntArray  # of each target, of which there is one for each group and position in it
    target: IntArray  # its id
    target_member: IntArray  # the member that is there
    target_of_entry: IntArray  # of each entry of the masked sets

    @classmethod
    def of(cls, contexts: Contexts, rows: MaskedRows, mask_id: int, margin: int) -> "_MaskedGroups":
        """margin (int): How many pieces beside the masked ones are in a group, on each side."""
        kept, number, text = _distinct_sets(contexts, rows, mask_id)
        begin_of, length = (x[rows.source[kept]] for x in (contexts.ids_of.starts, contexts.lengths))
        group, begin, end, hidden = rows.runs_in(kept)
        near_begin, near_end, of_near, holder = near_runs(group, begin, end, hidden, length, margin)
        near, masked = Groups(near_end - near_begin), ~hidden
        members = Groups(np.bincount(of_near, near.lengths, len(kept)).astype(np.int64))
        true = spread(near_begin, near.lengths)
        member = contexts.ids[begin_of[members.owner] + true]
        masked_from = near.starts[holder] + begin[masked] - near_begin[holder]
        member[spread(masked_from, end[masked] - begin[masked])] = mask_id
        shape = len(kept), int(contexts.lengths.max()) + 1
        targets = np.ravel_multi_index((number[rows.entries.row], rows.entries.position), shape)
        of_targets, target_of_entry = distinct(targets)
        target_group, position = np.unravel_index(targets[of_targets], shape)
        target = contexts.ids[begin_of[target_group] + position]
        target_member = np.searchsorted(np.ravel_multi_index((members.owner, true), shape), targets[of_targets])
        runs = group[hidden], begin[hidden], end[hidden]
        of_target = target_group, target, target_member, target_of_entry
        return cls(text, begin_of, length, runs, members, member, true, *of_target)


def group_passes(
    contexts: Contexts,
    rows: MaskedRows,
    n_metrics: int,
    mask_id: int,
    margin: int,
    limits: PassLimits,
    wanted: Wanted = None,
) -> PlannedPasses:
    """The forward passes with groups for some masked sets. Where groups lie, and so in which order the targets are,
    depends on the limits.

    rows (MaskedRows): At least one.
    margin (int): How many pieces beside the masked ones are in a group, on each side.
    """
    groups = _MaskedGroups.of(contexts, rows, mask_id, margin)
    size, of_member, of_target = groups.members.lengths, groups.members.owner, groups.target_group
    n_targets = np.bincount(of_target, minlength=len(size))
    row, slot, block = laid_out(size, n_targets, begins(groups.text), groups.length, limits)
    groups_of = Groups.beginning(begins(row))
    number, last = groups_of.within, groups_of.ends - 1  # of each group in its row; the last group of each row
    used, length = (slot + size)[last], groups.length[last]
    order = np.lexsort((-used, -(length + used)))  # of the rows, the longest first
    row = inverse(order)[row]

    def by_row(group: IntArray, *arrays: IntArray) -> list[IntArray]:
        """The row of what groups have, and what is known of it, in the order of the rows."""
        order = np.argsort(row[group], kind="stable")
        return [x[order] for x in (row[group], *arrays)]

    slot_of_member = slot[of_member] + groups.members.within
    position = groups.length[of_target] + slot_of_member[groups.target_member]
    *targets, in_order = by_row(of_target, position, groups.target, np.arange(len(of_target)))
    sums = WeightedSums((n_metrics, len(contexts.word)), rows.entries, inverse(in_order)[groups.target_of_entry])
    flat = FlatGroups(
        contexts.ids,
        *(x[order] for x in (groups.begin[last], length, used)),
        *by_row(of_member, slot_of_member, groups.member, groups.true, number[of_member]),
        *targets,
        *by_row(groups.hidden[0], number[groups.hidden[0]], *groups.hidden[1:]),
    )
    # Nothing attends to the padding, and a model need not be told where it is: it is masks.
    none = slice(0, 0)
    every = GroupBatch(flat, none, none, none, mask_id, mask_id, wanted, largest_block=block, slots=none, hidden=none)
    return PlannedPasses(every.divided(flat.length + flat.slots, limits), sums)


def _distinct_sets(contexts: Contexts, rows: MaskedRows, mask_id: int) -> tuple[IntArray, IntArray, IntArray]:
    """Which rows are the groups: of equal sets of equal contexts the first, text by text, in the order in which they
    begin. Also the number of each row's group, and the text of each group.
    """
    _, text = distinct(Digests(contexts.ids, contexts.ids_of, mask_id).of_sequences)  # equal contexts are one text
    runs_of, width = rows.runs_of, int(contexts.lengths.max()) + 1
    # Not by what is read: where a text has a mask token of its own, masking it changes nothing.
    of_runs = scrambled(2 * (rows.begin * width + rows.end) + rows.hidden, 4)
    first, number = distinct(scrambled(text, 5)[rows.source] + in_each(runs_of, up_to(of_runs)))
    order = np.lexsort((first, rows.begin[runs_of.starts[first]], text[rows.source[first]]))
    kept = first[order]
    return kept, inverse(order)[number], text[rows.source[kept]]


def laid_out(
    size: IntArray, n_targets: IntArray, begins_text: BoolArray, length: IntArray, limits: PassLimits
) -> tuple[IntArray, IntArray, int]:
    """Where groups lie, which come text by text. Each row has the content of one text:

        row 0:  the cats sleep . | [M] . . | . [M] . | ...     blocks, each with whole groups
        row 1:  the cats sleep . | . . [M] |
        row 2:  it is over . | ...

    size, n_targets, begins_text, length (arrays, shape (groups,)): How many members and targets each group has, whether
        it is the first of its text, and how long the content of its text is.
    RETURNS (tuple): The row of each group, non-decreasing; its first slot there; and how many slots a block has.
    """
    largest = max(BLOCK, int(size.max()))
    # A row has at least as many slots as ids in its content, so that reading the content again and again costs no more
    # than the groups.
    slots = np.minimum(limits.max_tokens - length, np.maximum(SLOTS, (GROUP_ROW - 1) * length)) // largest * largest
    blocks_per_row = -(-np.maximum(slots, length) // largest)
    begins_part = filled(n_targets, begins_text, limits.max_targets)
    begins_block = filled(size, begins_part, largest)
    block = _within(begins_part, np.cumsum(begins_block) - 1)  # number in its part
    row = np.cumsum(begins_part | (begins_block & (block % blocks_per_row == 0))) - 1
    return row, block % blocks_per_row * largest + _within(begins_block, np.cumsum(size) - size), largest


def _within(begins: BoolArray, number: IntArray) -> IntArray:
    """Increasing numbers, counted anew from 0 where something begins."""
    before: IntArray = number[begins][np.cumsum(begins) - 1]
    return number - before


def filled(weight: IntArray, begins_owner: BoolArray, capacity: int) -> BoolArray:
    """Fill containers with things, in their order, so that each holds as many as its capacity allows, or one thing, and
    only things of one owner. RETURNS (bool array, shape (things,)): Where a container begins.
    """
    before, out = up_to(weight), np.zeros(len(weight), dtype=bool)
    owners = Groups.beginning(begins_owner)
    begin, end = owners.starts, owners.ends
    while len(begin):  # the next container of each owner
        out[begin] = True
        fits = np.searchsorted(before, before[begin] + capacity, side="right") - 1
        begin = np.maximum(fits, begin + 1)
        begin, end = begin[begin < end], end[begin < end]
    return out


def near_runs(
    row: IntArray, begin: IntArray, end: IntArray, hidden: BoolArray, length: IntArray, margin: int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """The runs of positions that are masked, or at most `margin` positions beside masked ones, with nothing hidden
    between them.

    row, begin, end, hidden (arrays, shape (runs,)): The runs, as `MaskedRows` has them.
    length (int array, shape (rows,)): How many positions there are.
    RETURNS (tuple of int arrays): The first position of each, the position behind its last, its row, and for each
        masked run the number of the one that holds it.
    """
    masked = np.flatnonzero(~hidden)
    of_run, low, high = row[masked], np.zeros_like(masked), length[row[masked]]
    if len(masked) < len(row):  # up to the next hidden run on each side, if it is of the same row
        walls = np.concatenate([[-1], np.flatnonzero(hidden), [len(row)]])
        after = np.searchsorted(walls, masked)
        rows, begins_at, ends_at = (np.append(column, -1) for column in (row, begin, end))
        low = np.where(rows[walls[after - 1]] == of_run, ends_at[walls[after - 1]], low)
        high = np.where(rows[walls[after]] == of_run, begins_at[walls[after]], high)
    row, begin, end = of_run, np.maximum(begin[masked] - margin, low), np.minimum(end[masked] + margin, high)
    is_new = begins(row)
    is_new[1:] |= begin[1:] > end[:-1]
    runs_of = Groups.beginning(is_new)
    return begin[is_new], end[runs_of.ends - 1], row[is_new], runs_of.owner
