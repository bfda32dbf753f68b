"""Scored docs as HTML: fragments for notebooks, and whole pages.

Whatever comes from a text, a model or a caller is escaped: here by `escape`, in `page.html` by Jinja.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment
from spacy import displacy
from spacy.tokens import Doc, Span, Token
from spacy.util import is_in_jupyter

from ...attributes.names import Names, select_metrics
from ...attributes.registration import find_names
from ...attributes.values import exp_or_inf, table_value
from .expected import expected_html, expected_text, has_expected
from .pieces import Piece, get_pieces
from .scale import N_STEPS, VMIN, check_vmin, colour_step
from .text import count_pieces, format_difference, format_number, in_nats, opposite_runs, text_direction, visible_text

if TYPE_CHECKING:
    from ..comparison import Comparison, Segment
    from ..continuations import Continuation


_TITLE = "Pseudo-log-likelihood"


class View(NamedTuple):
    """What is shown of each doc, and how."""

    names: Names
    columns: dict[str, str]  # the rows: a heading for each, and the attribute that holds its scores
    vmin: float  # scores at or below this get the darkest colour
    expected: bool = False  # whether tokens show what the model expected

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

    Below a word of several wordpieces are its wordpieces, if the docs were scored with `keep_pieces`, or else their
    number. If the docs were scored with `alternatives` or `distribution`, the tokens of the primary metric's row show
    what the model expected, on hover and when they have the keyboard's focus. As with `spacy.displacy.render`, the
    result is displayed in a notebook and returned elsewhere, and `displacy.set_render_wrapper` applies.

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
    view = View(names, select_metrics(names, metrics), vmin, any(has_expected(doc, names) for doc in docs))
    articles = (_doc_html(doc, view, number if page else None) for number, doc in enumerate(docs, 1))
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
    names = find_names([continuation.span.doc for continuation in ranked], attr)
    expected = any(has_expected(continuation.span, names) for continuation in ranked)
    view = View(names, select_metrics(names), vmin, expected)
    articles = (_continuation_html(continuation, view, number) for number, continuation in enumerate(ranked, 1))
    return _show("Candidates in context", articles, view, page, jupyter)


def render_comparison(
    comparison: "Comparison", *, vmin: float = VMIN, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Show the result of `compare` as HTML: the two versions above each other, with each segment's share of b - a.

    The share is a number with a bar, below the segment. Segments that differ have a frame.

    comparison (Comparison): What to show.
    vmin, page, jupyter, RETURNS: See `render`. The page has no search box.
    """
    names = find_names([comparison.a, comparison.b], comparison.attr)
    expected = any(has_expected(doc, names) for doc in (comparison.a, comparison.b))
    view = View(names, {comparison.attribute: comparison.attribute}, vmin, expected)
    return _show("Two versions compared", [_comparison_html(comparison, view)], view, page, jupyter)


def page_parts(docs: Iterable[Doc | Span], view: View, title: str = _TITLE, about: str = "") -> Iterator[str]:
    """The parts of a page of docs, one after the other, so that it can be written while the docs are being scored.

    The page can be searched, and sorted by score. It is complete in itself: nothing is loaded from elsewhere.
    """
    articles = (_doc_html(doc, view, number) for number, doc in enumerate(docs, 1))
    yield from _page(title, articles, view, about=about, search=True, metrics=list(view.columns))


# Frames


def _show(
    title: str, articles: Iterable[str], view: View, page: bool, jupyter: bool | None, **details: object
) -> str | None:
    """Display or return a whole page, or what a notebook shows of it, as `spacy.displacy.render` does."""
    html = "".join(_page(title, articles, view, **details) if page else _fragment(articles, view))
    if displacy.RENDER_WRAPPER is not None:
        html = displacy.RENDER_WRAPPER(html)
    if jupyter or (jupyter is None and is_in_jupyter()):
        from IPython.display import HTML, display

        return display(HTML(html))
    return html


def _fragment(articles: Iterable[str], view: View) -> str:
    """For a notebook: the articles with their style and legend. MathJax must not take dollar signs for formulas."""
    check_vmin(view.vmin)
    style = f"<style>\n{_style(view)}</style>"
    return f'<div class="pll-viz tex2jax_ignore mathjax_ignore">{style}{_legend(view)}{"".join(articles)}</div>'


def _page(title: str, articles: Iterable[str], view: View, **details: object) -> Iterator[str]:
    """The parts of a whole page. details: More of what `page.html` asks for."""
    check_vmin(view.vmin)
    style = _style(view) + _read_file("page_frame.css")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    return environment.from_string(_read_file("page.html")).generate(
        title=title, articles=articles, style=style, script=_read_file("page.js"), legend=_legend(view), **details
    )


@cache
def _read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf8")


def _style(view: View) -> str:
    return _read_file("style.css") + (_read_file("expected.css") if view.expected else "")


def _legend(view: View) -> str:
    """The colours, each with the score at which it begins."""
    steps = "".join(
        f'<span class="s{i}" title="{in_nats(start)}, and below">{format_number(start, "g")}</span>'
        for i, start in enumerate(view.vmin * i / N_STEPS for i in range(N_STEPS))
    )
    more = "; point at a word, or press Tab, for what the model expected" if view.expected else ""
    return (
        f'<div class="legend"><span>Score in nats (natural log), likely to unlikely{more}</span>'
        f'<span class="scale">{steps}</span></div>\n'
    )


# Articles: one per doc, continuation or comparison


def _doc_html(doc: Doc | Span, view: View, number: int | None = None) -> str:
    """A doc: one row per metric, and in data attributes what the page's script needs."""
    names, columns = view.names, view.columns
    pieces = get_pieces(doc, names, columns)
    n_pieces = doc._.get(names.pieces) or 0
    totals = {name: table_value(doc, name, names) for name in columns.values()}
    scores = " ".join("" if score is None else repr(score) for score in totals.values())
    rows = "".join(
        f'<div class="row">{_sum_html(heading, totals[name], n_pieces, None if i else number)}'
        f"{_text_html(doc, name, pieces, view)}</div>"
        for i, (heading, name) in enumerate(columns.items())
    )
    return (
        f'<article class="doc" lang="{escape(doc.doc.lang_)}" data-text="{escape(doc.text)}" data-scores="{scores}" '
        f'data-pieces="{n_pieces}">{rows}</article>'
    )


def _continuation_html(continuation: "Continuation", view: View, number: int) -> str:
    """A candidate in its context: one row per metric, and a bar as long as its probability."""
    span, percent = continuation.span, f"{100 * continuation.probability:.1f}"
    share = (
        f'<small class="percent">{percent} %</small>'
        f'<span class="share" title="of the candidates\' probability"><i style="width:{percent}%"></i></span>'
    )
    pieces = get_pieces(span.doc, view.names, view.columns)
    rows = ""
    for heading, name in view.columns.items():
        total = _sum_html(heading, span._.get(name), continuation.pieces, None if rows else number)
        text = _text_html(span.doc, name, pieces, view)
        rows += f'<div class="row"><div>{total}{"" if rows else share}</div>{text}</div>'
    return f'<article class="doc" lang="{escape(span.doc.lang_)}">{rows}</article>\n'


def _comparison_html(comparison: "Comparison", view: View) -> str:
    """Two versions: their scores at the side, then one column per segment."""
    a, b, name = comparison.a, comparison.b, comparison.attribute
    sums = "".join(
        _sum_html(label, table_value(doc, name, view.names), doc._.get(view.names.pieces) or 0)
        for label, doc in (("a", a), ("b", b))
    )
    difference = format_difference(comparison.difference)
    about = f"{difference} nats: the sum of the numbers below the segments"
    if math.isinf(comparison.difference):
        difference, about = "–", "one version has no wordpiece, so it has no score"
    sums += f'<div class="sum" title="{about}"><span class="metric">b − a</span><b>{difference}</b></div>'
    pieces_a, pieces_b = (get_pieces(doc, view.names, view.columns) for doc in (a, b))
    highest = max((abs(segment.difference) for segment in comparison.segments), default=0.0) or 1.0
    segments = "".join(
        _segment_html(
            segment,
            _side_html(segment.a, name, pieces_a, view) + _side_html(segment.b, name, pieces_b, view),
            abs(segment.difference) / highest,
        )
        for segment in comparison.segments
    )
    base = text_direction(a.text) or text_direction(b.text) or "ltr"
    return (
        f'<article class="doc" lang="{escape(a.lang_)}"><div class="row"><div>{sums}</div>'
        f'<div class="versions" dir="{base}">{segments}</div></div></article>\n'
    )


# Parts of articles


def _sum_html(heading: str, score: float | None, n_pieces: int, number: int | None = None) -> str:
    """The label of a row: the number of the doc, the metric, the doc's score."""
    position = "" if number is None else f'<span class="number">{number}</span> '
    metric = f'<span class="metric">{position}{escape(heading)}</span>'
    if score is None:
        return f'<div class="sum">{metric}<small>not scored</small></div>'
    tip, mean = f"{in_nats(score)}, {count_pieces(n_pieces)}", ""
    if n_pieces:
        mean = f"<small>{format_number(score / n_pieces)} per piece</small>"
        tip += f"\npseudo-perplexity {exp_or_inf(-score / n_pieces):,.4g}"
    return f'<div class="sum" title="{escape(tip)}">{metric}<b>{format_number(score)}</b>{mean}</div>'


def _text_html(doc: Doc | Span, name: str, pieces: dict[int, list[Piece]], view: View) -> str:
    """The tokens of a doc, coloured by one of their scores."""
    if not len(doc):
        return '<p class="text none">(empty text)</p>'
    base = text_direction(doc.text) or "ltr"
    words = _unbroken_runs(doc)
    directions = [text_direction("".join(token.text for token in word)) for word in words]
    run_end = dict(opposite_runs(directions, base))
    ends = set(run_end.values())
    out = []
    for i, word in enumerate(words):
        if i in run_end:
            out.append(f'<span dir="{directions[i]}">')
        tokens = "".join(_token_html(token, name, pieces.get(token.i, []), view) for token in word)
        out.append(f'<span class="g">{tokens}</span>' if len(word) > 1 else tokens)
        if i + 1 in ends:
            out.append("</span>")
        if word[-1].is_space and "\n" in word[-1].text:
            out.append("<br>")
        elif word[-1].whitespace_ or word[-1].is_space:
            out.append(" ")
    return f'<p class="text" dir="{base}">{"".join(out)}</p>'


def _segment_html(segment: "Segment", sides: str, height: float) -> str:
    """A column: the tokens of a, those of b, the difference with a bar of a height from 0 to 1."""
    difference = format_difference(segment.difference)
    direction = "loss" if segment.difference < 0 else "gain"
    tip = escape(f"{segment.a.text or '–'} → {segment.b.text or '–'}\nb − a: {difference} nats")
    return (
        f'<span class="seg {segment.kind}">{sides}<span class="delta" title="{tip}">'
        f'<i class="{direction}" style="height:{2 * height:.2f}em"></i>{difference}</span></span>'
    )


def _side_html(span: Span, name: str, pieces: dict[int, list[Piece]], view: View) -> str:
    """One version's tokens in a segment."""
    tokens = "".join(_token_html(token, name, pieces.get(token.i, []), view) + token.whitespace_ for token in span)
    return f'<span class="side">{tokens or _token_without_score("–", "nothing in this version")}</span>'


def _token_html(token: Token, name: str, pieces: list[Piece], view: View) -> str:
    score, n = token._.get(name), token._.get(view.names.pieces)
    text = visible_text(token.text)
    if score is None:
        return _token_without_score(text, "not scored")
    if not n:
        return _token_without_score(text, count_pieces(0))
    shown_score, piece_tips = in_nats(score), [_piece_tip(piece, name) for piece in pieces]
    tip = "\n".join([f"{text}  {shown_score}", *piece_tips])
    expected = expected_text(token, view.names) if view.shows_expected(name) else ""
    about, opens, below = f'title="{escape(tip)}"', "", ""
    if expected:  # it opens instead of a tooltip
        about = f'tabindex="0" role="group" aria-label="{escape(f"{text}  {shown_score}; {expected}")}"'
        opens = expected_html(token, view.names, shown_score, piece_tips)
    if n > 1:
        below = f'<span class="p">{_pieces_html(pieces, name, view, not opens) if pieces else count_pieces(n)}</span>'
    return (
        f'<span class="t s{colour_step(score, view.vmin)}{" split" if below else ""}" '
        f'data-v="{format_number(score)}" {about}><span>{escape(text)}</span>{below}{opens}</span>'
    )


def _token_without_score(text: str, reason: str) -> str:
    return f'<span class="t off" title="{reason}">{escape(text)}</span>'


def _pieces_html(pieces: list[Piece], name: str, view: View, with_tips: bool) -> str:
    def title(piece: Piece) -> str:
        return f' title="{escape(_piece_tip(piece, name))}"' if with_tips else ""

    return "".join(
        f'<span class="s{colour_step(piece.scores[name], view.vmin)}"{title(piece)}>'
        f"{escape(visible_text(piece.text))}</span>"
        for piece in pieces
    )


def _piece_tip(piece: Piece, name: str) -> str:
    tip = f"{visible_text(piece.text)}  {in_nats(piece.scores[name])}"
    # Not every piece shows its characters: byte-level vocabularies encode non-ASCII letters, and [UNK] hides them.
    return tip if piece.source in piece.text or not piece.source else f"{tip} for {visible_text(piece.source)}"


def _unbroken_runs(doc: Doc | Span) -> list[list[Token]]:
    """The tokens, in runs without white space between them: no line may break between a word and its full stop."""
    runs: list[list[Token]] = []
    for token in doc:
        last = runs[-1][-1] if runs else None
        if last is None or last.whitespace_ or last.is_space or token.is_space:
            runs.append([])
        runs[-1].append(token)
    return runs
