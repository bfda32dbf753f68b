"""From wordpieces to contexts: windows that fit the model, and which window scores which token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import BoolArray, Groups, IntArray, begins, spread
from ..user_warnings import warn_user
from .wordpieces import Wordpieces, Words, are_of_targets, connected_runs, get_wordpieces, segment_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
    to_score: BoolArray | None = None  # bool, shape (pieces,): those that are scored here or in another one; None: all

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def asking(cls, ids: IntArray, first: int, asked: BoolArray, masked: BoolArray | None = None) -> "Context":
        """What is read to ask for some pieces under a metric that masks words.

        asked, masked (bool arrays, shape (pieces,)): What is scored, and what is masked together, as one word, for each
            of these. `masked` None: Each piece is a word.
        """
        apart = np.arange(len(asked))
        if masked is None:
            return cls(ids, first, apart, asked, asked)
        return cls(ids, first, np.zeros_like(apart), asked, masked)


@dataclass
class Contexts:
    """Some contexts, one after the other. Where nothing else is said, the arrays have shape (pieces,)."""

    ids: IntArray  # int32, shape (ids,): special tokens included
    ids_of: Groups  # the ids of each context
    pieces_of: Groups  # its pieces
    position: IntArray  # int, where the piece stands in its context
    word: IntArray  # int, non-decreasing: the piece's word; no two contexts share a number
    to_score: BoolArray  # bool, the pieces that are scored here or in another context; the others are context alone
    scored: BoolArray  # bool, the pieces that are scored here
    piece: IntArray  # int, the piece's index among the wordpieces
    window: IntArray  # int, shape (contexts,): number of the window among those of its span

    def __len__(self) -> int:
        return len(self.ids_of)

    @property
    def context(self) -> IntArray:
        """The index of each piece's context."""
        return self.pieces_of.owner

    @property
    def lengths(self) -> IntArray:
        """int, shape (contexts,): special tokens included."""
        return self.ids_of.lengths

    @property
    def before(self) -> IntArray:
        """int, shape (contexts,): how many ids stand before the first piece to score; 0 if none of them is a piece."""
        pieces, before = np.flatnonzero(self.to_score)[::-1], np.zeros(len(self), dtype=np.int64)
        before[self.context[pieces]] = self.position[pieces] * (self.pieces_of.within[pieces] > 0)
        return before

    @property
    def true_ids(self) -> IntArray:
        """The id of each piece. int32, shape (pieces,)."""
        ids: IntArray = self.ids[self.ids_of.starts[self.context] + self.position]
        return ids

    def __iter__(self) -> Iterator[Context]:
        for ids, own in zip(self.ids_of, self.pieces_of):
            first = int(self.position[own.start]) if own.start < own.stop else 0
            yield Context(self.ids[ids], first, self.word[own], self.scored[own], self.to_score[own])

    @classmethod
    def of(cls, contexts: Sequence[Context]) -> "Contexts":
        """The same as single contexts, whose words have numbers of their own."""
        pieces_of = Groups.of([context.word for context in contexts])
        owner, n = pieces_of.owner, len(pieces_of.owner)
        before = np.array([context.first for context in contexts], dtype=np.int64)
        words_of = Groups(np.array([context.word.max(initial=-1) + 1 for context in contexts], dtype=np.int64))
        to_score = [
            np.ones_like(context.scored) if context.to_score is None else context.to_score for context in contexts
        ]
        none = np.zeros(0, dtype=bool)
        return cls(
            ids=np.concatenate([np.zeros(0, dtype=np.int32), *(context.ids for context in contexts)]),
            ids_of=Groups.of(contexts),
            pieces_of=pieces_of,
            position=before[owner] + pieces_of.within,
            word=np.concatenate([owner[:0], *(context.word for context in contexts)]) + words_of.starts[owner],
            to_score=np.concatenate([none, *to_score]),
            scored=np.concatenate([none, *(context.scored for context in contexts)]),
            piece=np.arange(n),
            window=np.zeros(len(contexts), dtype=np.int64),
        )


def get_contexts(
    spans_of: Sequence[Sequence[Span]],
    pieces: Wordpieces,
    tokens_of: Groups,
    targets: BoolArray | None,
    max_length: int,
    lookahead: int | None = None,
    units_of: Sequence[Sequence[tuple[int, int]]] = (),
    end_before: IntArray | None = None,
) -> tuple[Contexts, BoolArray]:
    """Cut the spans of some docs into contexts so that every token is scored once.

    A token that lies in several spans is scored in the span that gives it the largest margin:
    the number of pieces on the side of it that has fewer, or, with `lookahead`, before it (`choose_windows`).
    A tie goes to the earlier span.
    Tokens that share a piece in some span ("ca" and "n't" share "can") are scored in the same
    span, if there is one that holds them all. Otherwise a character of theirs could be scored
    twice, or never. So are the tokens of a unit.

    spans_of (Sequence[Sequence[Span]]): The spans of each doc.
    pieces (Wordpieces): Those of all spans, in their order.
    tokens_of (Groups): The tokens of each doc.
    targets (Optional[bool array, shape (tokens,)]): The tokens to score; None: all.
    lookahead (Optional[int]): How many of the pieces that follow a piece its score depends on; None: all of them.
    units_of (Sequence[Sequence[tuple[int, int]]]): For each doc, the units that the pieces were joined to.
    end_before (Optional[int array, shape (tokens,)]): See `are_of_targets`. None: Each run of targets begins a doc.
    RETURNS: The contexts, and the tokens that are scored, bool, shape (tokens,).
    """
    scored = np.ones(tokens_of.edges[-1], dtype=bool) if targets is None else targets.copy()
    to_score = np.ones(len(pieces), dtype=bool)
    if targets is not None:
        is_blank = pieces.start == pieces.end
        end_before = np.zeros(len(targets), dtype=np.int64) if end_before is None else end_before
        to_score = are_of_targets(pieces.token, pieces.untrimmed, is_blank, targets, tokens_of, end_before)
    word, window = pieces.word.copy(), np.zeros(len(pieces), dtype=np.int64)  # of its span, in which a piece is scored
    of_doc, of_span = Groups.of(spans_of), pieces.encoded.pieces_of
    # Where there is nothing to choose. This is how most texts are read, so it is fast.
    whole = np.array([len(spans) == 1 and len(spans[0]) == len(spans[0].doc) for spans in spans_of], dtype=bool)
    size = max_length - pieces.encoded.n_special
    whole[whole] = of_span.lengths[of_doc.starts[whole]] <= size
    alone = of_doc.starts[whole]
    # Of each window its span, its number among those of the span, and where its pieces begin and end.
    windows = [np.column_stack([alone, np.zeros_like(alone), of_span.starts[alone], of_span.ends[alone]])]
    for d in np.flatnonzero(~whole).tolist():
        s, spans, tokens, units = of_doc.starts[d], spans_of[d], tokens_of[d], units_of[d] if units_of else ()
        cuts = [_cut(span, pieces, s + i, tokens.start, size, lookahead) for i, span in enumerate(spans)]
        best = _best_span(spans, cuts, units) if spans else np.full(tokens.stop - tokens.start, -1)
        for i, cut in enumerate(cuts):
            own, n = of_span[s + i], np.arange(len(cut.limits))
            word[own] = cut.word
            window[own] = np.where(best[cut.token] == i, cut.window, -1)
            windows.append(np.column_stack([np.full_like(n, s + i), n, own.start + cut.limits]))
        scored[tokens] &= best >= 0
        _warn_of_cut_units(spans, scored[tokens], best, units)
    in_order = np.concatenate(windows)
    in_order = in_order[np.argsort(in_order[:, 0], kind="stable")]
    return _used_windows(pieces, in_order, word, to_score, window), scored


def _used_windows(
    pieces: Wordpieces, windows: IntArray, word: IntArray, to_score: BoolArray, window: IntArray
) -> Contexts:
    """The windows in which a piece is scored.

    windows (int array, shape (windows, 4)): Span, number, begin and end of each, by spans.
    window (int array, shape (pieces,)): The number of the window in which each piece is scored, or -1.
    """
    span, number, start, end = windows.T
    encoded, pieces_of, piece = pieces.encoded, Groups(end - start), spread(start, end - start)
    scored = to_score[piece] & (window[piece] == number[pieces_of.owner])
    used = np.bincount(pieces_of.owner, scored, len(span)) > 0
    if not used.all():
        return _used_windows(pieces, windows[used], word, to_score, window)
    # A window has its own pieces, with the special tokens before and behind them.
    before, behind = len(encoded.prefix), len(encoded.suffix)
    starts, counts = np.zeros((2, len(windows), 3), dtype=np.int64)
    starts[:, 1], starts[:, 2] = encoded.n_special + start, before
    counts[:, 0], counts[:, 1], counts[:, 2] = before, end - start, behind
    sequence = np.concatenate([encoded.prefix, encoded.suffix, encoded.ids])
    return Contexts(
        ids=sequence[spread(starts.ravel(), counts.ravel())],
        ids_of=Groups(end - start + encoded.n_special),
        pieces_of=pieces_of,
        position=before + pieces_of.within,
        word=np.cumsum(begins(word[piece]) | begins(pieces_of.owner)),
        to_score=to_score[piece],
        scored=scored,
        piece=piece,
        window=number,
    )


def _best_span(spans: Sequence[Span], cuts: "Sequence[_Cut]", units: Sequence[tuple[int, int]]) -> IntArray:
    """The span of a doc in which each of its tokens is scored. Tokens outside of all spans have -1."""
    n = len(spans[0].doc)
    best, owner = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    group = _tokens_together(cuts, spans[0].doc, units)
    group_sizes = np.bincount(group)
    for i, (span, cut) in enumerate(zip(spans, cuts)):
        margin: IntArray = np.zeros(len(span), dtype=np.int64)  # also of tokens without pieces
        token = cut.token - span.start
        margin[token] = _minimum_by(token, cut.margin)[token]
        mine = group[span.start : span.end]
        holds_group = np.bincount(mine)[mine] == group_sizes[mine]
        margin = np.where(holds_group, _WHOLE_GROUP + _minimum_by(mine, margin)[mine], margin)
        better = margin > best[span.start : span.end]
        owner[span.start : span.end][better] = i
        best[span.start : span.end][better] = margin[better]
    return owner


def _warn_of_cut_units(
    spans: Sequence[Span], scored: BoolArray, owner: IntArray, units: Sequence[tuple[int, int]]
) -> None:
    for begin, end in units:
        if scored[begin:end].any() and (owner[begin:end] != owner[begin]).any():
            warn_user(
                f"The unit at token {begin}, {spans[0].doc[begin:end].text[:50]!r}, is not read in one context: none "
                "of `spans` (in a config, get_spans) holds it. It is scored in parts, each as if it were a unit."
            )


@dataclass
class _Cut:
    """A span's windows. Arrays over its pieces have shape (pieces,)."""

    token: IntArray  # index in the doc
    end: IntArray  # where the piece ends in the doc's text
    word: IntArray  # the word of each piece, after words longer than a window were split
    limits: IntArray  # shape (windows, 2)
    window: IntArray  # the window in which each piece is scored
    margin: IntArray  # how much context the piece's word has there, as `choose_windows` compares it


def _cut(span: Span, pieces: Wordpieces, s: int, first_token: int, size: int, lookahead: int | None) -> _Cut:
    """The windows of a span.

    first_token (int): The number of its doc's first token among the tokens of all docs.
    size (int): The most pieces of a window.
    """
    own = pieces.encoded.pieces_of[s]
    token, end, word = pieces.token[own] - first_token, pieces.end[own], pieces.word[own]
    if not len(word):
        return _Cut(token, end, word, np.zeros((0, 2), dtype=np.int64), word, word)  # none
    if np.bincount(word - word[0]).max() > size:
        longest = word[0] + np.bincount(word - word[0]).argmax()
        long_token = span.doc[int(token[np.searchsorted(word, longest)])]
        warn_user(
            f"The word or unit at token {long_token.i}, {long_token.text[:50]!r}, has more pieces than the model reads "
            f"at once ({size}). It is scored in parts of at most {size} pieces, each as if it were a word."
        )
        word = split_long_words(word, size)
    limits = window_bounds(word, size)
    return _Cut(token, end, word, limits, *choose_windows(word, limits, lookahead))


def split_long_words(word: IntArray, size: int) -> IntArray:
    """Number the words again, with words of more than `size` pieces split into parts of at most `size`."""
    return np.cumsum(Groups.beginning(begins(word)).within % size == 0)


def window_bounds(word: IntArray, size: int) -> IntArray:
    """Windows of at most `size` pieces that begin and end between words. Each overlaps the next by half, and every
    word lies whole in at least one. No word has more than `size` pieces. Start and end, shape (windows, 2).
    """
    words = Groups.beginning(begins(word))
    starts, ends = words.starts, words.ends
    windows, start = [], 0
    while True:
        end = ends[np.searchsorted(ends, start + size, side="right") - 1]
        windows.append((start, end))
        if end == len(word):
            return np.array(windows)
        # The next window starts half a window further, but it must hold the word after this window.
        next_end = ends[np.searchsorted(starts, end)]
        earliest = max(min(start + size // 2, end), next_end - size)
        start = starts[np.searchsorted(starts, earliest)]


def choose_windows(word: IntArray, limits: IntArray, lookahead: int | None = None) -> tuple[IntArray, IntArray]:
    """For each piece, the window that gives its word the most context.

    That is the most pieces on the side of the word that has fewer, then on the other side. With `lookahead`, it is the
    most pieces before the word, among the windows that have so many after it, or as many as any has. A tie goes to
    the earlier window.

    RETURNS: The window's index, and the margin there as a number that compares in this order. Shape (pieces,) each.
    """
    words = Groups.beginning(begins(word))
    window, margin = np.zeros(len(words), dtype=np.int64), np.full(len(words), -1, dtype=np.int64)
    # One window at a time, with the words inside it: a table of words by windows would grow with the text's square.
    for w, (start, end) in enumerate(limits):
        inside = slice(np.searchsorted(words.starts, start), np.searchsorted(words.ends, end, side="right"))
        left, right = words.starts[inside] - start, end - words.ends[inside]
        if lookahead is None:
            margins = np.minimum(left, right) * _FIRST + np.maximum(left, right)
        else:
            margins = np.minimum(right, lookahead) * _FIRST + left
        better = margins > margin[inside]
        margin[inside][better] = margins[better]
        window[inside][better] = w
    return window[words.owner], margin[words.owner]


def _tokens_together(cuts: Sequence[_Cut], doc: Doc, units: Sequence[tuple[int, int]]) -> IntArray:
    """Number the tokens of a doc so that those of one unit, or which share a piece in some span, have one number."""
    starts = np.array([token.idx for token in doc], dtype=np.int64)
    first = np.concatenate([cut.token for cut in cuts])
    last = np.maximum(segment_of(np.concatenate([cut.end for cut in cuts]) - 1, starts), first)
    unit_first, unit_end = np.array(units, dtype=np.int64).reshape(-1, 2).T
    return connected_runs(np.append(first, unit_first), np.append(last, unit_end - 1), len(doc))


def _minimum_by(number: IntArray, value: IntArray) -> IntArray:
    """The smallest value that goes with each number. Shape (largest number + 1,)."""
    out = np.full(number.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(out, number, value)
    return out


def read_spans(spans: Sequence[Span], tokenizer: "Tokenizer", words: Words, max_length: int) -> Contexts:
    """The contexts of some spans of one doc, in which all their tokens are scored."""
    pieces = get_wordpieces(spans, tokenizer, words)
    return get_contexts([spans], pieces, Groups.of([spans[0].doc]), None, max_length)[0]
