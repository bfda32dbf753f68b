"""Pictures of scored docs, under the name that people import: see `spacy_pll.analysis.visualize`."""

from .analysis.visualize import plot, render, render_comparison, render_continuations

__all__ = ["plot", "render", "render_comparison", "render_continuations"]
