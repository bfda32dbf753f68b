"""Whether an architecture reads passes with groups (`scoring.groups`) as it should, tried on two texts.

The reference is computed without groups, one plain text a row: the states of the unmasked text are kept before each
layer. Then the masked text is read, and before each layer the states outside the group are replaced by those. So the
group attends to itself and, beside it, to the unmasked text, by the model's own attention, masks and positions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
from .capabilities import UNABLE, TrialTexts, are_close
from .forward import Forward
from .log_probs import TargetLogProbs

# Pieces of the two texts. Local attention reaches less far in most models, so it is tried, too.
N_LONG, N_SHORT = 100, 12
# Groups of each text. What is compared of them are the first and the last one, behind all others.
N_GROUPS = 14
# More ids than the texts have.
LIMIT = 10**6


def rows_share_passes(log_probs: TargetLogProbs, texts: TrialTexts, mask_id: int, pad_id: int) -> bool | None:
    """Whether several rows may share a pass with groups; None: the model cannot read such passes.

    It is tried with groups of one masked piece, with one more on each side, and with groups that are the whole text.

    texts (TrialTexts): Of `N_LONG` and `N_SHORT` pieces.
    """
    margins = 0, 1, len(texts.long)
    try:
        long, short = (_Reference(log_probs, ids, texts, mask_id, margins) for ids in (texts.long, texts.short))
    except UNABLE:
        return None

    def is_right(one_row: bool, *rows: _Reference) -> bool:
        try:
            return all(_agree(log_probs, rows, margin, mask_id, pad_id, one_row) for margin in margins)
        except UNABLE:
            return False

    def with_masks(masks_groups: bool) -> bool | None:
        log_probs.forward.masks_groups = masks_groups
        if not is_right(True, short):
            return None
        if is_right(False, long, short):
            return True
        return False if is_right(True, long) else None

    return True if with_masks(False) else with_masks(True)


class _Reference:
    """A text, and for each margin the log-probabilities of its first and its last piece by the reference."""

    def __init__(
        self, log_probs: TargetLogProbs, ids: IntArray, texts: TrialTexts, mask_id: int, margins: Sequence[int]
    ):
        self.ids, self.before, self.length = ids, texts.before, len(ids)
        self.n_pieces = self.length - texts.before - texts.after
        forward, content = log_probs.forward, list[torch.Tensor]()
        with _before_layers(forward, lambda call, states: content.append(states)):
            log_probs(_batch(ids[None], np.zeros(1, dtype=int), ids[:1]))
        # One row for each margin and piece.
        margin, piece = (axis.ravel() for axis in np.meshgrid(margins, self.spread(2), indexing="ij"))
        place = (self.before + piece)[:, None]
        distance = np.abs(np.arange(self.length) - place)
        in_group = torch.from_numpy(distance <= margin[:, None]).to(forward.device)[..., None]
        with _before_layers(forward, lambda call, states: torch.where(in_group, states, content[call])):
            reference = log_probs(_batch(np.where(distance == 0, mask_id, ids), place[:, 0], ids[place[:, 0]]))[0]
        self.log_probs = dict(zip(margins, reference.float().cpu().numpy().reshape(len(margins), -1)))

    def spread(self, n: int) -> IntArray:
        """Some of the pieces, the first and the last among them."""
        return np.unique(np.linspace(0, self.n_pieces - 1, n).round().astype(int))

    def context(self, n_groups: int) -> Context:
        """The same, with some pieces to score."""
        pieces = np.arange(self.n_pieces)
        return Context(self.ids.astype(np.int32), self.before, pieces, np.isin(pieces, self.spread(n_groups)))


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
            hooks.enter_context(layer.register_forward_pre_hook(read, with_kwargs=True))
        yield


def _agree(
    log_probs: TargetLogProbs, rows: Sequence[_Reference], margin: int, mask_id: int, pad_id: int, one_row: bool
) -> bool:
    """Whether passes with groups give what is expected."""
    whole = margin >= rows[0].length
    contexts = Contexts.of([row.context(2 if whole else N_GROUPS) for row in rows])
    masked = masked_rows(contexts, [Metric(original)], None, mask_id)
    limits = PassLimits(LIMIT, LIMIT, pad_id, one_row=one_row)
    batches, sums = group_passes(contexts, masked, 1, mask_id, margin, limits)
    scores = sums.scores(torch.cat([log_probs(batch)[0] for batch in batches]).float().cpu().numpy())[0]
    actual = np.concatenate([scores[own][row.spread(2)] for own, row in zip(contexts.pieces_of, rows)])
    expected = np.concatenate([row.log_probs[margin] for row in rows])
    return are_close(torch.from_numpy(actual).float(), torch.from_numpy(expected))
