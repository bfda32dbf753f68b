"""The record of a doc's wordpieces. The attribute `_.pll_data` has it as a dict of lists."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import compress
from typing import Any

from spacy.tokens import Doc

from .names import Names
from .stored import key, keys

# An `Alternative` as docs store it: text, natural log of its probability, and whether it begins a word.
StoredAlternative = tuple[str, float, bool | None]


@dataclass(frozen=True)
class PieceRecord:
    """The wordpieces of a doc that were scored. All lists have an entry for each, in the same order. Docs that an
    earlier version scored have no `word` and no `window`. With `sample_words`, the stored record also has the pieces
    that were not drawn; their scores, and what was expected there, are None.
    """

    pieces: Sequence[str | None]  # as the vocabulary spells them
    ids: Sequence[int]  # in the vocabulary
    start: Sequence[int]  # the character of the doc at which the piece begins
    end: Sequence[int]
    token: Sequence[int]  # the index of its token
    scores: Mapping[str, Sequence[Any]]  # float, by metric, natural log
    word: Sequence[int] | None = None  # the number of its word: pieces with the same one were masked as one unit
    window: Sequence[int] | None = None  # the number of its window in its span: 0 where the span was read in one piece
    mask_spacing: int | None = None  # the settings
    mask_margin: int | None = None
    rank: Sequence[int] | None = None  # with `distribution`
    entropy: Sequence[float] | None = None
    alternatives: Sequence[Sequence[StoredAlternative]] | None = None  # with `alternatives`

    @classmethod
    def from_dict(cls, value: object) -> "PieceRecord | None":
        """Read the value of an attribute. None: it is no record. People may have an attribute of that name."""
        if not isinstance(value, dict) or not _REQUIRED <= value.keys():
            return None
        return cls(**{field.name: value[field.name] for field in fields(cls) if field.name in value})

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, without what is not known."""
        settings = ("mask_spacing", "mask_margin")
        return {name: value for name, value in vars(self).items() if value is not None or name in settings}

    def of_drawn(self) -> "PieceRecord":
        """The same with the pieces that have scores alone."""
        scored = [score is not None for score in next(iter(self.scores.values()), ())]
        if all(scored):
            return self
        lists: dict[str, Any] = {n: [*compress(x, scored)] for n, x in vars(self).items() if isinstance(x, Sequence)}
        lists["scores"] = {metric: [*compress(of, scored)] for metric, of in self.scores.items()}
        return replace(self, **lists)

    def columns(self, names: Names) -> dict[str, Sequence[Any]]:
        """The lists, by the names of the token attributes that are made from them."""
        columns: dict[str, Sequence[Any]] = {names.score: next(iter(self.scores.values()))}
        columns[names.pieces] = [1] * len(self.token)
        columns |= {names.metrics[m]: values for m, values in self.scores.items() if m in names.metrics}
        if self.rank is not None and self.entropy is not None:
            columns |= {names.rank: self.rank, names.entropy: self.entropy}
            columns[names.first_choices] = [int(rank == 1) for rank in self.rank]
        if self.alternatives is not None:
            columns[names.alternatives] = self.alternatives
        return columns

    def by_token(self) -> defaultdict[int, list[int]]:
        """For each token, by its index in the doc: the indices of its pieces in the lists."""
        places = defaultdict(list)
        for place, token in enumerate(self.token):
            places[token].append(place)
        return places


_REQUIRED = {field.name for field in fields(PieceRecord) if field.default is MISSING}


def read_record(doc: Doc, attr: str, whole: bool = False) -> PieceRecord | None:
    """The record of a doc, with the indices of the tokens that the doc has now; None if there is none.

    whole (bool): With the pieces that were not drawn.
    """
    names = Names(attr, [])
    record = PieceRecord.from_dict(doc.user_data.get(key(names.data)))
    record = record if whole else record and record.of_drawn()
    scored = sorted(start for _, name, start, _ in keys(doc) if name == names.pieces)
    starts = [token.idx for token in doc]
    if record is None or scored == starts or not starts or len(scored) <= max(record.token, default=0):
        return record
    # A piece may begin in the white space before its token, or, at the end of a text, behind it.
    ends = [*scored[1:], starts[-1] + 1]
    places = [min(max(start, scored[token]), ends[token] - 1) for start, token in zip(record.start, record.token)]
    return replace(record, token=[bisect_right(starts, place) - 1 for place in places])


def record_value(doc: Doc, attr: str) -> Any:
    """The value of `_.pll_data`: what is stored, with the indices of the tokens that the doc has now."""
    stored: Any = doc.user_data.get(key(Names(attr, []).data))
    record = read_record(doc, attr, whole=True)
    return stored if record is None or record.token is stored["token"] else {**stored, "token": record.token}


def set_record_value(doc: Doc, value: Any, attr: str) -> None:
    doc.user_data[key(Names(attr, []).data)] = value
