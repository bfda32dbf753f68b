"""What the model expected in the place of a token: as text, and as what opens below the token on a page."""

import math
from collections.abc import Sequence
from html import escape

from spacy.tokens import Doc, Span, Token

from ...attributes.names import Names
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


def expected_html(token: Token, names: Names, score: str, piece_tips: Sequence[str]) -> str:
    """What opens below a token: its score, its rank, and the alternatives with bars as long as their probabilities.

    It is hidden from screen readers, since `expected_text` says the same in a label. piece_tips (Sequence[str]): A line
    about each of the token's wordpieces.
    """
    n, text = token._.get(names.pieces), visible_text(token.text)
    lines = [f"<b><bdi>{escape(text)}</bdi> {score}</b>"]
    lines += [escape(tip) for tip in piece_tips if n > 1 or not tip.startswith(f"{text} ")]
    if (rank := token._.get(names.rank)) is not None:
        entropy = f"entropy {format_number(token._.get(names.entropy))} nats"
        if n > 1:
            lines += [f"rank {rank:,} (the worst of {n} pieces)", f"{entropy} (the sum)"]
        else:
            lines.append(f"rank {rank:,}, {entropy}")
    alternatives = readable_alternatives(token, names)
    rows = "".join(
        f'<span class="{"alt own" if n == 1 and alternative == text else "alt"}"><bdi>{escape(alternative)}</bdi>'
        f'<i><i style="width:{100 * p:.1f}%"></i></i><span>{format_percent(p)}</span></span>'
        for alternative, p in alternatives
    )
    if rows:
        rows = f'<span class="head">{"Expected as its first piece" if n > 1 else "Expected here"}</span>{rows}'
    body = "".join(f'<span class="line">{line}</span>' for line in lines)
    return f'<span class="exp" dir="ltr" aria-hidden="true">{body}{rows}</span>'
