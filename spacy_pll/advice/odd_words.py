"""Rows of a table of words that make no text as people write it when they are joined."""

import re
from collections.abc import Iterator, Sequence
from html.entities import html5
from itertools import islice
from typing import TYPE_CHECKING

from ..unspaced import UNSPACED_CHARACTER, script_of
from .clauses import is_clause

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The words of a text, each with the number of its row, from 0.
NumberedWords = Sequence[tuple[int, str]]

# Pieces as tokenizers write them: behind a space, before the rest of a word, and at its end. Ġ is a letter of Maltese,
# too, where few words begin with it.
PIECE, MALTESE, MOST_MALTESE = r"▁\w.*|.*\w@@|.*\w</w>", "Ġ", 1 / 4
CONTINUES = re.compile(r"##\w.*")
# A character in hexadecimal digits, as in addresses: punctuation, or the first bytes of one in UTF-8.
PERCENT = re.compile(
    r"%(?:0[9AD]|2[0-9A-F]|3[A-F]|40|5[B-F]|60|7[B-E]|(?:C[2-9A-F]|[DE][0-9A-F]|F[0-4])(?:%[89AB][0-9A-F])+)"
)
ADDRESS = re.compile(r"\w:/|www\.", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d+;|#x[0-9a-f]+;|(\w+;))", re.IGNORECASE)
TAG = re.compile(r"</?(?:br|p|b|i|u|em|strong|span|div|sub|sup|font|center)(?:\s[^<>]*)?/?>", re.IGNORECASE)
TRIED = 20  # pairs of rows that the tokenizer is asked about


def pattern_of_pieces(words: Sequence[str]) -> re.Pattern[str]:
    """Of pieces with a mark, but for `CONTINUES`, in a list of words."""
    is_mark = sum(word.startswith(MALTESE) for word in words) > len(words) * MOST_MALTESE
    return re.compile(rf"{PIECE}|{MALTESE}.+" if is_mark else PIECE)


def pieces_as_words(texts: Sequence[NumberedWords]) -> str | None:
    """About rows that are wordpieces."""
    piece = pattern_of_pieces([word for words in texts for _, word in words])
    for words in texts:
        for (i, word), before in zip(words, ["", *(word for _, word in words)]):
            if piece.fullmatch(word) or CONTINUES.fullmatch(word) and before[-1:].isalnum():
                return (
                    f"Row {i + 1}, {word!r:.100}, is written as a wordpiece of a tokenizer. Each row is read as a "
                    "word, and its marks as text. Write a word in each row."
                )
    return None


def escapes(texts: Sequence[NumberedWords]) -> str | None:
    """About rows that have characters, or line breaks, as a program or a page that showed the words needs them."""
    for i, word in (numbered for words in texts for numbered in words):
        entity = next((match[0] for match in ENTITY.finditer(word) if not match[1] or match[1] in html5), None)
        escape = PERCENT.search(word) if not ADDRESS.search(word) else None
        if escaped := entity or (escape or TAG.search(word) or [""])[0]:
            return (
                f"Row {i + 1}, {word!r:.100}, has {escaped!r:.50}, as a web page or an address has it in place of "
                "what people read. The model reads it as it is. Write what people have read."
            )
    return None


def needless_spaces(texts: Sequence[NumberedWords], tokenizer: "Tokenizer") -> str | None:
    """About rows of a script without spaces that are joined with spaces, if the tokenizer reads them."""
    for a, b, script in islice(_joints_without_space(texts), TRIED):
        with_space, without = (
            tokenizer.encode(text, add_special_tokens=False).ids for text in (f"{a[1]} {b[1]}", a[1] + b[1])
        )
        if with_space != without:
            return (
                f"Rows {a[0] + 1} and {b[0] + 1}, {a[1]!r:.50} and {b[1]!r:.50}, are joined with a space, and {script} "
                "has no spaces between words. The tokenizer reads the space. Give as `space_after` a column that is "
                "false in each row after which there is none."
            )
    return None


def _joints_without_space(texts: Sequence[NumberedWords]) -> Iterator[tuple[tuple[int, str], tuple[int, str], str]]:
    """Neighbours between which a script without spaces has none, and the script, in texts that are mostly written so.
    Between clauses there may be spaces, as in Thai.
    """
    for words in texts:
        pairs = list(zip(words, words[1:]))
        joints = [
            (a, b)
            for a, b in pairs
            if UNSPACED_CHARACTER.match(a[1][-1]) and UNSPACED_CHARACTER.match(b[1][0]) and not _are_clauses(a[1], b[1])
        ]
        if joints and 2 * len(joints) >= len(pairs):
            script = script_of("".join(word for _, word in words))
            yield from ((a, b, script) for a, b in joints)


def _are_clauses(*words: str) -> bool:
    return all(is_clause(word, len(word)) for word in words)
