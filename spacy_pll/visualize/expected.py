"""What the model expected in the place of a token."""

import math

from spacy.tokens import Doc, Span, Token

from ..attributes.names import Names
from .text import format_number, visible_text


def readable_alternatives(token: Token, names: Names) -> list[tuple[str, float]]:
    """The alternatives to a token as people read them, with their probabilities, best first; empty if it has none.

    A text that would continue the word before it begins with a hyphen.
    """

    def readable(text: str, begins_word: bool | None) -> str:
        continues = begins_word is False and token.i > 0 and text[:1].isalnum()
        return ("-" if continues else "") + visible_text(text)

    found = token._.get(names.alternatives) or []
    return [(readable(text, begins_word), math.exp(log_prob)) for text, log_prob, begins_word in found]


def format_percent(p: float) -> str:
    """A probability in percent."""
    return "<0.1 %" if 0 < p < 0.0005 else f"{100 * p:.1f} %"


def name_alternatives(token: Token, names: Names, most: int | None = None) -> str:
    """ "were 28.7 %, lay 5.8 %": the alternatives to a token, or the best of them, with their probabilities."""
    return ", ".join(f"{text} {format_percent(p)}" for text, p in readable_alternatives(token, names)[:most])


def has_expected(doc: Doc | Span, names: Names) -> bool:
    """Whether a token has alternatives or a rank."""
    return any(token._.get(name) is not None for token in doc for name in (names.alternatives, names.rank))


def expected_text(token: Token, names: Names) -> str:
    """What the model expected in the place of a token, as a sentence for screen readers; empty if that is not known."""
    parts = []
    if listed := name_alternatives(token, names):
        parts.append(f"expected: {listed}")
    if (rank := token._.get(names.rank)) is not None:
        parts.append(f"rank {rank:,}, entropy {format_number(token._.get(names.entropy))} nats")
    return "; ".join(parts)
