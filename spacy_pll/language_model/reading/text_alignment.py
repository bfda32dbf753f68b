"""Where pieces of text stand in the text, if whoever made them gave no positions and may have rewritten it."""

import unicodedata
from collections.abc import Callable, Sequence

Offsets = tuple[int, int]  # where something begins in the text, and where it ends
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


def align(text: str, pieces: Sequence[str]) -> list[Offsets]:
    """Where the pieces of a text stand in it, in their order. White space counts nowhere.

    The text and the pieces together are compared as they are, then without case and width, then without accents and
    control characters. So it does not matter which of these a tokenizer removes. If that leaves other punctuation,
    but the same letters and digits, then what stands between two of these is one place for all pieces that stand there.

    RAISES (ValueError): They have other letters or digits. The message shows where.
    """
    for fold in (str, without_form, without_marks):
        characters, offsets = folded(text, fold)
        of_pieces = [folded(piece, fold)[0] for piece in pieces]
        if characters == "".join(of_pieces):
            return spans(offsets, of_pieces)
    return by_letters(text, characters, offsets, of_pieces)


def folded(text: str, fold: Callable[[str], str]) -> tuple[str, list[Offsets]]:
    """A text without its white space, and where each character of it comes from."""
    characters, offsets = list[str](), list[Offsets]()
    for i, character in enumerate(text):
        if not character.isspace():
            for new in fold(character):
                if not new.isspace():
                    characters.append(new)
                    offsets.append((i, i + 1))
    return "".join(characters), offsets


def spans(offsets: Sequence[Offsets], pieces: Sequence[str]) -> list[Offsets]:
    """Where each piece stands, from the offsets of the characters of all. One without a character is where the one
    before it ends.
    """
    of_pieces, done, last = list[Offsets](), 0, 0
    for piece in pieces:
        of_piece = offsets[done : done + len(piece)]
        done += len(piece)
        begin = min((start for start, _ in of_piece), default=last)
        last = max((end for _, end in of_piece), default=last)
        of_pieces.append((begin, last))
    return of_pieces


def by_letters(text: str, characters: str, offsets: list[Offsets], pieces: list[str]) -> list[Offsets]:
    """The offsets of pieces if letters and digits are the same, whatever stands between them.

    characters, offsets: What `folded` gives for the text.
    RAISES (ValueError): They are not.
    """
    joined = "".join(pieces)
    in_text, in_pieces = ([i for i, x in enumerate(folded_text) if x.isalnum()] for folded_text in (characters, joined))
    n_both = min(len(in_text), len(in_pieces))
    first = next((n for n in range(n_both) if characters[in_text[n]] != joined[in_pieces[n]]), n_both)
    if first < max(len(in_text), len(in_pieces)):
        at = offsets[in_text[first]][0] if first < len(in_text) else len(text)
        raise ValueError(f"it has other letters at {text[max(0, at - 10) : at + 20]!r}")
    of_characters = list[Offsets]()
    for (i, after_i), (j, after_j) in zip(gaps(in_text, len(characters)), gaps(in_pieces, len(joined))):
        if characters[i:after_i] == joined[j:after_j]:
            of_characters += offsets[i:after_i]
        else:
            before = offsets[i - 1][1] if i else 0
            gap = (offsets[i][0], offsets[after_i - 1][1]) if i < after_i else (before, before)
            of_characters += [gap] * (after_j - j)
        of_characters += offsets[after_i : after_i + 1]  # the letter that follows
    return spans(of_characters, pieces)


def gaps(letters: list[int], n: int) -> list[tuple[int, int]]:
    """What stands before, between and after letters, by where it begins and ends."""
    return list(zip([0, *(i + 1 for i in letters)], [*letters, n]))
