"""Texts that are the path of a file, or words of one text."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spacy.tokens import Doc

from ..texts import AT_A_TERMINAL, Text, is_path
from .giving import FIRST

# Of so many texts with other columns, nearly all are seldom one word. Where no spaces are written, sentences look so.
MANY = 20
SINGLE_WORD = re.compile(r"[^\s\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u9fff]{1,25}")


def path_as_text(text: Text) -> str | None:
    """About a text that is the path of a file or folder, whose texts were perhaps meant."""
    if isinstance(text, Doc) or not is_path(text):
        return None
    return f"{text!r} is read as a text, and is the path of a file or folder. To score that, {AT_A_TERMINAL}."


def single_words(texts: Sequence[tuple[Text, Mapping[str, Any]]]) -> str | None:
    """About texts nearly all of which are one word. texts: The first ones, each with its other columns."""
    words = (text if isinstance(text, str) else text.text for text, others in texts if others)
    n, single = len(texts), sum(SINGLE_WORD.fullmatch(word.strip()) is not None for word in words)
    if n < MANY or single <= 0.9 * n:
        return None
    of_first = "the first " * (n == FIRST)  # there may be more
    return (
        f"{single:,} of {of_first}{n:,} texts are one word each, and are scored without their neighbours. If this is a "
        "table with one word of a text in each row, score the words in their texts, with `spacy-pll words` or in "
        "Python with `spacy_pll.score_words`."
    )
