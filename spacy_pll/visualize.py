"""The public name of `spacy_pll.analysis.visualize`: scored docs as HTML and as figures."""

from .analysis.visualize import plot, render, render_comparison, render_continuations

__all__ = ["plot", "render", "render_comparison", "render_continuations"]
