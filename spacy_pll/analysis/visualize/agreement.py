"""The agreement of two scorers as a table and as a web page."""

import math
from collections.abc import Sequence
from typing import Any

from ..agreement import Agreement, Interval
from .page_files import page_template, read_file
from .text import Table, text_table

# The corner of the plots' lower left, and their width, in the units of the page's drawings.
LEFT, BOTTOM, SIDE = 45, 290, 280


def agreement_tables(result: Agreement) -> str:
    """What the command line prints: the levels, the costs, the deciles and the tokens that differ most."""
    tokens = [
        (" ".join(f"{before[-16:]}[{token}]{after[:16]}".split()), *scores)
        for (before, token, after), *scores in _token_rows(result)
    ]
    header = ("the tokens that differ most", *(scorer.label for scorer in result.scorers), "difference")
    return "".join(map(text_table, (_levels(result), _costs(result), _deciles(result), [header, *tokens])))


def _levels(result: Agreement) -> Table:
    """One row per level; "–" where there is no value."""
    columns = ("number", "r", "95 % interval", "mean difference", "95 % interval", "mean absolute difference")
    rows: Table = [("agreement by", *columns)]
    levels = {"piece": result.piece, "word": result.word, "text": result.text, "text mean per piece": result.text_mean}
    for level, values in levels.items():
        if values is None:
            rows.append((level, "different pieces", *["–"] * 5))
            continue
        rows.append(
            (
                level,
                f"{values.n:,}",
                shown(values.r, 4),
                interval(values.r_interval, 4),
                shown(values.mean_difference, 3, "+"),
                interval(values.mean_difference_interval, 3, "+"),
                shown(values.mean_absolute_difference, 3),
            )
        )
    return rows


def _costs(result: Agreement) -> Table:
    """One row per scorer."""
    rows = [
        (one.label, one.metric, f"{one.seconds:,.1f}", f"{one.forward_passes:,}", f"{one.forward_pieces:,}")
        for one in result.scorers
    ]
    return [("scorer", "metric", "seconds", "forward passes", "pieces in them"), *rows]


def _deciles(result: Agreement) -> Table:
    """One row per decile."""
    means = (f"mean, {scorer.label}" for scorer in result.scorers)
    rows: Table = [("scores from", "to", "number", *means, "difference")]
    for one in result.deciles:
        bounds = shown(one.low, 2), shown(one.high, 2), f"{one.n:,}"
        rows.append((*bounds, shown(one.mean_first, 3), shown(one.mean_second, 3), shown(one.mean_difference, 3, "+")))
    return rows


def _token_rows(result: Agreement) -> Table:
    """The tokens that differ most, between the texts before and after them, with both scores and the difference."""
    return [
        ((one.before, one.token, one.after), *(shown(x, 2) for x in one.scores), shown(one.difference, 2, "+"))
        for one in result.tokens
    ]


def shown(value: float | None, digits: int, sign: str = "") -> str:
    """A number, or "–" for none."""
    return "–" if value is None else f"{value:{sign}.{digits}f}"


def interval(values: Interval | None, digits: int, sign: str = "") -> str:
    """An interval, or "–" for none."""
    return "–" if values is None else f"{values[0]:{sign}.{digits}f} to {values[1]:{sign}.{digits}f}"


def agreement_page(result: Agreement) -> str:
    """A web page with tables and plots. It loads nothing else."""
    first, second = (scorer.label for scorer in result.scorers)
    about = (
        f"{result.texts:,} texts. Scores are natural logarithms. Differences are those of {second} from {first}, in "
        "nats. Intervals are bootstrap intervals over texts."
    )
    return render_page(f"Agreement of {first} and {second}", about, [result])


def render_page(
    title: str, about: str, results: Sequence[Agreement], overview: Table | None = None, conclusions: Sequence[str] = ()
) -> str:
    """The page of some comparisons.

    results (Sequence[Agreement]): At least one.
    overview (Optional[Table]): A table that stands above several comparisons, with `conclusions` below it.
    """
    style = read_file("style.css") + read_file("page_frame.css")
    return page_template("agreement.html").render(
        title=title,
        about=about,
        style=style,
        overview=overview,
        conclusions=conclusions,
        comparisons=[_page_parts(result) for result in results],
    )


def _page_parts(result: Agreement) -> dict[str, Any]:
    labels = [scorer.label for scorer in result.scorers]
    return {
        "label": labels[1],
        "unit": result.unit,
        "levels": _levels(result),
        "costs": _costs(result),
        "deciles": _deciles(result),
        "plots": [_density(result, labels, result.unit), _calibration(result, labels, result.unit)],
        "tokens": [("token", *labels, "difference"), *_token_rows(result)],
    }


class _Scale:
    """From scores to places in a drawing. Both axes have the same range."""

    def __init__(self, low: float, high: float):
        self.low, self.high = low, high if high > low else low + 1

    def x(self, score: float) -> float:
        return LEFT + SIDE * (score - self.low) / (self.high - self.low)

    def y(self, score: float) -> float:
        return BOTTOM - SIDE * (score - self.low) / (self.high - self.low)

    def frame(self, labels: list[str]) -> dict[str, Any]:
        """The ticks, the line of equal scores and the labels."""
        step = 10 ** math.floor(math.log10(self.high - self.low))
        while (self.high - self.low) / step < 4:
            step /= 2
        numbers = range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)
        ticks = [{"x": self.x(i * step), "y": self.y(i * step), "label": f"{i * step:g}"} for i in numbers]
        equal = [self.x(self.low), self.y(self.low), self.x(self.high), self.y(self.high)]
        return {"ticks": ticks, "equal": equal, "x_label": labels[0], "y_label": labels[1]}


def _density(result: Agreement, labels: list[str], unit: str) -> dict[str, Any]:
    """How many things have which two scores."""
    edges, counts = result.histogram.edges, result.histogram.counts
    scale = _Scale(edges[0], edges[-1])
    most = max(map(max, counts))
    cells = [
        {
            "x": scale.x(edges[i]),
            "y": scale.y(edges[j + 1]),
            "count": count,
            "opacity": 0.15 + 0.85 * math.log1p(count) / math.log1p(most),
        }
        for i, row in enumerate(counts)
        for j, count in enumerate(row)
        if count
    ]
    caption = f"Each {unit}'s two scores. The darker a square, the more (logarithmic). Dashed: equal scores."
    return {**scale.frame(labels), "cells": cells, "side": SIDE / len(counts), "points": [], "caption": caption}


def _calibration(result: Agreement, labels: list[str], unit: str) -> dict[str, Any]:
    """The mean scores by decile."""
    groups = result.deciles
    means = [mean for one in groups for mean in (one.mean_first, one.mean_second)]
    scale = _Scale(min(means), max(means))
    points = [
        {
            "x": scale.x(one.mean_first),
            "y": scale.y(one.mean_second),
            "title": f"{one.mean_first:.2f}, {one.mean_second:.2f}",
        }
        for one in groups
    ]
    caption = f"Mean scores of ten equally large groups of {unit}s, ordered by {labels[0]}. Dashed: equal means."
    return {**scale.frame(labels), "cells": [], "side": 0, "points": points, "caption": caption}
