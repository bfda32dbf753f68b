"""What is a text: a string, or a doc."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from spacy.tokens import Doc

from .errors import PLLError

Text = str | Doc
AT_A_TERMINAL = "type `spacy-pll score FILE OUTPUT.csv` at a terminal"


def check_texts(texts: Any, name: str = "texts") -> None:
    """Check that it is not one text, which would be read letter by letter, or token by token, nor a table, which would
    be read by the names of its columns.

    name (str): What it is called, for messages.
    RAISES (ValueError): It is.
    """
    columns = getattr(texts, "columns", None)
    if isinstance(texts, os.PathLike) or isinstance(texts, str) and is_path(texts):
        given, advice = f"the path {str(texts)!r}", f"Read its texts first, or {AT_A_TERMINAL}."
    elif isinstance(texts, str | Doc):
        given, advice = f"one text: {str(texts)!r:.50}", "Write [text]."
    elif isinstance(texts, Mapping):
        given = f"a {type(texts).__name__} with the keys {list(texts)!r:.200}"
        advice = f"Give one of its values, or list({name}.values())."
    elif isinstance(columns, Iterable):
        given = f"a {type(texts).__name__} with the columns {list(columns)!r:.200}"
        of_texts = (column for column in columns if isinstance(next(iter(texts[column]), None), str))
        advice = f"Give one column, such as {name}[{next(of_texts, 'sentence')!r}]."
    else:
        return
    raise PLLError(f"`{name}` must be a list of texts. It is {given}. {advice}")


def is_path(text: str) -> bool:
    """Whether there is such a file, or a folder whose path is no mere word."""
    return len(text) < 1000 and (os.path.isfile(text) or "/" in text and os.path.isdir(text))


def plain_text(text: object, where: str) -> str:
    """A string as spaCy takes it: numpy's strings, for example, are of a class of their own.

    where (str): What it is, for messages: "Text 3".
    RAISES (ValueError): It is no string.
    """
    if isinstance(text, str):
        return str.__str__(text)
    advice = "Decode it: text.decode('utf8')." if isinstance(text, bytes) else "Leave it out, or give a text."
    raise PLLError(f"{where} is no text, but {text!r:.100} (of the type {type(text).__name__}).", advice)


def lone_surrogate(text: str) -> str:
    """What is wrong with a text that has half of a character; "" if nothing is."""
    try:
        text.isascii() or text.encode("utf8")
    except UnicodeEncodeError as error:
        return (
            f"has a lone surrogate, half of a character: {text[max(0, error.start - 40) : error.end + 40]!r}. Clean "
            'it: text.encode("utf8", "replace").decode("utf8").'
        )
    return ""


def plain_texts(texts: Iterable[Any]) -> Iterator[Text]:
    """Docs as they are, and strings as spaCy takes them.

    RAISES (ValueError): One is neither. The message has its number, from 1, and its label in a series of pandas.
    """
    check_texts(texts)
    labels = getattr(texts, "index") if hasattr(texts, "iloc") else None  # noqa: B009
    for number, text in enumerate(texts, 1):
        label = "" if labels is None else f" (index {labels[number - 1]!r})"
        yield text if isinstance(text, Doc) else plain_text(text, f"Text {number}{label}")
