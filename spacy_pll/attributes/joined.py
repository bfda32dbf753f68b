"""The record of a doc that was joined or cut, from the records that lie over its text.

`Span.as_doc` copies a record whole, and `Doc.from_docs` lays the records of docs that were cut over each other. So a
record knows its text: by a checksum of all of it, and by a few bits for each piece.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from ..arrays import BoolArray, Groups, IntArray, spread, up_to
from ..scoring.digests import scrambled
from ..scoring.wordpieces import is_white_space
from .record import BY_PIECE, MASKED_WITH, SPELLED, PieceRecord, Stored

# In the place of the number of a record: no record is of a character; or it is not known which one is.
NONE, UNKNOWN = -1, -2


def text_crc(text: str) -> int:
    """A checksum of a text, without white space at its end."""
    return crc32(text.rstrip().encode("utf8"))


def piece_checks(text: str, begin: IntArray, end: IntArray) -> IntArray:
    """A number from 1 to 127 for each of some pieces, from its characters up to the first white space, which changes
    where spaCy cuts and joins docs: one of 127 other texts has the same one. 0 without such a character. uint8, shape
    (pieces,).

    begin, end (int arrays, shape (pieces,)): Where each piece begins, and where the next one does. Not decreasing.
    """
    codes, end = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), ends_of_pieces(text, begin, end)
    lengths, terms = end - begin, np.zeros(len(codes), dtype=np.uint64)
    at = spread(begin, lengths)
    terms[at] = scrambled(codes[at], 2) * (scrambled(at - np.repeat(begin, lengths), 1) | np.uint64(1))
    sums = up_to(terms)
    digests = (sums[end] - sums[begin]) >> np.uint64(32)
    checks: IntArray = np.where(lengths > 0, 1 + digests % np.uint64(127), 0).astype(np.uint8)
    return checks


def ends_of_pieces(text: str, begin: IntArray, end: IntArray) -> IntArray:
    """Where the next piece begins, or the first white space behind the beginning of the piece. int, shape (pieces,)."""
    spaces = np.append(np.flatnonzero(is_white_space(text)), len(text))
    out: IntArray = np.minimum(end, spaces[np.searchsorted(spaces, begin)])
    return out


class TextWords(NamedTuple):
    """What stands between white space in a text. White space goes with the word before it, or else the first one."""

    visible: BoolArray  # bool, shape (characters,): no white space
    of: IntArray  # int, shape (characters,): the number of the word
    begin: IntArray  # int, shape (words,): where each begins
    length: IntArray  # int, shape (words,): how many visible characters it has

    @classmethod
    def in_text(cls, text: str) -> "TextWords":
        visible = ~is_white_space(text)
        begin = np.flatnonzero(visible & ~np.append(False, visible[:-1])) if visible.any() else np.zeros(1, np.int64)
        number = np.maximum(np.searchsorted(begin, np.arange(len(text)), side="right") - 1, 0)
        return cls(visible, number, begin, np.bincount(number, visible, len(begin)).astype(np.int64))


class Claim(NamedTuple):
    """A record that lies over a text, and may lie beyond it. Places are characters of that text."""

    record: PieceRecord
    begin: int  # where the text begins that the record was made of, and where it ends
    end: int
    crc: int  # `text_crc` of that text
    offset: IntArray  # int, shape (pieces,): where each piece begins, not decreasing
    checks: IntArray  # uint8, shape (pieces,): see `piece_checks`

    @classmethod
    def of(cls, begin: int, end: int, stored: Stored) -> "Claim":
        record, checks = PieceRecord.of(stored, begin), np.frombuffer(stored["checks"].encode("ascii"), np.uint8)
        return cls(record, begin, end, stored["crc"], np.array(record.offset, np.int64), checks)

    def is_whole(self, text: str) -> bool:
        return self.begin >= 0 and text_crc(text[self.begin : self.end]) == self.crc

    def agrees(self, other: "Claim") -> bool:
        """Whether another record has the same pieces and scores there."""
        own, (a, b) = other.record.between(self.begin, self.end), (self.record, other.record)
        same = (list(b.scores[metric][own]) == list(a.scores[metric]) for metric in a.scores.keys() & b.scores.keys())
        return list(b.offset[own]) == list(a.offset) and all(same)

    def is_in(self, text: str, words: TextWords, alone: bool) -> BoolArray:
        """Which words of a text have the pieces of the record, as their checks say. bool, shape (words,).

        alone (bool): There is no other record. Then words without a piece may be of this one, too.
        """
        first, last = max(0, self.begin), min(len(text), self.end)
        ends, inside = np.append(self.offset, self.end)[1:], (self.offset >= first) & (self.offset < last)
        begin, end, own = self.offset[inside] - first, np.minimum(ends[inside], last) - first, text[first:last]
        known = piece_checks(own, begin, end) == self.checks[inside]
        known = known[np.searchsorted(begin, begin, side="right") - 1]  # the last one of a character has its check
        end = ends_of_pieces(own, begin, end)
        if len(begin) and ends[inside][-1] > len(text) == first + end[-1]:  # the text ends within the piece
            known[-1] |= len(begin) == 1 or bool(known[-2])
        if alone and self.begin <= 0 and self.end >= len(text.rstrip()) and known.all():
            return np.ones(len(words.begin), dtype=bool)
        word, n = words.of[begin + first], len(words.begin)
        n_known = np.bincount(word[known], (end - begin)[known], n)
        is_known: BoolArray = (n_known == words.length) & (np.bincount(word[~known], minlength=n) == 0)
        return is_known & (np.bincount(word, minlength=n) > 0)


def owners(text: str, claims: Sequence[Claim]) -> IntArray:
    """For each character of a text the number of the record that is of it; or `NONE`, or `UNKNOWN`. int, shape
    (characters,).

    A record whose whole text is there has all of it. A record of a doc that was cut has the words whose pieces are
    there, as their checks say: docs are joined at white space. It is unknown whose a word is if two records have it. If
    a record lies over a word that no record has, this is of a doc that was not scored; or that was, and spaCy kept
    another record that begins and ends at the same places. So it is unknown, and so are the words beside it, whose
    checks may be right by chance.
    """
    words, owner = TextWords.in_text(text), np.full(len(text), NONE)
    cut = dict[int, BoolArray]()  # the words of the records of docs that were cut
    is_under = np.zeros(len(text), dtype=bool)
    for number in sorted(range(len(claims)), key=lambda i: claims[i].begin - claims[i].end):  # the longest one first
        claim = claims[number]
        own = slice(max(0, claim.begin), max(0, claim.end))
        if claim.is_whole(text):
            is_new = owner[own] == NONE
            others = () if is_new.all() else np.unique(owner[own][~is_new]).tolist()
            agreed = all(claim.agrees(claims[other]) for other in others if other != UNKNOWN)
            owner[own] = np.where(is_new, number, owner[own] if agreed else UNKNOWN)
        else:
            is_under[own], cut[number] = True, claim.is_in(text, words, alone=len(claims) == 1)
    if not cut:
        return owner
    is_free = np.bincount(words.of[(owner != NONE) & words.visible], minlength=len(words.begin)) == 0
    of_word = np.full(len(words.begin), NONE)
    for number, is_known in cut.items():
        of_word[is_known & is_free] = np.where(of_word[is_known & is_free] == NONE, number, UNKNOWN)
    is_lost = np.bincount(words.of[is_under & words.visible], minlength=len(words.begin)) > 0
    is_lost &= is_free & (of_word == NONE)
    beside = np.append(False, is_lost[:-1]) | np.append(is_lost[1:], False)
    of_word[is_lost | beside & (of_word != NONE)] = UNKNOWN
    return np.where(owner == NONE, of_word[words.of], owner)


def join_records(text: str, claims: Sequence[Claim]) -> PieceRecord:
    """One record from those that lie over a text."""
    owner = owners(text, claims)
    # Of the pieces of all records: which are in the text, and in the record that is of their character.
    pieces_of = Groups.of([claim.offset for claim in claims])
    offset = np.concatenate([claim.offset for claim in claims])
    inside = np.flatnonzero((0 <= offset) & (offset < len(text)))
    own = inside[owner[offset[inside]] == pieces_of.owner[inside]]
    order = own[np.argsort(offset[own], kind="stable")].tolist()
    records = renumbered([claim.record for claim in claims])

    def joined(lists: Sequence[Sequence[Any] | None]) -> list[Any]:
        """The values of these pieces; None where a record has none."""
        parts = (of or [None] * n for of, n in zip(lists, pieces_of.lengths.tolist()))
        values = [*chain.from_iterable(parts)]
        return [values[i] for i in order]

    columns: dict[str, Any] = {}
    has_pieces = np.bincount(pieces_of.owner[own], minlength=len(claims)).tolist()
    for name in BY_PIECE:
        lists = [getattr(record, name) for record in records]
        lacks = [not of for of, n in zip(lists, has_pieces) if n]
        if not (any if name in SPELLED else all)(lacks):
            columns[name] = joined(lists)
    for name in MASKED_WITH:
        columns[name] = next((of for record in records if (of := getattr(record, name)) is not None), None)
    metrics = dict.fromkeys(metric for record in records for metric in record.scores)
    scores = {metric: joined([record.scores.get(metric) for record in records]) for metric in metrics}
    unknown = edges_of_runs(owner == UNKNOWN)
    return PieceRecord(
        **{"offset": [], "drawn": records[0].drawn, **columns},
        scores=scores,
        scored=scored_runs(owner, records),
        unknown=unknown,
        text=text[:50] if unknown else "",
    )


def renumbered(records: Sequence[PieceRecord]) -> list[PieceRecord]:
    """With numbers of words and units that no two records share, but for equal texts, which have equal draws."""
    first_unit, n_units, first_word = dict[tuple[int, ...], int](), 0, 0
    for record in records:
        for *draw, _ in record.drawn or ():
            if tuple(draw) not in first_unit:
                first_unit[tuple(draw)], n_units = n_units, n_units + draw[-1]
    drawn, out = [[*draw, first] for draw, first in first_unit.items()] or None, list[PieceRecord]()
    for record in records:
        change: dict[str, Any] = {"drawn": drawn} if drawn else {}
        if record.word:
            change["word"] = [word + first_word for word in record.word]
            first_word += max(record.word) + 1
        if record.unit and record.drawn:
            firsts = [first for *_, first in record.drawn]
            draws = [None if unit is None else bisect_right(firsts, unit) - 1 for unit in record.unit]
            moves = [first_unit[tuple(draw)] - first for *draw, first in record.drawn]
            change["unit"] = [unit if i is None else unit + moves[i] for unit, i in zip(record.unit, draws)]
        out.append(replace(record, **change) if change else record)
    return out


def scored_runs(owner: IntArray, records: Sequence[PieceRecord]) -> list[int]:
    """Where runs of scored characters begin and end, of those that each record has."""
    scored = np.zeros(len(owner), dtype=bool)
    for number, record in enumerate(records):
        edges = np.maximum(record.scored, 0)
        for begin, end in zip(edges[::2], edges[1::2]):
            scored[begin:end] |= owner[begin:end] == number
    return edges_of_runs(scored)


def edges_of_runs(member: BoolArray) -> list[int]:
    """Where runs of members begin and end."""
    edges: list[int] = np.flatnonzero(np.diff(np.concatenate([[False], member, [False]]))).tolist()
    return edges
