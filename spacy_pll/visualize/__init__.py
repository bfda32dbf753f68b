"""Scored docs to look at: HTML for notebooks and browsers, figures for papers.

Scores are natural logarithms throughout.

`articles.html` and `style.css` are for scored text; `page.html`, `page_frame.css` and `page.js` make whole pages.
"""

from .html import VMIN, View, page_parts, render, render_comparison, render_continuations
from .plots import plot

__all__ = ["VMIN", "View", "page_parts", "plot", "render", "render_comparison", "render_continuations"]
