"""From wordpieces to contexts: windows that fit the model, and which window scores which token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import BoolArray, IntArray
from ..user_warnings import warn_user
from .wordpieces import Wordpieces, connected_runs, segment_of, word_begins

# A margin is two numbers of pieces, of which the second breaks ties. They are stored as one: the first times this
# factor, which is larger than any window, plus the second.
_FIRST = 2**32
# Added to the margin in a span that holds all tokens that share pieces, so that it wins over spans that hold only some
# of them. Larger than any margin.
_WHOLE_GROUP = 2**61


@dataclass
class Context:
    """What the model reads at once: one window of a span's pieces, with the special tokens around them."""

    ids: IntArray  # int32, shape (length,): special tokens included
    first: int  # position of the window's first piece in `ids`
    word: IntArray  # int, shape (pieces,): the word of each piece
    scored: BoolArray  # bool, shape (pieces,): the pieces that are scored in this window
    span: int  # index of the span that the window was cut from
    offset: int  # index of the window's first piece in that span
    window: int = 0  # number of the window among those of the span

    def __len__(self) -> int:
        return len(self.ids)


def get_contexts(
    spans: list[Span],
    wordpieces: list[Wordpieces],
    targets: BoolArray | None,
    max_length: int,
    lookahead: int | None = None,
    units: Sequence[tuple[int, int]] = (),
) -> tuple[list[Context], BoolArray]:
    """Cut the spans of one doc into contexts so that every token is scored once.

    A token that lies in several spans is scored in the span that gives it the largest margin:
    the number of pieces on the side of it that has fewer, or, with `lookahead`, before it (`choose_windows`).
    A tie goes to the earlier span.
    Tokens that share a piece in some span ("ca" and "n't" share "can") are scored in the same
    span, if there is one that holds them all. Otherwise a character of theirs could be scored
    twice, or never. So are the tokens of a unit.

    targets (Optional[bool array, shape (tokens of the doc,)]): The tokens to score; None: all.
    lookahead (Optional[int]): How many of the pieces that follow a piece its score depends on; None: all of them.
    units (Sequence[tuple[int, int]]): The units that the pieces were joined to.
    RETURNS: The contexts, and the tokens that are scored, bool, shape (tokens of the doc,).
    """
    if not spans:
        return [], np.zeros(0, dtype=bool)
    doc = spans[0].doc
    everything = len(spans) == 1 and len(spans[0]) == len(doc)
    if everything and len(wordpieces[0].prefix) + len(wordpieces[0]) + len(wordpieces[0].suffix) <= max_length:
        # There is nothing to choose. This is how most texts are read, so it is fast.
        scored = np.ones(len(doc), dtype=bool) if targets is None else targets.copy()
        here = scored[wordpieces[0].token]
        return [_context(wordpieces[0], wordpieces[0].word, here, 0, 0, len(here))] if here.any() else [], scored
    best = np.full(len(doc), -1, dtype=np.int64)
    owner = np.full(len(doc), -1, dtype=np.int64)
    group = _tokens_together(wordpieces, doc, units)
    group_sizes = np.bincount(group)
    cuts = [_cut(span, pieces, max_length, lookahead) for span, pieces in zip(spans, wordpieces)]
    for i, (span, pieces, cut) in enumerate(zip(spans, wordpieces, cuts)):
        margin: IntArray = np.zeros(len(span), dtype=np.int64)  # also of tokens without pieces
        token = pieces.token - span.start
        margin[token] = _minimum_by(token, cut.margin)[token]
        mine = group[span.start : span.end]
        holds_group = np.bincount(mine)[mine] == group_sizes[mine]
        margin = np.where(holds_group, _WHOLE_GROUP + _minimum_by(mine, margin)[mine], margin)
        better = margin > best[span.start : span.end]
        owner[span.start : span.end][better] = i
        best[span.start : span.end][better] = margin[better]
    scored = owner >= 0
    if targets is not None:
        scored &= targets
    for begin, end in units:
        if scored[begin:end].any() and (owner[begin:end] != owner[begin]).any():
            warn_user(
                f"The unit at token {begin}, {doc[begin:end].text[:50]!r}, is not read in one context: none of "
                "`spans` (in a config, get_spans) holds it. It is scored in parts, each as if it were a unit."
            )
    contexts = []
    for i, (pieces, cut) in enumerate(zip(wordpieces, cuts)):
        piece_scored = scored[pieces.token] & (owner[pieces.token] == i)
        for w, (start, end) in enumerate(cut.bounds):
            here = piece_scored[start:end] & (cut.window[start:end] == w)
            if here.any():
                contexts.append(_context(pieces, cut.word, here, i, start, end, w))
    return contexts, scored


def _context(
    pieces: Wordpieces, word: IntArray, here: BoolArray, span: int, start: int, end: int, window: int = 0
) -> Context:
    """A window of a span. here (bool array, shape (end - start,)): The pieces that are scored in it."""
    ids = np.concatenate([pieces.prefix, pieces.ids[start:end], pieces.suffix])
    return Context(ids, len(pieces.prefix), word[start:end], here, span, start, window)


@dataclass
class _Cut:
    """A span's windows. Arrays over its pieces have shape (pieces,)."""

    word: IntArray  # the word of each piece, after words longer than a window were split
    bounds: IntArray  # shape (windows, 2)
    window: IntArray  # the window in which each piece is scored
    margin: IntArray  # how much context the piece's word has there, as `choose_windows` compares it


def _cut(span: Span, pieces: Wordpieces, max_length: int, lookahead: int | None) -> _Cut:
    """The windows of a span."""
    if not len(pieces):
        return _Cut(pieces.word, np.zeros((0, 2), dtype=np.int64), pieces.word, pieces.word)  # none
    size = max_length - len(pieces.prefix) - len(pieces.suffix)
    word = pieces.word
    if np.bincount(word).max() > size:
        first_piece = np.searchsorted(word, np.bincount(word).argmax())
        token = span.doc[int(pieces.token[first_piece])]
        warn_user(
            f"The word or unit at token {token.i}, {token.text[:50]!r}, has more pieces than the model reads at once "
            f"({size}). It is scored in parts of at most {size} pieces, each as if it were a word."
        )
        word = split_long_words(word, size)
    bounds = window_bounds(word, size)
    return _Cut(word, bounds, *choose_windows(word, bounds, lookahead))


def split_long_words(word: IntArray, size: int) -> IntArray:
    """Number the words again, with words of more than `size` pieces split into parts of at most `size`."""
    begins = word_begins(word)
    within = np.arange(len(word)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return np.cumsum(begins | (within % size == 0))


def window_bounds(word: IntArray, size: int) -> IntArray:
    """Windows of at most `size` pieces that begin and end between words. Each overlaps the next by half, and every
    word lies whole in at least one. No word has more than `size` pieces. Start and end, shape (windows, 2).
    """
    n = len(word)
    starts = np.flatnonzero(word_begins(word))
    ends = np.append(starts[1:], n)
    bounds = []
    start = 0
    while True:
        end = ends[np.searchsorted(ends, start + size, side="right") - 1]
        bounds.append((start, end))
        if end == n:
            return np.array(bounds)
        # The next window starts half a window further, but it must hold the word after this window.
        next_end = ends[np.searchsorted(starts, end)]
        earliest = max(min(start + size // 2, end), next_end - size)
        start = starts[np.searchsorted(starts, earliest)]


def choose_windows(word: IntArray, bounds: IntArray, lookahead: int | None = None) -> tuple[IntArray, IntArray]:
    """For each piece, the window that gives its word the most context.

    That is the most pieces on the side of the word that has fewer, then on the other side. With `lookahead`, it is the
    most pieces before the word, among the windows that have so many after it, or as many as any has. A tie goes to
    the earlier window.

    RETURNS: The window's index, and the margin there as a number that compares in this order. Shape (pieces,) each.
    """
    starts = np.flatnonzero(word_begins(word))
    ends = np.append(starts[1:], len(word))
    window = np.zeros(len(starts), dtype=np.int64)
    margin = np.full(len(starts), -1, dtype=np.int64)
    # One window at a time, with the words inside it: a table of words by windows would grow with the text's square.
    for w, (start, end) in enumerate(bounds):
        inside = slice(np.searchsorted(starts, start), np.searchsorted(ends, end, side="right"))
        left, right = starts[inside] - start, end - ends[inside]
        if lookahead is None:
            here = np.minimum(left, right) * _FIRST + np.maximum(left, right)
        else:
            here = np.minimum(right, lookahead) * _FIRST + left
        better = here > margin[inside]
        margin[inside][better] = here[better]
        window[inside][better] = w
    return np.repeat(window, ends - starts), np.repeat(margin, ends - starts)


def _tokens_together(wordpieces: list[Wordpieces], doc: Doc, units: Sequence[tuple[int, int]]) -> IntArray:
    """Number the tokens of a doc so that those of one unit, or which share a piece in some span, have one number."""
    starts = np.array([token.idx for token in doc], dtype=np.int64)
    first = np.concatenate([pieces.token for pieces in wordpieces])
    last = np.maximum(segment_of(np.concatenate([pieces.end for pieces in wordpieces]) - 1, starts), first)
    begins, ends = np.array(units, dtype=np.int64).reshape(-1, 2).T
    return connected_runs(np.append(first, begins), np.append(last, ends - 1), len(doc))


def _minimum_by(number: IntArray, value: IntArray) -> IntArray:
    """The smallest value that goes with each number. Shape (largest number + 1,)."""
    out = np.full(number.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(out, number, value)
    return out
