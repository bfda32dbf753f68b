"""Left-to-right language models, and to which word they count the probability of a space."""

from typing import Any, Literal, get_args

import numpy as np
import torch
from spacy.util import SimpleFrozenDict
from tokenizers import Tokenizer
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoModelForCausalLM, PreTrainedTokenizerBase

from ..errors import PLLError
from ..scoring.passes import Batch
from ..scoring.piece_texts import DECODERS, space_marker
from .base import TransformerLanguageModel
from .reading.checks import count_embeddings, in_block
from .reading.slow_tokenizers import backend_of
from .reading.special_tokens import put_around, special_tokens_around
from .running.forward import Forward, Precision
from .running.log_probs import TargetLogProbs, Tensors, expected_at

LeadingSpace = Literal["word", "previous"]


class CausalLanguageModel(TransformerLanguageModel):
    """A model that predicts each piece from those before it.

    A beginning-of-sequence token is put before the text, so that the first piece is scored too.

    name (str): A name on the Hugging Face hub or a local folder; there is no built-in one.
    leading_space (str): Which word gets the probability of a leading-space marker ("Ġ", "▁").
        "word": the word that it begins, so scores are plain sums over the pieces.
        "previous": the word that it ends (`LeadingSpaceLogProbs` has the equation).
    RAISES (ValueError): `leading_space` is neither. When the model is loaded: it is
        "previous" and the tokenizer does not mark leading spaces.
    """

    kind = "causal"
    auto_class = AutoModelForCausalLM
    configs = MODEL_FOR_CAUSAL_LM_MAPPING
    shift = 1
    example = "gpt2"

    def __init__(
        self,
        name: str,
        revision: str = "main",
        tokenizer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        transformer_config: dict[str, Any] = SimpleFrozenDict(),  # noqa: B008
        mixed_precision: bool = False,
        leading_space: LeadingSpace = "word",
        precision: Precision | None = None,
    ):
        super().__init__(name, revision, tokenizer_config, transformer_config, mixed_precision, precision)
        if leading_space not in (kinds := get_args(LeadingSpace)):
            raise PLLError(f"`leading_space` must be one of {', '.join(kinds)}. It is {leading_space!r}.")
        self.leading_space = leading_space
        self.lookahead = 1 if leading_space == "previous" else 0  # whether a space follows

    def _backend(self, tokenizer: PreTrainedTokenizerBase, source: str) -> Tokenizer:
        backend = backend_of(tokenizer, source)
        before, after = special_tokens_around(backend)
        if any(backend.token_to_id(token) == number for token, number in before):
            return backend
        if tokenizer.bos_token is None:
            block = {"@architectures": "spacy-pll.CausalLM.v1", "tokenizer_config": {"bos_token": "<|endoftext|>"}}
            raise PLLError(
                f"The tokenizer of {source!r} has no beginning-of-sequence token, without which the first piece of a "
                f"text cannot be scored. Name one: {in_block(source, **block)}"
            )
        return put_around(backend, [tokenizer.bos_token], [token for token, _ in after])

    def _log_probs(
        self, forward: Forward, shift: int, hf_tokenizer: PreTrainedTokenizerBase, tokenizer: Tokenizer, source: str
    ) -> TargetLogProbs:
        if self.leading_space == "word":
            return super()._log_probs(forward, shift, hf_tokenizer, tokenizer, source)
        return LeadingSpaceLogProbs(forward, hf_tokenizer, tokenizer, source)


class LeadingSpaceLogProbs(TargetLogProbs):
    """Log-probabilities that give the space before a word to the word that it ends (`leading_space="previous"`).

    Most tokenizers of left-to-right models mark the space before a word on the word's first
    piece. So the plain sum over a word's pieces (`leading_space="word"`) holds the probability
    that the previous word has ended, and lacks the probability that this word has. Here that
    probability moves to the word that ends. For a word w with the pieces s(1) .. s(k), after the text c,

        log p(w | c) = sum_i log p(s(i) | c, s(<i)) + log B(c, w) - log B(c)
        B(c) = sum of p(b | c) over all pieces b that begin with the marker, and the end of text

    (Pimentel & Meister 2024, "How to Compute the Probability of a Word", equation for tokenizers
    that mark the beginnings of words; Oh & Schuler 2024, "Leading Whitespaces of Language Models'
    Subword Vocabulary Pose a Confound for Calculating Word Probabilities").

    By piece: a piece with the marker gives up log B, and the piece before it receives it. The first piece
    of a text gives up nothing, because no word ends there. The last piece receives log B of the end.
    So the scores of a text sum to the plain log-likelihood plus the log-probability that its last
    word has ended. Where no space separates two words (before a full stop), the plain sums stay. In
    a text that is longer than the model takes, a piece is scored where the next one can be seen
    (`lookahead`). Where no window has both, the end of the window counts as the end of the text.

    RAISES (ValueError): The tokenizer marks no leading spaces.
    """

    positions_per_target = 2

    def __init__(self, forward: Forward, tokenizer: PreTrainedTokenizerBase, backend: Tokenizer, source: str):
        super().__init__(forward, shift=1)
        marker, pieces = space_marker(backend)
        if marker is None:
            raise PLLError(
                f"The tokenizer of {source!r} marks no leading spaces ({' or '.join(map(repr, DECODERS))}): it cuts "
                f"'a a' into {pieces}. leading_space='previous' has no meaning there: leave it at 'word'."
            )
        # The pieces with the marker, and the end of text.
        self.begins_word = np.zeros(count_embeddings(forward.model), dtype=bool)
        vocabulary, added = tokenizer.get_vocab(), tokenizer.get_added_vocab()
        marked = [i for piece, i in vocabulary.items() if piece.startswith(marker) and piece not in added]
        self.begins_word[marked] = True
        if tokenizer.eos_token_id is not None:
            self.begins_word[tokenizer.eos_token_id] = True
        self.n_prefix, self.n_suffix = map(len, special_tokens_around(backend))

    def __call__(self, batch: Batch) -> Tensors:
        before, after = batch.position - 1, batch.position
        # The prediction after one piece is the prediction before the next one: each is computed once.
        (row, position), which = np.unique(
            np.stack([np.tile(batch.row, 2), np.concatenate([before, after])]), axis=1, return_inverse=True
        )
        last = batch.position + 1 == batch.lengths[batch.row] - self.n_suffix
        following = batch.ids[batch.row, np.minimum(batch.position + 1, batch.width - 1)]
        gives = self.begins_word[batch.target] & (batch.position > self.n_prefix)
        receives = last | self.begins_word[following]
        logits, target = self.forward.logits(batch, at=(row, position))
        *which_, gives_, receives_, begins = self.forward.upload(
            *which.reshape(2, -1), gives, receives, np.flatnonzero(self.begins_word)
        )
        log_sum = logits.logsumexp(dim=1)
        boundary = logits[:, begins].logsumexp(dim=1) - log_sum
        plain = logits[which_[0], target] - log_sum[which_[0]]
        # Not by a product with 0 and 1: the boundary may be infinite at positions where it is not used.
        nothing = torch.zeros_like(plain)
        given = torch.where(gives_.bool(), boundary[which_[0]], nothing)
        received = torch.where(receives_.bool(), boundary[which_[1]], nothing)
        # What the model expected is said of the piece alone, without the boundaries.
        expected = expected_at(logits[which_[0]], log_sum[which_[0]], target, batch.wanted)
        return plain - given + received, *expected
