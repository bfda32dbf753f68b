"""Training for exact scores, and for scores in one forward pass (`mask_margin`), beside the training on masked text.

Some pieces are read as scoring reads them, each behind its own masks alone: there, the model learns to predict them.
And where a piece is read in a group beside the unmasked line, the model learns to give the distribution that it gives
itself behind the masks. So one set of weights has exact scores and scores in one pass. spacy_pll.scoring.groups says
what a group is. Here each target has its own.

Needs only torch.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

# In a line, one piece in so many is a target, and at most so many (as tuning/tune.py draws them).
ONE_PIECE_IN, MAX_PER_LINE = 4, 10
# The share of the targets that are masked as `word_l2r` masks them (the others: `original`).
WORD_L2R = 0.5
# Each target is read in a group with each of these margins.
MARGINS = (0, 1)


class Drawn(NamedTuple):
    """The targets of some lines. All tensors have the shape (lines, longest)."""

    target: torch.Tensor  # bool
    last: torch.Tensor  # int: if the piece is a target, the last piece that is masked with it


def draw(
    ids: torch.Tensor,
    n_special: int,
    begins_word: torch.Tensor,
    seed: int,
    most_ids: float = math.inf,
    per_line: int = MAX_PER_LINE,
    word_l2r: float = WORD_L2R,
) -> Drawn:
    """Draw targets in random lines, so many that reading each behind its masks takes at most about `most_ids` ids.

    ids (int tensor, shape (lines, longest)): The padded ids.
    begins_word (bool tensor, shape (vocabulary,)): Whether a piece begins a word. Special pieces and padding do.
    seed (int): With the same seed, the targets are the same, whatever the share `word_l2r` is.
    per_line (int): The most targets in a line.
    """
    n, length = ids.shape
    generator = torch.Generator().manual_seed(seed)
    lines, pieces, metrics = (torch.rand(n, m, generator=generator) for m in (1, length, length))
    usable = ids >= n_special
    wanted = (usable.sum(dim=1, keepdim=True) / ONE_PIECE_IN).ceil().clamp(max=per_line)
    order = lines.flatten().argsort()
    kept = torch.zeros(n, 1, dtype=torch.bool)
    cost = wanted[order] * length
    kept[order] = cost.cumsum(0) - cost < most_ids  # at least one line
    rank = pieces.masked_fill(~usable, 2).argsort(dim=1).argsort(dim=1)
    # The end of a piece's word: the smallest end at or behind it, found from behind.
    at = torch.arange(length)
    ends = torch.cat([begins_word[ids[:, 1:]], torch.ones(n, 1, dtype=torch.bool)], dim=1)
    end = at.where(ends, length).flip(1).cummin(dim=1).values.flip(1)
    last = end.where(metrics < word_l2r, at)
    return Drawn(usable & kept & (rank < wanted), last)


class Rows(NamedTuple):
    """What the model reads, where the targets are, and what they are."""

    ids: torch.Tensor  # int, shape (rows, width)
    position: torch.Tensor  # int, shape (rows, width): the true positions
    # What each row attends to: its pieces (bool, shape (rows, width)), or what is added to the attention scores
    # (float32, shape (rows, 1, width, width)).
    mask: torch.Tensor
    row: torch.Tensor  # int, shape (targets,)
    column: torch.Tensor  # int, shape (targets,)
    target: torch.Tensor  # int, shape (targets,): the ids to predict


def masked_rows(ids: torch.Tensor, real: torch.Tensor, drawn: Drawn, mask_id: int) -> Rows:
    """One row for each target, behind its masks."""
    row, column = drawn.target.nonzero(as_tuple=True)
    at = torch.arange(ids.shape[1])
    masked = ids[row].masked_fill(_masked(drawn, row, column, at), mask_id)
    return Rows(masked, at[None], real[row], torch.arange(len(row)), column, ids[row, column])


def group_rows(
    ids: torch.Tensor, real: torch.Tensor, drawn: Drawn, mask_id: int, margins: Sequence[int] = MARGINS
) -> Rows:
    """One row for each line with targets: the line as it is, and behind it a group for each target and margin.

    RETURNS: Its targets are those of `masked_rows`, each repeated for the margins.
    """
    row, column = (x.repeat_interleave(len(margins)) for x in drawn.target.nonzero(as_tuple=True))
    margin = torch.tensor(margins).repeat(len(row) // len(margins))[:, None]
    lines, row = row.unique_consecutive(return_inverse=True)
    ids, real, drawn = ids[lines], real[lines], Drawn(*(x[lines] for x in drawn))
    length = ids.shape[1]
    at = torch.arange(length)
    masked = _masked(drawn, row, column, at)
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
    bias = torch.zeros(len(lines), 1, width, width).masked_fill_(~sees[:, None], torch.finfo(torch.float32).min)
    return Rows(all_ids, true, bias, row, found, ids[row, column])


def _masked(drawn: Drawn, row: torch.Tensor, column: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """The pieces that are masked for each target. bool, shape (targets, longest)."""
    return (at >= column[:, None]) & (at <= drawn.last[row, column][:, None])


def log_probs(model, rows: Rows) -> torch.Tensor:
    """The log-probabilities that a model with ModernBERT's classes gives at the targets. (targets, vocabulary)."""
    hidden = model.model(input_ids=rows.ids, attention_mask=rows.mask, position_ids=rows.position).last_hidden_state
    return model.decoder(model.head(hidden[rows.row, rows.column])).float().log_softmax(dim=1)


class OnePassLosses(NamedTuple):
    """Sums over the targets. p is the distribution behind the masks (`masked_rows`), q the one in a group
    (`group_rows`), over whose margins the last two are means. Only `exact` has gradients through p.
    """

    exact: torch.Tensor  # the cross-entropy of p at the true piece: minus the exact score
    divergence: torch.Tensor  # KL(p || q)
    difference: torch.Tensor  # the square of the difference between the two scores


def one_pass_losses(model, masked: Rows, groups: Rows, teacher=None) -> OnePassLosses:
    """Compare a model with itself: what it gives behind masks, and what it gives for the same pieces in groups.

    teacher: A model whose p both are compared with. Then `exact` is KL(p of the teacher || p).
    """
    if not len(masked.row):
        return OnePassLosses(*torch.zeros(3, device=masked.row.device, requires_grad=True))
    p = log_probs(model, masked)
    true = masked.target[:, None]
    if teacher is None:
        aim, exact = p.detach(), -p.gather(1, true).sum()
    else:
        with torch.no_grad():
            aim = log_probs(teacher, masked)
        exact = (aim.exp() * (aim - p)).sum()
    aim = aim[:, None]
    q = log_probs(model, groups).view(len(p), -1, p.shape[1])  # shape (targets, margins, vocabulary)
    n_margins = q.shape[1]
    divergence = (aim.exp() * (aim - q)).sum() / n_margins
    difference = (aim - q).gather(2, true[:, None].expand(-1, n_margins, 1)).square().sum() / n_margins
    return OnePassLosses(exact, divergence, difference)
