"""The Doc, Span and Token attributes.

Scores are stored on the tokens, as plain floats and ints. A Doc or Span computes its sum when
it is read. So the sums stay right after DocBin, `Span.as_doc`, `Doc.from_docs` and in worker
processes.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from spacy.tokens import Doc, Span, Token

from .metrics import pll_metrics


def sum_tokens(tokens: Doc | Span, name: str) -> Any:
    """The sum of a token attribute over a Doc or Span; None if no token was scored."""
    values = [token._.get(name) for token in tokens]
    values = [value for value in values if value is not None]
    return sum(values) if values else None


def pseudo_perplexity(tokens: Doc | Span, score: str, pieces: str) -> float | None:
    """exp(-PLL / number of wordpieces) (Salazar et al. 2020, section 2.3); None if no wordpiece was scored."""
    n = sum_tokens(tokens, pieces)
    return exp_or_inf(-sum_tokens(tokens, score) / n) if n else None


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
        # The first metric has the plain name. If there are several, each has a name of its own as well.
        self.metrics = {metric: f"{attr}_{metric}" for metric in metrics} if len(metrics) > 1 else {}
        clash = {name for name in self.all if self.all.count(name) > 1} | {"get", "set", "has"} & set(self.all)
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
        """The attributes that hold a value on each token."""
        return [self.score, *self.metrics.values(), self.pieces]

    @property
    def all(self) -> list[str]:
        """Every attribute."""
        return [*self.stored, self.perplexity, self.data]


def find_names(docs: Iterable[Doc | Span], attr: str = "pll") -> Names:
    """The names of the attributes of scored docs, from the values stored on their tokens. Registers them.

    So docs from a DocBin can be read in a process that has not made a pipeline with the component.

    attr (str): The component's setting of that name.
    RAISES (ValueError): There are tokens, but none has such an attribute.
    """
    whole: list[Doc] = list({id(item.doc): item.doc for item in docs}.values())
    # In the order in which they were stored, which is the order of the component's metrics. Only tokens' keys have a
    # start.
    keys: Iterator[Any] = (key for doc in whole for key in doc.user_data if isinstance(key, tuple) and len(key) == 4)
    stored = dict.fromkeys(name for kind, name, start, end in keys if kind == "._." and start is not None)
    prefix = f"{attr}_"
    reserved = Names(attr, []).all
    metrics = [name.removeprefix(prefix) for name in stored if name.startswith(prefix) and name not in reserved]
    names = Names(attr, [metric for metric in metrics if metric in pll_metrics])
    if any(map(len, whole)) and not any(name in stored for name in names.stored[:-1]):
        raise ValueError(
            f"No token has the attribute _.{attr}. Score the docs first, with a pipeline that has the component `pll`, "
            f"or name its `attr`. Attributes that tokens have: {', '.join(stored) or 'none'}."
        )
    install(names)
    return names


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
    """Register the attributes that are not registered yet.

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
        if not cls.has_extension(name):
            cls.set_extension(name, **extension)


def _extensions(names: Names) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Class, name and contents of each attribute."""
    for name in names.stored:
        yield Token, name, {"default": None}
        for cls in (Doc, Span):
            yield cls, name, {"getter": partial(sum_tokens, name=name)}
    for cls in (Doc, Span):
        yield cls, names.perplexity, {"getter": partial(pseudo_perplexity, score=names.score, pieces=names.pieces)}
    yield Doc, names.data, {"default": None}


def _is_same(registered: tuple[Any, ...], extension: dict[str, Any]) -> bool:
    default, method, getter, setter = registered
    same_getter = _signature(getter) == _signature(extension.get("getter"))
    return same_getter and default is None and method is None and setter is None


def _signature(getter: Any) -> Any:
    """What tells whether two getters are the same. Two equal partials do not compare as equal, but their parts do."""
    return (getter.func, getter.keywords) if isinstance(getter, partial) else getter
