"""What is stored in a Doc: a value per token, under the character at which the token began when it was scored."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from spacy.tokens import Doc, Token

from ..errors import PLLError
from ..metrics import pll_metrics
from .names import Names

SHARED = 2048  # characters
EXTENT = "_scored"  # a key from where to where a doc was scored, which spaCy moves with those of tokens


def key(name: str, start: int | None = None, end: int | None = None) -> Any:
    """Where spaCy stores an attribute of the token that begins at a character, or of a span, or of the doc."""
    return ("._.", name, start, end)


def keys(doc: Doc) -> list[Any]:
    """The keys of all attributes in `doc.user_data`."""
    user_data: Iterable[Any] = doc.user_data
    return [key for key in user_data if isinstance(key, tuple) and len(key) == 4 and key[0] == "._."]


def store(doc: Doc, names: Names, starts: Sequence[int], columns: Iterable[tuple[str, Sequence[Any]]]) -> None:
    """Store columns, a name with a value for each token, and take away what an earlier scoring left, under any metric.

    starts (Sequence[int]): The character with which each token begins, increasing.
    """
    if doc.user_data and (earlier := keys(doc)):
        metrics = stored_metrics([doc], names.score)
        replaced = {EXTENT, *names.combine, *(f"{names.score}_{metric}" for metric in metrics)}
        for old in earlier:
            if old[1] in replaced:
                del doc.user_data[old]
    # A caller may have given the same dict to several docs.
    user_data: dict[Any, Any] = doc.user_data.copy()
    doc.user_data = user_data
    is_short = not starts or starts[-1] < SHARED
    user_data[key(EXTENT, 0, _end(doc))] = None
    for name, values in columns:
        shared = _first_keys(name)
        others = (shared[start] if start < SHARED else key(name, start) for start in starts)
        user_data.update(zip(map(shared.__getitem__, starts) if is_short else others, values))


@cache
def _first_keys(name: str) -> list[Any]:
    """The keys at the first characters of a doc. All docs share them, which saves most of their memory and time."""
    return [key(name, start) for start in range(SHARED)]


def stored_values(first: Token, last: Token, name: str) -> list[Any]:
    """What is stored for the tokens that began in the characters of a run of tokens.

    RAISES (PLLError): Values of what `Span.as_doc` cut away are among them.
    """
    user_data: dict[Any, Any] = first.doc.user_data
    begin, end = first.idx, last.idx + len(last)
    if not user_data:
        return []
    places = _first_keys(name)[begin:end] if end <= SHARED else [key(name, i) for i in range(begin, end)]
    values, n = list(map(user_data.get, places)), last.i - first.i + 1
    if n == len(first.doc) or len(values) - values.count(None) > n:  # which merged tokens have, too
        _check_apart(first.doc)
    return values


def _end(doc: Doc) -> int:
    """Where the last token of a doc ends."""
    return doc[-1].idx + len(doc[-1]) if len(doc) else 0


def _check_apart(doc: Doc) -> None:
    """RAISES (PLLError): The docs from which a doc was joined lay over each other."""
    if key(EXTENT, 0, _end(doc)) in doc.user_data:
        return
    extents = sorted((start, end) for _, name, start, end in keys(doc) if name == EXTENT)
    if any(end > start for (_, end), (start, _) in zip(extents, extents[1:])):
        raise PLLError(
            f"Values of other texts are among those of {doc.text[:50]!r}: the docs that were joined have the values of "
            "all tokens of the docs out of which `Span.as_doc` cut them.",
            "Add up the scores of the spans, or score the joined doc again: nlp(doc).",
        )


def stored_names(docs: Iterable[Doc]) -> list[str]:
    """The attributes that tokens have values of, in the order in which they were stored."""
    # Only those of tokens have a start and no end.
    found = (name for doc in docs for _, name, start, end in keys(doc) if start is not None and end is None)
    return list(dict.fromkeys(found))


def stored_metrics(docs: Iterable[Doc], attr: str) -> list[str]:
    """The metrics that tokens have scores of under an `attr`, in the order of the component's metrics."""
    prefix, reserved = f"{attr}_", Names(attr, []).all
    names = [name for name in stored_names(docs) if name.startswith(prefix) and name not in reserved]
    return [metric for name in names if (metric := name.removeprefix(prefix)) in pll_metrics]
