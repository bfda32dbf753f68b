"""What became of the texts of an output: whether some have a score; and how the pseudo-perplexities are distributed,
for the thresholds of filters: quantiles, and a figure.

Each part of a run has a line of JSON before what it adds to the output, with the values of its texts. So the values of
earlier runs are known, too, and none is read back from a table.
"""

import json
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attributes.values import perplexity_of
from ..errors import InputError, explained
from ..stream.outcomes import ERROR
from ..tables.rows import ScoredText, TextRows
from ..visualize.plots import add_frame, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHARES = (5, 20, 50, 80, 95)  # per cent of the texts
ENOUGH = 20  # texts, of which one is 5 %
BINS = 80  # of the figure


def text_outcomes(texts: Iterable[ScoredText], rows: TextRows) -> dict[str, Any]:
    """What became of some texts, in values that JSON has: whether some have a score, and some an error; their
    pseudo-perplexities, if the rows have such, and how many have none, by the reason.
    """
    scored, failed, values, missing = False, False, list[float](), Counter[str]()
    has_perplexity = rows.names.perplexity in rows.types
    for text in texts:
        error = text.fields.get(ERROR)
        score, _, pieces = text.sums
        scored, failed = scored or score is not None, failed or bool(error)
        if has_perplexity:
            value = perplexity_of(score, pieces)
            if value is not None:
                values.append(value)
            else:
                missing["an error, in the column `error`" if error else "no wordpiece to score"] += 1
    return {"scored": scored, "failed": failed, "values": values, "missing": missing}


def with_outcomes(outcomes: Mapping[str, Any], contents: bytes) -> bytes:
    """A part of a run: the outcomes of its texts, and what it adds to the output."""
    return json.dumps(outcomes).encode() + b"\n" + contents


class Distribution:
    """Whether some texts of an output have a score, and some an error in its place; their pseudo-perplexities, and why
    others have none.

    is_drawn (bool): Whether there is to be a figure.
    """

    def __init__(self, is_drawn: bool = False) -> None:
        self.is_drawn, self.name = is_drawn, "pppl"  # the column
        self.some_scored = self.some_failed = False
        self.values = array("d")  # 8 bytes for each: there may be many millions
        self.missing = Counter[str]()
        self.metric = ""  # under which they are

    def expect(self, rows: TextRows) -> None:
        """RAISES (InputError): There is to be a figure, and these rows have no pseudo-perplexity."""
        self.name, self.metric = rows.names.perplexity, rows.settings.metrics[0]
        if self.is_drawn and self.name not in rows.types:
            raise InputError(f"`plot` draws {self.name}, which texts with `sample_words` do not have.", "Leave it out.")

    def add(self, outcomes: Mapping[str, Any]) -> None:
        """Add some texts. outcomes (Mapping[str, Any]): See `text_outcomes`."""
        self.some_scored |= outcomes["scored"]
        self.some_failed |= outcomes["failed"]
        self.values.extend(outcomes["values"])
        self.missing.update(outcomes["missing"])

    def taken_from(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Add the texts of the parts of a run, and pass on what the parts add to the output."""
        for part in parts:
            outcomes, _, contents = part.partition(b"\n")
            with explained("A part of the run is damaged", "Start again with `force=True`."):
                self.add(json.loads(outcomes))
            yield contents

    @property
    def are_errors(self) -> bool:
        """Whether none could be scored, although there were some to score."""
        return self.some_failed and not self.some_scored

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
        if listed := ", ".join(f"{value:,.2f} ({share} %)" for share, value in self.quantiles.items()):
            yield f"Quantiles of {self.name}: {listed}."
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
