"""Which wordpieces are words, or parts of words."""

from collections.abc import Iterator
from unicodedata import category

from ..scoring.piece_texts import PieceTexts

JOINERS = "\u200c\u200d"  # stand between the letters of a word in Persian, Hindi and others


def begins_a_word(text: str) -> bool:
    """Whether the first character is a letter or a digit."""
    return text[:1].isalnum()


def goes_on_a_word(text: str) -> bool:
    """Whether all characters are letters, digits, marks such as vowel signs, or joiners between letters."""
    return bool(text) and all(character in JOINERS or category(character)[0] in "LMN" for character in text)


def is_of_a_word(texts: PieceTexts, i: int) -> bool:
    """Whether an id is a piece of letters and the like. Where the end of a word is marked, it must be a word."""
    ends = (texts.tokenizer.id_to_token(i) or "").endswith(texts.ends)
    return i not in texts.special and ends and goes_on_a_word(texts[i].text)


def known_words(texts: PieceTexts, n_ids: int) -> Iterator[str]:
    """Words of one piece; *a* is the first, if it is one. n_ids (int): How many ids there are."""
    usual = [] if (i := texts.tokenizer.token_to_id("a")) is None else [i]
    for i in [*usual, *range(n_ids)]:
        text = texts[i].text
        if is_of_a_word(texts, i) and begins_a_word(text):
            if texts.tokenizer.encode(text, add_special_tokens=False).ids == [i]:
                yield text
