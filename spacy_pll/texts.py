"""What is a text: a string, or a doc."""

from collections.abc import Iterable, Iterator

from spacy.tokens import Doc

from .errors import PLLError

Text = str | Doc


def check_texts(texts: object) -> None:
    """RAISES (ValueError): It is one text, which would be read letter by letter, or token by token."""
    if isinstance(texts, str | Doc):
        raise ValueError(f"`texts` must be a list of texts. It is one text: {str(texts)!r:.50}. Write [text].")


def plain_text(text: object, place: str) -> str:
    """A string as spaCy takes it: numpy's strings, for example, are of a class of their own.

    place (str): What it is, for messages: "Text 3".
    RAISES (ValueError): It is no string.
    """
    if isinstance(text, str):
        return str.__str__(text)
    advice = "Decode it: text.decode('utf8')." if isinstance(text, bytes) else "Leave it out, or give a text."
    raise PLLError(f"{place} is no text, but {text!r:.100} (of the type {type(text).__name__}).", advice)


def plain_texts(texts: Iterable[object]) -> Iterator[Text]:
    """Docs as they are, and strings as spaCy takes them.

    RAISES (ValueError): One is neither. The message has its number, from 1.
    """
    for number, text in enumerate(texts, 1):
        yield text if isinstance(text, Doc) else plain_text(text, f"Text {number}")
