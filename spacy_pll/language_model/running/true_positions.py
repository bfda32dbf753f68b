"""What a model computes from the place of an id in its row, or from the whole row, in a pass with groups
(`scoring.groups`): as it would from a text with the masks of the id's group.

In such a pass, an id does not stand at its position in the text, and several ids have the same position. Some models
take position ids. In the others, hooks change what depends on positions. They do nothing in other passes.
`group_trial` finds out for which models this works.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from ..reading.positions import position_embeddings
from .group_attention import running
from .unable import set_hook


def _true() -> torch.Tensor | None:
    """The position that each id stands for: int64, shape (rows, width). None in other passes."""
    layout = running.get()
    return None if layout is None else layout.true


class ReplacedMethod:
    """A method of one module, replaced until all who replaced it with the same function have removed this."""

    def __init__(self, module: torch.nn.Module, name: str, function: Any):
        self.attributes, self.name, self.users = vars(module), name, f"_users_of_{name}"
        self.attributes[name] = partial(function, module)
        self.attributes[self.users] = self.attributes.get(self.users, 0) + 1

    def remove(self) -> None:
        self.attributes[self.users] -= 1
        if not self.attributes[self.users]:
            del self.attributes[self.name], self.attributes[self.users]


def set_hooks(model: PreTrainedModel) -> list[RemovableHandle | ReplacedMethod]:
    """Let a model read true positions until these hooks are removed."""
    hooks = list[RemovableHandle | ReplacedMethod]()
    try:
        hooks.extend(_hooks(model))  # one by one
    except BaseException:
        for hook in hooks:
            hook.remove()
        raise
    return hooks


def _hooks(model: PreTrainedModel) -> Iterator[RemovableHandle | ReplacedMethod]:
    for table, first in position_embeddings(model):
        yield set_hook(table.register_forward_pre_hook, partial(_absolute, first))
    for name, module in model.named_modules():
        if name.endswith("embed_positions"):  # RoFormer
            yield set_hook(module.register_forward_pre_hook, _one_position)
            yield set_hook(module.register_forward_hook, _sinusoidal)
        elif hasattr(module, "_update_cos_sin_tables"):  # ESM before transformers 5
            yield set_hook(module.register_forward_hook, _rotary)
        of_esm = hasattr(module, "word_embeddings") and hasattr(module, "mask_token_id")
        if of_esm and getattr(module, "token_dropout", False):
            yield set_hook(module.word_embeddings.register_forward_hook, partial(_share_of_masks, module.mask_token_id))
        if hasattr(type(module), "get_rel_pos"):  # DeBERTa
            yield ReplacedMethod(module, "get_rel_pos", _relative)
        if hasattr(type(module), "compute_position_bias"):  # MPNet
            yield ReplacedMethod(module, "compute_position_bias", _position_bias)


def _absolute(first: int, module: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    layout = running.get()
    if layout is None:
        return None
    if not first or layout.ids is None:
        return (layout.true + first,)
    # A model that counts positions from after the padding id does not count padding ids in a text, and reads each at
    # the position of that name. Behind the masks of a group there may be fewer of them.
    is_padding = layout.ids == first - 1  # the table's padding id, which may be another than the configuration's
    in_text = (is_padding & layout.is_content).gather(1, layout.true)  # whether the text has one at this position
    hidden = in_text & ~is_padding
    before = (layout.is_content & ~is_padding).cumsum(dim=1).gather(1, layout.true)
    not_behind = layout.true[:, None, :] <= layout.true[:, :, None]
    uncovered = (layout.in_one_group() & hidden[:, None, :] & not_behind).sum(dim=2)
    return ((before + uncovered).masked_fill(is_padding, 0) + first - 1,)


def _one_position(module: torch.nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A pass with groups may have more ids than the table has positions."""
    return None if _true() is None else (torch.Size([1, 1]), *args[1:])


def _sinusoidal(module: Any, args: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
    true = _true()
    # The model takes one list of positions for all rows.
    return None if true is None else module.weight[true[0] if len(true) == 1 else true]


def _rotary(module: Any, args: tuple[Any, ...], output: tuple[Any, ...]) -> tuple[Any, ...] | None:
    true = _true()
    if true is None:
        return None
    cos, sin = (table[0, 0][true][:, None] for table in module._update_cos_sin_tables(args[1], seq_dimension=-2))
    return tuple(x * cos + torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1) * sin for x in args[:2])


def _relative(module: Any, *args: Any, **kwargs: Any) -> torch.Tensor | None:
    relative: torch.Tensor | None = type(module).get_rel_pos(module, *args, **kwargs)
    true = _true()
    return relative if true is None or relative is None else relative[0][true[:, :, None], true[:, None, :]]


def _position_bias(module: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    bias: torch.Tensor = type(module).compute_position_bias(module, *args, **kwargs)
    true = _true()
    return bias if true is None else bias[0][:, true[:, :, None], true[:, None, :]].transpose(0, 1)


def _share_of_masks(
    mask_id: int, module: torch.nn.Module, args: tuple[Any, ...], output: torch.Tensor
) -> torch.Tensor | None:
    """ESM divides embeddings by the share of a row that is not masked. Here, the share in the whole row is taken out
    again, and for each id the share in a text with the masks of its own group is put in. The content has none.
    """
    layout = running.get()
    if layout is None or layout.has_shares_of_masks:
        return None
    layout.has_shares_of_masks = True  # several pipelines may have set this hook on one model
    ids, group = args[0], layout.group_of
    is_mask = ids == mask_id
    as_text = is_mask & layout.is_content  # a text may have such a piece
    own = is_mask & (group >= 0) & ~as_text.gather(1, layout.true)
    by_group = own.float().new_zeros(len(ids), ids.shape[1] + 1).scatter_add_(1, group + 1, own.float())
    masks = as_text.sum(dim=1, keepdim=True) + by_group.gather(1, group + 1)
    in_row = is_mask.float().mean(dim=1, keepdim=True)
    factor = (1 - in_row) / (1 - masks / layout.lengths[:, None])
    return output * factor[..., None].to(output.dtype)
