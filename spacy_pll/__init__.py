"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from . import visualize
from .comparison import compare
from .component import PLLScorer
from .dataframe import to_dataframe

__all__ = ["PLLScorer", "compare", "to_dataframe", "visualize"]
