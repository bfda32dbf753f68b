"""Attention in passes with groups (`scoring.groups`): who attends to whom, in any architecture.

Nothing is told to the model but the ids and their true positions. Instead, its attention is computed here, or its
attention scores are masked here, where it calls PyTorch for that: at `scaled_dot_product_attention`, or at the softmax
over the scores. So one implementation serves all architectures and versions of transformers. Whether it is right for a
model is tried (`capabilities.rows_share_passes`).
"""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention, softmax
from torch.overrides import TorchFunctionMode

# The most attention scores that are computed at once, over all heads: 128 MB in float32.
MAX_SCORES = 2**25

_SOFTMAX = {softmax, torch.softmax, torch.Tensor.softmax}


class GroupAttention(TorchFunctionMode):
    """While this context lasts, square attention over a pass with groups follows their rules.

    It is computed on the contents of all rows and, behind them, on their slots: so these begin at the same index in all
    rows, while the rows themselves are padded as little as possible.

    lengths (int64 tensor, shape (rows,)): The ids in the content of each row.
    content (int): The largest of them.
    true (int64 tensor, shape (rows, longest)): The position that each id stands for.
    group (int64 tensor, shape (rows, slots)): The slot's group; -1 for an empty slot.
    block (int): What a member attends to, apart from the content, lies in its block of so many slots.
    """

    def __init__(self, lengths: torch.Tensor, content: int, true: torch.Tensor, group: torch.Tensor, block: int):
        super().__init__()
        self.content, self.block = content, block
        (self.rows, self.width), slots = true.shape, group.shape[1]
        self.n_blocks = slots // block
        begin, row = lengths[:, None], torch.arange(self.rows, device=true.device)[:, None]
        at, slot, column = (torch.arange(n, device=true.device) for n in (content, slots, self.width))
        # Where each index of the attention is found in the rows, and the way back. Indices without an id are never
        # attended to, so it does not matter what is found for them.
        split = torch.cat([at.expand(self.rows, -1), begin + slot], dim=1).clamp(max=self.width - 1)
        joined = torch.where(column < begin, column, column - begin + content)
        self._is_slot = joined < content + slots  # (rows, longest); the rest is padding
        self._joined = joined.clamp(max=content + slots - 1)
        self._split = (row * self.width + split).flatten()
        self._back = (row * (content + slots) + self._joined).flatten()
        self.position = true.gather(1, split[:, content:])
        self.is_content = at < begin  # (rows, content)
        blocks = group.view(self.rows, self.n_blocks, block)
        self.same = blocks[..., None] == blocks[..., None, :]  # (rows, blocks, block, block)
        # The positions that the group of each member holds: a sum over the members in its block.
        holds = self.same.float() @ (self.position.view(*blocks.shape, 1) == at).float()
        # Empty slots are a group as well. They must see something, and themselves they do.
        self.sees = self.is_content[:, None] & (holds.view(self.rows, -1, content) == 0)  # (rows, slots, content)
        self._biases: dict[int, tuple[Any, ...]] = {}
        self._dense: torch.Tensor | None = None

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function is scaled_dot_product_attention:
            return self.attend(*args, **kwargs)
        if function in _SOFTMAX and args and args[0].dim() == 4 and args[0].shape[-2:] == (self.width, self.width):
            args = args[0] + self._dense_bias(args[0].dtype), *args[1:]
        return function(*args, **kwargs)

    def _take(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        """x (shape (rows, heads, n, size)) at flat indices over rows and n. Shape (rows, heads, m, size)."""
        rows, heads, _, size = x.shape
        taken = x.transpose(1, 2).reshape(-1, heads * size).index_select(0, index)
        return taken.view(rows, -1, heads, size).transpose(1, 2)

    def attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> torch.Tensor:
        """What `scaled_dot_product_attention` gives under the rules, without dropout.

        query, key, value (tensors, shape (rows, heads, width, size)).
        """
        query, key, value = (self._take(x, self._split) for x in (query, key, value))
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
        """What is added to the scores: content to content, slots to content, slots to their blocks.

        given (Optional[Tensor]): The mask of the model itself, such as that of local attention. In the content, it is
            as in a pass without groups; for slots, it is read at the positions that they stand for.
        """
        if id(given) in self._biases:
            return self._biases[id(given)][:3]
        lowest = torch.finfo(dtype).min
        nothing = torch.zeros((), dtype=dtype, device=self.sees.device)
        within: torch.Tensor | None = None
        if not bool(self.is_content.all()):
            within = torch.where(self.is_content, nothing, lowest)[:, None, None]
        to_content = torch.where(self.sees, nothing, lowest)[:, None]
        to_group = torch.where(self.same, nothing, lowest)[:, None]
        if given is not None:
            if given.dtype == torch.bool:
                given = torch.where(given, nothing, lowest)
            inner = given[..., : self.content, : self.content].to(dtype)
            inner = inner.expand(self.rows, -1, self.content, self.content)
            within = inner if within is None else (inner + within).clamp(min=lowest)
            of_slots = inner.take_along_dim(self.position[:, None, :, None], dim=2)
            blocks = of_slots.view(*of_slots.shape[:2], self.n_blocks, self.block, self.content)
            of_blocks = blocks.take_along_dim(self.position.view(self.rows, 1, self.n_blocks, 1, self.block), dim=-1)
            to_content = (to_content + of_slots).clamp(min=lowest)
            to_group = (to_group + of_blocks).clamp(min=lowest)
        # With the mask itself, so that no other one gets its address while this lives.
        self._biases[id(given)] = within, to_content, to_group, given
        return within, to_content, to_group

    def _dense_bias(self, dtype: torch.dtype) -> torch.Tensor:
        """The same for scores of all slots, where the model has computed these. Shape (rows, 1, width, width)."""
        if self._dense is None:
            n, width = self.content, self.content + self.sees.shape[1]
            sees = torch.zeros(self.rows, width, width, dtype=torch.bool, device=self.sees.device)
            sees[:, :n, :n] = self.is_content[:, None]
            sees[:, n:, :n] = self.sees
            for b in range(self.n_blocks):
                slots = slice(n + b * self.block, n + (b + 1) * self.block)
                sees[:, slots, slots] = self.same[:, b]
            row = torch.arange(self.rows, device=sees.device)[:, None, None]
            sees = sees[row, self._joined[:, :, None], self._joined[:, None, :]] & self._is_slot[:, None]
            self._dense = torch.where(sees, 0.0, torch.finfo(torch.float32).min)[:, None]
        return self._dense.to(dtype)
