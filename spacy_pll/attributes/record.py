"""The record of the wordpieces of a scored doc, from which all its attributes are computed."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, compress
from typing import Any

from ..errors import PLLError

# An `Alternative` as docs store it: text, natural log of its probability, and whether it begins a word.
StoredAlternative = tuple[str, float, bool | None]
# A record as docs store it: the fields of `PieceRecord` that are known; "gaps" in place of `offset`, the first offset
# and then the distance of each from the one before it; and "crc" and "checks", by which a record knows its text (see
# `joined`). All are numbers, texts, and tuples of them, since Python's garbage collector would look through lists again
# and again. In files and after them they are lists.
Stored = dict[str, Any]


@dataclass  # not frozen: to set each of so many fields by a call would take as long as all else that reads a doc
class PieceRecord:
    """The wordpieces of a doc that were scored. All lists have an entry for each piece, in the order of the text. A
    record is never changed.

    With `sample_words`, they also have the pieces that were not drawn. The scores of those, and what was expected
    there, are None.
    """

    offset: Sequence[int]  # the character by which the piece belongs to a token: its first one, if it has one
    scores: Mapping[str, Sequence[Any]]  # float, by metric, natural log
    scored: Sequence[int]  # where runs of scored tokens begin and end, in characters
    mask_spacing: int | None = None  # the settings
    mask_margin: int | None = None
    rank: Sequence[Any] | None = None  # with `distribution`
    entropy: Sequence[Any] | None = None
    alternatives: Sequence[Sequence[StoredAlternative] | None] | None = None  # with `alternatives`
    unit: Sequence[Any] | None = None  # with `sample_words`: the number of its unit
    drawn: Sequence[Sequence[int]] | None = None  # the draw of each text: see `Draw`
    pieces: Sequence[str | None] | None = None  # with `keep_pieces`: as the vocabulary spells them
    ids: Sequence[int] = ()  # in the vocabulary. This and the next ones, too, if `pieces` is not None
    start: Sequence[int] = ()  # the character at which the piece begins
    end: Sequence[int] = ()
    word: Sequence[int] = ()  # the number of its word: pieces with the same one were masked as one unit
    window: Sequence[int] = ()  # the number of its window in its span: 0 where the span was read in one piece
    token: Sequence[int] = ()  # the index of its token in the doc, if asked for. This and what follows is not stored
    first: Sequence[Any] = ()  # the scores under the first metric
    unknown: Sequence[int] = ()  # where runs of characters begin and end that may be those of another record
    text: str = ""  # how the text begins that has them

    @classmethod
    def of(cls, stored: Stored, begin: int = 0) -> "PieceRecord":
        """Read what a doc stores. begin (int): Where the characters of the doc begin, in those of another one."""
        kept = {name: of for name, of in stored.items() if name in STORED_AS_IS}
        offset = [*accumulate(stored["gaps"], initial=begin)]
        del offset[0]
        for name in ("scored", "start", "end") if begin else ():
            if name in kept:
                kept[name] = [character + begin for character in kept[name]]
        return cls(offset, first=next(iter(stored["scores"].values())), **kept)

    def column(self, name: str) -> Sequence[Any] | None:
        """The values by piece: "rank", "entropy", "alternatives", the scores under a metric, or "" for the first one.
        None if the record does not have them.
        """
        if not name:
            return self.first
        return getattr(self, name) if name in EXPECTED else self.scores.get(name)

    def between(self, begin: int, end: int) -> slice:
        """The pieces that belong to the tokens in some characters. RAISES (PLLError): They are not known."""
        if self.unknown and overlap(self.unknown, begin, end):
            raise PLLError(
                f"Values of other texts are among those of {self.text!r}: the docs that were joined have the records "
                "of all of the docs out of which `Span.as_doc` cut them.",
                "Add up the scores of the spans, or score the joined doc again: nlp(doc).",
            )
        return slice(bisect_left(self.offset, begin), bisect_left(self.offset, end))

    def of_drawn(self) -> "PieceRecord":
        """The same with the pieces that have scores alone."""
        known = [score is not None for score in self.first]
        return self if all(known) else self.map_lists(lambda of: [*compress(of, known)])

    def map_lists(self, change: Callable[[Sequence[Any]], Sequence[Any]]) -> "PieceRecord":
        """The same with other lists."""
        lists: dict[str, Any] = {name: change(of) for name in BY_PIECE if (of := getattr(self, name))}
        return replace(self, **lists, scores={metric: change(of) for metric, of in self.scores.items()})

    def by_token(self) -> defaultdict[int, list[int]]:
        """For each token, by its index in the doc: the indices of its pieces in the lists."""
        places = defaultdict(list)
        for index, token in enumerate(self.token):
            places[token].append(index)
        return places

    def to_dict(self) -> dict[str, Any]:
        """The value of `_.pll_data`: plain lists, without what is not known."""
        without = ("first", "unknown", "text", *(SPELLED if self.pieces is None else ()))
        known = {n: of for n, of in vars(self).items() if n not in without and (of is not None or n in MASKED_WITH)}
        lists = {name: [*of] if isinstance(of, tuple) else of for name, of in known.items()}
        return lists | {"scores": {metric: [*of] for metric, of in self.scores.items()}}


EXPECTED = ("rank", "entropy", "alternatives")
MASKED_WITH = ("mask_spacing", "mask_margin")  # the settings
SPELLED = ("pieces", "ids", "start", "end", "word", "window")  # a doc has those of all its pieces, or of none
BY_PIECE = ("offset", "first", "token", "unit", *EXPECTED, *SPELLED)
STORED_AS_IS = {field.name for field in fields(PieceRecord)} - {"offset", "token", "first", "unknown", "text"}


def overlap(runs: Sequence[int], begin: int, end: int) -> bool:
    """Whether some characters are in runs. runs: Where each begins and ends, increasing."""
    first = bisect_right(runs, begin)
    return first % 2 == 1 or bisect_left(runs, end) > first
