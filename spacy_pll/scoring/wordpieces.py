"""From spans to the model's wordpieces: alignment with spaCy's tokens, and word units.

Everything is computed with numpy from the character offsets that the fast tokenizer gives.
The positions of special tokens come from the encoding, never from ids: a text that contains
"[MASK]" is scored as text.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from spacy.tokens import Span

from ..arrays import BoolArray, IntArray

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Words = Literal["spacy", "tokenizer", "whitespace", "piece"]
WORDS: tuple[str, ...] = get_args(Words)

# Whether str.isspace() accepts a code point. All that it accepts lie below U+3001, which stands for the rest.
_IS_WHITE_SPACE = np.array([chr(c).isspace() for c in range(0x3002)])


@dataclass
class Wordpieces:
    """The wordpieces of one span without the special tokens. The arrays before `prefix` have shape (pieces,)."""

    ids: IntArray  # int32, in the model's vocabulary
    start: IntArray  # int, where the piece begins in the doc's text, white space trimmed
    end: IntArray  # int, where it ends; equal to `start` if the piece has no character of its own
    token: IntArray  # int, index in the doc of the piece's token
    word: IntArray  # int, non-decreasing: number of the piece's word, the unit that the metrics use
    prefix: IntArray  # int32, ids of the special tokens before the pieces, such as [CLS]
    suffix: IntArray  # int32, ids of the special tokens after them, such as [SEP]

    def __len__(self) -> int:
        return len(self.ids)


def get_wordpieces(
    span: Span, tokenizer: "Tokenizer", words: Words, units: Sequence[tuple[int, int]] = ()
) -> Wordpieces:
    """Tokenize a span's text as one sequence and align the pieces with the doc's tokens.

    A piece belongs to the token that holds its first character that is not white space.
    A piece without such a character (a lone "▁", a newline) belongs to the next token,
    or to the last token if there is no next one.

    words (str): What counts as a word: "spacy" (spaCy's tokens; tokens that share a piece
        are one word), "tokenizer" (the tokenizer's pre-tokens), "whitespace", or "piece" (each piece is a word).
    units (Sequence[tuple[int, int]]): What `merge_spans` returns: the words that these tokens of the doc reach into
        are one word.
    RAISES (ValueError): The tokenizer puts special tokens between the pieces.
    """
    text = span.text
    encoding = tokenizer.encode(text)
    special = np.array(encoding.special_tokens_mask, dtype=bool)
    ids = np.array(encoding.ids, dtype=np.int32)
    text_at = np.flatnonzero(~special)
    first, last = (text_at[0], text_at[-1] + 1) if len(text_at) else (len(special), len(special))
    if special[first:last].any():
        raise ValueError(
            f"The tokenizer puts special tokens between the pieces of {text[:100]!r}; only special tokens "
            "at the beginning and the end of a sequence are supported. Choose another model."
        )
    if not len(text_at):
        # There is nothing to score, so it does not matter which special tokens stand on which side.
        none = np.zeros(0, dtype=np.int64)
        return Wordpieces(ids[:0], none, none, none, none, ids, ids[:0])
    offsets = np.array(encoding.offsets, dtype=np.int64)[first:last]
    start, end, anchor = trim(text, offsets)
    token_starts = np.array([token.idx for token in span], dtype=np.int64) - span.start_char
    token = segment_of(anchor, token_starts)
    if words == "tokenizer":
        word = pretoken_units(encoding.word_ids[first:last])
    elif words == "piece":
        word = np.arange(len(token))
    elif words == "whitespace":
        word = joined_units(start, end, anchor, white_space_runs(text))
    else:
        word = joined_units(start, end, anchor, token_starts)
    if units:
        reach = np.where(end > start, segment_of(end - 1, token_starts), token)
        word = join_words(word, token, reach, np.array(units) - span.start)
    start, end, token = start + span.start_char, end + span.start_char, token + span.start
    return Wordpieces(ids[first:last], start, end, token, word, ids[:first], ids[last:])


def is_white_space(text: str) -> BoolArray:
    """Which characters of a text are white space. bool, shape (characters,)."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    return _IS_WHITE_SPACE[np.minimum(codes, len(_IS_WHITE_SPACE) - 1)]


def trim(text: str, offsets: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Trim white space off both ends of the pieces, by their character offsets, shape (pieces, 2).

    RETURNS (tuple of int arrays, shape (pieces,)): `start` and `end` without white space
        (equal if nothing is left), and `anchor`: the first visible character at or after the
        piece's start. If there is none, it is the last visible character of the text, or -1
        if the text is all white space.
    """
    n = len(text)
    index = np.arange(n)
    visible = ~is_white_space(text)
    # following[i]: where the first visible character at or after i begins.
    # preceding[i]: where the last visible character before i ends.
    following = np.full(n + 1, n)
    following[:n] = np.minimum.accumulate(np.where(visible, index, n)[::-1])[::-1]
    preceding = np.zeros(n + 1, dtype=np.int64)
    preceding[1:] = np.maximum.accumulate(np.where(visible, index + 1, 0))
    # Some tokenizers give (0, 0) to a piece that they insert. Pieces come in the order of the text, so it is put behind
    # the piece before it.
    start = np.maximum.accumulate(offsets[:, 0])
    end = np.maximum(offsets[:, 1], start)
    anchor = np.minimum(following[start], preceding[n] - 1)
    start = np.minimum(following[start], end)
    end = np.maximum(preceding[end], start)
    return start, end, anchor


def segment_of(position: IntArray, starts: IntArray) -> IntArray:
    """The index of the segment (token or run) that holds each character position; 0 before the first of them.

    starts (int array, shape (segments,)): Where the segments begin, increasing.
    """
    return np.maximum(np.searchsorted(starts, position, side="right") - 1, 0)


def white_space_runs(text: str) -> IntArray:
    """Where the runs of characters between white space begin. int, shape (runs,)."""
    visible = ~is_white_space(text)
    return np.flatnonzero(visible & ~np.append(False, visible[:-1]))


def joined_units(start: IntArray, end: IntArray, anchor: IntArray, segments: IntArray) -> IntArray:
    """The word of each piece, where segments that share a piece are one word.

    Example: "can't" has the tokens "ca" and "n't", and the pieces "can", "'" and "t". "can" reaches
    into both tokens, so they are one word. Otherwise a piece that is scored as part of one
    word could be seen unmasked as part of the other.

    start, end, anchor (int arrays, shape (pieces,)): What `trim` returns.
    segments (int array, shape (segments,)): Where the segments begin, increasing.
    """
    first = segment_of(anchor, segments)
    last = np.where(end > start, segment_of(end - 1, segments), first)
    return connected_runs(first, last, len(segments))[first]


def connected_runs(first: IntArray, last: IntArray, n: int) -> IntArray:
    """Number n segments so that all segments that one piece reaches, from a first to a last, have the same number.

    RETURNS (int array, shape (n,)): Numbers from 0, non-decreasing.
    """
    reach = np.zeros(n + 1, dtype=np.int64)
    np.add.at(reach, first, 1)
    np.add.at(reach, last, -1)
    # reach.cumsum()[s] > 0: some piece reaches from segment s into segment s + 1.
    return np.append(0, np.cumsum(reach.cumsum()[: n - 1] == 0))


def merge_spans(spans: Iterable[Span]) -> list[tuple[int, int]]:
    """Where some spans of a doc begin and end, in tokens, in order. Spans that overlap are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted((span.start, span.end) for span in spans if len(span)):
        if merged and start < merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return merged


def join_words(word: IntArray, first: IntArray, last: IntArray, units: IntArray) -> IntArray:
    """Number the words again, with the words that have a piece in the same unit as one word.

    first, last (int arrays, shape (pieces,)): The first and the last token that each piece reaches.
    units (int array, shape (units, 2)): The token with which each begins, and the one before which it ends.
    """
    first_piece = np.searchsorted(np.maximum.accumulate(last), units[:, 0])
    last_piece = np.searchsorted(first, units[:, 1]) - 1
    here = first_piece <= last_piece  # not white space alone, or outside of what is read
    return connected_runs(word[first_piece[here]], word[last_piece[here]], int(word[-1]) + 1)[word]


def pretoken_units(word_ids: list[int | None]) -> IntArray:
    """The word of each piece, from a tokenizer's `word_ids`. Each piece without a word id is a word of its own."""
    ids = np.array([-1 if i is None else i for i in word_ids], dtype=np.int64)
    return np.cumsum(word_begins(ids) | (ids == -1))


def word_begins(word: IntArray) -> BoolArray:
    """Which pieces are the first of their word. bool, shape (pieces,)."""
    return np.append(True, word[1:] != word[:-1])[: len(word)]
