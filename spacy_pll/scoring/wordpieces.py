"""From spans to the model's wordpieces: alignment with spaCy's tokens, word units, windows.

Everything is worked out from the fast tokenizer's own character offsets, in numpy.
Positions of special tokens come from the encoding, never from ids: text that contains
"[MASK]" is text.
"""

import warnings
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from spacy.tokens import Doc, Span

Words = Literal["spacy", "tokenizer", "whitespace"]
WORDS = get_args(Words)

# More pieces than any window has: the poorer side counts first, the richer one breaks ties.
_RICHER_SIDE = 2**32
# More room than any window has: a span that holds all tokens that share pieces comes before one that holds some.
_WHOLE_GROUP = 2**61

# Every code point that str.isspace() accepts lies below U+3001.
_WHITE_SPACE = np.array([c for c in range(0x3001) if chr(c).isspace()], dtype=np.uint32)


@dataclass
class Wordpieces:
    """The wordpieces of one span, special tokens apart, all arrays of shape (pieces,)."""

    ids: np.ndarray  # int32, in the model's vocabulary
    start: np.ndarray  # int, where the piece's characters begin in the doc's text, white space trimmed
    end: np.ndarray  # int, where they end; equal to `start` for a piece with no character of its own
    token: np.ndarray  # int, index in the doc of the token that the piece belongs to
    word: np.ndarray  # int, non-decreasing: the unit that the metrics call a word
    prefix: np.ndarray  # int32, ids of the special tokens before the pieces, [CLS]
    suffix: np.ndarray  # int32, ids of the special tokens after them, [SEP]

    def __len__(self):
        return len(self.ids)


@dataclass
class Context:
    """What the model reads at once: one window of a span's pieces, special tokens around them."""

    ids: np.ndarray  # int32, shape (length,): special tokens included
    first: int  # position of the window's first piece in `ids`
    word: np.ndarray  # int, shape (pieces,)
    scored: np.ndarray  # bool, shape (pieces,): the pieces that are scored in this window
    span: int  # index of the span it was cut from
    offset: int  # index of the window's first piece in that span

    def __len__(self):
        return len(self.ids)


def get_wordpieces(span: Span, tokenizer, words: Words) -> Wordpieces:
    """Tokenize a span's text as one sequence and align the pieces with the doc's tokens.

    A piece belongs to the token in which its first character lies, white space not
    counted. A piece with no character of its own (a lone "▁", a newline) belongs to
    the token that comes next, at the end to the last one.

    span (Span): The text that is read as one context.
    tokenizer (tokenizers.Tokenizer): The backend of a fast tokenizer, not truncating.
    words (str): What counts as a word: "spacy" (tokens; tokens that share a piece are
        one word), "tokenizer" (the tokenizer's own pre-tokens), "whitespace".
    """
    text = span.text
    encoding = tokenizer.encode(text)
    special = np.array(encoding.special_tokens_mask, dtype=bool)
    ids = np.array(encoding.ids, dtype=np.int32)
    own = np.flatnonzero(~special)
    first, last = (own[0], own[-1] + 1) if len(own) else (len(special), len(special))
    if special[first:last].any():
        raise ValueError(
            f"The tokenizer puts special tokens between the pieces of {text[:100]!r}; only special tokens "
            "at the beginning and the end of a sequence are supported. Choose another model."
        )
    if not len(own):
        # Nothing to score. Which special tokens stand on which side does not matter then.
        return Wordpieces(ids[:0], *(np.zeros(0, dtype=np.int64) for _ in range(4)), ids, ids[:0])
    offsets = np.array(encoding.offsets, dtype=np.int64)[first:last]
    start, end, anchor = trim(text, offsets)
    token_starts = np.array([token.idx for token in span], dtype=np.int64) - span.start_char
    token = segment_of(anchor, token_starts)
    if words == "tokenizer":
        word = pretoken_units(encoding.word_ids[first:last])
    elif words == "whitespace":
        word = joined_units(start, end, anchor, white_space_runs(text))
    else:
        word = joined_units(start, end, anchor, token_starts)
    return Wordpieces(
        ids[first:last],
        start + span.start_char,
        end + span.start_char,
        token + span.start,
        word,
        ids[:first],
        ids[last:],
    )


def is_white_space(text: str) -> np.ndarray:
    """For each character of a text: is it white space? bool, shape (characters,)."""
    return np.isin(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), _WHITE_SPACE)


def trim(text: str, offsets: np.ndarray):
    """Take white space off both ends of pieces.

    offsets (int array, shape (pieces, 2)): Character offsets in the text.
    RETURNS: start and end without white space (equal if nothing else is there), and
        the anchor: the first character, at or after the piece's start, that is not
        white space, or the last such character of the text for a piece after it (-1 if there is none).
    """
    n = len(text)
    index = np.arange(n)
    dark = ~is_white_space(text)
    # Of characters that are not white space, following[i]: where the next one from i on begins; preceding[i]: where the
    # last one before i ends.
    following = np.append(np.minimum.accumulate(np.where(dark, index, n)[::-1])[::-1], n)
    preceding = np.insert(np.maximum.accumulate(np.where(dark, index + 1, 0)), 0, 0)
    # Some tokenizers give (0, 0) to a piece that they insert; pieces come in the order of the text.
    start = np.maximum.accumulate(offsets[:, 0])
    end = np.maximum(offsets[:, 1], start)
    anchor = np.minimum(following[start], preceding[n] - 1)
    start = np.minimum(following[start], end)
    end = np.maximum(preceding[end], start)
    return start, end, anchor


def segment_of(position: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The index of the segment (token, run) that a character lies in, 0 before the first; `starts` is increasing."""
    return np.maximum(np.searchsorted(starts, position, side="right") - 1, 0)


def white_space_runs(text: str) -> np.ndarray:
    """Where the stretches without white space begin, shape (runs,)."""
    dark = ~is_white_space(text)
    return np.flatnonzero(dark & ~np.append(False, dark[:-1]))


def joined_units(start: np.ndarray, end: np.ndarray, anchor: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Number the words: segments that share a piece are one word, found as connected runs.

    So nothing inside a word leaks through a piece that its neighbour owns ("can't": the
    tokens "ca" and "n't", the pieces "can", "'" and "t").
    """
    first = segment_of(anchor, segments)
    last = np.where(end > start, segment_of(end - 1, segments), first)
    return _connected(first, last, len(segments))[first]


def _connected(first: np.ndarray, last: np.ndarray, n: int) -> np.ndarray:
    """Number n segments in a row such that those from the first to the last of a piece have one number."""
    reach = np.zeros(n + 1, dtype=np.int64)
    np.add.at(reach, first, 1)
    np.add.at(reach, last, -1)
    # reach.cumsum()[s] > 0: some piece reaches from segment s into segment s + 1
    return np.append(0, np.cumsum(reach.cumsum()[: n - 1] == 0))


def pretoken_units(word_ids: list) -> np.ndarray:
    """Number the runs of one `word_id`; pieces without one are each a word."""
    ids = np.array([-1 if i is None else i for i in word_ids], dtype=np.int64)
    return np.cumsum(_begins(ids) | (ids == -1))


def _begins(word: np.ndarray) -> np.ndarray:
    """For each piece: is it the first of its word? bool, shape (pieces,)."""
    return np.append(True, word[1:] != word[:-1])


def split_long_words(word: np.ndarray, size: int) -> np.ndarray:
    """Number the words anew such that none has more than `size` pieces."""
    begins = _begins(word)
    within = np.arange(len(word)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return np.cumsum(begins | (within % size == 0))


def window_bounds(word: np.ndarray, size: int) -> np.ndarray:
    """Windows of at most `size` pieces, cut between words, each about half over the next.

    word (int array, shape (pieces,)): Words of at most `size` pieces each.
    RETURNS (int array, shape (windows, 2)): Every word lies whole in at least one window.
    """
    n = len(word)
    starts = np.flatnonzero(_begins(word))
    ends = np.append(starts[1:], n)
    bounds = []
    start = 0
    while True:
        end = ends[np.searchsorted(ends, start + size, side="right") - 1]
        bounds.append((start, end))
        if end == n:
            return np.array(bounds)
        # The next window starts half a window on, but takes in the next word whole.
        next_end = ends[np.searchsorted(starts, end)]
        earliest = max(min(start + size // 2, end), next_end - size)
        start = starts[np.searchsorted(starts, earliest)]


def choose_windows(word: np.ndarray, bounds: np.ndarray):
    """For each piece, the window that gives its word the most context on its poorer side.

    RETURNS: the window's index and how good it is, int arrays of shape (pieces,). A tie on
        the poorer side goes to the window with more on the richer side, then to the earlier.
    """
    starts = np.flatnonzero(_begins(word))
    ends = np.append(starts[1:], len(word))
    window = np.zeros(len(starts), dtype=np.int64)
    room = np.full(len(starts), -1, dtype=np.int64)
    # Window by window, each with the words inside it: a table of words by windows would grow with the text's square.
    for w, (start, end) in enumerate(bounds):
        inside = slice(np.searchsorted(starts, start), np.searchsorted(ends, end, side="right"))
        left, right = starts[inside] - start, end - ends[inside]
        here = np.minimum(left, right) * _RICHER_SIDE + np.maximum(left, right)
        better = here > room[inside]
        room[inside][better] = here[better]
        window[inside][better] = w
    return np.repeat(window, ends - starts), np.repeat(room, ends - starts)


def get_contexts(
    spans: list[Span], wordpieces: list[Wordpieces], wanted: np.ndarray | None, max_length: int
) -> tuple[list[Context], np.ndarray]:
    """Cut the spans of one doc into contexts such that every token is scored once.

    A token that lies in several spans is scored in the one that gives it the most
    context on its poorer side; a tie goes to the earlier span. Tokens that share a piece in
    some span ("ca" and "n't" share "can") are scored in the same span, of those that hold them all:
    else a letter of theirs would be scored twice, or never.

    spans (list[Span]): The spans of one doc.
    wordpieces (list[Wordpieces]): Their pieces. `word` is renumbered in place where a
        word has more pieces than the model can read at once.
    wanted (bool array, shape (tokens of the doc,), or None): The tokens to score.
    max_length (int): The most ids the model can read at once, special tokens included.
    RETURNS: the contexts, and the tokens that were scored, bool, shape (tokens of the doc,).
    """
    if not spans:
        return [], np.zeros(0, dtype=bool)
    doc = spans[0].doc
    best = np.full(len(doc), -1, dtype=np.int64)
    owner = np.full(len(doc), -1, dtype=np.int64)
    cuts = []
    group = _joined_tokens(wordpieces, doc)
    group_sizes = np.bincount(group)
    for i, (span, pieces) in enumerate(zip(spans, wordpieces)):
        size = max_length - len(pieces.prefix) - len(pieces.suffix)
        if not len(pieces):
            cuts.append(None)
            room = np.zeros(len(span), dtype=np.int64)
        else:
            if np.bincount(pieces.word).max() > size:
                _warn_long_word(span, pieces, size)
                pieces.word = split_long_words(pieces.word, size)
            bounds = window_bounds(pieces.word, size)
            window, piece_room = choose_windows(pieces.word, bounds)
            cuts.append((bounds, window))
            room = _token_room(pieces.token - span.start, piece_room, len(span))
        mine = group[span.start : span.end]
        room = np.where(np.bincount(mine)[mine] == group_sizes[mine], _WHOLE_GROUP + _least(mine, room)[mine], room)
        better = room > best[span.start : span.end]
        owner[span.start : span.end][better] = i
        best[span.start : span.end][better] = room[better]
    covered = owner >= 0
    if wanted is not None:
        covered &= wanted
    contexts = []
    for i, (pieces, cut) in enumerate(zip(wordpieces, cuts)):
        if cut is None:
            continue
        bounds, window = cut
        scored = covered[pieces.token] & (owner[pieces.token] == i)
        for w, (start, end) in enumerate(bounds):
            mine = scored[start:end] & (window[start:end] == w)
            if mine.any():
                ids = np.concatenate([pieces.prefix, pieces.ids[start:end], pieces.suffix])
                contexts.append(Context(ids, len(pieces.prefix), pieces.word[start:end], mine, i, start))
    return contexts, covered


def _joined_tokens(wordpieces: list[Wordpieces], doc: Doc) -> np.ndarray:
    """Number the runs of tokens of which each shares a piece with the next in some span; shape (tokens of the doc,)."""
    starts = np.array([token.idx for token in doc], dtype=np.int64)
    first = np.concatenate([pieces.token for pieces in wordpieces])
    last = np.maximum(segment_of(np.concatenate([pieces.end for pieces in wordpieces]) - 1, starts), first)
    return _connected(first, last, len(doc))


def _least(number: np.ndarray, value: np.ndarray) -> np.ndarray:
    """For each number, the least value that goes with it."""
    out = np.full(number.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(out, number, value)
    return out


def _token_room(token: np.ndarray, room: np.ndarray, n_tokens: int) -> np.ndarray:
    """The least room of a token's pieces; 0 for a token without a piece, of which there is nothing to score."""
    out = np.zeros(n_tokens, dtype=np.int64)
    out[token] = _least(token, room)[token]
    return out


def _warn_long_word(span: Span, pieces: Wordpieces, size: int):
    unit = np.bincount(pieces.word).argmax()
    token = span.doc[int(pieces.token[np.searchsorted(pieces.word, unit)])]
    warnings.warn(
        f"The word at token {token.i}, {token.text[:50]!r}, has more pieces than the model reads at once ({size}). "
        f"It is scored in parts of at most {size} pieces, each as if it were a word.",
        stacklevel=2,
    )
