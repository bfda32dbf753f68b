"""Attention in passes with groups (`scoring.groups`): who attends to whom, in any architecture.

Nothing is told to the model but the ids and their true positions: as in passes of plain rows (`row_attention`), its
attention is computed here, or its attention scores are masked here. A mask of the model itself, such as local attention
has, is by place in the row. It is read at the true positions, where it is given to `scaled_dot_product_attention` or
added to scores. Whether this is right for a model is tried (`group_trial`).
"""

from contextvars import ContextVar
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, softmax

from ...arrays import lazy
from .row_attention import TILE, RowAttention, as_bias

# The most attention scores that are computed at once, over all heads: 128 MB in float32.
MAX_SCORES = 2**25
# In rows of at most so many ids, all scores are computed and most of them masked: that is faster than taking what the
# groups see apart. On a GPU with the kernels of `scaled_dot_product_attention`, which keep no scores.
SHORT = {"cpu": 96, "cuda": 1024}

_ADD = {torch.add, torch.Tensor.add, torch.Tensor.add_}  # `+` and `+=`, too
# What a mask of numbers adds to a score that does not count is no more than this.
_MASKED = -10_000

# The pass with groups that runs in this thread, for the hooks of `true_positions`.
running: ContextVar["GroupAttention | None"] = ContextVar("running", default=None)


class GroupAttention(RowAttention):
    """While this context lasts, square attention over a pass with groups follows their rules.

    lengths (int64 tensor, shape (rows,)): The ids in the content of each row.
    content (int): The largest of them.
    padded (bool): They are not all equal.
    true (int64 tensor, shape (rows, longest)): The position that each id stands for.
    group (int64 tensor, shape (rows, slots)): The slot's group; -1 for an empty slot.
    block (int): What a member attends to, apart from the content, lies in its block of so many slots.
    ids (Optional[int64 tensor, shape (rows, longest)]): The ids, if there is one in a text that the model could take
        for padding.
    hidden (Optional[bool tensor, shape (rows, slots, content)]): What each group does not attend to, besides the
        positions that it holds.
    """

    def __init__(
        self,
        lengths: torch.Tensor,
        content: int,
        padded: bool,
        true: torch.Tensor,
        group: torch.Tensor,
        block: int,
        ids: torch.Tensor | None = None,
        hidden: torch.Tensor | None = None,
    ):
        super().__init__(true, lengths)
        self.ids, self.hidden = ids, hidden
        self.has_shares_of_masks = False  # whether embeddings have been divided by them (`true_positions`)
        self.lengths, self.content, self.padded = lengths, content, padded
        self.true, self.group, self.block = true, group, block
        self._added: dict[torch.Tensor, torch.Tensor] = {}  # what is added to scores instead of what the model adds

    def __enter__(self) -> "GroupAttention":
        self._before = running.set(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)  # type: ignore[no-untyped-call]
        running.reset(self._before)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in _ADD and len(args) == 2 and self.is_square(args[0]) and self.is_square(args[1]):
            args = args[0], self._to_add(args[1])
        return super().__torch_function__(function, types, args, kwargs)

    def _to_add(self, given: torch.Tensor) -> torch.Tensor:
        """What is added to scores where the model adds this: if it is a mask for all heads, that at the true positions.

        What depends on positions in another way, such as DeBERTa's scores of distances, is by true positions already.
        """
        if given.shape[1] > 1:
            return given
        if given not in self._added:
            is_mask = bool(((given == 0) | (given <= _MASKED)).all())
            self._added[given] = self._at_true(given) if is_mask else given
        return self._added[given]

    def _attend(self, *inputs: torch.Tensor, attn_mask: torch.Tensor | None, **more: Any) -> torch.Tensor:
        """As in `RowAttention`, for a model that sees to both sides."""
        query, key, value = inputs
        scale, device = more["scale"], query.device.type
        if "enable_gqa" in more:
            key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
        if self.width > SHORT.get(device, SHORT["cpu"]):
            return self._blocks.attend(query, key, value, attn_mask=attn_mask, scale=scale)
        if device in TILE:
            return super()._attend(query, key, value, attn_mask=attn_mask, scale=scale)
        # For a CPU, the kernels of PyTorch are slower here: rows are short, and have a mask.
        query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
        scores = query @ key.transpose(-1, -2)
        scores.add_(self.bias(attn_mask, query.dtype))  # there is always one
        return softmax(scores, dim=-1).to(value.dtype) @ value

    @lazy
    def _blocks(self) -> "_Blocks":
        return _Blocks(self)

    def hidden_bias(self, dtype: torch.dtype) -> torch.Tensor:
        """What hides all that an id does not attend to."""
        return as_bias(self._sees, dtype)[:, None]

    def read_mask(self, mask: torch.Tensor) -> torch.Tensor:
        return self._at_true(mask)

    def _at_true(self, mask: torch.Tensor) -> torch.Tensor:
        """A mask by place in the row (shape (1 or rows, 1 or heads, width, width)), read at the true positions."""
        mask = mask.expand(len(self.true), -1, -1, -1).take_along_dim(self.true[:, None, :, None], dim=2)
        return mask.take_along_dim(self.true[:, None, None, :], dim=3)

    @lazy
    def is_content(self) -> torch.Tensor:
        """Which ids are content. bool, shape (rows, width)."""
        return torch.arange(self.width, device=self.true.device) < self.lengths[:, None]

    @lazy
    def group_of(self) -> torch.Tensor:
        """The group of each id; -1 for content and padding. int64, shape (rows, width)."""
        slot = torch.arange(self.width, device=self.true.device) - self.lengths[:, None]
        slots = self.group.shape[1]
        return self.group.gather(1, slot.clamp(0, slots - 1)).masked_fill((slot < 0) | (slot >= slots), -1)

    def in_one_group(self) -> torch.Tensor:
        """Which ids are in the same group. bool, shape (rows, width, width)."""
        group = self.group_of
        return (group[:, :, None] == group[:, None, :]) & (group >= 0)[:, :, None]

    @lazy
    def _sees(self) -> torch.Tensor:
        """Who attends to whom. bool, shape (rows, width, width)."""
        same, column = self.in_one_group(), self.true[:, None].clamp(max=self.content - 1)
        seen = self.in_sight(same, self.true, self.group_of).take_along_dim(column, dim=2)
        # Padding attends to the content, as it must see something.
        return (seen & self.is_content[:, None]) | same

    def in_sight(self, same: torch.Tensor, position: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        """Which positions of the content are neither held by the group of an id, nor hidden from it. bool, shape (rows,
        ids, content).

        same (bool tensor, shape (rows, ..., ids, ids)): Which ids are in the same group, in a row or in each block.
        position (int64 tensor, shape (rows, ..., ids)): The position that each id stands for.
        group (int64 tensor, shape (rows, ids)): -1 for none.
        """
        # The positions that the group of each member holds: a sum over its members.
        holds = same.float() @ (position[..., None] == torch.arange(self.content, device=position.device)).float()
        in_sight = (holds == 0).view(len(group), -1, self.content)
        if self.hidden is None:
            return in_sight
        hidden = self.hidden.take_along_dim(group.clamp(min=0)[..., None], dim=1)
        return in_sight & ~(hidden & (group >= 0)[..., None])


class _Blocks:
    """Attention in long rows: each member's scores with the content and with its own block, and no others.

    It is computed on the contents of all rows and, behind them, on their slots: so these begin at the same index in all
    rows, while the rows themselves are padded as little as possible.
    """

    def __init__(self, layout: GroupAttention):
        true, group, content, block = layout.true, layout.group, layout.content, layout.block
        self.content, self.block, self.padded = content, block, layout.padded
        (self.rows, width), slots = true.shape, group.shape[1]
        self.n_blocks = slots // block
        begin, row = layout.lengths[:, None], torch.arange(self.rows, device=true.device)[:, None]
        at, slot, column = (torch.arange(n, device=true.device) for n in (content, slots, width))
        # Where each index of the attention is found in the rows, and the way back. Indices without an id are never
        # attended to, so it does not matter what is found for them.
        split = torch.cat([at.expand(self.rows, -1), begin + slot], dim=1).clamp(max=width - 1)
        joined = torch.where(column < begin, column, column - begin + content).clamp(max=content + slots - 1)
        self._split = (row * width + split).flatten()
        self._back = (row * (content + slots) + joined).flatten()
        self.position = true.gather(1, split[:, content:])
        self.is_content = at < begin  # (rows, content)
        blocks = group.view(self.rows, self.n_blocks, block)
        self.same = blocks[..., None] == blocks[..., None, :]  # (rows, blocks, block, block)
        # Empty slots are a group as well. They must see something, and themselves they do.
        in_sight = layout.in_sight(self.same, self.position.view(blocks.shape), group)
        self.sees = self.is_content[:, None] & in_sight  # (rows, slots, content)
        self._biases: dict[torch.Tensor | None, tuple[Any, ...]] = {}

    def _take(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """x (shape (rows, heads, n, size)) at flat indices over rows and n. Shape (rows, heads, m, size)."""
        rows, heads, _, size = x.shape
        taken = x.transpose(1, 2).reshape(-1, heads * size).index_select(0, index)
        return taken.view(rows, -1, heads, size).transpose(1, 2)

    def attend(self, *inputs: torch.Tensor, attn_mask: torch.Tensor | None, scale: float | None) -> torch.Tensor:
        """As `RowAttention.attend`. inputs (tensors): Queries, keys and values."""
        query, key, value = (self._take(x, self._split) for x in inputs)
        n, block = self.content, self.block
        within, to_content, to_group = self._bias(attn_mask, query.dtype)
        keys, values = key[:, :, :n], value[:, :, :n]
        content = scaled_dot_product_attention(query[:, :, :n], keys, values, attn_mask=within, scale=scale)
        query = query[:, :, n:] * (query.shape[-1] ** -0.5 if scale is None else scale)
        in_blocks = *query.shape[:2], self.n_blocks, block, -1
        own_keys, own_values = key[:, :, n:].reshape(in_blocks), value[:, :, n:].reshape(in_blocks)
        at_once = max(1, MAX_SCORES // (query.shape[0] * query.shape[1] * block * (n + block)))
        parts = [content]
        for low in range(0, self.n_blocks, at_once):
            blocks, slots = slice(low, low + at_once), slice(low * block, (low + at_once) * block)
            queries = query[:, :, slots]
            shape = *queries.shape[:2], -1, block
            on_content = queries @ keys.transpose(-1, -2) + to_content[:, :, slots]
            on_group = queries.view(*shape, queries.shape[-1]) @ own_keys[:, :, blocks].transpose(-1, -2)
            on_group = on_group + to_group[:, :, blocks]
            scores = torch.cat([on_content, on_group.reshape(*queries.shape[:3], block)], dim=-1)
            weights = softmax(scores, dim=-1).to(value.dtype)
            mixed = weights[..., :n] @ values
            mixed_own = weights[..., n:].reshape(*shape, block) @ own_values[:, :, blocks]
            parts.append(mixed + mixed_own.reshape(mixed.shape))
        return self._take(torch.cat(parts, dim=2), self._back)

    def _bias(self, given: torch.Tensor | None, dtype: torch.dtype) -> tuple[Any, ...]:
        """What is added to the scores: content to content, slots to content, slots to their blocks."""
        if given in self._biases:
            return self._biases[given]
        lowest = torch.finfo(dtype).min
        within: torch.Tensor | None = None
        if self.padded:
            within = as_bias(self.is_content, dtype)[:, None, None]
        to_content, to_group = (as_bias(seen, dtype)[:, None] for seen in (self.sees, self.same))
        if given is not None:
            inner = as_bias(given[..., : self.content, : self.content], dtype)
            inner = inner.expand(self.rows, -1, self.content, self.content)
            within = inner if within is None else (inner + within).clamp(min=lowest)
            of_slots = inner.take_along_dim(self.position[:, None, :, None], dim=2)
            blocks = of_slots.view(*of_slots.shape[:2], self.n_blocks, self.block, self.content)
            of_blocks = blocks.take_along_dim(self.position.view(self.rows, 1, self.n_blocks, 1, self.block), dim=-1)
            to_content = (to_content + of_slots).clamp(min=lowest)
            to_group = (to_group + of_blocks).clamp(min=lowest)
        self._biases[given] = within, to_content, to_group
        return self._biases[given]
