"""Scored docs as HTML: fragments for notebooks, and whole pages.

Jinja makes them: `articles.html` what is shown of each doc, `page.html` the page around it. It escapes whatever comes
from a text, a model or a caller.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from inspect import isroutine
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from jinja2 import DictLoader, Environment
from spacy import displacy
from spacy.tokens import Doc, Span, Token
from spacy.util import is_in_jupyter

from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names
from ..attributes.stored import read_record
from ..attributes.values import exp_or_inf
from ..errors import PLLError
from . import text

if TYPE_CHECKING:
    from ..analysis.comparison import Comparison
    from ..analysis.continuations import Continuation

_TITLE = "Pseudo-log-likelihood"
OtherFields = Mapping[str, Any]  # the other columns of a text, by name
VMIN = -20.0
N_STEPS = 10  # of the colour scale, equally wide: style.css has a rule for each, the classes s0 to s9


class View(NamedTuple):
    """What is shown of each doc, and how."""

    names: Names
    columns: dict[str, str]  # the rows: a heading for each, and the attribute that holds its scores
    vmin: float  # scores at or below this get the darkest colour
    expected: bool = False  # whether tokens show what the model expected
    approximate: str = ""  # the setting with which scores are approximate

    def shows_expected(self, attribute: str) -> bool:
        """Whether the tokens of a row do so: only those of the primary metric, whose expectations they are."""
        return self.expected and attribute in (self.names.score, next(iter(self.names.metrics.values())))


def render(
    docs: Doc | Span | Iterable[Doc | Span],
    metrics: Sequence[str] | None = None,
    *,
    attr: str = "pll",
    vmin: float = VMIN,
    page: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Show scored docs as HTML: tokens coloured by score, one row per metric, the numbers on hover.

    Below a word of several wordpieces are its wordpieces, or without `keep_pieces` their number. If the docs were
    scored with `alternatives` or `distribution`, the tokens of the primary metric's row show what the model expected,
    on hover and when they have the keyboard's focus. As with `spacy.displacy.render`, the result is displayed in a
    notebook and returned elsewhere, and `displacy.set_render_wrapper` applies.

    docs (Union[Doc, Span, Iterable[Union[Doc, Span]]]): What to show.
    metrics (Optional[Sequence[str]]): The rows. None shows every metric that the docs were scored with.
    attr (str): The component's setting of that name.
    vmin (float): Scores (natural log) at or below this get the darkest colour; where the page is dark, the brightest.
        A colour means the same score on all pages with the same `vmin`.
    page (bool): Make a whole page. A page of several docs can be searched and sorted.
    jupyter (Optional[bool]): Display the result in a notebook. None detects whether there is one.
    RETURNS (Optional[str]): The HTML; None if it was displayed.
    RAISES (ValueError): The docs have no scores of that name.
    """
    docs = [docs] if isinstance(docs, Doc | Span) else list(docs)
    names = find_names(docs, attr)
    view = _view(docs, names, select_metrics(names, metrics), vmin)
    articles = (_macros().doc(doc, view, number if page else None) for number, doc in enumerate(docs, 1))
    return _show(_TITLE, articles, view, page, jupyter, search=True, metrics=list(view.columns))


def render_continuations(
    continuations: Iterable["Continuation"],
    *,
    attr: str = "pll",
    vmin: float = VMIN,
    page: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Show the result of `score_continuations` as HTML: the most probable candidate first, its context in grey.

    continuations (Iterable[Continuation]): What to show.
    attr (str): The component's setting of that name.
    vmin, page, jupyter, RETURNS: See `render`. The page has no search box.
    """
    ranked = sorted(continuations, key=lambda continuation: -continuation.probability)
    spans = [continuation.span for continuation in ranked]
    names = find_names([span.doc for span in spans], attr)
    view = _view(spans, names, select_metrics(names), vmin)
    articles = (_macros().continuation(continuation, view, number) for number, continuation in enumerate(ranked, 1))
    return _show("Candidates in context", articles, view, page, jupyter)


def render_comparison(
    comparison: "Comparison", *, vmin: float = VMIN, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Show the result of `compare` as HTML: two versions of a text, and what each segment adds to the difference b - a.

    Below a segment is its difference, as a number and a bar. Segments with different words have a frame.

    comparison (Comparison): What to show.
    vmin, page, jupyter, RETURNS: See `render`. The page has no search box.
    """
    names = find_names([comparison.a, comparison.b], comparison.attr)
    view = _view([comparison.a, comparison.b], names, {comparison.attribute: comparison.attribute}, vmin)
    return _show("Two versions compared", [_macros().comparison(comparison, view)], view, page, jupyter)


def _view(docs: Sequence[Doc | Span], names: Names, columns: dict[str, str], vmin: float) -> View:
    """What is shown of docs, by what they have."""
    expected = any(text.has_expected(doc, names) for doc in docs)
    records = [record for doc in docs if (record := read_record(doc.doc, names.score))]
    return View(names, columns, vmin, expected, text.approximation(records))


def page_parts(
    docs: Iterable[Doc | Span], view: View, title: str = _TITLE, about: str = "", fields: Iterable[OtherFields] = ()
) -> Iterator[str]:
    """The parts of a page of docs, one after the other, so that it can be written while the docs are being scored.

    The page can be searched, and sorted by score. It is complete in itself: nothing is loaded from elsewhere.

    fields (Iterable[Mapping[str, Any]]): The other columns of each doc, which are shown below it, and searched. They
        may become known with the doc.
    """
    others = iter(fields)
    articles = (_macros().doc(doc, view, number, next(others, {})) for number, doc in enumerate(docs, 1))
    yield from _page(title, articles, view, about=about, search=True, metrics=list(view.columns))


# Frames


def _show(
    title: str, articles: Iterable[str], view: View, page: bool, jupyter: bool | None, **details: object
) -> str | None:
    """Display or return a whole page, or what a notebook shows of it, as `spacy.displacy.render` does."""
    check_vmin(view.vmin)
    parts = _page(title, articles, view, **details) if page else [_macros().fragment(articles, _style(view), view)]
    html = "".join(parts)
    if displacy.RENDER_WRAPPER is not None:
        html = displacy.RENDER_WRAPPER(html)
    if jupyter or (jupyter is None and is_in_jupyter()):
        from IPython.display import HTML, display

        return display(HTML(html))
    return html


def _page(title: str, articles: Iterable[str], view: View, **details: object) -> Iterator[str]:
    """The parts of a whole page. details: More of what `page.html` asks for."""
    check_vmin(view.vmin)
    style, legend = _style(view) + _read_file("page_frame.css"), _macros().legend(view)
    return _environment().get_template("page.html").generate(
        title=title, articles=articles, style=style, script=_read_file("page.js"), legend=legend, **details
    )  # fmt: skip


@cache
def _read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf8")


def _style(view: View) -> str:
    return _read_file("style.css") + (_read_file("expected.css") if view.expected else "")


@cache
def _environment() -> Environment:
    """The two templates, and what they call: the functions of `text`, and some others."""
    articles = re.sub(r"\n\s*(?=[<{])", "", _read_file("articles.html"))
    loader = DictLoader({"articles.html": articles, "page.html": _read_file("page.html")})
    environment = Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    calls = (*vars(text).values(), colour_step, exp_or_inf, math.isinf, piece_tip, words_by_direction)
    names = {call.__name__: call for call in calls if isroutine(call)} | {"N_STEPS": N_STEPS}
    environment.filters |= names
    environment.globals |= names
    return environment


@cache
def _macros() -> Any:
    """The macros of `articles.html` as functions."""
    return _environment().get_template("articles.html").module


# Parts of articles


def piece_tip(piece: text.ShownPiece, name: str) -> str:
    tip = f"{text.visible_text(piece.text)}  {text.in_nats(piece.scores[name])}"
    # Not every piece shows its characters: byte-level vocabularies encode non-ASCII letters, and [UNK] hides them.
    return tip if piece.source in piece.text or not piece.source else f"{tip} for {text.visible_text(piece.source)}"


def words_by_direction(doc: Doc | Span, base: str) -> list[tuple[str, list[list[Token]]]]:
    """The words of a doc, as lists of tokens, in runs of one writing direction. A word without one, such as a number,
    has that of both its neighbours if that is the same one, and else the text's, `base`.
    """
    words = _unbroken_runs(doc)
    known = [text.text_direction("".join(token.text for token in word)) for word in words]
    before = list(accumulate(known, lambda last, own: own or last, initial=base))[1:]
    after = list(accumulate(known[::-1], lambda last, own: own or last, initial=base))[:0:-1]
    directions = [way_before if way_before == way_after else base for way_before, way_after in zip(before, after)]
    return [(way, [word for _, word in run]) for way, run in groupby(zip(directions, words), lambda pair: pair[0])]


def _unbroken_runs(doc: Doc | Span) -> list[list[Token]]:
    """The tokens, in runs without white space between them: no line may break between a word and its full stop."""
    runs: list[list[Token]] = []
    for token in doc:
        last = runs[-1][-1] if runs else None
        if last is None or last.whitespace_ or last.is_space or token.is_space:
            runs.append([])
        runs[-1].append(token)
    return runs


# The colour scale: from likely to unlikely. The colours themselves are in `style.css`.


def check_vmin(vmin: float) -> None:
    """RAISES (ValueError): No scale ends at this score."""
    if not (math.isfinite(vmin) and vmin < 0):
        raise PLLError(
            f"`vmin` must be a number below 0: scores at or below it get the darkest colour. It is {vmin}. "
            "Set it to -20, for example."
        )


def colour_step(score: float, vmin: float) -> int:
    """The number of a score's colour: 0 (likely) to N_STEPS - 1 (unlikely). Up to vmin all steps are equally wide."""
    return min(max(int(score / vmin * N_STEPS), 0), N_STEPS - 1)
