"""What an architecture allows, found by trying instead of from a list of architectures that were tested.

The trials run in float32 whatever the settings: rounding must neither hide a difference
between architectures nor look like one.
"""

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from ..metrics import original
from ..scoring.groups import GroupPlan
from ..scoring.mask_blocks import iter_mask_blocks
from ..scoring.plan import Batch, Plan
from ..scoring.windows import Context
from .checks import check_finite
from .forward import Forward
from .log_probs import Tensors

# A text, and a shorter one to be padded to its length.
LONG_TEXT = "This is the longer of two texts, to see what padding does."
SHORT_TEXT = "Two texts."
# More ids than they have.
LIMIT = 10**6

# What a model raises if it is asked for something that it cannot do, or does not have.
UNABLE = (RuntimeError, ValueError, IndexError, TypeError, AttributeError)

logger = logging.getLogger(__name__)

LogProbs = Callable[[Any], Tensors]  # of a Batch or GroupBatch


class Trial(NamedTuple):
    """Two short texts, as the model reads them."""

    long: np.ndarray  # int, shape (length,)
    alone: Batch  # the short one by itself
    together: Batch  # the same targets, with the long one in the same pass


def make_trial(tokenizer: Tokenizer, max_length: int, pad_id: int, shift: int) -> Trial:
    """The texts that are tried, by a model that predicts a piece so many positions before it."""
    long, short = (np.array(tokenizer.encode(text).ids)[:max_length] for text in (LONG_TEXT, SHORT_TEXT))
    ids = np.full((2, max(len(long), len(short))), pad_id)
    ids[0, : len(long)], ids[1, : len(short)] = long, short
    # Only some positions, out of order: this shows whether a head depends on neighbouring positions.
    position = np.arange(shift, len(short))[::-2].copy()

    def batch(ids: np.ndarray, *lengths: int) -> Batch:
        row = np.full(len(position), len(ids) - 1)
        return Batch(ids, np.array(lengths), row, position, short[position])

    return Trial(long, batch(short[None], len(short)), batch(ids, len(long), len(short)))


def find_capabilities(log_probs: LogProbs, forward: Forward, trial: Trial, source: str) -> bool:
    """Try each saving of work, and keep those that do not change the log-probabilities: `forward`, which `log_probs`
    runs, is narrowed as far as it may be. Without a saving, the model is slower and its scores are right.

    RETURNS (bool): Whether rows of different lengths may share a forward pass.
    RAISES (ValueError): The model cannot read a short text, or gives values that are not finite.
    """
    try:
        reference = log_probs(trial.alone)[0]
    except UNABLE as error:
        raise ValueError(
            f"The model {source!r} ({type(forward.model).__name__}) cannot read a short text by itself: "
            f"{error}. Choose a model of another architecture."
        ) from error
    check_finite(reference, source)

    def is_exact(narrowing: str | None, *batches: Batch) -> bool:
        try:
            forward.narrow(narrowing)
            # There are fewer positions than ids, so an operation that mixes narrowed states with others fails.
            return all(torch.allclose(log_probs(batch)[0], reference, rtol=1e-4, atol=1e-4) for batch in batches)
        except UNABLE:
            return False

    pads = forward.takes_mask and is_exact(None, trial.together)
    batches = [trial.alone, trial.together] if pads else [trial.alone]
    narrowing = next((name for name in Forward.narrowings if is_exact(name, *batches)), None)
    forward.narrow(narrowing)
    logger.info(
        "%r is a %s. Texts of different lengths %s. Of its last layer and head, it computes %s.",
        source,
        type(forward.model).__name__,
        "share forward passes" if pads else "do not share forward passes, which is slower",
        f"what comes {narrowing} at the masked pieces alone" if narrowing else "all at all pieces, which is slower",
    )
    return pads


def sees_what_follows(log_probs: LogProbs, ids: np.ndarray, n_embeddings: int) -> bool:
    """Whether the prediction of the first piece of a text, given as its ids, depends on the pieces after it.

    Some classes do either, by a setting in config.json (`is_decoder`, `causal`).
    """
    others = ids.copy()
    others[2:] = (ids[2:] + 1) % n_embeddings
    first = np.array([0])
    before, after = (
        float(log_probs(Batch(text[None], np.array([len(text)]), first, first + 1, ids[1:2]))[0])
        for text in (ids, others)
    )
    # A left-to-right model repeats the same sums, so at most a last digit differs.
    return abs(after - before) > 1e-5


def _trial_context(tokenizer: Tokenizer, text: str, max_length: int) -> Context:
    """A text, of which two pieces are scored."""
    encoding = tokenizer.encode(text)
    own = np.flatnonzero(~np.array(encoding.special_tokens_mask, dtype=bool))
    n = len(own) - max(0, len(encoding.ids) - max_length)
    ids = np.delete(np.array(encoding.ids, dtype=np.int32), own[n:])
    return Context(ids, int(own[0]), np.arange(n), np.isin(np.arange(n), [n // 2, n - 1]), 0, 0)


def rows_share_passes(
    log_probs: LogProbs, tokenizer: Tokenizer, max_length: int, mask_id: int, pad_id: int
) -> bool | None:
    """Try whether a model reads passes with groups as it should, on a longer and a shorter text.

    A group that is the whole context must give the scores of the exact pass. And the scores of a small group must not
    depend on the other groups in its row, neither directly nor by way of the content.

    RETURNS (Optional[bool]): Whether several rows may share a pass; None: the model cannot read such passes.
    """
    # The long one is longer than most windows of local attention, so that these are tried, too.
    texts = " ".join([LONG_TEXT] * 12), LONG_TEXT
    contexts = [_trial_context(tokenizer, text, max_length) for text in texts]
    blocks = list(iter_mask_blocks(contexts, [original], None, LIMIT))
    first = [block.select(np.arange(len(block.masked)) == 0) for block in blocks]

    def scores(plan: Plan | GroupPlan, pads: bool) -> np.ndarray | None:
        try:
            answers = [log_probs(batch)[0].float().cpu().numpy() for batch in plan.batches(LIMIT, LIMIT, pad_id, pads)]
        except UNABLE:
            return None
        return plan.scores(np.concatenate(answers))

    whole = max(map(len, contexts))
    exact = scores(Plan(contexts, blocks, 1, mask_id), False)
    alone = scores(GroupPlan(contexts, first, 1, mask_id, 0), False)
    for pads in (True, False):
        found = scores(GroupPlan(contexts, blocks, 1, mask_id, whole), pads)
        beside = scores(GroupPlan(contexts, blocks, 1, mask_id, 0), pads)
        if exact is None or found is None or beside is None or alone is None:
            continue
        if np.allclose(found, exact, rtol=1e-4, atol=1e-4) and np.allclose(beside[alone != 0], alone[alone != 0], 1e-4):
            return pads
    return None
