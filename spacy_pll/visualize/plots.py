"""Scores as figures, and what all figures have."""

import math
from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import FloatArray
from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names
from ..errors import PLLError
from ..requirements import extra
from .text import format_number, get_pieces, visible_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Metrics that differ by less than this look the same in the figure, and are not marked as different.
_VISIBLE_DIFFERENCE = 0.01
# Points of a row, so that a figure fits on a page.
_PER_ROW = 25

# Okabe & Ito's colours, which can be told apart without colour vision, with a marker each for print in black and white.
LINES = list(zip(["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#000000"], "osD^vX"))


def plot(doc: Doc | Span, metrics: Sequence[str] | None = None, *, attr: str = "pll") -> "Figure":
    """Draw the score of each wordpiece, one line per metric, as in figures 2, 5 and 6 of Kauf & Ivanova (2023).

    The x axis shows the wordpieces if the doc was scored with `keep_pieces`, and the tokens otherwise. The legend
    gives each metric's sentence score and its mean per wordpiece (or token). The background is grey where the metrics
    differ.

    doc (Union[Doc, Span]): What to draw.
    metrics (Optional[Sequence[str]]): The lines. None draws every metric that the doc was scored with.
    attr (str): The component's setting of that name.
    RETURNS (matplotlib.figure.Figure): Long texts have several rows, each an element of its `axes`. Change it through
        these, write it with `savefig`.
    RAISES (ValueError): The doc has no scores of that name, or none of its tokens is scored.
    RAISES (ImportError): matplotlib is not installed.
    """
    names = find_names([doc], attr)
    columns = select_metrics(names, metrics)
    labels, lines, unit = _points(doc, names, columns)
    if not np.isfinite([*lines.values()]).any():
        raise PLLError(f"No token of the text {doc.text[:100]!r} is scored, so there is nothing to draw.")
    n_rows = math.ceil(len(labels) / _PER_ROW)
    n = math.ceil(len(labels) / n_rows)  # points of a row, so that the last one is about as long as the others
    figure = new_figure(max(4.5, 1.5 + 0.5 * n), 0.5 + 3.1 * n_rows)
    rows = figure.subplots(n_rows, squeeze=False, sharey=True)[:, 0]
    differs = np.ptp([*lines.values()], axis=0) > _VISIBLE_DIFFERENCE
    differing = np.flatnonzero(np.diff(differs, prepend=False, append=False)).reshape(-1, 2)  # runs: start, end
    for row, axes in enumerate(rows):
        points = slice(row * n, row * n + n)
        for i, (heading, values) in enumerate(lines.items()):
            colour, marker = LINES[i % len(LINES)]
            scored = values[np.isfinite(values)].tolist()
            label = f"{heading}: {format_number(sum(scored))} (mean {format_number(sum(scored) / len(scored))})"
            # Later lines are thinner, so that the lines below them can be seen where they agree.
            width = 1.4 + 0.9 * (len(lines) - 1 - i)
            style: dict[str, Any] = {"color": colour, "marker": marker, "linewidth": width, "markersize": 3.5 + width}
            axes.plot(range(len(values[points])), values[points], label=label, **style)
        for i, (start, end) in enumerate(differing):
            # Matplotlib's legend leaves out labels that begin with an underscore: one entry is enough. The legend is
            # that of the first row, which has the entry wherever the metrics differ.
            start, end = max(start - points.start, 0), min(end - points.start, n)
            label = "_" if i else "the metrics differ"
            axes.axvspan(start - 0.5, max(start, end) - 0.5, color="0.9", linewidth=0, label=label, zorder=0)
        # Without parse_math=False, a pair of dollar signs in the text would be read as a formula.
        axes.set_xticks(range(len(labels[points])), labels[points], parse_math=False, rotation=45, fontsize=9,
                        ha="right", rotation_mode="anchor")  # fmt: skip
        axes.set_xlim(-0.6, n - 0.4)
        axes.set_ylabel(f"{unit} score (nats)")
        title = f"sentence score (mean over {unit}s)"
        add_frame(axes, "y", title=title, ncols=1 + (n > 12), title_fontsize=9, alignment="left")
        if row:
            axes.get_legend().remove()
    return figure


def add_frame(axes: "Axes", grid: Literal["x", "y", "both"], **legend: Any) -> None:
    """What all figures have around what they show: grid lines behind it, two spines, the legend above."""
    axes.grid(axis=grid, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), frameon=False, fontsize=9, **legend)


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure that notebooks display. RAISES (ImportError): matplotlib is not installed."""
    with extra("plot", "Plots need matplotlib"):
        import matplotlib as _  # noqa: F401  # which fails first
        from matplotlib.figure import Figure
    figure = Figure(figsize=(width, height), layout="constrained")
    # Notebooks display what has this method. Without it they display only the figures that pyplot manages.
    figure._repr_png_ = partial(_to_png, figure)  # type: ignore[attr-defined]
    return figure


def _to_png(figure: "Figure") -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _points(doc: Doc | Span, names: Names, columns: dict[str, str]) -> tuple[list[str], dict[str, FloatArray], str]:
    """The labels of the x axis, each line's scores by heading (NaN where not scored), and the unit: piece or token."""
    pieces = get_pieces(doc, names, columns)
    tokens = [token for token in doc if token._.get(names.pieces) != 0]
    if pieces:
        unit = "piece"
        points = [(piece.text, piece.scores) for token in tokens for piece in pieces[token.i]]
    else:
        unit = "token"
        points = [(token.text, {name: token._.get(name) for name in columns.values()}) for token in tokens]
    lines = {heading: np.array([scores[name] for _, scores in points], float) for heading, name in columns.items()}
    return [visible_text(text) for text, _ in points], lines, unit
