"""What is stored in a Doc: a value per token, under the character at which the token began when it was scored."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from spacy.tokens import Doc, Token

from ..metrics import pll_metrics
from .names import Names

SHARED = 2048  # characters


def key(name: str, start: int | None = None) -> Any:
    """Where spaCy stores an attribute of the token that begins at a character, or of the doc."""
    return ("._.", name, start, None)


def keys(doc: Doc) -> list[Any]:
    """The keys of all attributes in `doc.user_data`."""
    user_data: Iterable[Any] = doc.user_data
    return [key for key in user_data if isinstance(key, tuple) and len(key) == 4 and key[0] == "._."]


def store(doc: Doc, names: Names, starts: Sequence[int], columns: Iterable[tuple[str, Sequence[Any]]]) -> None:
    """Store columns, a name with a value for each token, and take away what an earlier scoring left, under any metric.

    starts (Sequence[int]): The character with which each token begins, increasing.
    """
    if doc.user_data and (earlier := keys(doc)):
        replaced = {*names.combine, *(f"{names.score}_{metric}" for metric in stored_metrics([doc], names.score))}
        for old in earlier:
            if old[1] in replaced:
                del doc.user_data[old]
    # A caller may have given the same dict to several docs.
    user_data: dict[Any, Any] = {**doc.user_data}
    doc.user_data = user_data
    is_short = not starts or starts[-1] < SHARED
    for name, values in columns:
        shared = _first_keys(name)
        others = (shared[start] if start < SHARED else key(name, start) for start in starts)
        user_data.update(zip(map(shared.__getitem__, starts) if is_short else others, values))


@cache
def _first_keys(name: str) -> list[Any]:
    """The keys at the first characters of a doc. All docs share them, which saves most of their memory and time."""
    return [key(name, start) for start in range(SHARED)]


def stored_values(first: Token, last: Token, name: str) -> list[Any]:
    """What is stored for the tokens that began in the characters of a run of tokens."""
    user_data: dict[Any, Any] = first.doc.user_data
    begin, end = first.idx, last.idx + len(last)
    if not user_data:
        return []
    places = _first_keys(name)[begin:end] if end <= SHARED else [key(name, i) for i in range(begin, end)]
    return list(map(user_data.get, places))


def stored_names(docs: Iterable[Doc]) -> list[str]:
    """The attributes that tokens have values of, in the order in which they were stored."""
    # Only those of tokens have a start.
    return list(dict.fromkeys(name for doc in docs for _, name, start, _ in keys(doc) if start is not None))


def stored_metrics(docs: Iterable[Doc], attr: str) -> list[str]:
    """The metrics that tokens have scores of under an `attr`, in the order of the component's metrics."""
    prefix, reserved = f"{attr}_", Names(attr, []).all
    names = [name for name in stored_names(docs) if name.startswith(prefix) and name not in reserved]
    return [metric for name in names if (metric := name.removeprefix(prefix)) in pll_metrics]
