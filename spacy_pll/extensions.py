"""The Doc, Span and Token attributes.

What a token scored is stored on the token, as a plain float or int; a Doc or Span sums
its tokens when asked. So sums stay true through DocBin, `Span.as_doc`, `Doc.from_docs`
and worker processes.
"""

import math
from functools import partial

from spacy.tokens import Doc, Span, Token


def sum_tokens(tokens, name: str):
    """The sum of a token attribute over a Doc or Span; None where no token was scored."""
    values = [token._.get(name) for token in tokens]
    values = [value for value in values if value is not None]
    return sum(values) if values else None


def pseudo_perplexity(tokens, score: str, pieces: str) -> float | None:
    """exp(-PLL / number of wordpieces) (Salazar et al. 2020, section 2.3); None where no wordpiece was scored."""
    n = sum_tokens(tokens, pieces)
    if not n:
        return None
    try:
        return math.exp(-sum_tokens(tokens, score) / n)
    except OverflowError:
        return math.inf


class Names:
    """What the attributes of one component are called: its setting `attr` and its metrics."""

    def __init__(self, attr: str, metrics: list[str]):
        self.score = attr
        self.pieces = f"{attr}_pieces"
        self.perplexity = "pppl" if attr == "pll" else f"{attr}_pppl"
        self.data = f"{attr}_data"
        # The first metric stands under the plain name; all have a name of their own when there are several.
        self.metrics = {metric: f"{attr}_{metric}" for metric in metrics} if len(metrics) > 1 else {}

    @property
    def stored(self) -> list[str]:
        """The attributes that hold a value on each token."""
        return [self.score, *self.metrics.values(), self.pieces]


def install(names: Names):
    """Register the attributes, unless they are there already.

    RAISES (ValueError): Someone else registered an attribute of that name.
    """
    for name in names.stored:
        _set(Token, name, names, default=None)
        for cls in (Doc, Span):
            _set(cls, name, names, getter=partial(sum_tokens, name=name))
    for cls in (Doc, Span):
        getter = partial(pseudo_perplexity, score=names.score, pieces=names.pieces)
        _set(cls, names.perplexity, names, getter=getter)
    _set(Doc, names.data, names, default=None)


def _set(cls, name: str, names: Names, **extension):
    if not cls.has_extension(name):
        cls.set_extension(name, **extension)
        return
    default, method, getter, setter = cls.get_extension(name)
    same_getter = _signature(getter) == _signature(extension.get("getter"))
    if not (same_getter and default is None and method is None and setter is None):
        raise ValueError(
            f"The attribute {cls.__name__}._.{name} is already registered, by another package or with other contents. "
            f'Choose another name: nlp.add_pipe("pll", config={{"attr": "my_{names.score}"}}).'
        )


def _signature(getter):
    """Partials are not equal to each other, but the function and the names they were made from are."""
    return (getter.func, getter.keywords) if isinstance(getter, partial) else getter
