"""What an architecture allows, found by trying instead of from a list of architectures that were tested.

Each trial has a reference that shares no code with what is tried: what transformers gives for one plain text. The
trials run in float32 whatever the settings: rounding must neither hide a difference between architectures nor look like
one.
"""

import logging
from typing import Any, NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from ...arrays import IntArray
from ...errors import PLLError
from ...scoring.passes import Batch
from ..reading.checks import check_finite, choose_another
from ..reading.special_tokens import puts_around
from .forward import Forward
from .narrowing import Narrowing
from .row_attention import MAX_WIDTH
from .torch_settings import OwnAutocast

# What a model raises if it is asked for something that it cannot do, or does not have.
UNABLE = (RuntimeError, ValueError, IndexError, TypeError, AttributeError)

logger = logging.getLogger(__name__)

# How much more probable the following pieces must be than the own ones, in nats, for `find_shift`; and in standard
# errors, since a model that is sure of what it was not trained to say differs by chance. Of random models, the
# difference is mostly below 0.4, of trained ones 3 to 8, and 9 standard errors of a tiny one.
CLEAR, ERRORS = 2.0, 3.0


class TrialTexts(NamedTuple):
    """Three texts, as ids with special tokens. Their pieces are random, so that they differ whatever the tokenizer."""

    long: IntArray  # int64, shape (length,)
    other: IntArray  # of the same length, with another id at each piece
    short: IntArray  # shorter, unless a context has room for one piece only
    wide: IntArray  # as long as any row of a pass whose padding `RowAttention` hides
    before: int  # how many special tokens stand before the pieces, and after them
    after: int
    n_vocabulary: int


def make_texts(tokenizer: Tokenizer, max_length: int, n_long: int = 13, n_short: int = 5) -> TrialTexts:
    """Texts of so many pieces, or as many as fit."""
    n_vocabulary = tokenizer.get_vocab_size()
    before, after = ([number for _, number in put] for put in puts_around(tokenizer))
    n_long = min(n_long, max_length - len(before) - len(after))
    n_short = max(1, min(n_short, n_long // 2))
    pieces = _others(np.random.default_rng(0).integers(n_vocabulary, size=n_long), n_vocabulary)
    other = _others(pieces, n_vocabulary)
    wide = np.resize(pieces, min(MAX_WIDTH, max_length) - len(before) - len(after))
    all_pieces = pieces, other, _others(other[:n_short], n_vocabulary), wide
    long, other, short, wide = (np.array([*before, *ids.tolist(), *after]) for ids in all_pieces)
    return TrialTexts(long, other, short, wide, len(before), len(after), n_vocabulary)


def _others(ids: IntArray, n_vocabulary: int) -> IntArray:
    """Another id for each of these, from the middle of the vocabulary, where there are no special tokens."""
    low, span = n_vocabulary // 4, max(2, n_vocabulary // 2)
    return low + (ids - low + span // 3 + 1) % span


def find_capabilities(
    forward: Forward, texts: TrialTexts, mask_id: int | None, pad_id: int, source: str, tile: int = 0
) -> bool:
    """Try each saving of work, and keep those that do not change what transformers gives for each text by itself:
    `forward` is narrowed as far as it may be. Without a saving, the model is slower and its scores are right.

    mask_id (Optional[int]): Stands in the texts as well. None: nothing is masked under this model.
    tile (int): Of the device that the model is for (`row_attention.TILE`).
    RETURNS (bool): Whether rows of different lengths may share a forward pass.
    RAISES (ValueError): The model cannot read a short text, gives values that are not finite, or other values for a
        text that it reads again or beside another one.
    """
    kind, own = type(forward.model).__name__, OwnAutocast(forward.device)

    def is_exact(narrowing: str | None, *passes: list[_Expected]) -> bool:
        try:
            forward.narrowing.set(narrowing)
            # With fewer positions than ids, an operation that mixes narrowed states with others fails; with more, one
            # that cuts them to the length of the text does, as in LUKE.
            return all(_agree(forward, rows, pad_id, times) for rows in passes for times in (1, 4))
        except UNABLE:
            return False

    try:
        with own:
            long, short = (_by_itself(forward, text, texts, mask_id) for text in (texts.long, texts.short))
        forward.opens_autocast = own.was_open
        pads = forward.takes_mask and is_exact(None, [long, short])
        # Rows of equal length share passes in any case.
        beside = short if pads else _by_itself(forward, texts.other, texts, mask_id)
        passes = [[short], [long, beside]]
        same = pads or all(_agree(forward, rows, pad_id) for rows in passes)
    except UNABLE as error:
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
    narrowing = next((name for name in Narrowing.names if is_exact(name, *passes)), None)
    forward.narrowing.set(narrowing)
    if pads and tile:
        wide, filler = _by_itself(forward, texts.wide, texts, mask_id), int(texts.long[texts.before])
        forward.filler, forward.tile = filler, tile
        # Rows as one, not all of them; rows of equal length; rows of their own.
        if not is_exact(narrowing, [long, *[short] * tile], [short] * (tile - 1), [wide, short]):
            forward.filler = None
    logger.info(
        "%r is a %s. Texts of different lengths %s. Of its last layer and head, it computes %s.%s",
        source,
        kind,
        "share forward passes" if pads else "do not share forward passes, which is slower",
        f"what comes {narrowing} at the masked pieces alone" if narrowing else "all at all pieces, which is slower",
        "" if forward.filler is None else " It is told nothing of padding, and short rows are read as one.",
    )
    return pads


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
        changed[on] = _others(text[on], texts.n_vocabulary)
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
        own.append(_picked(logits, ids[at]))
        following.append(_picked(logits, ids[at + 1]))
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


class _Expected(NamedTuple):
    """What transformers alone gives for a text."""

    ids: IntArray
    log_probs: torch.Tensor  # float32, shape (length,): of each id at its position


def _by_itself(forward: Forward, text: IntArray, texts: TrialTexts, mask_id: int | None) -> _Expected:
    """What it gives with some pieces masked. The first one is not: it may be the only one."""
    text = text.copy()
    if mask_id is not None:
        text[texts.before + 1 : min(texts.before + 3, len(text) - texts.after)] = mask_id
    with forward.tensors(), forward.evaluating():
        logits = forward.model(input_ids=torch.from_numpy(text[None]).to(forward.device), return_dict=True).logits
    return _Expected(text, _picked(logits[0].float(), text))


def _agree(forward: Forward, rows: list[_Expected], pad_id: int, times: int = 1) -> bool:
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
    return are_close(_picked(forward.logits(batch)[0], batch.target), expected)


def are_close(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether log-probabilities are what is expected, but for the last digits of float32."""
    return actual.shape == expected.shape and torch.allclose(actual, expected, rtol=1e-4, atol=1e-4)


def _picked(logits: torch.Tensor, target: IntArray) -> torch.Tensor:
    """The log-probability of a target in each row of logits."""
    index = torch.from_numpy(target.astype(np.int64)).to(logits.device)
    return logits.log_softmax(dim=-1).gather(1, index[:, None])[:, 0]
