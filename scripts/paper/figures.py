"""The style that the figures share."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from numpy.typing import ArrayLike  # noqa: E402

plt.rcParams.update(
    {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.titleweight": "bold",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#888888",
        "axes.labelcolor": "#222222",
        "xtick.color": "#444444",
        "ytick.color": "#444444",
        "legend.fontsize": 8,
        "figure.facecolor": "white",
        "savefig.bbox": "tight",
        # The same numbers give the same file.
        "svg.hashsalt": "spacy-pll",
    }
)


def tidy(ax: Axes):
    """Light horizontal grid lines, behind the data."""
    ax.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    ax.set_axisbelow(True)


def scatter(ax: Axes, x: ArrayLike, y: ArrayLike, colour: str):
    """Points with their least-squares line. The points are drawn as pixels: thousands of shapes make slow pages."""
    ax.scatter(x, y, s=9, color=colour, alpha=0.35, linewidths=0, rasterized=True)
    line(ax, x, y)
    tidy(ax)


def line(ax: Axes, x: ArrayLike, y: ArrayLike):
    """The least-squares line of some points; nothing if all x are the same."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if np.ptp(x) > 0:
        slope, intercept = np.polyfit(x, y, 1)
        ends = np.array([x.min(), x.max()])
        ax.plot(ends, slope * ends + intercept, color="#111111", linewidth=1.4)
