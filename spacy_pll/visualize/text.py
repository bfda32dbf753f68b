"""What people read, as text: numbers, tables, the wordpieces of a token, and what the model expected in its place."""

import json
import math
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from spacy.tokens import Doc, Span, Token
from wasabi import table

from ..attributes.names import Names
from ..attributes.stored import read_record

Table = list[tuple[Any, ...]]  # the first row is the header

_VISIBLE_SPACE = {"\n": "↵", "\r": "", "\t": "⇥"}


def visible_text(text: str) -> str:
    """The text itself, or symbols for its characters where it is only white space."""
    if text and not text.isspace():
        return text
    shown = "".join(_VISIBLE_SPACE.get(character, "␣") for character in text[:8])
    return shown + "…" if len(text) > 8 else shown


def format_number(value: float, spec: str = ".2f") -> str:
    """With a minus sign, not a hyphen; -0.0 as 0."""
    return f"{value or 0.0:{spec}}".replace("-", "−")


def format_cell(value: float | None) -> str:
    """A whole number, or one with two decimals, in a table; empty for None."""
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def format_difference(value: float) -> str:
    """With its sign, which is a plus for what rounds to 0."""
    return format_number(round(value, 2), "+.2f")


def field_text(value: object) -> str:
    """A value of another column: text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def in_nats(score: float) -> str:
    """A score with its unit."""
    return f"{format_number(score)} nats"


def count_pieces(n: int) -> str:
    """ "no piece", "1 piece", "2 pieces"."""
    return {0: "no piece", 1: "1 piece"}.get(n, f"{n} pieces")


def text_table(rows: Table, left: Collection[str] = (), footer: Sequence[str] | None = None) -> str:
    """A table for a terminal. The first column and those with the headers `left` are of text, the others of numbers.

    footer (Optional[Sequence[str]]): A last row, such as of sums.
    """
    header, *others = rows
    aligns: list[Literal["l", "r"]] = ["l", *("l" if name in left else "r" for name in header[1:])]
    # BLiMP's longest paradigm name has 54 characters.
    lines = table(others, header=header, footer=footer, divider=True, aligns=aligns, max_col=60).split("\n")
    return "\n".join(map(str.rstrip, lines))


def text_direction(text: str) -> str | None:
    """ "ltr" or "rtl": the direction of the first character that has one (rule P2 of the Unicode bidirectional
    algorithm). None where no character has one.
    """
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return None


def approximation(settings: Iterable[Any]) -> str:
    """ "mask_margin 1": why scores are approximate, from settings or records of pieces; empty if they are not."""
    names = ("mask_margin", "mask_spacing")
    reasons = {f"{name} {value}" for given in settings for name in names if (value := getattr(given, name)) is not None}
    return ", ".join(sorted(reasons))


# What the model expected


def readable_alternatives(token: Token, names: Names) -> list[tuple[str, float]]:
    """The alternatives to a token as people read them, with their probabilities, best first; empty if it has none.

    A text that would continue the word before it begins with a hyphen.
    """
    alternatives = []
    for text, log_prob, begins_word in token._.get(names.alternatives) or ():
        continues = begins_word is False and token.i > 0 and text[:1].isalnum()
        alternatives.append(("-" * continues + visible_text(text), math.exp(log_prob)))
    return alternatives


def format_percent(p: float) -> str:
    """A probability in percent."""
    return "<0.1 %" if 0 < p < 0.0005 else f"{100 * p:.1f} %"


def list_alternatives(token: Token, names: Names) -> str:
    """ "were 28.7 %, lay 5.8 %": the alternatives to a token with their probabilities."""
    return ", ".join(f"{text} {format_percent(p)}" for text, p in readable_alternatives(token, names))


def has_expected(doc: Doc | Span, names: Names) -> bool:
    """Whether a token has alternatives or a rank."""
    return any(token._.get(name) is not None for token in doc for name in (names.alternatives, names.rank))


def expected_text(token: Token, names: Names) -> str:
    """What the model expected in the place of a token, as a sentence for screen readers; empty if that is not known."""
    parts = []
    if listed := list_alternatives(token, names):
        parts.append(f"expected: {listed}")
    if (rank := token._.get(names.rank)) is not None:
        parts.append(f"rank {rank:,}, entropy {format_number(token._.get(names.entropy))} nats")
    return "; ".join(parts)


# Wordpieces


class ShownPiece(NamedTuple):
    """One wordpiece of a token."""

    text: str  # as the model's vocabulary spells it
    source: str  # the characters of the doc that it covers
    scores: dict[str, Any]  # float, by attribute name; None where a joined doc has no such score


def with_score(pieces: Iterable[ShownPiece], name: str) -> list[ShownPiece]:
    """Those that have a score under an attribute: of a doc that was joined, some may have none."""
    return [piece for piece in pieces if piece.scores[name] is not None]


def get_pieces(doc: Doc | Span, names: Names, columns: dict[str, str]) -> dict[int, list[ShownPiece]]:
    """The wordpieces of each token of the whole doc, by the token's index, with their scores under these attributes.

    Empty where the doc was scored without `keep_pieces`, or not under one of them.
    """
    whole = doc.doc
    record, text = read_record(whole, names.score), whole.text
    if record is None or record.pieces is None:
        return {}
    lists = {attribute: record.column(names.of_tokens[attribute][0]) for attribute in columns.values()}
    scores = {attribute: values for attribute, values in lists.items() if values is not None}
    if len(scores) < len(lists):
        return {}
    of_tokens = {i: list[ShownPiece]() for i in range(len(whole))}
    for i, (token, piece, start, end) in enumerate(zip(record.token, record.pieces, record.start, record.end)):
        own = {attribute: values[i] for attribute, values in scores.items()}
        of_tokens[token].append(ShownPiece(piece or "", text[start:end], own))
    return of_tokens
