"""The values of the attributes. Each is computed from the pieces that begin in its characters."""

import math
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span, Token

from ..errors import PLLError
from .names import Names
from .record import PieceRecord, overlap
from .stored import record_of


class Alternative(NamedTuple):
    """A piece that the model expected in the place of another."""

    text: str
    log_prob: float  # natural log
    begins_word: bool | None  # None: the tokenizer does not say


# How one value is made from those of several pieces, or of none.
COMBINE: dict[str, Callable[[Sequence[Any]], Any]] = {
    "sum": lambda known: sum(known, 0.0),
    "count": len,
    "first choices": lambda ranks: sum(rank == 1 for rank in ranks),
    "largest": lambda known: max(known, default=None),
    "first": lambda known: [Alternative(*stored) for stored in next(filter(None, known), ())],
}
SUMS = ("sum", "count", "first choices")  # docs and spans have these, too
# The score under the first metric, the scores under all, and the number of pieces.
Sums = tuple[float | None, dict[str, float | None], int]


def known_in(record: PieceRecord, column: str, begin: int = 0, end: int = sys.maxsize) -> list[Any]:
    """The values of the pieces in some characters, without those that are not known.

    column (str): A list by piece: see `PieceRecord.column`.
    """
    values = record.column(column)
    return [] if values is None else [value for value in values[record.between(begin, end)] if value is not None]


def value_in(record: PieceRecord | None, column: str, combine: str, begin: int, end: int) -> Any:
    """The value of a token; None if it was not scored, or not in this way, as in a doc that was joined from docs of
    several components. combine (str): A key of `COMBINE`.
    """
    if record is None or (column_values := record.column(column)) is None:
        return None
    values = column_values[record.between(begin, end)]
    known = [value for value in values if value is not None]
    return COMBINE[combine](known) if known or not values and overlap(record.scored, begin, end) else None


def sum_in(record: PieceRecord | None, column: str, combine: str, begin: int = 0, end: int = sys.maxsize) -> Any:
    """The value of a doc or span; None if no wordpiece was scored there, since the empty sum would be the best score
    there is. How many pieces there are is known to be 0 where something was scored.
    """
    known = [] if record is None else known_in(record, column, begin, end)
    if known or combine == "count" and (begin == end or record is not None and overlap(record.scored, begin, end)):
        return COMBINE[combine](known)
    return None


def sums_in(record: PieceRecord | None, metrics: Collection[str], begin: int = 0, end: int = sys.maxsize) -> Sums:
    """The sums of some characters, such as a token, or of a whole doc, at one look at the record."""
    own = slice(0, 0) if record is None else record.between(begin, end)
    if record is None or own.start == own.stop:
        return None, dict.fromkeys(metrics), 0
    known = [[score for score in record.scores.get(metric, ())[own] if score is not None] for metric in metrics]
    sums = [sum(of, 0.0) if of else None for of in known]
    return sums[0], dict(zip(metrics, sums)), len(known[0])


def sums_of_doc(doc: Doc, names: Names) -> Sums:
    """The sums of a doc under the metrics of a component."""
    return sums_in(record_of(doc, names.data), names.metrics)


def characters_of(tokens: Doc | Span) -> tuple[Doc, int, int]:
    """A doc, and where a part of it begins and ends, in characters."""
    if isinstance(tokens, Doc):
        return tokens, 0, sys.maxsize if len(tokens) else 0
    return tokens.doc, tokens.start_char, tokens.end_char


# Getters


def token_value(token: Token, data: str, column: str, combine: str) -> Any:
    """The value of an attribute of tokens; None if the token was not scored."""
    begin = token.idx
    return value_in(record_of(token.doc, data), column, combine, begin, begin + len(token))


def sum_tokens(tokens: Doc | Span, data: str, column: str, combine: str) -> Any:
    """The same over a doc or span; None if no wordpiece was scored there."""
    doc, begin, end = characters_of(tokens)
    return sum_in(record_of(doc, data), column, combine, begin, end)


def _known(tokens: Doc | Span, data: str, column: str) -> list[Any]:
    doc, begin, end = characters_of(tokens)
    record = record_of(doc, data)
    return [] if record is None else known_in(record, column, begin, end)


def pseudo_perplexity(tokens: Doc | Span, data: str) -> float | None:
    """exp(-PLL / number of wordpieces) (Salazar et al. 2020, section 2.3); None if no wordpiece was scored."""
    known = _known(tokens, data, "")
    return perplexity_of(sum(known), len(known))


def top1(tokens: Doc | Span, data: str) -> float | None:
    """The share of the wordpieces that were the model's first choice; None if that is not known."""
    ranks = _known(tokens, data, "rank")
    return COMBINE["first choices"](ranks) / len(ranks) if ranks else None


def estimate(doc: Doc, data: str, column: str, is_error: int) -> float | None:
    """An estimate of the sum of a score over all words of a text, from those that were drawn; or its standard error
    (Cochran 1977, Sampling Techniques, sections 2.5 to 2.11). None where nothing was scored. Words that `Span.as_doc`
    left out count as 0; different texts, as `Doc.from_docs` joins them, are independent.

    is_error (int): 0 for the estimate, 1 for the error.
    """
    record, known = record_of(doc, data), _known(doc, data, column)
    if record is None or not known:
        return None
    total, variance, units = sum(known), 0.0, defaultdict[int, float](float)
    for unit, score in zip(record.unit or (), record.column(column) or ()):
        if unit is not None and score is not None:
            units[unit] += score
    firsts = [first for *_, first in record.drawn or ()]
    texts = defaultdict[int, list[float]](list)
    for unit, score in units.items():
        texts[bisect_right(firsts, unit) - 1].append(score)
    for text, scores in texts.items():
        _, n, n_all, _ = (record.drawn or ())[text]
        drawn = sum(scores)
        total += (n_all / n - 1) * drawn
        squares = sum(score**2 for score in scores) - drawn**2 / n
        variance += n_all * (n_all - n) / (n * max(1, n - 1)) * max(0.0, squares)
    return math.sqrt(variance) if is_error else total


def all_pieces(doc: Doc, data: str) -> int | None:
    """The number of wordpieces, drawn or not; None where nothing was scored."""
    record = record_of(doc, data)
    if record is None or not record.scored:
        return None if len(doc) else 0
    own = record.between(0, sys.maxsize)
    return len(record.offset[own])


def perplexity_of(score: float | None, pieces: int) -> float | None:
    """The pseudo-perplexity from the score of some pieces; None without a piece."""
    return exp_or_inf(-(score or 0.0) / pieces) if pieces else None


def exp_or_inf(x: float) -> float:
    """e to the power of x; infinity where that is more than a float holds."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


# Setters


def refuse_value(tokens: Doc | Span | Token, value: Any, name: str, data: str) -> None:
    """RAISES (PLLError): The value is another one than it is, as `Doc.from_json` may set it."""
    if value == tokens._.get(name):
        return
    raise PLLError(
        f"_.{name} cannot be set: it is computed from the doc's wordpieces, _.{data}. To keep scores in JSON, write "
        f'doc.to_json(underscore=["{data}"]). For values of your own, register an attribute with another name.'
    )
