"""Whether an architecture reads passes with groups (`scoring.groups`) as it should, tried on two texts.

The reference is computed without groups, one plain text a row: the states of the unmasked text are kept before each
layer. Then the masked text is read, and before each layer the states outside the group are replaced by those. So the
group attends to itself and, beside it, to the unmasked text, by the model's own attention, masks and positions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import torch

from ...arrays import IntArray
from ...metrics import Metric, original
from ...scoring.groups import group_passes
from ...scoring.masks import masked_rows
from ...scoring.passes import Batch, PassLimits
from ...scoring.windows import Context, Contexts
from .forward import Forward, GroupPasses
from .log_probs import TargetLogProbs
from .trials import Expected, TrialTexts, are_close
from .unable import Unable, set_hook

# Pieces of the two texts. Local attention reaches less far in most models, so it is tried, too.
N_LONG, N_SHORT = 100, 12
# Groups of each text. What is compared of them are the first and the last one, behind all others.
N_GROUPS = 14
# More ids than the texts have.
LIMIT = 10**6


def find_group_passes(log_probs: TargetLogProbs, texts: TrialTexts, mask_id: int, pad_id: int) -> GroupPasses | None:
    """How the model reads passes with groups; None: it cannot read them.

    It is tried with groups of one masked piece, with one more on each side, and with groups that are the whole text.

    texts (TrialTexts): Of `N_LONG` and `N_SHORT` pieces.
    """
    forward, margins = log_probs.forward, (0, 1, len(texts.long))
    try:
        with forward.trying(forward.capabilities):
            long, short = (_by_states(log_probs, ids, texts, mask_id, margins) for ids in (texts.long, texts.short))
    except Unable:
        return None

    def is_right(one_row: bool, *rows: dict[int, Expected]) -> bool:
        try:
            return all(
                _agree(log_probs, [row[margin] for row in rows], texts, margin, mask_id, pad_id, one_row)
                for margin in margins
            )
        except Unable:
            return False

    def tried(with_mask: bool) -> GroupPasses | None:
        with forward.trying(replace(forward.capabilities, groups=GroupPasses(with_mask))):
            if not is_right(True, short):
                return None
            if is_right(False, long, short):
                return GroupPasses(with_mask, several_texts=True)
            return GroupPasses(with_mask) if is_right(True, long) else None

    without_mask = tried(False)
    return without_mask if without_mask and without_mask.several_texts else tried(True)


def _by_states(
    log_probs: TargetLogProbs, ids: IntArray, texts: TrialTexts, mask_id: int, margins: Sequence[int]
) -> dict[int, Expected]:
    """What the reference gives for the first and the last piece of a text, by margin."""
    forward, content = log_probs.forward, list[torch.Tensor]()
    position = _spread(texts.pieces(ids), 2)
    with _before_layers(forward, lambda call, states: content.append(states)):
        log_probs(_batch(ids[None], np.zeros(1, dtype=int), ids[:1]))
    # One row for each margin and piece.
    margin, masked = (axis.ravel() for axis in np.meshgrid(margins, position, indexing="ij"))
    distance = np.abs(np.arange(len(ids)) - masked[:, None])
    in_group = torch.from_numpy(distance <= margin[:, None]).to(forward.device)[..., None]
    with _before_layers(forward, lambda call, states: torch.where(in_group, states, content[call])):
        reference = log_probs(_batch(np.where(distance == 0, mask_id, ids), masked, ids[masked]))[0]
    by_margin = reference.float().cpu().view(len(margins), -1)
    return {margin: Expected(ids, position, values) for margin, values in zip(margins, by_margin)}


def _batch(ids: IntArray, position: IntArray, target: IntArray) -> Batch:
    """A pass with one target in each row."""
    return Batch.of(ids, np.full(len(ids), ids.shape[1]), np.arange(len(ids)), position, target)


@contextmanager
def _before_layers(forward: Forward, replace: Callable[[int, torch.Tensor], torch.Tensor | None]) -> Iterator[None]:
    """While this lasts, let each layer read what `replace` returns instead of the states that it is given; these, if
    that is None. It is told how many layers have run.
    """
    calls = count()

    def read(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        inputs = (*args, *kwargs.values())
        states = next((x for x in inputs if isinstance(x, torch.Tensor) and x.dim() == 3), None)
        if states is None:
            raise TypeError(f"{type(module).__name__} is given no hidden states.")
        new = replace(next(calls), states)
        others = [new if x is states and new is not None else x for x in inputs]
        return tuple(others[: len(args)]), dict(zip(kwargs, others[len(args) :]))

    with ExitStack() as hooks:
        for layer in forward.narrowing.layers():
            hooks.enter_context(set_hook(layer.register_forward_pre_hook, read, with_kwargs=True))
        yield


def _agree(
    log_probs: TargetLogProbs,
    rows: Sequence[Expected],
    texts: TrialTexts,
    margin: int,
    mask_id: int,
    pad_id: int,
    one_row: bool,
) -> bool:
    """Whether passes with groups give what is expected."""
    n_groups = 2 if margin >= len(rows[0].ids) else N_GROUPS
    contexts = Contexts.of([_context(row.ids, texts, n_groups) for row in rows])
    masked = masked_rows(contexts, [Metric(original)], None, mask_id)
    limits = PassLimits(LIMIT, LIMIT, pad_id, one_row=one_row)
    batches, sums = group_passes(contexts, masked, 1, mask_id, margin, limits)
    scores = sums.scores(torch.cat([log_probs(batch)[0] for batch in batches]).float().cpu().numpy())[0]
    actual = [scores[own][row.position - texts.before] for own, row in zip(contexts.pieces_of, rows)]
    return are_close(torch.from_numpy(np.concatenate(actual)).float(), torch.cat([row.log_probs for row in rows]))


def _context(ids: IntArray, texts: TrialTexts, n_groups: int) -> Context:
    """A text of which some pieces are scored."""
    pieces = texts.pieces(ids)
    is_scored = np.isin(pieces, _spread(pieces, n_groups))
    return Context(ids.astype(np.int32), texts.before, pieces - texts.before, is_scored)


def _spread(pieces: IntArray, n: int) -> IntArray:
    """Some pieces, so many or all, the first and the last among them."""
    return pieces[np.unique(np.linspace(0, len(pieces) - 1, n).round().astype(int))]
