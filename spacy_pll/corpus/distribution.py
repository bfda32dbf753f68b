"""What an output has: whether some texts have a score, and how the pseudo-perplexities are distributed, for the
thresholds of filters: quantiles, and a figure.
"""

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InputError
from ..stream.outcomes import ERROR
from ..tables.rows import TextRows
from ..visualize.plots import add_frame, new_figure
from .formats import Format

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (5, 20, 50, 80, 95)  # per cent of the texts
ENOUGH = 20  # texts, of which one is 5 %
BINS = 80  # of the figure


@dataclass
class Outcomes:
    """Whether some texts of an output have a score, and whether some have an error in its place."""

    some_scored: bool = False
    some_failed: bool = False

    def watch(self, output: Format, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Pass the parts of the output on, and look into them until there is a score."""
        for part in parts:
            for failed, scored in output.outcomes(part) if not self.some_scored else ():
                self.some_failed |= failed
                if scored:
                    self.some_scored = True
                    break
            yield part

    @property
    def are_errors(self) -> bool:
        """Whether none could be scored, although there were some to score."""
        return self.some_failed and not self.some_scored


class Distribution:
    """The pseudo-perplexities in an output with a row for each text, and why other rows have none.

    is_drawn (bool): Whether there is to be a figure.
    """

    def __init__(self, is_drawn: bool = False) -> None:
        self.is_drawn, self.name, self.pieces = is_drawn, "pppl", "pll_pieces"  # the columns
        self.values = array("d")  # 8 bytes for each: there may be many millions
        self.missing = Counter[str]()
        self.metric = ""  # under which they are

    def expect(self, rows: TextRows) -> None:
        """RAISES (InputError): There is to be a figure, and these rows have no pseudo-perplexity."""
        self.name, self.pieces = rows.names.perplexity, rows.names.pieces
        self.metric = rows.settings.metrics[0]
        if self.is_drawn and self.name not in rows.types:
            raise InputError(f"`plot` draws {self.name}, which texts with `sample_words` do not have.", "Leave it out.")

    def watch(self, output: Format, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Pass the parts of the output on, and note what the column has."""
        for part in parts:
            for row in output.decode(part) if self.name in output.rows.types else ():
                value = row.get(self.name)
                if value not in (None, ""):
                    self.values.append(float(str(value).replace(",", ".")))  # a decimal comma
                elif row.get(ERROR) or not int(row[self.pieces] or 0):
                    self.missing["an error, in the column `error`" if row.get(ERROR) else "no wordpiece to score"] += 1
                else:
                    self.values.append(math.inf)  # which text formats cannot hold
            yield part

    @property
    def quantiles(self) -> dict[int, float]:
        """By per cent, the value that so many of the texts do not exceed. Empty if there are too few."""
        if len(self.values) < ENOUGH:
            return {}
        with np.errstate(invalid="ignore"):
            values = np.percentile(self.values, SHARES)
        # NumPy has NaN between two values that are infinite.
        values = np.where(np.isnan(values), np.percentile(self.values, SHARES, method="higher"), values)
        return dict(zip(SHARES, values.tolist()))

    def lines(self) -> Iterator[str]:
        """What people want to know of it."""
        if found := ", ".join(f"{value:,.2f} ({share} %)" for share, value in self.quantiles.items()):
            yield f"Quantiles of {self.name}: {found}."
        if missing := self.missing.total():
            why = ", ".join(f"{n:,} with {reason}" for reason, n in self.missing.items())
            yield f"{missing:,} of {missing + len(self.values):,} texts have no score: {why}."

    def plot(self) -> "Figure":
        """Draw how many texts have which value, on a logarithmic axis. RAISES (ImportError): There is no matplotlib."""
        figure, values = new_figure(6.4, 3.6), np.array(self.values)
        axes, finite = figure.subplots(), values[np.isfinite(values)]
        low, high = min(finite, default=1.0), max(finite, default=10.0)
        numbers, edges = np.histogram(finite, np.geomspace(low / 1.01, high * 1.01, BINS + 1))
        others = f", and {len(values) - len(finite):,} infinite" * (len(finite) < len(values))
        axes.stairs(numbers, edges, fill=True, color="#56b4e9", label=f"{len(finite):,} texts{others}")
        axes.set(
            xscale="log",
            xlabel=f"{self.name}: pseudo-perplexity per wordpiece ({self.metric})",
            ylabel="texts",
            ylim=(0, 1.35 * max(1, numbers.max())),
        )
        axes.xaxis.set_major_formatter("{x:g}")
        for share, value in self.quantiles.items():
            if math.isinf(value):
                break
            axes.axvline(value, color="black", linewidth=0.8, linestyle=":")
            axes.annotate(f"{share} %: {value:,.2f}", (value, 1), xycoords=("data", "axes fraction"), rotation=90,
                          xytext=(-1, 0), textcoords="offset points", ha="right", va="top", fontsize=8)  # fmt: skip
        add_frame(axes, "y")
        return figure
