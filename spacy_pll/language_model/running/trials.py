"""What trials of a model share: their texts, what is expected of each, and what counts as equal."""

from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer

from ...arrays import IntArray
from ..reading.special_tokens import special_tokens_around
from .row_attention import MAX_WIDTH


class TrialTexts(NamedTuple):
    """Texts, as ids with special tokens. Their pieces are random, so that they differ whatever the tokenizer."""

    long: IntArray  # int64, shape (length,)
    other: IntArray  # of the same length, with another id at each piece
    short: IntArray  # shorter, unless a context has room for one piece only
    wide: IntArray  # as long as any row of a pass whose padding `RowAttention` hides
    before: int  # how many special tokens stand before the pieces, and after them
    after: int
    n_vocabulary: int

    def pieces(self, ids: IntArray) -> IntArray:
        """The positions of the pieces of one of these texts."""
        return np.arange(self.before, len(ids) - self.after)


def make_texts(tokenizer: Tokenizer, max_length: int, n_long: int = 13, n_short: int = 5) -> TrialTexts:
    """Texts of so many pieces, or as many as fit."""
    n_vocabulary = tokenizer.get_vocab_size()
    before, after = ([number for _, number in put] for put in special_tokens_around(tokenizer))
    n_long = min(n_long, max_length - len(before) - len(after))
    n_short = max(1, min(n_short, n_long // 2))
    pieces = other_ids(np.random.default_rng(0).integers(n_vocabulary, size=n_long), n_vocabulary)
    other = other_ids(pieces, n_vocabulary)
    wide = np.resize(pieces, min(MAX_WIDTH, max_length) - len(before) - len(after))
    all_pieces = pieces, other, other_ids(other[:n_short], n_vocabulary), wide
    long, other, short, wide = (np.array([*before, *ids.tolist(), *after]) for ids in all_pieces)
    return TrialTexts(long, other, short, wide, len(before), len(after), n_vocabulary)


def other_ids(ids: IntArray, n_vocabulary: int) -> IntArray:
    """Another id for each of these, from the middle of the vocabulary, where there are no special tokens."""
    low, span = n_vocabulary // 4, max(2, n_vocabulary // 2)
    return low + (ids - low + span // 3 + 1) % span


class Expected(NamedTuple):
    """What a trial should give for a text, by its reference."""

    ids: IntArray
    position: IntArray  # of the ids whose log-probabilities are known
    log_probs: torch.Tensor  # float32, shape (positions,)


def are_close(actual: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether log-probabilities are what is expected, but for the last digits of float32."""
    return actual.shape == expected.shape and torch.allclose(actual, expected, rtol=1e-4, atol=1e-4)


def log_prob_of(logits: torch.Tensor, target: IntArray) -> torch.Tensor:
    """The log-probability of a target in each row of logits."""
    index = torch.from_numpy(target.astype(np.int64)).to(logits.device)
    return logits.log_softmax(dim=-1).gather(1, index[:, None])[:, 0]
