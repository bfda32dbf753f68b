"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from importlib.metadata import version

from . import visualize
from .analysis.comparison import compare
from .analysis.continuations import score_continuations
from .analysis.dataframe import to_dataframe
from .analysis.results import score
from .component import PLLScorer

__version__ = version("spacy-pll")  # setup.cfg has it

__all__ = ["PLLScorer", "compare", "score", "score_continuations", "to_dataframe", "visualize"]
