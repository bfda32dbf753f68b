"""A random part of the words of each text, drawn without replacement. It stands for the rest (`attributes.values`)."""

from hashlib import sha256
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, Groups, IntArray, begins, distinct
from .digests import scrambled
from .windows import Contexts
from .wordpieces import DocTexts, Wordpieces, connected_runs, read_text

# How units were drawn of a text, as docs store it: a number for text and seed, how many were drawn, and of how many.
Draw = tuple[int, int, int]


class Drawn(NamedTuple):
    """The units of some docs."""

    unit: IntArray  # int, shape (tokens,): the number of each token's unit in its doc; -1 without a piece to score
    draws: list[Draw]  # of each doc
    is_drawn: BoolArray  # bool, shape (tokens,): False where a unit was left out


def draw_words(read: DocTexts, pieces: Wordpieces, contexts: Contexts, share: float, seed: int) -> Drawn:
    """Draw units: tokens, together with those that share a word. Each is as likely as any other of its text.

    A draw depends on what is read of the text, and on the seed. A larger part has all units of a smaller one, and two
    models whose units differ draw mostly the same.

    contexts (Contexts): What would be scored without a draw.
    """
    n, words = len(read.starts), Groups.beginning(begins(pieces.word))
    unit = connected_runs(pieces.token[words.starts], pieces.token[words.ends - 1], n)
    tokens = np.unique(pieces.token[contexts.piece[contexts.scored]])
    first, number = distinct(unit[tokens])
    token_in_text, doc = read.tokens_of.within[tokens[first]], read.tokens_of.owner[tokens[first]]
    units = Groups.by(doc, len(read.texts))
    n_drawn = np.minimum(units.lengths, np.maximum(2, np.rint(share * units.lengths).astype(int)))  # two, for an error
    texts = map(read_text, read.texts)
    digests = (sha256(f"{seed} {text}".encode("utf8", "surrogatepass")).digest() for text in texts)
    text = np.fromiter((int.from_bytes(digest[:5], "little") for digest in digests), np.int64, len(read.texts))
    order, drawn = np.lexsort((scrambled(text[doc] * 2**16 + token_in_text, 0), doc)), np.zeros(len(doc), dtype=bool)
    drawn[order] = units.within < n_drawn[doc]
    of_token, is_drawn = np.full(n, -1), np.ones(n, dtype=bool)
    of_token[tokens], is_drawn[tokens] = units.within[number], drawn[number]
    return Drawn(of_token, list(zip(text.tolist(), n_drawn.tolist(), units.lengths.tolist())), is_drawn)
