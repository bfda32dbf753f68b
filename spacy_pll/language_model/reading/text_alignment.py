"""Where pieces of text stand in the text, if whoever made them gave no positions and may have rewritten it."""

import unicodedata
from collections.abc import Callable, Sequence

Place = tuple[int, int]  # where something begins in the text, and where it ends
# What tokenizers of typewriter fonts make of the characters of printed ones.
TYPEWRITTEN = str.maketrans(
    {**dict.fromkeys("“”„‟«»″〝〞「」『』《》", '"'), **dict.fromkeys("‘’‚‛′´`ʼ", "'"),
     **dict.fromkeys("‐‑‒–—―−━─", "-"),
     **dict(zip("。、⁄∶〈〉【】", ".,/:<>[]"))}
)  # fmt: skip


def without_form(character: str) -> str:
    """Without case, width and other variants of a character: what NFKC and lower case leave alike."""
    return unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())


def without_marks(character: str) -> str:
    """The same without accents, and without what has no shape."""
    character = character.translate(TYPEWRITTEN)
    form = "".join(filter(has_shape, without_form(character)))
    return form or "".join(filter(has_shape, character))  # an accent by itself, such as ¨, is a space with a mark


def has_shape(character: str) -> bool:
    return unicodedata.category(character)[0] not in "MCZ" and character != "\ufffd"


def align(text: str, pieces: Sequence[str]) -> list[Place]:
    """Where the pieces of a text stand in it, in their order. White space counts nowhere.

    The text and the pieces together are compared as they are, then without case and width, then without accents and
    control characters. So it does not matter which of these a tokenizer removes. If that leaves other punctuation,
    but the same letters and digits, then what stands between two of these is one place for all pieces that stand there.

    RAISES (ValueError): They have other letters or digits. The message shows where.
    """
    for fold in (str, without_form, without_marks):
        there, places = folded(text, fold)
        of_pieces = [folded(piece, fold)[0] for piece in pieces]
        if there == "".join(of_pieces):
            return spans(places, of_pieces)
    return by_letters(text, there, places, of_pieces)


def folded(text: str, fold: Callable[[str], str]) -> tuple[str, list[Place]]:
    """A text without its white space, and where each character of it comes from."""
    found, places = list[str](), list[Place]()
    for i, character in enumerate(text):
        if not character.isspace():
            for one in fold(character):
                if not one.isspace():
                    found.append(one)
                    places.append((i, i + 1))
    return "".join(found), places


def spans(places: Sequence[Place], pieces: Sequence[str]) -> list[Place]:
    """Where each piece stands, from the places of the characters of all. One without a character is where the one
    before it ends.
    """
    found, done, last = list[Place](), 0, 0
    for piece in pieces:
        of_piece = places[done : done + len(piece)]
        done += len(piece)
        begin = min((start for start, _ in of_piece), default=last)
        last = max((end for _, end in of_piece), default=last)
        found.append((begin, last))
    return found


def by_letters(text: str, there: str, places: list[Place], pieces: list[str]) -> list[Place]:
    """The places if letters and digits are the same, whatever stands between them.

    RAISES (ValueError): They are not.
    """
    whole = "".join(pieces)
    letters = [i for i, one in enumerate(there) if one.isalnum()]
    own = [i for i, one in enumerate(whole) if one.isalnum()]
    first = next((n for n, (i, j) in enumerate(zip(letters, own)) if there[i] != whole[j]), min(len(letters), len(own)))
    if first < max(len(letters), len(own)):
        at = places[letters[first]][0] if first < len(letters) else len(text)
        raise ValueError(f"it has other letters at {text[max(0, at - 10) : at + 20]!r}")
    found = list[Place]()
    for (i, after_i), (j, after_j) in zip(gaps(letters, len(there)), gaps(own, len(whole))):
        if there[i:after_i] == whole[j:after_j]:
            found += places[i:after_i]
        else:
            before = places[i - 1][1] if i else 0
            place = (places[i][0], places[after_i - 1][1]) if i < after_i else (before, before)
            found += [place] * (after_j - j)
        found += places[after_i : after_i + 1]  # the letter that follows
    return spans(found, pieces)


def gaps(letters: list[int], n: int) -> list[tuple[int, int]]:
    """What stands before, between and after letters, by where it begins and ends."""
    return list(zip([0, *(i + 1 for i in letters)], [*letters, n]))
