"""A random part of the words of each text, drawn without replacement. It stands for the rest (`attributes.values`)."""

from hashlib import sha256

import numpy as np

from ..arrays import BoolArray, Groups, begins, distinct
from .digests import scrambled
from .windows import Contexts
from .wordpieces import DocTexts, Wordpieces, connected_runs, read_text

# How a token was drawn, or was not, as docs store it: a number for text and seed, how many units of the text are
# scored and how many it has, the number of the token's unit in the text, and how many wordpieces the token has.
Draw = list[int]


def draw_words(
    read: DocTexts, pieces: Wordpieces, contexts: Contexts, part: float, seed: int
) -> tuple[list[Draw | None], BoolArray]:
    """Draw units: tokens, together with those that share a word. Each is as likely as any other of its text.

    A draw depends on what is read of the text, and on the seed. A larger part has all units of a smaller one, and two
    models whose units differ draw mostly the same.

    contexts (Contexts): What would be scored without a draw.
    RETURNS: Of each token its `Draw`, None without a piece to score; and which are not left out, shape (tokens,).
    """
    n, words = len(read.starts), Groups.beginning(begins(pieces.word))
    n_pieces = np.bincount(pieces.token[contexts.piece[contexts.scored]], minlength=n)
    unit, tokens = connected_runs(pieces.token[words.starts], pieces.token[words.ends - 1], n), np.flatnonzero(n_pieces)
    first, number = distinct(unit[tokens])
    place, doc = read.tokens_of.within[tokens[first]], read.tokens_of.owner[tokens[first]]
    units = Groups.by(doc, len(read.docs))
    n_drawn = np.minimum(units.lengths, np.maximum(2, np.rint(part * units.lengths).astype(int)))  # two, for an error
    texts = map(read_text, read.texts)
    digests = (sha256(f"{seed} {text}".encode("utf8", "surrogatepass")).digest() for text in texts)
    text = np.fromiter((int.from_bytes(digest[:5], "little") for digest in digests), np.int64, len(read.docs))
    order, drawn = np.lexsort((scrambled(text[doc] * 2**16 + place, 0), doc)), np.zeros(len(doc), dtype=bool)
    drawn[order] = units.within < n_drawn[doc]
    draws, kept = list[Draw | None]([None] * n), np.ones(n, dtype=bool)
    kept[tokens] = drawn[number]
    of_units = np.stack([text[doc], n_drawn[doc], units.lengths[doc], units.within])
    for token, values in zip(tokens.tolist(), np.vstack([of_units[:, number], n_pieces[tokens]]).T.tolist()):
        draws[token] = values
    return draws, kept
