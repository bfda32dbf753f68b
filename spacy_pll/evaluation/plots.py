"""Accuracies on minimal pairs, as figures."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..visualize.plots import LINES, add_frame, new_figure
from ..visualize.text import visible_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .intervals import Estimate


def plot_accuracies(values: Mapping[str, Mapping[str, "Estimate"]], chance: float | None = None) -> "Figure":
    """Draw the accuracies of groups of choices, with their intervals; one colour per scorer.

    values (Mapping[str, Mapping[str, Estimate]]): By scorer, the accuracy of each group and its interval.
    chance (Optional[float]): The accuracy by chance, 0 to 1: a dotted line.
    RAISES (ImportError): matplotlib is not installed.
    """
    names = list(next(iter(values.values())))
    figure = new_figure(6.4, 1.2 + len(names) * (0.16 + 0.12 * len(values)))
    axes = figure.subplots()
    for i, (scorer, accuracies) in enumerate(values.items()):
        colour, marker = LINES[i % len(LINES)]
        shift = (i + 1) / (len(values) + 1) - 0.5
        mid, low, high = 100 * np.array([*accuracies.values()]).T
        lines: dict[str, Any] = {"color": colour, "markersize": 4, "linewidth": 1, "label": scorer}
        # A marker at 0 or 100 is half outside.
        places, errors = np.arange(len(names)) + shift, (mid - low, high - mid)
        axes.errorbar(mid, places, xerr=errors, fmt=marker, clip_on=False, zorder=3, **lines)
    if chance is not None:
        axes.axvline(100 * chance, color="0.6", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(names)), [visible_text(name) for name in names], parse_math=False, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("accuracy in % (95 % interval)")
    add_frame(axes, "x")
    return figure


def plot_curves(curves: Mapping[str, Mapping[str, "Estimate"]], chance: float | None = None) -> "Figure":
    """Draw accuracies over scorers that have an order, with their intervals.

    curves (Mapping[str, Mapping[str, Estimate]]): By group, the accuracy under each scorer. All have the same scorers.
    chance (Optional[float]): See `plot_accuracies`.
    RAISES (ImportError): matplotlib is not installed.
    """
    names = list(next(iter(curves.values())))
    figure = new_figure(min(max(5.0, 2.0 + 0.35 * len(names)), 14), 4.0)
    axes = figure.subplots()
    for i, (group, of_scorers) in enumerate(curves.items()):
        (colour, marker), style = LINES[i % len(LINES)], "-" if i < len(LINES) else "--"
        mid, low, high = 100 * np.array([*of_scorers.values()]).T
        axes.plot(range(len(names)), mid, color=colour, marker=marker, linestyle=style, markersize=4, label=group)
        axes.fill_between(range(len(names)), low, high, color=colour, alpha=0.1, linewidth=0)
    if chance is not None:
        axes.axhline(100 * chance, color="0.6", linewidth=0.8, linestyle=":")
    labels = [visible_text(name) for name in names]
    axes.set_xticks(range(len(names)), labels, parse_math=False, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("accuracy in % (95 % interval)")
    add_frame(axes, "y")
    return figure
