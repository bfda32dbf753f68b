"""Text, numbers and tables as they are shown: visible white space, minus signs, units, writing direction."""

import unicodedata
from typing import Any, Literal

from wasabi import table

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


def format_difference(value: float) -> str:
    """With its sign, which is a plus for what rounds to 0."""
    return format_number(round(value, 2), "+.2f")


def in_nats(score: float) -> str:
    """A score with its unit."""
    return f"{format_number(score)} nats"


def count_pieces(n: int) -> str:
    """ "no piece", "1 piece", "2 pieces"."""
    return {0: "no piece", 1: "1 piece"}.get(n, f"{n} pieces")


def text_table(rows: Table) -> str:
    """A table for a terminal. The first column is of names, the others are of numbers."""
    aligns: list[Literal["l", "r"]] = ["l"]
    aligns.extend("r" for _ in rows[0][1:])
    # BLiMP's longest paradigm name has 54 characters.
    return table(rows[1:], header=rows[0], divider=True, aligns=aligns, max_col=60)


def text_direction(text: str) -> str | None:
    """ "ltr" or "rtl": the direction of the first character that has one (rule P2 of the Unicode bidirectional
    algorithm). None where no character has one.
    """
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return None
