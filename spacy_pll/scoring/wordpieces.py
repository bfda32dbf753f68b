"""From spans to the model's wordpieces: alignment with spaCy's tokens, and word units.

Everything is computed with numpy from the character offsets that the fast tokenizer gives.
Texts are tokenized without special tokens. What stands around a text is what the tokenizer itself marks as
special, never what has the id of a special token: a text that contains "[MASK]" is scored as text.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import BoolArray, Groups, IntArray, begins, up_to
from ..errors import PLLError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Words = Literal["spacy", "tokenizer", "whitespace", "piece"]
WORDS: tuple[str, ...] = get_args(Words)

# Whether str.isspace() accepts a code point. All that it accepts lie below U+3001, which stands for the rest.
_IS_WHITE_SPACE = np.array([chr(c).isspace() for c in range(0x3002)])
# What begins some files, and is no part of a text that begins or ends with it.
BYTE_ORDER_MARK = "\ufeff"
_AT_THE_END = BYTE_ORDER_MARK + "".join(map(chr, np.flatnonzero(_IS_WHITE_SPACE)))


def read_part(text: str) -> tuple[int, int]:
    """Where what a model reads of a text begins and ends: behind a U+FEFF at its beginning, and before the white space
    and U+FEFF at its end, which byte-level BPE would make wordpieces of. Equal if nothing is left.
    """
    start = len(text) - len(text.lstrip(BYTE_ORDER_MARK))
    return start, max(start, len(text.rstrip(_AT_THE_END)))


def read_text(text: str) -> str:
    """What a model reads of a text: see `read_part`."""
    return text[slice(*read_part(text))]


def in_full(tokenizer: "Tokenizer") -> "Tokenizer":
    """The tokenizer, told to cut no text off and to fill none up. transformers leaves it as its last call was, such as
    `tokenizer(texts, padding=True, truncation=True)`, for whoever uses it next.
    """
    # A tokenizer that is written in Python may have no such state.
    if getattr(tokenizer, "truncation", None) is not None:
        tokenizer.no_truncation()
    if getattr(tokenizer, "padding", None) is not None:
        tokenizer.no_padding()
    return tokenizer


class DocTexts(NamedTuple):
    """The texts of some docs, and where their tokens begin. To ask spaCy takes long, so what is read is kept."""

    texts: list[str]
    starts: list[int]  # where each token of the docs begins in the text of its doc
    tokens_of: Groups  # the tokens of each doc

    @classmethod
    def of(cls, docs: list[Doc], texts: list[str] | None = None) -> "DocTexts":
        """texts (Optional[List[str]]): Their texts, if they are known: spaCy makes them anew whenever it is asked."""
        texts = [doc.text for doc in docs] if texts is None else texts
        return cls(texts, [token.idx for doc in docs for token in doc], Groups.of(docs))


@dataclass(frozen=True)
class Encoded:
    """What a tokenizer makes of some texts, one after the other. Special tokens are no pieces.

    Of each text, what is read goes to the tokenizer, and nothing else: a piece such as `.Ċ` would be of both.
    """

    ids: IntArray  # int32, shape (pieces,), in the vocabulary
    pieces_of: Groups  # the pieces of each text
    prefix: IntArray  # int32: the special tokens before the pieces of each text, such as [CLS]
    suffix: IntArray  # int32: those behind them, such as [SEP]
    offsets: IntArray  # int, shape (pieces, 2): where each piece begins and ends in its text
    pretokens: IntArray | None  # int, shape (pieces,): the number of its pre-token in its text; -1 for none

    @property
    def n_special(self) -> int:
        """How many special tokens stand around each text."""
        return len(self.prefix) + len(self.suffix)

    @classmethod
    def of(cls, texts: list[str], tokenizer: "Tokenizer", pretokens: bool = False) -> "Encoded":
        """RAISES (ValueError): The tokenizer puts special tokens between the pieces."""
        parts = [read_part(text) for text in texts]
        read, tokenizer = [text[start:end] for text, (start, end) in zip(texts, parts)], in_full(tokenizer)
        encodings = tokenizer.encode_batch(read, add_special_tokens=False)
        pieces_of = Groups.of(encodings)
        n = int(pieces_of.edges[-1])
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int32, n)
        pairs = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
        offsets = np.fromiter(pairs, np.int64, 2 * n).reshape(-1, 2)
        offsets += np.array([start for start, _ in parts], dtype=np.int64)[pieces_of.owner, None]
        numbers = (-1 if i is None else i for encoding in encodings for i in encoding.word_ids)
        of_words = np.fromiter(numbers, np.int64, n) if pretokens else None
        # They are the same around each text: the shortest one that has pieces shows them in the shortest time.
        shown = min((text for text, encoding in zip(read, encodings) if len(encoding)), key=len, default="")
        return cls(ids, pieces_of, *prefix_and_suffix(shown, tokenizer), offsets, of_words)


def prefix_and_suffix(text: str, tokenizer: "Tokenizer") -> tuple[IntArray, IntArray]:
    """The special tokens before and after the pieces of a text. Without a piece, all count as before. int32.

    RAISES (ValueError): There are some between the pieces.
    """
    encoding = tokenizer.encode(text)
    ids, own = np.array(encoding.ids, dtype=np.int32), np.flatnonzero(np.equal(encoding.special_tokens_mask, 0))
    start = int(own[0]) if len(own) else len(ids)
    if len(own) and own[-1] != start + len(own) - 1:
        raise PLLError(
            f"The tokenizer puts special tokens between the pieces of {text[:100]!r}; only special tokens at the "
            "beginning and the end of a sequence are supported. Choose another model."
        )
    return ids[:start], ids[start + len(own) :]


@dataclass
class Wordpieces:
    """The wordpieces of some spans, one span after the other, without special tokens. Arrays of shape (pieces,)."""

    ids: IntArray  # int32, in the model's vocabulary
    start: IntArray  # int, where the piece begins in the doc's text, white space trimmed
    end: IntArray  # int, where it ends; equal to `start` if the piece has no character of its own
    untrimmed: IntArray  # int, where it begins with its white space
    token: IntArray  # int, index of the piece's token in the doc, or among the tokens of all docs
    word: IntArray  # int, non-decreasing: the piece's word, the unit that the metrics use; no two spans share a number
    encoded: Encoded  # the texts of the spans

    def __len__(self) -> int:
        return len(self.ids)


def get_wordpieces(
    spans: Sequence[Span],
    tokenizer: "Tokenizer",
    words: Words,
    units: Sequence[Sequence[tuple[int, int]]] = (),
    read: DocTexts | None = None,
    owner: IntArray | None = None,
    encode: "Callable[[list[str], Tokenizer, bool], Encoded] | None" = None,
) -> Wordpieces:
    """Tokenize each span's text as one sequence and align the pieces with the tokens.

    A piece belongs to the token that holds its first character that is not white space.
    A piece without such a character (a lone "▁", a newline) belongs to the next token,
    or to the last token of the span if there is no next one.

    words (str): What counts as a word: "spacy" (spaCy's tokens; tokens that share a piece
        are one word), "tokenizer" (the tokenizer's pre-tokens), "whitespace", or "piece" (each piece is a word).
    units (Sequence[Sequence[tuple[int, int]]]): For each doc, what `merge_spans` returns: the words that these tokens
        reach into are one word.
    read (Optional[DocTexts]): The docs of the spans. None: there is one doc.
    owner (Optional[int array, shape (spans,)]): The index of each span's doc; None: there is one doc.
    encode (Optional[Callable]): Gives what the tokenizer makes of texts, if it is known. None: `Encoded.of`.
    RAISES (ValueError): The tokenizer puts special tokens between the pieces.
    """
    read = read or DocTexts.of([span.doc for span in spans[:1]])
    owner = np.zeros(len(spans), dtype=np.int64) if owner is None else owner
    texts = [read.texts[d][span.start_char : span.end_char] for d, span in zip(owner.tolist(), spans)]
    encoded = (encode or Encoded.of)(texts, tokenizer, words == "tokenizer")
    # From here on the texts of all spans are one text. Their characters and tokens have other numbers there.
    text, span, chars, tokens = "".join(texts), encoded.pieces_of.owner, Groups.of(texts), Groups.of(spans)
    begin = chars.starts[span]
    to_doc = np.fromiter((span.start_char for span in spans), np.int64, len(spans)) - chars.starts
    to_docs = read.tokens_of.starts[owner] + np.fromiter((span.start for span in spans), np.int64, len(spans))
    to_docs -= tokens.starts
    numbers = np.arange(len(tokens.owner)) + to_docs[tokens.owner]
    token_starts = np.array(read.starts, dtype=np.int64)[numbers] - to_doc[tokens.owner]
    untrimmed, start, end, anchor = trim(text, encoded.offsets + begin[:, None], begin, chars.ends[span])
    token = np.maximum(segment_of(anchor, token_starts), tokens.starts[span])
    if encoded.pretokens is not None:
        word = pretoken_units(encoded.pretokens, span)
    elif words == "piece":
        word = np.arange(len(token))
    elif words == "whitespace":
        word = white_space_units(text, chars.starts, span, anchor, start, end)
    else:
        word = joined_units(token, start, end, token_starts)
    if len(named := _units_of(spans, units, owner, tokens.starts)):
        last = np.maximum(segment_of(end - 1, token_starts), token)
        word = join_words(word, token, np.where(end > start, last, token), named)
    start, end, untrimmed = (x + to_doc[span] for x in (start, end, untrimmed))
    return Wordpieces(encoded.ids, start, end, untrimmed, token + to_docs[span], word, encoded)


def _units_of(
    spans: Sequence[Span], units: Sequence[Sequence[tuple[int, int]]], owner: IntArray, first_token: IntArray
) -> IntArray:
    """The units in some spans, by their first token and the token behind their last, among the tokens of all spans.

    first_token (int array, shape (spans,)): The number of each span's first token. See `get_wordpieces` for the others.
    RETURNS (int array, shape (units, 2)).
    """
    return np.array(
        [
            (first + max(a, span.start) - span.start, first + min(b, span.end) - span.start)
            for first, span, d in zip(first_token.tolist(), spans, owner.tolist() if units else ())
            for a, b in units[d]
            if a < span.end and span.start < b
        ]
    )


def is_white_space(text: str) -> BoolArray:
    """Which characters of a text are white space. bool, shape (characters,)."""
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    return _IS_WHITE_SPACE[np.minimum(codes, len(_IS_WHITE_SPACE) - 1)]


def trim(
    text: str, offsets: IntArray, text_start: IntArray | int, text_end: IntArray | int
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Trim white space off both ends of the pieces, by their character offsets, shape (pieces, 2).

    text_start, text_end (int arrays, shape (pieces,)): Where the part of the text begins that is the piece's own text,
        and where it ends.
    RETURNS (tuple of int arrays, shape (pieces,)): Where each piece begins, with its white space; `start` and `end`
        without it (equal if nothing is left); and `anchor`: the first visible character at or after the piece's start.
        If there is none, it is the last visible character of its text, or one before the text if that is all white
        space.
    """
    visible = ~is_white_space(text)
    # The first visible character at or after i is at places[before[i]], the last one before i at places[before[i] - 1].
    places, before = np.concatenate([np.flatnonzero(visible), [len(text), -1]]), up_to(visible)
    # Some tokenizers give (0, 0) to a piece that they insert. Pieces come in the order of the text, so it is put behind
    # the piece before it.
    untrimmed = np.maximum.accumulate(offsets[:, 0])
    end = np.maximum(offsets[:, 1], untrimmed)
    visible_from = np.minimum(places[before[untrimmed]], text_end)
    anchor = np.minimum(visible_from, places[before[text_end] - 1])
    start = np.minimum(visible_from, end)
    end = np.maximum(np.maximum(places[before[end] - 1] + 1, text_start), start)
    return untrimmed, start, end, anchor


def are_of_targets(
    token: IntArray,
    untrimmed: IntArray,
    is_blank: BoolArray,
    targets: BoolArray,
    tokens_of: Groups,
    end_before: IntArray,
) -> BoolArray:
    """Which pieces are of the tokens to score. bool, shape (pieces,).

    A piece is scored if its token is. There is one exception. A piece of white space belongs to the next token, which
    may be the first one of a run of targets. If the white space begins inside the token before the run, such as a token
    of line breaks, the piece is context and is not scored. A plain space between two words is inside no token, so its
    piece is scored with the run.

    token, untrimmed (int arrays, shape (pieces,)): The token of each piece, and where the piece begins with its white
        space, in characters.
    is_blank (bool array, shape (pieces,)): Whether it has no visible character.
    targets (bool array, shape (tokens,)): The tokens to score.
    tokens_of (Groups): The tokens of each text. No run goes on in the next one.
    end_before (int array, shape (tokens,)): Where the token before a run ends, for the first token of each run; where
        the text begins, or less, if there is none.
    """
    begins_run = targets & ~np.append(False, targets[:-1])
    begins_run[tokens_of.starts[tokens_of.lengths > 0]] = True
    first_of_run = np.maximum.accumulate(np.where(begins_run, np.arange(len(targets)), 0))
    is_before = is_blank & (untrimmed < end_before[first_of_run[token]])
    own: BoolArray = targets[token] & ~is_before
    return own


def segment_of(position: IntArray, starts: IntArray) -> IntArray:
    """The index of the segment (token or run) that holds each character position; 0 before the first of them.

    starts (int array, shape (segments,)): Where the segments begin, increasing.
    """
    return np.maximum(np.searchsorted(starts, position, side="right") - 1, 0)


def white_space_runs(text: str) -> IntArray:
    """Where the runs of characters between white space begin. int, shape (runs,)."""
    visible = ~is_white_space(text)
    return np.flatnonzero(visible & ~np.append(False, visible[:-1]))


def white_space_units(
    text: str, begin: IntArray, span: IntArray, anchor: IntArray, start: IntArray, end: IntArray
) -> IntArray:
    """The word of each piece, where white space divides words.

    begin (int array, shape (spans,)): Where each span begins in the text.
    span, anchor, start, end (int arrays, shape (pieces,)): The span of each piece, and what `trim` returns.
    """
    runs = np.union1d(white_space_runs(text), begin)  # the beginning of a span ends what is in the one before
    run = np.maximum(segment_of(anchor, runs), np.searchsorted(runs, begin[span]))
    return joined_units(run, start, end, runs)


def joined_units(first: IntArray, start: IntArray, end: IntArray, segments: IntArray) -> IntArray:
    """The word of each piece, where segments that share a piece are one word.

    Example: "can't" has the tokens "ca" and "n't", and the pieces "can", "'" and "t". "can" reaches
    into both tokens, so they are one word. Otherwise a piece that is scored as part of one
    word could be seen unmasked as part of the other.

    first (int array, shape (pieces,)): The index of the segment that each piece belongs to.
    start, end (int arrays, shape (pieces,)): Where the pieces begin and end, without white space.
    segments (int array, shape (segments,)): Where the segments begin, increasing.
    """
    last = np.where(end > start, segment_of(end - 1, segments), first)
    return connected_runs(first, last, len(segments))[first]


def connected_runs(first: IntArray, last: IntArray, n: int) -> IntArray:
    """Number n segments so that all segments that one piece reaches, from a first to a last, have the same number.

    RETURNS (int array, shape (n,)): Numbers from 0, non-decreasing.
    """
    # reach[s] > 0: some piece reaches from segment s into segment s + 1.
    reach = np.cumsum(np.bincount(first, minlength=n) - np.bincount(last, minlength=n))
    return np.append(0, np.cumsum(reach[: n - 1] == 0))


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
    has_pieces = first_piece <= last_piece  # not white space alone, or outside of what is read
    first_word, last_word = word[first_piece[has_pieces]], word[last_piece[has_pieces]]
    return connected_runs(first_word, last_word, int(word.max(initial=-1)) + 1)[word]


def pretoken_units(word_id: IntArray, span: IntArray) -> IntArray:
    """The word of each piece, from a tokenizer's `word_ids`. A piece without a word id, -1, is a word of its own.

    span (int array, shape (pieces,)): The span of each piece.
    """
    return np.cumsum(begins(span) | begins(word_id) | (word_id == -1))
