"""Scored docs to look at: HTML for notebooks and browsers, figures for papers.

Scores are natural logarithms throughout.

`articles.html` and `style.css` are for scored text; `page.html`, `page_frame.css` and `page.js` make whole pages.
"""

from .html import render, render_comparison, render_continuations
from .masked_texts import MaskedText, masked_texts
from .plots import plot

__all__ = ["MaskedText", "masked_texts", "plot", "render", "render_comparison", "render_continuations"]
