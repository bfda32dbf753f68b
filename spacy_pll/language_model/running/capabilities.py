"""What an architecture allows, found by trying instead of from a list of architectures that were tested.

Each trial has a reference that shares no code with what is tried: what transformers gives for one plain text. The
trials run in float32 whatever the settings: rounding must neither hide a difference between architectures nor look like
one.
"""

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ...arrays import IntArray
from ...errors import PLLError
from ...scoring.passes import Batch
from ..reading.checks import check_finite, choose_another
from .forward import Capabilities, Forward
from .narrowing import Narrowing
from .torch_settings import OwnAutocast
from .trials import Expected, TrialTexts, are_close, log_prob_of, other_ids
from .unable import Unable, check_logits

logger = logging.getLogger(__name__)

# How much more probable the following pieces must be than the own ones, in nats, for `find_shift`; and in standard
# errors, since a model that is sure of what it was not trained to say differs by chance. Of random models, the
# difference is mostly below 0.4, of trained ones 3 to 8, and 9 standard errors of a tiny one.
CLEAR, ERRORS = 2.0, 3.0


def find_capabilities(
    forward: Forward, texts: TrialTexts, mask_id: int | None, pad_id: int, source: str, tile: int = 0
) -> Capabilities:
    """Try each saving of work, and return those that do not change what transformers gives for each text by itself.
    Without a saving, the model is slower and its scores are right.

    mask_id (Optional[int]): Stands in the texts as well. None: nothing is masked under this model.
    tile (int): Of the device that the model is for (`row_attention.TILE`).
    RAISES (ValueError): The model cannot read a short text, gives values that are not finite, or other values for a
        text that it reads again or beside another one.
    """
    kind, own = type(forward.model).__name__, OwnAutocast(forward.device)

    def is_exact(capabilities: Capabilities, *passes: list[Expected]) -> bool:
        try:
            with forward.trying(capabilities):
                # With fewer positions than ids, an operation that mixes narrowed states with others fails; with more,
                # one that cuts them to the length of the text does, as in LUKE.
                return all(_agree(forward, rows, pad_id, times) for rows in passes for times in (1, 4))
        except Unable:
            return False

    try:
        with own, forward.trying(Capabilities()):
            long, short = (_by_itself(forward, text, texts, mask_id) for text in (texts.long, texts.short))
        allowed = Capabilities(opens_autocast=own.was_open)
        with forward.trying(allowed):
            pads = forward.takes_mask and is_exact(allowed, [long, short])
            # Rows of equal length share passes in any case.
            beside = short if pads else _by_itself(forward, texts.other, texts, mask_id)
            passes = [[short], [long, beside]]
            same = pads or all(_agree(forward, rows, pad_id) for rows in passes)
    except Unable as error:
        alone = "by itself, without the autocast that it opens" if own.was_open else "by itself"
        raise PLLError(
            f"The model {source!r} ({kind}) cannot read a short text {alone}: {error}. {choose_another(forward.model)}"
        ) from error
    for text in (long, short):
        check_finite(text.log_probs, source)
    if not same:
        raise PLLError(
            f"The model {source!r} ({kind}) gives other log-probabilities for a short text if it reads it again, or "
            "together with another one of the same length: its scores would depend on chance, or on other texts. "
            f"{choose_another(forward.model)}"
        )
    allowed = replace(allowed, pads=pads)
    narrowed = (replace(allowed, narrowing=name) for name in Narrowing.names)
    allowed = next((narrower for narrower in narrowed if is_exact(narrower, *passes)), allowed)
    if pads and tile:
        hidden = replace(allowed, filler=int(texts.long[texts.before]), tile=tile)
        with forward.trying(allowed):
            wide = _by_itself(forward, texts.wide, texts, mask_id)
        # Rows as one, not all of them; rows of equal length; rows of their own.
        if is_exact(hidden, [long, *[short] * tile], [short] * (tile - 1), [wide, short]):
            allowed = hidden
    logger.info(
        "%r is a %s. Texts of different lengths %s. Of its last layer and head, it computes %s.%s",
        source,
        kind,
        "share forward passes" if pads else "do not share forward passes, which is slower",
        "all at all pieces, which is slower"
        if allowed.narrowing is None
        else f"what comes {allowed.narrowing} at the masked pieces alone",
        "" if allowed.filler is None else " It is told nothing of padding, and short rows are read as one.",
    )
    return allowed


def find_direction(forward: Forward, texts: TrialTexts, mask_id: int | None) -> tuple[bool, bool]:
    """Whether predictions depend on what comes before a piece, and on what follows. Some classes do either, by a
    setting in config.json (`is_decoder`, `causal`).

    mask_id (Optional[int]): What stands where the prediction is. None: the model predicts each piece from those before
        it, so it must not see the piece either.
    """
    text = texts.long.copy()
    middle, length = len(text) // 2, len(text)
    if mask_id is not None:
        text[middle] = mask_id
    everywhere = np.arange(length)

    def logits(ids: IntArray) -> torch.Tensor:
        return forward.logits(Batch.of(ids[None], np.array([length]), np.zeros(length, dtype=int), everywhere, text))[0]

    original = logits(text)
    size = original.abs().median()  # not the largest: some models give what pads their vocabulary a huge one

    def depend(at: slice, on: slice) -> bool:
        """Whether the predictions at some positions depend on the ids at others."""
        changed = text.copy()
        changed[on] = other_ids(text[on], texts.n_vocabulary)
        # What does not depend on them repeats the same sums, so at most a last digit differs. What does differs by a
        # thousandth and more of its size, also in models that are small and not trained. The log-probabilities of those
        # do not show it: beside what they have in common, it is no more than rounding.
        difference = (logits(changed) - original)[at].abs().nan_to_num(0)
        return bool((difference > 1e-5 * size).any())

    if mask_id is not None:
        at = slice(middle, middle + 1)
        return depend(at, slice(middle)), depend(at, slice(middle + 1, None))
    follows = any(depend(slice(begin), slice(begin, None)) for begin in (1, middle))
    return depend(slice(length - 1, None), slice(length - 1)), follows


def find_shift(forward: Forward, texts: TrialTexts) -> int:
    """How many positions before a piece a masked model predicts it: 0, or 1 for masked next-token prediction.

    In training, some of the pieces that are to be predicted are left in sight. So of a text without masks, a model says
    what it sees: at each position the piece that stands there, or the one that follows. If neither is clear: 0.
    """
    own, following = list[torch.Tensor](), list[torch.Tensor]()
    for ids in (texts.long, texts.other):
        at = np.arange(texts.before, len(ids) - texts.after - 1)
        none = np.zeros(len(at), dtype=np.int64)
        logits, _ = forward.logits(Batch.of(ids[None], np.array([len(ids)]), none, at, ids[at]))
        own.append(log_prob_of(logits, ids[at]))
        following.append(log_prob_of(logits, ids[at + 1]))
    difference = torch.cat(following) - torch.cat(own)
    if len(difference) < 2:
        return 0
    error = difference.std().item() / len(difference) ** 0.5
    return int(difference.mean().item() > max(CLEAR, ERRORS * error))


def most_as_short(config: Any) -> int | None:
    """With LongRoPE, as Phi-3 has it, one row with more ids than this changes the angles of all rows of its pass."""
    angles = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    if angles.get("rope_type", angles.get("type")) != "longrope":
        return None
    most: int = angles.get("original_max_position_embeddings") or config.original_max_position_embeddings
    return most


def _by_itself(forward: Forward, text: IntArray, texts: TrialTexts, mask_id: int | None) -> Expected:
    """What transformers alone gives for a text with some masks. The first piece stays: it may be the only one."""
    text = text.copy()
    if mask_id is not None:
        text[texts.before + 1 : min(texts.before + 3, len(text) - texts.after)] = mask_id
    with forward.tensors(), forward.evaluating():
        target = torch.from_numpy(text).to(forward.device)
        logits = forward.call(target[None])
        check_logits(logits, 1, len(text), target)
    return Expected(text, np.arange(len(text)), log_prob_of(logits[0, : len(text)].float(), text))


def _agree(forward: Forward, rows: list[Expected], pad_id: int, times: int = 1) -> bool:
    """Whether a pass with these texts gives what is expected, at every second position of each, so many times."""
    lengths = np.array([len(text.ids) for text in rows])
    ids = np.full((len(rows), lengths.max()), pad_id)
    for padded, text in zip(ids, rows):
        padded[: len(text.ids)] = text.ids
    # Backwards: this shows whether a head depends on neighbouring positions.
    position = np.concatenate([np.tile(np.arange(n - 1, -1, -2), times) for n in lengths])
    row = np.repeat(np.arange(len(rows)), (lengths + 1) // 2 * times)
    batch = Batch.of(ids, lengths, row, position, ids[row, position])
    expected = torch.stack([rows[r].log_probs[p] for r, p in zip(row.tolist(), position.tolist())])
    return are_close(log_prob_of(forward.logits(batch)[0], batch.target), expected)
