"""The agreement of two scorers as a table and as a web page."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from wasabi import table

from ..agreement import Agreement, Interval, TokenDifference
from .page_files import page_template, read_file

LEVEL_COLUMNS = ("number", "r", "95 % interval", "mean difference", "95 % interval", "mean absolute difference")
# The corner of the plots' lower left, and their width, in the units of the page's drawings.
LEFT, BOTTOM, SIDE = 45, 290, 280


def agreement_tables(result: Agreement) -> str:
    """What the command line prints: the levels, the costs, the deciles and the tokens that differ most."""
    first, second = (scorer.label for scorer in result.scorers)
    tokens = [
        (" ".join(f"{one.before[-16:]}[{one.token}]{one.after[:16]}".split()), *_scores(one)) for one in result.tokens
    ]
    return (
        text_table(level_rows(result), "agreement by", *LEVEL_COLUMNS)
        + text_table(cost_rows(result), "scorer", "metric", "seconds", "forward passes", "pieces in them")
        + text_table(
            decile_rows(result), "scores from", "to", "number", f"mean, {first}", f"mean, {second}", "difference"
        )
        + text_table(tokens, "the tokens that differ most", first, second, "difference")
    )


def text_table(rows: Sequence[tuple[str, ...]], *header: str) -> str:
    """A table for a terminal. The first column is of names, the others are of numbers."""
    aligns: list[Literal["l", "r"]] = ["l"]
    aligns.extend("r" for _ in header[1:])
    return table(rows, header=header, divider=True, aligns=aligns, max_col=60)


def level_rows(result: Agreement) -> list[tuple[str, ...]]:
    """One row per level; "–" where there is no value."""
    rows = []
    levels = {"piece": result.piece, "word": result.word, "text": result.text, "text mean per piece": result.text_mean}
    for level, values in levels.items():
        if values is None:
            rows.append((level, *("different pieces" if i == 0 else "–" for i in range(6))))
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


def cost_rows(result: Agreement) -> list[tuple[str, ...]]:
    """One row per scorer."""
    return [
        (
            scorer.label,
            scorer.metric,
            f"{scorer.seconds:,.1f}",
            f"{scorer.forward_passes:,}",
            f"{scorer.forward_pieces:,}",
        )
        for scorer in result.scorers
    ]


def decile_rows(result: Agreement) -> list[tuple[str, ...]]:
    """One row per decile."""
    return [
        (
            shown(one.low, 2),
            shown(one.high, 2),
            f"{one.n:,}",
            shown(one.mean_first, 3),
            shown(one.mean_second, 3),
            shown(one.mean_difference, 3, "+"),
        )
        for one in result.deciles
    ]


def _scores(token: TokenDifference) -> tuple[str, str, str]:
    return shown(token.scores[0], 2), shown(token.scores[1], 2), shown(token.difference, 2, "+")


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


def render_page(title: str, about: str, results: Sequence[Agreement], overview: dict[str, Any] | None = None) -> str:
    """The page of some comparisons.

    results (Sequence[Agreement]): At least one.
    overview (Optional[dict[str, Any]]): The `header`, `rows` and `conclusions` that stand above several comparisons.
    """
    style = read_file("style.css") + read_file("page_frame.css")
    comparisons = [_page_parts(result) for result in results]
    return page_template("agreement.html").render(
        title=title, about=about, style=style, overview=overview, comparisons=comparisons
    )


def _page_parts(result: Agreement) -> dict[str, Any]:
    labels = [scorer.label for scorer in result.scorers]
    unit = result.unit
    return {
        "labels": labels,
        "unit": unit,
        "levels": level_rows(result),
        "costs": cost_rows(result),
        "deciles": decile_rows(result),
        "plots": [_density(result, labels, unit), _calibration(result, labels, unit)],
        "tokens": [
            {
                **{key: getattr(one, key) for key in ("before", "token", "after")},
                **dict(zip(("a", "b", "difference"), _scores(one))),
            }
            for one in result.tokens
        ],
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
