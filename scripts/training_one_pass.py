"""Training for scores in one forward pass (`mask_margin`), beside the training on masked text.

What tune.py does to a trained model is done here while it is trained: where a piece is read in a group beside the
unmasked line, the model learns to give the distribution that it gives itself behind the masks. So one set of weights
has exact scores and scores in one pass. spacy_pll.scoring.groups says what a group is. Here each target has its own.

Needs only torch.
"""

from typing import NamedTuple

import torch

# In a line, one piece in so many is a target, and at most so many (as tune.py draws them).
ONE_PIECE_IN, MAX_PER_LINE = 4, 10
# The shares of the targets that are masked as `word_l2r` masks them (the others: `original`), and read without a margin
# (the others: with a margin of 1).
WORD_L2R, NO_MARGIN = 0.5, 2 / 3


class Drawn(NamedTuple):
    """The targets of some lines. All tensors have the shape (lines, longest)."""

    target: torch.Tensor  # bool
    last: torch.Tensor  # int: if the piece is a target, the last piece that is masked with it
    margin: torch.Tensor  # int: if the piece is a target, the margin of its group


def draw(ids: torch.Tensor, n_special: int, begins_word: torch.Tensor, most_ids: int, seed: int) -> Drawn:
    """Draw targets in random lines, so many that reading each behind its masks takes at most about `most_ids` ids.

    ids (int tensor, shape (lines, longest)): The padded ids.
    begins_word (bool tensor, shape (vocabulary,)): Whether a piece begins a word. Special pieces and padding do.
    """
    n, length = ids.shape
    generator = torch.Generator().manual_seed(seed)
    lines, pieces, metrics, margins = (torch.rand(n, m, generator=generator) for m in (1, length, length, length))
    usable = ids >= n_special
    wanted = (usable.sum(dim=1, keepdim=True) / ONE_PIECE_IN).ceil().clamp(max=MAX_PER_LINE)
    order = lines.flatten().argsort()
    kept = torch.zeros(n, 1, dtype=torch.bool)
    cost = wanted[order] * length
    kept[order] = cost.cumsum(0) - cost < most_ids  # at least one line
    rank = pieces.masked_fill(~usable, 2).argsort(dim=1).argsort(dim=1)
    # The end of a piece's word: the smallest end at or behind it, found from behind.
    at = torch.arange(length)
    ends = torch.cat([begins_word[ids[:, 1:]], torch.ones(n, 1, dtype=torch.bool)], dim=1)
    end = at.where(ends, length).flip(1).cummin(dim=1).values.flip(1)
    last = end.where(metrics < WORD_L2R, at)
    return Drawn(usable & kept & (rank < wanted), last, (margins >= NO_MARGIN).long())


class Rows(NamedTuple):
    """What the model reads, and where the targets are."""

    ids: torch.Tensor  # int, shape (rows, width)
    position: torch.Tensor  # int, shape (rows, width): the true positions
    bias: torch.Tensor  # float32, shape (rows, 1, width, width): what is added to the attention scores
    row: torch.Tensor  # int, shape (targets,)
    column: torch.Tensor  # int, shape (targets,)


def masked_rows(ids: torch.Tensor, real: torch.Tensor, drawn: Drawn, mask_id: int) -> Rows:
    """One row for each target, behind its masks."""
    row, column = drawn.target.nonzero(as_tuple=True)
    at = torch.arange(ids.shape[1])
    masked = _masked(drawn, row, column, at)
    bias = _bias(real[row, None, None])
    return Rows(ids[row].masked_fill(masked, mask_id), at[None], bias, torch.arange(len(row)), column)


def group_rows(ids: torch.Tensor, real: torch.Tensor, drawn: Drawn, mask_id: int) -> Rows:
    """One row for each line with targets: the line as it is, and behind it a group for each target."""
    row, column = drawn.target.nonzero(as_tuple=True)
    lines, row = row.unique_consecutive(return_inverse=True)
    ids, real, drawn = ids[lines], real[lines], Drawn(*(x[lines] for x in drawn))
    length = ids.shape[1]
    at = torch.arange(length)
    masked = _masked(drawn, row, column, at)
    margin = drawn.margin[row, column][:, None]
    last = drawn.last[row, column][:, None]
    near = (at >= column[:, None] - margin) & (at <= last + margin) & real[row]
    group, position = near.nonzero(as_tuple=True)  # the members, line by line
    member_row = row[group]
    size = torch.bincount(member_row, minlength=len(lines))
    slot = length + torch.arange(len(group)) - (size.cumsum(0) - size)[member_row]
    width = length + int(size.max()) if len(group) else length
    all_ids = ids.new_zeros(len(lines), width)
    all_ids[:, :length] = ids
    all_ids[member_row, slot] = ids[member_row, position].masked_fill(masked[group, position], mask_id)
    true = at.repeat(len(lines), 1).new_zeros(len(lines), width)
    true[:, :length] = at
    true[member_row, slot] = position
    # Who attends to whom: all to the content, but for what is in the own group; and a group to itself.
    in_group = true.new_full((len(lines), width), -1)
    in_group[member_row, slot] = group
    sees = torch.zeros(len(lines), width, width, dtype=torch.bool)
    sees[:, :, :length] = real[:, None]
    sees[member_row, slot, :length] = real[member_row] & ~near[group]
    sees |= (in_group[:, :, None] == in_group[:, None]) & (in_group >= 0)[:, None]
    found = slot[(position == column[group])]  # one member of each group
    return Rows(all_ids, true, _bias(sees[:, None]), row, found)


def _masked(drawn: Drawn, row: torch.Tensor, column: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The pieces that are masked for each target. bool, shape (targets, longest)."""
    return (at >= column[:, None]) & (at <= drawn.last[row, column][:, None])


def _bias(sees: torch.Tensor) -> torch.Tensor:
    return torch.zeros(sees.shape, device=sees.device).masked_fill_(~sees, torch.finfo(torch.float32).min)


def divergence(model, masked: Rows, groups: Rows) -> torch.Tensor:
    """The sum over the targets of KL(p || q). Only q has gradients.

    p is the distribution that a model with ModernBERT's classes gives behind the masks (`masked_rows`), q what it gives
    in a group (`group_rows`).
    """

    def log_probs(rows: Rows) -> torch.Tensor:
        hidden = model.model(input_ids=rows.ids, attention_mask=rows.bias, position_ids=rows.position).last_hidden_state
        return model.decoder(model.head(hidden[rows.row, rows.column])).float().log_softmax(dim=1)

    if not len(masked.row):
        return torch.zeros((), device=masked.row.device)
    with torch.no_grad():
        exact = log_probs(masked)
    return (exact.exp() * (exact - log_probs(groups))).sum()
