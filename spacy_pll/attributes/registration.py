"""The attributes made known to spaCy."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Any

from spacy.tokens import Doc, Span, Token

from ..errors import PLLError
from ..metrics import BUILTIN_METRICS, pll_metrics
from .names import Names
from .stored import record_of, record_value, set_record, stored_metrics, stored_scores
from .values import SUMS, all_pieces, estimate, pseudo_perplexity, refuse_value, sum_tokens, token_value, top1


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
    """The names of the attributes of scored docs, from the records that they store. Registers them.

    So docs from a DocBin can be read in a process that has not made a pipeline with the component.

    attr (str): The component's setting of that name.
    RAISES (ValueError): There are tokens, and no scores under a metric that is registered.
    RAISES (TypeError): There is something that is neither a doc nor a span.
    """
    docs = list(docs)
    for item in docs:
        if not isinstance(item, Doc | Span):
            raise TypeError(f"Scored docs or spans are needed, such as nlp(text). This is not one: {item!r:.100}.")
    whole: list[Doc] = list({id(item.doc): item.doc for item in docs}.values())
    names = Names(attr, [metric for metric in stored_metrics(whole, attr) if metric in pll_metrics])
    if any(map(len, whole)) and not names.metrics:
        for doc in whole:
            record_of(doc, names.data)  # may know better why
        raise PLLError(
            f"These docs have no scores: none has _.{attr}_data with scores under a metric that is registered. Score "
            "them first, with a pipeline that has the component `pll`, or name its `attr`, or import what registers "
            f"the metric. Scores that these docs have: {', '.join(stored_scores(whole)) or 'none'}."
        )
    install(names)
    return names


def assigned(names: Names) -> list[str]:
    """The attributes that a component sets by default, as spaCy's `analyze_pipes` names them, such as "token._.pll"."""
    return [f"{cls.__name__.lower()}._.{name}" for cls, name, _ in _extensions(names) if name not in names.optional]


def _extensions(names: Names) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    """Class, name and contents of each attribute."""
    data = names.data

    def extension(name: str, function: Any, **of: Any) -> dict[str, Any]:
        return {"getter": partial(function, data=data, **of), "setter": partial(refuse_value, name=name, data=data)}

    for name, (column, combine) in names.of_tokens.items():
        yield Token, name, extension(name, token_value, column=column, combine=combine)
        for cls in (Doc, Span) if combine in SUMS else ():
            yield cls, name, extension(name, sum_tokens, column=column, combine=combine)
    for cls in (Doc, Span):
        yield cls, names.perplexity, extension(names.perplexity, pseudo_perplexity)
        yield cls, names.top1, extension(names.top1, top1)
    columns = {name: column for name, (column, _) in names.of_tokens.items()}
    for name, of_score in names.estimates.items():
        for is_error, own in enumerate(of_score):
            yield Doc, own, extension(own, estimate, column=columns[name], is_error=is_error)
    yield Doc, names.all_pieces, extension(names.all_pieces, all_pieces)
    for cls in (Doc, Span):
        getter, setter = partial(record_value, attr=names.score), partial(set_record, attr=names.score)
        yield cls, data, {"getter": getter, "setter": setter}


def _is_same(registered: tuple[Any, ...], extension: dict[str, Any]) -> bool:
    """Whether an attribute is registered like this; or, if docs store its values, as `Doc.from_json` does it where this
    package was not imported: with `default=None`.
    """
    if registered == (None, None, None, None):
        return extension["setter"].func is set_record
    # Equal partials do not compare as equal, nor do functions after their module was reloaded.
    identity = attrgetter("func.__module__", "func.__qualname__", "keywords")
    return isinstance(registered[2], partial) and identity(registered[2]) == identity(extension["getter"])


# So docs from a file can be read where no pipeline is made. If another package has such an attribute, that one is left
# alone, and a component says so when it is made.
for metric in BUILTIN_METRICS:
    with suppress(ValueError):
        install(Names("pll", [metric]))
