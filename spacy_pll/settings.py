"""What is scored, and how: the settings of the component `pll` that say what the numbers mean."""

import inspect
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from .documentation import page
from .errors import PLLError
from .metrics import check_within_words, get_metric
from .scoring.wordpieces import Words

Function = TypeVar("Function", bound=Callable[..., Any])
# Texts that are scored together, unless something else is said.
BATCH_SIZE = 1024
_NONE = inspect.Parameter.empty


def at_least(least: int, default: int | None = None) -> Any:
    """A field that is a whole number."""
    return field(default=default, metadata={"min": least})


@dataclass(frozen=True)
class ScoringSettings:
    """How docs are scored. Each setting stands here once, with its default, its check and its description: the
    component's arguments, the options of the command line and their help are made from these.

    metrics (Sequence[str]): Names of metrics, such as word_l2r and original. The first is the primary one. A
        left-to-right model has only the metric causal, which is then the default.
    words (str): What counts as a word: a token of spaCy (spacy), a word of the model's tokenizer (tokenizer), the text
        between white space (whitespace), or a wordpiece (piece: for texts without words, such as proteins).
    targets (Optional[str]): A key of `doc.spans`: only the tokens in these spans are scored. The rest of the text is
        context. None: all tokens.
    sample_words (Optional[float]): Score a random part of the words of each text, such as 0.15, and at least two.
        Scores of texts are estimated, with a standard error (docs/corpora.md#a-part-of-the-words). None: all words.
    seed (int): The random seed that draws the words of `sample_words`, and the orders for the bound of `spacy-pll ppl`.
    units (Optional[str]): A key of `doc.spans`: each of these spans is read as one word. Spans that overlap are one
        word. None: only words.
    keep_pieces (bool): Keep the wordpieces themselves in `doc._.pll_data`.
    max_batch_tokens (Optional[int]): The maximum number of wordpieces in one forward pass, with padding. None: depends
        on the device (docs/speed.md).
    mask_spacing (Optional[int]): Mask several words in one forward pass if they are at least this many wordpieces
        apart. The scores are approximate, and the cost grows linearly with the length of the text. Only for metrics
        that mask within words. None: exact scores.
    mask_margin (Optional[int]): Read a text in one forward pass, with this many wordpieces on each side of a mask.
        Scores are approximate: 0 is the fastest, and a wider margin is closer to exact scores (docs/one-pass.md). Only
        for metrics that mask within words, and not together with `mask_spacing`. None: exact scores.
    alternatives (int): For each token, keep this many wordpieces that the model expected in the place of its first
        wordpiece, under the primary metric.
    distribution (bool): Keep the rank of each token and the entropy of the model's prediction, under the primary
        metric.
    RAISES (ValueError): A setting has a value that is not allowed.
    """

    metrics: Sequence[str] = ("word_l2r",)
    words: Words = "spacy"
    targets: str | None = None
    sample_words: float | None = None
    seed: int = at_least(0, 0)
    units: str | None = None
    keep_pieces: bool = False
    max_batch_tokens: int | None = at_least(1)
    mask_spacing: int | None = at_least(1)
    mask_margin: int | None = at_least(0)
    alternatives: int = at_least(0, 0)
    distribution: bool = False

    def __post_init__(self) -> None:
        names: Any = self.metrics
        names = (names,) if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
        object.__setattr__(self, "metrics", names)
        if not names or len(set(names)) < len(names):
            raise PLLError(f"`metrics` must name at least one metric, and each only once. It is {[*names]!r}.")
        check_values(self)
        for name in ("targets", "units"):
            if not isinstance(key := getattr(self, name), str | None):
                raise PLLError(
                    f"`{name}` must be one key of doc.spans: the name of a group of spans, no words. It is {key!r}.",
                    f"Put spans under a key, for example with the component span_ruler ({page('spacy.md')}).",
                )
        if (share := self.sample_words) is not None and (type(share) not in (float, int) or not 0 < share <= 1):
            raise PLLError(f"`sample_words` must be a number above 0, and at most 1. It is {share!r}.")
        if self.mask_margin is not None and self.mask_spacing is not None:
            raise PLLError(
                f"`mask_margin` ({self.mask_margin}) and `mask_spacing` ({self.mask_spacing}) are two ways to save "
                "passes.",
                "Leave one of them out.",
            )
        for metric in names:
            get_metric(metric)
            for name in ("mask_spacing", "mask_margin"):
                if getattr(self, name) is not None:
                    check_within_words(metric, name)

    @property
    def n_alternatives(self) -> int | None:
        """How many alternatives the model has to give at each target; None if nothing but the log-probability."""
        return self.alternatives if self.alternatives or self.distribution else None

    @property
    def record(self) -> dict[str, Any]:
        """What the scores of a metric depend on, besides the model and the text."""
        return {name: getattr(self, name) for name in ("words", "units", "mask_spacing", "mask_margin")}

    def check_whole(self, what: str) -> None:
        """RAISES (PLLError): Something needs the scores of all words."""
        if self.sample_words is not None:
            raise PLLError(f"`sample_words` scores a part of the words, and {what}.", "Use a pipeline without it.")


def choices_of(type_: Any) -> list[str]:
    """The values of a `Literal`, which may also be optional; none for another type."""
    literals = (annotation for annotation in (type_, *get_args(type_)) if get_origin(annotation) is Literal)
    return [value for literal in literals for value in get_args(literal)]


def plain_number(value: Any) -> Any:
    """A number of NumPy as Python's own, which configs and manifests can have. Anything else stays as it is."""
    if type(value) in (int, float, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def in_order(given: Any) -> Any:
    """Several things that are given, so that they can be read again and by their number: as a list, unless they are a
    list or a tuple. An iterator gives them once, and a pandas series by its index. What has no order, or is not several
    things, stays as it is.
    """
    stays = isinstance(given, str | list | tuple | set | frozenset | Mapping) or not isinstance(given, Iterable)
    return given if stays else [*given]


def check_values(settings: Any) -> None:
    """Check the fields of a dataclass by their types, and those made by `at_least`.

    RAISES (ValueError): One has a value that is not allowed.
    """
    types = get_type_hints(type(settings))
    for name, of in type(settings).__dataclass_fields__.items():
        value, choices, least = plain_number(getattr(settings, name)), choices_of(types[name]), of.metadata.get("min")
        object.__setattr__(settings, name, value)
        if value is None and of.default is None:
            continue
        if choices and value not in choices:
            raise PLLError(f"`{name}` must be {' or '.join(choices)}. It is {value!r}.")
        if least is not None and (type(value) is not int or value < least):
            kind = "" if type(value) is int else "a whole number, "
            raise PLLError(f"`{name}` must be {kind}{least} or more. It is {value!r}.")


def with_known_values(function: Function) -> Function:
    """A function that refuses values that its arguments of the type `Literal` do not have.

    RAISES (ValueError): One is given.
    """
    choices = {
        name: choices_of(parameter.annotation) for name, parameter in inspect.signature(function).parameters.items()
    }

    @wraps(function)
    def checked(*args: Any, **named: Any) -> Any:
        for name, value in {**dict(zip(choices, args)), **named}.items():
            if value is not None and choices.get(name) and value not in choices[name]:
                raise PLLError(f"`{name}` must be {' or '.join(choices[name])}. It is {value!r}.")
        return function(*args, **named)

    return cast(Function, checked)


def shows_settings(types: Mapping[str, Any], defaults: Mapping[str, Any] = {}) -> Callable[[Function], Function]:  # noqa: B006
    """For a function whose last parameter is `**settings`: show each setting to `inspect.signature`, and so to spaCy's
    checks, to completion and to the help in notebooks. The function stays as it is.

    types (Mapping[str, Any]): The types of the settings, by name. What the function takes by this name is not shown
        again.
    defaults (Mapping[str, Any]): Their defaults. Those that are missing must be given.
    """

    def show(function: Function) -> Function:
        signature = inspect.signature(function)
        *own, _ = signature.parameters.values()
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, _NONE), annotation=type_)
            for name, type_ in types.items()
            if name not in signature.parameters
        ]
        vars(function).update(__signature__=signature.replace(parameters=[*own, *more]))
        return function

    return show


def describe_settings(settings: Any) -> dict[str, str]:
    """What the docstring of a dataclass says of each of its fields, or that of a function of its arguments, in one
    line.
    """
    entries = re.findall(
        r"^([a-z]\w*) \(.+?\): (.+(?:\n +.+)*)", inspect.cleandoc(settings.__doc__ or ""), re.MULTILINE
    )
    return {name: " ".join(text.split()) for name, text in entries}
