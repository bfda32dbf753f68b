"""Scored docs to look at: HTML for notebooks and browsers, figures for papers.

Scores are natural logarithms throughout.

`style.css` has the colours and the layout of scored text; `page.html`, `page_frame.css` and `page.js` make whole pages.
"""

from .html import View, page_parts, render, render_comparison, render_continuations
from .plots import plot
from .scale import VMIN

__all__ = ["VMIN", "View", "page_parts", "plot", "render", "render_comparison", "render_continuations"]
