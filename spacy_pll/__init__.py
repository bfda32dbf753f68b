"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from . import visualize
from .component import PLLScorer
from .dataframe import to_dataframe

__all__ = ["PLLScorer", "to_dataframe", "visualize"]
