"""Pictures of scored docs: HTML for notebooks and browsers, figures for papers.

Scores are natural logarithms throughout; surprisal, -log2 of the probability, is given in bits.
"""

import math
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from spacy import displacy
from spacy.tokens import Doc, Span, Token
from spacy.util import is_in_jupyter

from ..extensions import Names, find_names, select_columns
from .templates import BAR, LIGHT_STEPS, PAGE_END, PAGE_HEAD, PAGE_STYLE, SCRIPT, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .comparison import Comparison, Segment
    from .continuations import Continuation

VMIN = -20.0

# Metrics that differ by less are drawn as equal: no eye would see it.
_VISIBLE = 0.01

# Okabe & Ito's colours, told apart without colour vision, with a marker each for print without colour.
_LINES = list(zip(["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000"], "osD^vX"))

_NOTHING = '<span class="t off" title="nothing in this version">–</span>'

_VISIBLE_SPACE = {"\n": "↵", "\r": "", "\t": "⇥"}


class Piece(NamedTuple):
    """One wordpiece of a token."""

    text: str  # as it stands in the model's vocabulary
    source: str  # the characters of the doc that it stands for
    scores: dict[str, float]  # by attribute name


class View(NamedTuple):
    """What is shown of each doc, and how."""

    names: Names
    columns: dict[str, str]  # a heading for each row, and the attribute that holds its scores
    vmin: float  # the score from which on, downward, the last colour stands


def render(
    docs: Doc | Span | Iterable[Doc | Span],
    metrics: Sequence[str] | None = None,
    *,
    attr: str = "pll",
    vmin: float = VMIN,
    page: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Show scored docs as HTML: tokens coloured by score, one row a metric, the numbers on hover.

    Wordpieces of split words stand under the word where the docs were scored with
    `keep_pieces`, else their number does. Works as `spacy.displacy.render` does: in a
    notebook it is displayed, elsewhere returned; `displacy.set_render_wrapper` applies.

    docs (Union[Doc, Span, Iterable[Union[Doc, Span]]]): What to show.
    metrics (Optional[Sequence[str]]): The rows; None shows every metric the docs were scored with.
    attr (str): The component's setting of that name.
    vmin (float): The score (natural log) from which on the last colour is used. Colours
        mean the same on every page that has the same value.
    page (bool): Make a whole page; with several docs, one that can be searched and sorted.
    jupyter (Optional[bool]): Display in a notebook; None finds out whether there is one.
    RETURNS (Optional[str]): The markup, unless it was displayed.
    RAISES (ValueError): The docs have no scores of that name.
    """
    docs = [docs] if isinstance(docs, Doc | Span) else list(docs)
    names = find_names(docs, attr)
    view = View(names, select_columns(names, metrics), vmin)
    _check_vmin(vmin)
    if page:
        html = "".join(page_parts(docs, view))
    else:
        html = _framed("", (_doc_html(doc, view) for doc in docs), vmin, page=False)
    return _display(html, jupyter)


def render_continuations(
    continuations: Iterable["Continuation"],
    *,
    attr: str = "pll",
    vmin: float = VMIN,
    page: bool = False,
    jupyter: bool | None = None,
) -> str | None:
    """Show what `score_continuations` gave as HTML: the most probable candidate first, the text around it pale.

    continuations (Iterable[Continuation]): What to show.
    attr (str): The component's setting of that name.
    vmin, page, jupyter, RETURNS: As of `render`; the page has no search box.
    """
    ranked = sorted(continuations, key=lambda continuation: -continuation.probability)
    names = find_names([continuation.span.doc for continuation in ranked], attr)
    view = View(names, select_columns(names), vmin)
    body = (_continuation_html(continuation, view, number) for number, continuation in enumerate(ranked, 1))
    return _display(_framed("Candidates in context", body, vmin, page), jupyter)


def render_comparison(
    comparison: "Comparison", *, vmin: float = VMIN, page: bool = False, jupyter: bool | None = None
) -> str | None:
    """Show what `compare` gave as HTML: the two versions above each other, and what each segment adds to b - a.

    The bars below the segments are as high as its share; changed segments are framed.

    comparison (Comparison): What to show.
    vmin, page, jupyter, RETURNS: As of `render`; the page has no search box.
    """
    names = find_names([comparison.a, comparison.b], comparison.attr)
    view = View(names, {comparison.attribute: comparison.attribute}, vmin)
    body = [_comparison_html(comparison, view)]
    return _display(_framed("Two versions compared", body, vmin, page), jupyter)


def _framed(title: str, body: Iterable[str], vmin: float, page: bool) -> str:
    """A fragment with its style and legend, or a whole page."""
    _check_vmin(vmin)
    if page:
        head = PAGE_HEAD.format(title=escape(title), style=STYLE + PAGE_STYLE) + f"<h1>{escape(title)}</h1>\n"
        return head + _legend(vmin) + "".join(body) + PAGE_END
    style = f'<div class="pll-viz tex2jax_ignore mathjax_ignore"><style>{STYLE}</style>'
    return style + _legend(vmin) + "".join(body) + "</div>"


def _display(html: str, jupyter: bool | None) -> str | None:
    """What `spacy.displacy.render` does with its markup."""
    if displacy.RENDER_WRAPPER is not None:
        html = displacy.RENDER_WRAPPER(html)
    if jupyter or (jupyter is None and is_in_jupyter()):
        from IPython.display import HTML, display

        return display(HTML(html))
    return html


def page_parts(
    docs: Iterable[Doc | Span], view: View, title: str = "Pseudo-log-likelihood", about: str = ""
) -> Iterator[str]:
    """The parts of a page that shows docs, one by one, so that it can be written while they are scored.

    The page has a search box and sorts by score, and needs nothing that is not in it.

    docs (Iterable[Union[Doc, Span]]): What to show.
    view (View): The rows and the colours.
    title (str), about (str): The heading, and a line below it.
    """
    _check_vmin(view.vmin)
    yield PAGE_HEAD.format(title=escape(title), style=STYLE + PAGE_STYLE)
    yield f"<h1>{escape(title)}</h1>\n"
    if about:
        yield f'<p class="about">{escape(about)}</p>\n'
    choices = "".join(f"<option>{escape(heading)}</option>" for heading in view.columns)
    yield BAR.format(
        metric=f'<label>of <select id="metric">{choices}</select></label>\n' if len(view.columns) > 1 else ""
    )
    yield _legend(view.vmin)
    yield '<div id="list">\n'
    for number, doc in enumerate(docs, 1):
        yield _doc_html(doc, view, number) + "\n"
    yield f"</div>\n<script>{SCRIPT}</script>" + PAGE_END


def plot(doc: Doc | Span, metrics: Sequence[str] | None = None, *, attr: str = "pll") -> "Figure":
    """Draw the score of each piece, one line a metric, as Kauf & Ivanova (2023) do in figures 2, 5 and 6.

    The x axis has the wordpieces where the doc was scored with `keep_pieces`, else the
    tokens. The legend gives each metric's sentence score and the mean over the x axis.
    Where the metrics differ, the background is shaded.

    doc (Union[Doc, Span]): What to draw.
    metrics (Optional[Sequence[str]]): The lines; None draws every metric the doc was scored with.
    attr (str): The component's setting of that name.
    RETURNS (matplotlib.figure.Figure): Its `axes[0]` can be changed, `savefig` writes it.
    RAISES (ValueError): The doc has no scores of that name, or none of its tokens is scored.
    RAISES (ImportError): matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Plots need matplotlib. Install it with: pip install 'spacy-pll[plot]'") from None
    names = find_names([doc], attr)
    columns = select_columns(names, metrics)
    labels, lines, unit = _points(doc, names, columns)
    if not any(math.isfinite(value) for line in lines.values() for value in line):
        raise ValueError(f"No token of the text {doc.text[:100]!r} is scored, so there is nothing to draw.")
    n = len(labels)
    figure = Figure(figsize=(min(max(4.5, 1.5 + 0.5 * n), 24), 3.6), layout="constrained")
    axes = figure.subplots()
    for i, (heading, values) in enumerate(lines.items()):
        colour, marker = _LINES[i % len(_LINES)]
        scored = [value for value in values if math.isfinite(value)]
        label = f"{heading}: {_number(sum(scored))} (mean {_number(sum(scored) / len(scored))})"
        # The later lines are thinner, so that those they cover can be seen where they agree.
        width = 1.4 + 0.9 * (len(lines) - 1 - i)
        axes.plot(range(n), values, color=colour, marker=marker, linewidth=width, markersize=3.5 + width, label=label)
    for i, (start, end) in enumerate(_differing(list(lines.values()))):
        label = None if i else "the metrics differ"
        axes.axvspan(start - 0.5, end - 0.5, color="0.9", linewidth=0, label=label, zorder=0)
    # Text is text: a dollar sign in it begins no formula.
    axes.set_xticks(range(n), labels, parse_math=False, rotation=90 if n > 25 else 45, fontsize=9 if n <= 40 else 7,
                    ha="center" if n > 25 else "right", rotation_mode=None if n > 25 else "anchor")  # fmt: skip
    axes.set_xlim(-0.6, n - 0.4)
    axes.set_ylabel(f"{unit} score (nats)")
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    title = f"sentence score (mean over {unit}s)"
    axes.legend(title=title, loc="lower left", bbox_to_anchor=(0, 1), ncols=1 + (n > 12), frameon=False, fontsize=9,
                title_fontsize=9, alignment="left")  # fmt: skip
    # Notebooks show what has this method; without it, only the figures that pyplot keeps.
    figure._repr_png_ = partial(_png, figure)
    return figure


def _png(figure: "Figure") -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _points(doc: Doc | Span, names: Names, columns: dict[str, str]):
    """The labels of the x axis, the scores by heading (NaN where not scored), and what they are scores of."""
    record = _pieces(doc, names, columns)
    tokens = [token for token in doc if token._.get(names.pieces) != 0]
    if record:
        points, unit = [(_visible(piece.text), piece.scores) for token in tokens for piece in record[token.i]], "piece"
    else:
        points, unit = (
            [(_visible(token.text), {n: token._.get(n) for n in columns.values()}) for token in tokens],
            "token",
        )
    lines = {
        heading: [math.nan if (value := scores[name]) is None else value for _, scores in points]
        for heading, name in columns.items()
    }
    return [label for label, _ in points], lines, unit


def _differing(lines: list[list[float]]) -> Iterator[tuple[int, int]]:
    """The stretches of points, (start, end), at which lines lie apart."""
    apart = [max(values) - min(values) > _VISIBLE for values in zip(*lines)]
    start = None
    for i, differs in enumerate([*apart, False]):
        if differs and start is None:
            start = i
        elif not differs and start is not None:
            yield start, i
            start = None


def _pieces(doc: Doc | Span, names: Names, columns: dict[str, str]) -> dict[int, list[Piece]]:
    """The wordpieces of each token, by its index in the doc; none where there is no record that fits the scores.

    Where tokens were merged or split after scoring, the record is that of the tokens before.
    """
    whole = doc.doc
    data = whole._.get(names.data)
    if data is None:
        return {}
    # One metric stands under the plain name, and in the record under its own.
    attributes = [(names.metrics.get(metric, names.score), scores) for metric, scores in data["scores"].items()]
    source = whole.text
    pieces = {token.i: [] for token in whole}
    for i, (token, text, start, end) in enumerate(zip(data["token"], data["pieces"], data["start"], data["end"])):
        scores = {attribute: scores[i] for attribute, scores in attributes}
        pieces.setdefault(token, []).append(Piece(text, source[start:end], scores))
    fits = len(pieces) == len(whole) and all(_fits(token, pieces[token.i], columns.values()) for token in whole)
    return pieces if fits else {}


def _fits(token: Token, pieces: list[Piece], attributes: Iterable[str]) -> bool:
    """Do these pieces' scores make up the token's?"""
    return all(
        all(attribute in piece.scores for piece in pieces)
        and math.isclose(
            sum(piece.scores[attribute] for piece in pieces), token._.get(attribute) or 0.0, rel_tol=1e-6, abs_tol=1e-6
        )
        for attribute in attributes
    )


# HTML


def _check_vmin(vmin: float):
    if not (math.isfinite(vmin) and vmin < 0):
        raise ValueError(f"`vmin` is the score, below 0, that has the last colour. It is {vmin}. Set it to -20, say.")


def _step(score: float, vmin: float) -> int:
    """Which of the colours a score has: equal steps from 0 down to vmin, everything below it in the last."""
    n = len(LIGHT_STEPS)
    return min(max(int(score / vmin * n), 0), n - 1)


def _legend(vmin: float) -> str:
    """What the colours mean: each is labelled with the score at which it begins."""
    n = len(LIGHT_STEPS)
    edges = [_number(vmin * i / n, "g") for i in range(n)]
    tips = [f"{_both_units(vmin * i / n)}, and below" for i in range(n)]
    steps = "".join(f'<span class="s{i}" title="{tip}">{edge}</span>' for i, (edge, tip) in enumerate(zip(edges, tips)))
    return (
        '<div class="legend"><span>Score in nats (natural log), likely to unlikely; hover for bits</span>'
        f'<span class="scale">{steps}</span></div>\n'
    )


def _doc_html(doc: Doc | Span, view: View, number: int | None = None) -> str:
    """One doc: a row for each metric, and what the page's script asks for."""
    names, columns = view.names, view.columns
    pieces = _pieces(doc, names, columns)
    n_pieces = doc._.get(names.pieces) or 0
    scores = " ".join("" if (score := doc._.get(name)) is None else repr(score) for name in columns.values())
    rows = "".join(
        f'<div class="row">{_sum_html(heading, doc._.get(name), n_pieces, None if i else number)}'
        f"{_text_html(doc, name, pieces, view)}</div>"
        for i, (heading, name) in enumerate(columns.items())
    )
    return (
        f'<article class="doc" lang="{escape(doc.doc.lang_)}" data-text="{escape(doc.text)}" data-scores="{scores}" '
        f'data-pieces="{n_pieces}">'
        f"{rows}</article>"
    )


def _sum_html(heading: str, score: float | None, n_pieces: int, number: int | None) -> str:
    """The label of a row: the number of the doc, the metric, the doc's score."""
    number = "" if number is None else f'<span class="number">{number}</span> '
    metric = f'<span class="metric">{number}{escape(heading)}</span>'
    if score is None:
        return f'<div class="sum">{metric}<small>not scored</small></div>'
    tip, mean = f"{_both_units(score)}, {_count(n_pieces)}", ""
    if n_pieces:
        mean = f"<small>{_number(score / n_pieces)} a piece</small>"
        # exp overflows at 710
        perplexity = math.exp(-score / n_pieces) if -score / n_pieces < 700 else math.inf
        tip += f"\npseudo-perplexity {perplexity:,.4g}"
    return f'<div class="sum" title="{escape(tip)}">{metric}<b>{_number(score)}</b>{mean}</div>'


def _text_html(doc: Doc | Span, name: str, pieces: dict[int, list[Piece]], view: View) -> str:
    """The tokens of a doc, coloured by one of their scores."""
    if not len(doc):
        return '<p class="text none">(empty text)</p>'
    base = _direction(doc.text) or "ltr"
    groups = _groups(doc)
    directions = [_direction("".join(token.text for token in group)) for group in groups]
    against = dict(_against(directions, base))
    ends = set(against.values())
    out = []
    for i, group in enumerate(groups):
        if i in against:
            out.append(f'<span dir="{directions[i]}">')
        tokens = "".join(_token_html(token, name, pieces.get(token.i, []), view) for token in group)
        out.append(f'<span class="g">{tokens}</span>' if len(group) > 1 else tokens)
        if i + 1 in ends:
            out.append("</span>")
        if group[-1].is_space and "\n" in group[-1].text:
            out.append("<br>")
        elif group[-1].whitespace_ or group[-1].is_space:
            out.append(" ")
    return f'<p class="text" dir="{base}">{"".join(out)}</p>'


def _continuation_html(continuation: "Continuation", view: View, number: int) -> str:
    """One candidate in its text: a row for each metric, and a bar as long as its probability."""
    span, percent = continuation.span, f"{100 * continuation.probability:.1f}"
    share = (
        f'<small class="percent">{percent} %</small>'
        f'<span class="share" title="of the candidates\' probability"><i style="width:{percent}%"></i></span>'
    )
    pieces = _pieces(span.doc, view.names, view.columns)
    rows = ""
    for heading, name in view.columns.items():
        total = _sum_html(heading, span._.get(name), continuation.pieces, None if rows else number)
        text = _text_html(span.doc, name, pieces, view)
        rows += f'<div class="row"><div>{total}{"" if rows else share}</div>{text}</div>'
    return f'<article class="doc" lang="{escape(span.doc.lang_)}">{rows}</article>\n'


def _comparison_html(comparison: "Comparison", view: View) -> str:
    """The sums beside, the segments below each other, in columns."""
    name = comparison.attribute
    sums = "".join(
        _sum_html(label, doc._.get(name), doc._.get(view.names.pieces) or 0, None)
        for label, doc in (("a", comparison.a), ("b", comparison.b))
    )
    tip = escape(f"{_signed(comparison.difference)} nats: the sum of the numbers below the segments")
    sums += (
        f'<div class="sum" title="{tip}"><span class="metric">b − a</span><b>{_signed(comparison.difference)}</b></div>'
    )
    pieces = {id(doc): _pieces(doc, view.names, view.columns) for doc in (comparison.a, comparison.b)}
    highest = max((abs(segment.difference) for segment in comparison.segments), default=0.0) or 1.0
    segments = "".join(_segment_html(segment, name, pieces, view, highest) for segment in comparison.segments)
    base = _direction(comparison.a.text) or _direction(comparison.b.text) or "ltr"
    return (
        f'<article class="doc" lang="{escape(comparison.a.lang_)}"><div class="row"><div>{sums}</div>'
        f'<div class="versions" dir="{base}">{segments}</div></div></article>\n'
    )


def _segment_html(segment: "Segment", name: str, pieces: dict, view: View, highest: float) -> str:
    """One column: a's tokens, b's tokens, the difference."""

    def side(span: Span) -> str:
        tokens = "".join(
            _token_html(token, name, pieces[id(span.doc)].get(token.i, []), view) + token.whitespace_ for token in span
        )
        return f'<span class="side">{tokens or _NOTHING}</span>'

    height = f"{2 * abs(segment.difference) / highest:.2f}em"
    direction = "loss" if segment.difference < 0 else "gain"
    tip = escape(f"{segment.a.text or '–'} → {segment.b.text or '–'}\nb − a: {_signed(segment.difference)} nats")
    return (
        f'<span class="seg {segment.kind}">{side(segment.a)}{side(segment.b)}<span class="delta" title="{tip}">'
        f'<i class="{direction}" style="height:{height}"></i>{_signed(segment.difference)}</span></span>'
    )


def _signed(value: float) -> str:
    return _number(round(value, 2), "+.2f")  # no minus before a zero


def _token_html(token: Token, name: str, pieces: list[Piece], view: View) -> str:
    score, n = token._.get(name), token._.get(view.names.pieces)
    text = escape(_visible(token.text))
    if score is None:
        return f'<span class="t off" title="not scored">{text}</span>'
    if not n:
        return f'<span class="t off" title="{_count(0)}">{text}</span>'
    tip = "\n".join([f"{_visible(token.text)}  {_both_units(score)}", *(_piece_tip(p, name) for p in pieces)])
    if n == 1:
        below = ""
    elif pieces:
        below = "".join(
            f'<span class="s{_step(p.scores[name], view.vmin)}" title="{escape(_piece_tip(p, name))}">'
            f"{escape(_visible(p.text))}</span>"
            for p in pieces
        )
        below = f'<span class="p">{below}</span>'
    else:
        below = f'<span class="p">{_count(n)}</span>'
    return (
        f'<span class="t s{_step(score, view.vmin)}{" split" if below else ""}" data-v="{_number(score)}" '
        f'title="{escape(tip)}"><span>{text}</span>{below}</span>'
    )


def _piece_tip(piece: Piece, name: str) -> str:
    tip = f"{_visible(piece.text)}  {_both_units(piece.scores[name])}"
    # Byte-level vocabularies spell letters outside ASCII in a code of their own; [UNK] hides what it stands for.
    return tip if piece.source in piece.text or not piece.source else f"{tip} for {_visible(piece.source)}"


def _groups(doc: Doc | Span) -> list[list[Token]]:
    """The tokens, those together that no white space separates: a line is not broken before a full stop."""
    groups = []
    for token in doc:
        last = groups[-1][-1] if groups else None
        if last is None or last.whitespace_ or last.is_space or token.is_space:
            groups.append([])
        groups[-1].append(token)
    return groups


def _direction(text: str) -> str | None:
    """The direction of the first character that has one, as the Unicode bidirectional algorithm does (rule P2)."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "ltr" if kind == "L" else "rtl"
    return None


def _against(directions: Sequence[str | None], base: str) -> Iterator[tuple[int, int]]:
    """The stretches, (start, end), that run against the base direction, what has no direction between them included."""
    start = end = None
    for i, direction in enumerate([*directions, base]):
        if direction == base and start is not None:
            yield start, end
            start = None
        elif direction not in (base, None):
            start = i if start is None else start
            end = i + 1


def _visible(text: str) -> str:
    """Text with its white space shown, where there is nothing else."""
    if text and not text.isspace():
        return text
    shown = "".join(_VISIBLE_SPACE.get(character, "␣") for character in text[:8])
    return shown + "…" if len(text) > 8 else shown


def _number(value: float, form: str = ".2f") -> str:
    """With a minus sign, not a hyphen."""
    return f"{value or 0.0:{form}}".replace("-", "−")


def _both_units(score: float) -> str:
    return f"{_number(score)} nats, surprisal {_number(-score / math.log(2))} bits"


def _count(n_pieces: int) -> str:
    return {0: "no piece", 1: "1 piece"}.get(n_pieces, f"{n_pieces} pieces")
