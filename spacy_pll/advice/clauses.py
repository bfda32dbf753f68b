"""Clauses that count as one word, in text that is written without spaces between words."""

from collections.abc import Iterable

from ..unspaced import UNSPACED_CHARACTER, UNSPACED_PIECES, language_that_divides, script_of


def is_clause(word: str, n_pieces: int) -> bool:
    """Whether a word has so many pieces, and letters of scripts that are written without spaces, that it is a clause:
    then figures by word say little.
    """
    return n_pieces >= UNSPACED_PIECES <= len(UNSPACED_CHARACTER.findall(word))


def clause_as_word(
    words: Iterable[tuple[str, int]],
    figures: str,
    otherwise: str,
    beside: str | None = "",
    *,
    is_named: bool = True,
) -> str | None:
    """About the first of some words that is a clause.

    words (Iterable[Tuple[str, int]]): Each with the number of its wordpieces.
    figures (str): Where it counts.
    otherwise (str): What can be done, if not that the language is set.
    beside (Optional[str]): What must be set beside it. None: The language changes nothing.
    is_named (bool): Whether the message has the clause itself. Without it, Python shows it once for many texts.
    """
    clause = next((word for word, n in words if is_clause(word, n)), None)
    if clause is None:
        return None
    setting = "" if beside is None else language_that_divides(clause)
    ways = f"set {setting}{beside}, or " * bool(setting) + otherwise
    return (
        f"{repr(clause[:40]) if is_named else 'A clause'} counts as one word in {figures}, since {script_of(clause)} "
        f"has no spaces between words. {ways[0].upper()}{ways[1:]}."
    )
