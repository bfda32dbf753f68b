"""The Doc, Span and Token attributes.

Scores are stored for tokens, as plain floats and ints. A Doc or Span computes its sum when
it is read. So the sums stay right after DocBin, `Span.as_doc`, `Doc.from_docs` and in worker
processes.

spaCy stores the value of a token under the character at which the token begins, and merging or
splitting tokens changes nothing there. So the value of a merged token is made from what is stored
for its characters: for most attributes, it is the sum.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeGuard

from spacy.tokens import Doc, Span, Token
from spacy.tokens.underscore import Underscore

from .metrics import pll_metrics


def sum_tokens(tokens: Doc | Span, name: str) -> Any:
    """The sum of a token attribute over a Doc or Span; None if no token was scored.

    RAISES (ValueError): The span begins or ends inside a token that was split after it was scored: see `token_value`.
    """
    if not len(tokens):
        return None
    first, last = tokens[0], tokens[-1]
    if _is_cut(first, last, name):
        return _sum(token_value(token, name) for token in tokens)
    return _sum(_stored(first, last, name))


def token_value(token: Token, name: str, combine: str = "sum") -> Any:
    """The value of a token attribute, for a merged token made from those of its parts; None if it was not scored.

    combine (str): How the value of several pieces or parts is made: a key of `COMBINE`.
    RAISES (ValueError): The token is a part of a token that was scored and then split, and the doc has no record of
        wordpieces. Then only the score of the whole is known.
    """
    if not _is_cut(token, token, name):
        return COMBINE[combine](_stored(token, token, name))
    return COMBINE[combine](_piece_values(token, name))


def set_token_value(token: Token, value: Any, name: str) -> None:
    """Set a token attribute by hand."""
    user_data = token.doc.user_data
    for start in range(token.idx + 1, token.idx + len(token)):
        user_data.pop(_key(name, start), None)
    user_data[_key(name, token.idx)] = value
    # Tokens without an entry would be taken for parts of this one.
    if token.i + 1 < len(token.doc) and _key(name, token.nbor().idx) not in user_data:
        for other in token.doc:
            user_data.setdefault(_key(name, other.idx), None)


def store(doc: Doc, names: "Names", columns: Mapping[str, Sequence[Any]]) -> None:
    """Store the values of all tokens of a doc, and take away what an earlier scoring left, under any metric.

    columns (Mapping[str, Sequence[Any]]): For each token attribute, one value per token; None where not scored.
    """
    replaced = {*names.combine, *(f"{names.score}_{metric}" for metric in _metrics([doc], names.score))}
    keys: Iterable[Any] = doc.user_data
    for key in [key for key in keys if _is_attribute(key) and key[1] in replaced]:
        del doc.user_data[key]
    starts = [token.idx for token in doc]
    for name, values in columns.items():
        doc.user_data.update(zip([_key(name, start) for start in starts], values))


def _key(name: str, start: int | None = None) -> Any:
    """Where spaCy stores an attribute of the token that begins at a character, or of the doc."""
    return ("._.", name, start, None)


def _is_attribute(key: Any) -> bool:
    """Whether an entry of `Doc.user_data` belongs to an attribute."""
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._."


def _stored(first: Token, last: Token, name: str) -> list[Any]:
    """What is stored for the tokens that began in the characters of a run of tokens."""
    user_data: dict[Any, Any] = first.doc.user_data
    places = range(first.idx, last.idx + len(last)) if user_data else ()
    return [user_data.get(("._.", name, i, None)) for i in places]  # `_key`, without a call for each character


def _sum(values: Iterable[Any]) -> Any:
    """The sum of the values that are not None; None if there is none."""
    found = [value for value in values if value is not None]
    if len(found) == 1:
        return found[0]  # as it was stored
    return sum(found) if found else None


def _largest(values: Iterable[Any]) -> Any:
    """The largest of the values that are not None; None if there is none, or nothing but 0."""
    return max((value for value in values if value is not None), default=None) or None


def _first(values: Iterable[Any]) -> Any:
    """The first of the lists that is not empty; None if there is no list."""
    found = [value for value in values if value is not None]
    return next(filter(None, found), []) if found else None


# How the value of a token is made from those of several pieces, or of the tokens that were merged.
COMBINE: dict[str, Callable[[Iterable[Any]], Any]] = {"sum": _sum, "largest": _largest, "first": _first}


def _is_cut(first: Token, last: Token, name: str) -> bool:
    """Whether a run of tokens begins or ends inside a token that was scored and then split."""
    user_data = first.doc.user_data
    if not user_data:
        return False
    if _key(name, first.idx) not in user_data and _is_later_part(first, name):
        return True
    if last.whitespace_ or last.i + 1 == len(last.doc) or _key(name, last.idx + len(last)) in user_data:
        return False
    return _is_later_part(last.nbor(), name)


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
        if _key(name, token.idx) in user_data:
            return user_data[_key(name, token.idx)] is not None
    return False


def _piece_values(token: Token, name: str) -> list[Any]:
    """The values of a token's pieces that make up a token attribute, from the record of wordpieces.

    A part of a word may have no piece. Then it is one value: 0, or an empty list.

    RAISES (ValueError): There is no such record.
    """
    # The component's `attr` is the name, or its beginning.
    for attr in [name, *(name[:i] for i, character in enumerate(name) if character == "_")]:
        record = token.doc.user_data.get(_key(f"{attr}_data"))
        if _is_record(record):
            record = piece_record(token.doc, attr)
            column = piece_columns(record, Names(attr, list(record["scores"]))).get(name)
            if column:
                return [value for value, i in zip(column, record["token"]) if i == token.i] or [type(column[0])()]
    raise ValueError(
        f"{token.text!r} is a part of a token that was split after it was scored, so its _.{name} is not known. Put "
        "the component that splits tokens before `pll` in the pipeline, or score with keep_pieces=True. Values of the "
        "doc, and of spans that do not cut such a token, can be read."
    )


def pseudo_perplexity(tokens: Doc | Span, score: str, pieces: str) -> float | None:
    """exp(-PLL / number of wordpieces) (Salazar et al. 2020, section 2.3); None if no wordpiece was scored."""
    n = sum_tokens(tokens, pieces)
    return exp_or_inf(-sum_tokens(tokens, score) / n) if n else None


def share(tokens: Doc | Span, part: str, whole: str) -> float | None:
    """The sum of one token attribute divided by that of another; None if there is nothing to divide."""
    sums = sum_tokens(tokens, part), sum_tokens(tokens, whole)
    return sums[0] / sums[1] if sums[0] is not None and sums[1] else None


def exp_or_inf(x: float) -> float:
    """e to the power of x; infinity where that is more than a float holds."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


class Names:
    """The names of one component's attributes, from its setting `attr` and its metrics."""

    def __init__(self, attr: str, metrics: Sequence[str]):
        self.score = attr
        self.pieces = f"{attr}_pieces"
        self.perplexity = "pppl" if attr == "pll" else f"{attr}_pppl"
        self.data = f"{attr}_data"
        self.rank = f"{attr}_rank"
        self.entropy = f"{attr}_entropy"
        self.first_choices = f"{attr}_first_choices"
        self.top1 = f"{attr}_top1"
        self.alternatives = f"{attr}_alternatives"
        # The first metric has the plain name. If there are several, each has a name of its own as well.
        self.metrics = {metric: f"{attr}_{metric}" for metric in metrics} if len(metrics) > 1 else {}
        # `doc._.get` and the like are spaCy's, and so is what begins with an underscore, such as `doc._._obj`.
        spacys = {name for name in self.all if name.startswith("_") or hasattr(Underscore, name)}
        clash = {name for name in self.all if self.all.count(name) > 1} | spacys
        if clash:
            raise ValueError(
                f"The attribute name {sorted(clash)[0]!r} would have two meanings. Choose another `attr`, or metric."
            )

    @property
    def columns(self) -> dict[str, str]:
        """For tables: the heading of each score column, and the attribute that holds it."""
        return self.metrics or {self.score: self.score}

    @property
    def stored(self) -> list[str]:
        """The attributes that hold a value on each token, and on a Doc or Span the sum of these."""
        return [self.score, *self.metrics.values(), self.pieces]

    @property
    def expected(self) -> list[str]:
        """The same, for what the model expected (`distribution`)."""
        return [self.entropy, self.first_choices]

    @property
    def combine(self) -> dict[str, str]:
        """All attributes that hold a value on each token, and how values are combined: a key of `COMBINE`."""
        sums = dict.fromkeys([*self.stored, *self.expected], "sum")
        return {**sums, self.rank: "largest", self.alternatives: "first"}

    @property
    def all(self) -> list[str]:
        """Every attribute."""
        return [*self.stored, self.perplexity, self.data, *self.expected, self.top1, self.rank, self.alternatives]


def table_value(tokens: Doc | Span | Token, name: str, names: Names) -> Any:
    """An attribute as tables have it: None where there is no wordpiece, so no score.

    The attribute itself is then the empty sum 0.0, which in a table would be the best score there is.
    """
    return tokens._.get(name) if name == names.pieces or tokens._.get(names.pieces) != 0 else None


def check_apart(name: str, names: Names, other: Names, advice: str) -> None:
    """Check that two components of a pipeline write no attribute of the same name.

    name (str): The name of the component whose attributes are `names`.
    advice (str): The end of the message.
    RAISES (ValueError): They do.
    """
    shared = sorted(set(names.all) & set(other.all))
    if shared:
        raise ValueError(f"The component {name!r} already writes the attribute _.{shared[0]}. {advice}")


def find_names(docs: Iterable[Doc | Span], attr: str = "pll") -> Names:
    """The names of the attributes of scored docs, from the values stored on their tokens. Registers them.

    So docs from a DocBin can be read in a process that has not made a pipeline with the component.

    attr (str): The component's setting of that name.
    RAISES (ValueError): There are tokens, but none has such an attribute.
    """
    whole: list[Doc] = list({id(item.doc): item.doc for item in docs}.values())
    names, stored = Names(attr, _metrics(whole, attr)), _stored_names(whole)
    if any(map(len, whole)) and not any(name in stored for name in names.stored[:-1]):
        raise ValueError(
            f"No token has the attribute _.{attr}. Score the docs first, with a pipeline that has the component `pll`, "
            f"or name its `attr`. Attributes that tokens have: {', '.join(stored) or 'none'}."
        )
    install(names)
    return names


def _stored_names(docs: Iterable[Doc]) -> list[str]:
    """The attributes that tokens have values of, in the order in which they were stored."""
    keys: Iterator[Any] = (key for doc in docs for key in doc.user_data if _is_attribute(key))
    return list(dict.fromkeys(name for _, name, start, _ in keys if start is not None))  # only tokens' have a start


def _metrics(docs: Iterable[Doc], attr: str) -> list[str]:
    """The metrics that tokens have scores of under an `attr`, in the order of the component's metrics.

    Other attributes may have such a name: those of a component with `attr="pll_original"`, which also stores numbers of
    pieces, or one that a user registered.
    """
    stored, reserved, prefix = _stored_names(docs), Names(attr, []).all, f"{attr}_"
    names = [name for name in stored if name.startswith(prefix) and name not in reserved]
    own = [name for name in names if Names(name, []).pieces not in stored and not _is_read_otherwise(name, attr)]
    return [metric for name in own if (metric := name.removeprefix(prefix)) in pll_metrics]


def _is_read_otherwise(name: str, other: str) -> bool:
    """Whether two token attributes are registered, and not by the same package."""
    if not (Token.has_extension(name) and Token.has_extension(other)):
        return False
    getters = Token.get_extension(name)[2], Token.get_extension(other)[2]
    first, second = (getter.func.__qualname__ if isinstance(getter, partial) else getter for getter in getters)
    return first != second


def select_columns(names: Names, metrics: Sequence[str] | None = None) -> dict[str, str]:
    """`names.columns`, or the columns of some metrics, in their order.

    RAISES (ValueError): There are no scores under one of the metrics.
    """
    if metrics is None:
        return names.columns
    missing = [metric for metric in metrics if metric not in names.columns]
    if missing or not metrics:
        raise ValueError(
            f"There are no scores under {', '.join(map(repr, missing)) or 'an empty list of metrics'}. "
            f"Set `metrics` to some of these: {', '.join(names.columns)}."
        )
    return {metric: names.columns[metric] for metric in metrics}


def piece_record(doc: Doc, attr: str) -> Any:
    """The value of `_.pll_data`, with the indices of the tokens that the doc has now.

    attr (str): The component's setting of that name.
    """
    names = Names(attr, [])
    record = doc.user_data.get(_key(names.data))
    keys: Iterable[Any] = doc.user_data
    scored = sorted(key[2] for key in keys if _is_attribute(key) and key[1] == names.pieces)
    starts = [token.idx for token in doc]
    if not _is_record(record) or scored == starts or not starts or len(scored) <= max(record["token"], default=0):
        return record
    # A piece may begin in the white space before its token.
    places = [max(start, scored[token]) for start, token in zip(record["start"], record["token"])]
    return {**record, "token": [bisect_right(starts, place) - 1 for place in places]}


def _is_record(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a record of wordpieces. People may set the attribute by hand, or have one of that name."""
    return isinstance(value, dict) and {"token", "start", "scores"} <= value.keys()


def set_piece_record(doc: Doc, value: Any, attr: str) -> None:
    """Set `_.pll_data`."""
    doc.user_data[_key(Names(attr, []).data)] = value


def piece_columns(record: Mapping[str, Any], names: Names) -> dict[str, list]:
    """The values of the record `_.pll_data`, by the names of the token attributes that are made from them."""
    columns = {names.score: next(iter(record["scores"].values())), names.pieces: [1] * len(record["token"])}
    columns |= {names.metrics[m]: values for m, values in record["scores"].items() if m in names.metrics}
    if "rank" in record:
        columns |= {names.rank: record["rank"], names.entropy: record["entropy"]}
        columns[names.first_choices] = [int(rank == 1) for rank in record["rank"]]
    if "alternatives" in record:
        columns[names.alternatives] = record["alternatives"]
    return columns


def pieces_by_token(doc: Doc, names: Names) -> dict[int, list[int]]:
    """Which wordpieces of the record `_.pll_data` belong to each token.

    doc (Doc): Scored with `keep_pieces`.
    names (Names): What the component calls its attributes.
    RETURNS (dict[int, list[int]]): For each token, by its index in the doc: the indices of its wordpieces in the
        record's lists, in their order. Empty where there is no record.
    """
    record = doc._.get(names.data)
    if record is None:
        return {}
    groups: dict[int, list[int]] = {token.i: [] for token in doc}
    for index, token in enumerate(record["token"]):
        groups.setdefault(token, []).append(index)
    return groups


def install(names: Names) -> None:
    """Register the attributes.

    RAISES (ValueError): Another package registered an attribute of the same name. Then none is registered.
    """
    wanted = list(_extensions(names))
    for cls, name, extension in wanted:
        if cls.has_extension(name) and not _is_same(cls.get_extension(name), extension):
            raise ValueError(
                f"The attribute {cls.__name__}._.{name} is already registered, by another package or with other "
                f'contents. Choose another name: nlp.add_pipe("pll", config={{"attr": "my_{names.score}"}}).'
            )
    for cls, name, extension in wanted:
        cls.set_extension(name, **extension, force=True)


def assigned(names: Names, keep_pieces: bool, alternatives: bool, distribution: bool) -> list[str]:
    """The attributes that a component sets, as spaCy's `analyze_pipes` names them, such as "token._.pll"."""
    left_out = set() if keep_pieces else {names.data}
    left_out |= set() if alternatives else {names.alternatives}
    left_out |= set() if distribution else {*names.expected, names.rank, names.top1}
    return [f"{cls.__name__.lower()}._.{name}" for cls, name, _ in _extensions(names) if name not in left_out]


def _extensions(names: Names) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Class, name and contents of each attribute."""
    for name, combine in names.combine.items():
        getter = partial(token_value, name=name, combine=combine)
        yield Token, name, {"getter": getter, "setter": partial(set_token_value, name=name)}
        for cls in (Doc, Span) if combine == "sum" else ():
            yield cls, name, {"getter": partial(sum_tokens, name=name)}
    for cls in (Doc, Span):
        yield cls, names.perplexity, {"getter": partial(pseudo_perplexity, score=names.score, pieces=names.pieces)}
        yield cls, names.top1, {"getter": partial(share, part=names.first_choices, whole=names.pieces)}
    attr = names.score
    yield Doc, names.data, {"getter": partial(piece_record, attr=attr), "setter": partial(set_piece_record, attr=attr)}


def _is_same(registered: tuple[Any, ...], extension: dict[str, Any]) -> bool:
    """Whether an attribute is registered like this, or, where values are stored, as a program without this package does
    it to read them: with `default=None`.
    """
    default, method, getter, setter = registered
    if default is not None or method is not None:
        return False
    same = all(_signature(f) == _signature(extension.get(kind)) for f, kind in ((getter, "getter"), (setter, "setter")))
    return same or (getter is None and "setter" in extension)


def _signature(function: Any) -> Any:
    """What tells whether two getters are the same: equal partials do not compare as equal, nor do functions after their
    module was reloaded.
    """
    if not isinstance(function, partial):
        return function
    return function.func.__module__, function.func.__qualname__, function.keywords
