"""The variants of a protein, as a figure."""

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray
from ..visualize.plots import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_variants(sequence: str, residues: str, scores: FloatArray, offset: int, method: str) -> "Figure":
    """Draw scores by site and residue, with a dot at the residue of the sequence.

    scores (float array, shape (residues, sites)): NaN where there is none; such a field is grey.
    offset (int): The number of the first site.
    RAISES (ImportError): matplotlib is not installed.
    """
    n = len(sequence)
    figure = new_figure(min(max(5.0, 1.6 + 0.13 * n), 40), 4.0)
    axes = figure.subplots()
    axes.set_facecolor("0.85")
    # White is as probable as the residue of the sequence. Both sides have one scale.
    most = max(float(np.nanmax(np.abs(scores))), 1e-6)
    shown = axes.imshow(scores, aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest",
                        extent=(offset - 0.5, offset + n - 0.5, len(residues) - 0.5, -0.5))  # fmt: skip
    figure.colorbar(shown, ax=axes, label=f"score in nats ({method})", pad=0.02)
    own = [(site + offset, residues.index(residue)) for site, residue in enumerate(sequence) if residue in residues]
    axes.plot(*np.array(own).reshape(-1, 2).T, linestyle="none", marker="o", markersize=2, color="0.2")
    axes.set_yticks(range(len(residues)), list(residues), fontsize=8)
    axes.set_xlabel("residue number")
    axes.set_ylabel("other residue")
    return figure
