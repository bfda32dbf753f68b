"""The attributes made known to spaCy."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from spacy.tokens import Doc, Span, Token

from ..errors import PLLError
from ..metrics import BUILTIN_METRICS
from .names import Names
from .piece_record import record_value, set_record_value
from .stored import stored_metrics, stored_names
from .values import all_pieces, estimate, pseudo_perplexity, set_token_value, share, sum_tokens, token_value


def install(names: Names) -> None:
    """Register the attributes.

    RAISES (ValueError): Another package registered an attribute of the same name. Then none is registered.
    """
    wanted = list(_extensions(names))
    for cls, name, extension in wanted:
        if cls.has_extension(name) and not _is_same(cls.get_extension(name), extension):
            raise PLLError(
                f"The attribute {cls.__name__}._.{name} is already registered, by another package or with other "
                f'contents. Choose another name: nlp.add_pipe("pll", config={{"attr": "my_{names.score}"}}).'
            )
    for cls, name, extension in wanted:
        cls.set_extension(name, **extension, force=True)


def find_names(docs: Iterable[Doc | Span], attr: str = "pll") -> Names:
    """The names of the attributes of scored docs, from the values stored on their tokens. Registers them.

    So docs from a DocBin can be read in a process that has not made a pipeline with the component.

    attr (str): The component's setting of that name.
    RAISES (ValueError): There are tokens, but none has a score under a metric that is registered.
    RAISES (TypeError): There is something that is neither a doc nor a span.
    """
    docs = list(docs)
    for item in docs:
        if not isinstance(item, Doc | Span):
            raise TypeError(f"Scored docs or spans are needed, such as nlp(text). This is not one: {item!r:.100}.")
    whole: list[Doc] = list({id(item.doc): item.doc for item in docs}.values())
    names, stored = Names(attr, stored_metrics(whole, attr)), stored_names(whole)
    if any(map(len, whole)) and not names.metrics:
        raise PLLError(
            f"These docs have no scores: no token has an attribute _.{attr}_METRIC with a metric that is registered. "
            "Score them first, with a pipeline that has the component `pll`, or name its `attr`, or import what "
            f"registers the metric. Attributes that tokens have: {', '.join(stored) or 'none'}."
        )
    install(names)
    return names


def assigned(names: Names) -> list[str]:
    """The attributes that a component sets by default, as spaCy's `analyze_pipes` names them, such as "token._.pll"."""
    return [f"{cls.__name__.lower()}._.{name}" for cls, name, _ in _extensions(names) if name not in names.optional]


def _extensions(names: Names) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Class, name and contents of each attribute."""
    for name, combine in names.combine.items():
        getter = partial(token_value, name=name, combine=combine)
        yield Token, name, {"getter": getter, "setter": partial(set_token_value, name=name)}
        for cls in (Doc, Span) if combine == "sum" else ():
            yield cls, name, {"getter": partial(sum_tokens, name=name, pieces=names.pieces)}
    for cls in (Doc, Span):
        yield cls, names.perplexity, {"getter": partial(pseudo_perplexity, score=names.score, pieces=names.pieces)}
        yield cls, names.top1, {"getter": partial(share, part=names.first_choices, whole=names.pieces)}
    sample, pieces = names.sample, names.pieces
    for name, of_score in names.estimates.items():
        for part, own in enumerate(of_score):
            yield Doc, own, {"getter": partial(estimate, part=part, name=name, sample=sample, pieces=pieces)}
    yield Doc, names.all_pieces, {"getter": partial(all_pieces, sample=sample, pieces=pieces)}
    attr = names.score
    yield Doc, names.data, {"getter": partial(record_value, attr=attr), "setter": partial(set_record_value, attr=attr)}


def _is_same(registered: tuple[Any, ...], extension: dict[str, Any]) -> bool:
    """Whether an attribute is registered like this, or, where values are stored, as a program without this package does
    it to read them: with `default=None`.
    """
    if registered == (None, None, None, None):
        return "setter" in extension
    # Equal partials do not compare as equal, nor do functions after their module was reloaded.
    identity = attrgetter("func.__module__", "func.__qualname__", "keywords")
    return isinstance(registered[2], partial) and identity(registered[2]) == identity(extension["getter"])


# So docs from a file can be read where no pipeline is made. If another package has such an attribute, that one is left
# alone, and a component says so when it is made.
for metric in BUILTIN_METRICS:
    with suppress(ValueError):
        install(Names("pll", [metric]))
