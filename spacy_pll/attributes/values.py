"""The values of the attributes: those of a token from what is stored, those of a Doc or Span from its tokens."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from spacy.tokens import Doc, Span, Token

from ..errors import PLLError
from .stored import key, stored_values


class Alternative(NamedTuple):
    """A piece that the model expected in the place of another."""

    text: str
    log_prob: float  # natural log
    begins_word: bool | None  # None: the tokenizer does not say


def sum_tokens(tokens: Doc | Span, name: str, pieces: str) -> Any:
    """The sum of a token attribute over a Doc or Span; None if no wordpiece was scored there.

    pieces (str): The attribute with the numbers of wordpieces, whose own sum may be 0, as it is without tokens.
    RAISES (ValueError): The span begins or ends inside a token that was split after it was scored.
    """
    if not len(tokens):
        return 0 if name == pieces else None
    find = stored_values if isinstance(tokens, Doc) else _values  # a doc does not cut a token
    total = _sum(find(tokens[0], tokens[-1], name))
    # The empty sum would be the best score there is.
    return None if total == 0 and name != pieces and sum_tokens(tokens, pieces, pieces) == 0 else total


def sums_by_token(doc: Doc, name: str, pieces: str) -> list[Any]:
    """What `sum_tokens` gives for each token as a span, from one reading of the doc."""
    places = [(token.idx, token.idx + len(token)) for token in doc]
    is_whole = all(key(name, start) in doc.user_data for start, _ in places)  # no token was split
    values = stored_values(doc[0], doc[-1], name) if places else []
    sums = [_sum(values[start:end]) if is_whole else 0 for start, end in places]
    return [sum_tokens(doc[i : i + 1], name, pieces) if total == 0 else total for i, total in enumerate(sums)]


def token_value(token: Token, name: str, combine: str = "sum") -> Any:
    """The value of a token attribute, for a merged token made from those of its parts; None if it was not scored.

    combine (str): How the value of several pieces or parts is made: a key of `COMBINE`.
    RAISES (ValueError): The token is a part of a token that was scored and then split.
    """
    return COMBINE[combine](_values(token, token, name))


def _values(first: Token, last: Token, name: str) -> list[Any]:
    """What is stored for a run of tokens. Merging or splitting tokens changes nothing in it. So the values of merged
    tokens can be combined, and of a token that was split, only the value of the whole is known.
    """
    part = None
    user_data = first.doc.user_data
    if user_data and key(name, first.idx) not in user_data and _is_later_part(first, name):
        part = first
    elif user_data and not last.whitespace_ and last.i + 1 < len(last.doc):
        ends_there = key(name, last.idx + len(last)) in user_data
        part = last if not ends_there and _is_later_part(last.nbor(), name) else None
    if part is not None:
        raise PLLError(
            f"{part.text!r} is a part of a token that was split after it was scored, so its _.{name} is not known. Put "
            "the component that splits tokens before `pll` in the pipeline. Values of the doc, and of spans that do "
            "not cut such a token, can be read."
        )
    return stored_values(first, last, name)


def _is_later_part(token: Token, name: str) -> bool:
    """Whether a token without an entry is a part, but not the first, of a token that was scored and then split.

    Such a part follows the part that has the entry of the whole, without white space between them. All other tokens of
    a scored doc have an entry; where they were not scored, it is None. Docs that `Doc.from_docs` joined may have tokens
    without entries that are no parts.
    """
    user_data = token.doc.user_data
    while token.i > 0:
        token = token.nbor(-1)
        if token.whitespace_ or token.is_space:
            return False
        if key(name, token.idx) in user_data:
            return user_data[key(name, token.idx)] is not None
    return False


def set_token_value(token: Token, value: Any, name: str) -> None:
    """Set a token attribute by hand."""
    user_data = token.doc.user_data
    for start in range(token.idx + 1, token.idx + len(token)):
        user_data.pop(key(name, start), None)
    user_data[key(name, token.idx)] = value
    # Tokens without an entry would be taken for parts of this one.
    if token.i + 1 < len(token.doc) and key(name, token.nbor().idx) not in user_data:
        for other in token.doc:
            user_data.setdefault(key(name, other.idx), None)


def _sum(values: Iterable[Any]) -> Any:
    """The sum of the values that are not None; None if there is none."""
    known = [value for value in values if value is not None]
    if len(known) == 1:
        return known[0]  # as it was stored
    return sum(known) if known else None


def _largest(values: Iterable[Any]) -> Any:
    """The largest of the values that are not None; None if there is none, or nothing but 0."""
    return max((value for value in values if value is not None), default=None) or None


def _first(values: Iterable[Any]) -> list[Alternative] | None:
    """The first of the lists of alternatives that is not empty; None if there is no list."""
    lists = [value for value in values if value is not None]
    return [Alternative(*stored) for stored in next(filter(None, lists), [])] if lists else None


# How the value of a token is made from those of several pieces, or of the tokens that were merged.
COMBINE: dict[str, Callable[[Iterable[Any]], Any]] = {"sum": _sum, "largest": _largest, "first": _first}


def pseudo_perplexity(tokens: Doc | Span, score: str, pieces: str) -> float | None:
    """exp(-PLL / number of wordpieces) (Salazar et al. 2020, section 2.3); None if no wordpiece was scored."""
    n = sum_tokens(tokens, pieces, pieces)
    return exp_or_inf(-sum_tokens(tokens, score, pieces) / n) if n else None


def estimate(doc: Doc, part: int, name: str, sample: str, pieces: str) -> float | None:
    """An estimate of the sum of a score over all words of a text, from those that were drawn; or its standard error
    (Cochran 1977, Sampling Techniques, sections 2.5 to 2.11). None where nothing was scored. Words that `Span.as_doc`
    left out count as 0; different texts, as `Doc.from_docs` joins them, are independent.

    part (int): 0 for the estimate, 1 for the error.
    """
    total, variance = sum_tokens(doc, name, pieces), 0.0
    if total is None:
        return None
    texts = defaultdict[tuple[int, int, int], defaultdict[int, float]](lambda: defaultdict(float))
    for score, draw in _stored(doc, name, sample):
        if draw and score is not None:
            texts[tuple(draw[:3])][draw[3]] += score
    for (_, n, n_all), units in texts.items():
        drawn = sum(units.values())
        total += (n_all / n - 1) * drawn
        squares = sum(score**2 for score in units.values()) - drawn**2 / n
        variance += n_all * (n_all - n) / (n * max(1, n - 1)) * max(0.0, squares)
    return math.sqrt(variance) if part else total


def all_pieces(doc: Doc, sample: str, pieces: str) -> Any:
    """The number of wordpieces, drawn or not; None where nothing was scored."""
    return _sum(draw[4] if draw else n for n, draw in _stored(doc, pieces, sample)) if len(doc) else 0


def _stored(doc: Doc, *names: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(stored_values(doc[0], doc[-1], name) for name in names))


def share(tokens: Doc | Span, part: str, whole: str) -> float | None:
    """What share of the wordpieces has something, such as `first_choices`; None if that is not known."""
    parts, n = sum_tokens(tokens, part, whole), sum_tokens(tokens, whole, whole)
    return parts / n if parts is not None and n else None


def exp_or_inf(x: float) -> float:
    """e to the power of x; infinity where that is more than a float holds."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf
