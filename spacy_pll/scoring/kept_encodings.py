"""What a tokenizer made of texts that are read twice: when they are checked, and when they are scored."""

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Groups
from .wordpieces import Encoded, read_part

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The most ids that are kept. A sentence of 12 wordpieces takes half a kB with its text, so this is some 80 MB.
MAX_KEPT_IDS = 2**21


class KeptEncodings:
    """Gives what a tokenizer made of some texts. What it does not have is tokenized.

    Nothing changes it, so several threads may use it. A copy of a pipeline in another process has none.

    tokenizer (Tokenizer): The tokenizer.
    blocks (Iterable[Tuple[Sequence[str], Encoded]]): Texts, and what the tokenizer made of them.
    """

    def __init__(self, tokenizer: "Tokenizer", blocks: Iterable[tuple[list[str], Encoded]]):
        texts, encoded = zip(*blocks)
        self.tokenizer = tokenizer
        self._number = {_key(text): number for number, text in enumerate(chain.from_iterable(texts))}
        self._ids = np.concatenate([block.ids for block in encoded])
        self._offsets = np.concatenate([block.offsets for block in encoded])
        shows = next((block for block in encoded if len(block.ids)), encoded[0])
        self._around = shows.prefix, shows.suffix
        self._pieces_of = Groups(np.concatenate([block.pieces_of.lengths for block in encoded]))
        pretokens = [block.pretokens for block in encoded if block.pretokens is not None]
        self._pretokens = np.concatenate(pretokens) if len(pretokens) == len(encoded) else None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()

    def of(self, texts: list[str], tokenizer: "Tokenizer", pretokens: bool = False) -> Encoded:
        """See `Encoded.of`: it is the same."""
        numbers = np.array([self._number.get(_key(text), -1) for text in texts], dtype=np.int64)
        lacks = pretokens and self._pretokens is None
        if lacks or tokenizer is not self.tokenizer or (numbers < 0).any():
            return Encoded.of(texts, tokenizer, pretokens)
        pieces = self._pieces_of.take(numbers)
        of_words = self._pretokens[pieces] if pretokens and self._pretokens is not None else None
        pieces_of, offsets = Groups(self._pieces_of.lengths[numbers]), self._offsets[pieces]
        return Encoded(self._ids[pieces], pieces_of, *self._around, offsets, of_words)


def _key(text: str) -> str:
    """A text without what is not read at its end, of which the doc of a text may have less."""
    return text[: read_part(text)[1]]
