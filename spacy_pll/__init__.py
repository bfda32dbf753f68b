"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from importlib.metadata import version

from . import visualize
from .analysis.comparison import compare, compare_pairs
from .analysis.continuations import score_continuations
from .analysis.dataframe import to_dataframe
from .analysis.normalised import normalise, pmi
from .analysis.results import score
from .analysis.unigrams import load_unigrams
from .analysis.words import WordTable
from .component import PLLScorer
from .evaluation.agreement import agree
from .evaluation.margins import compare_margins
from .evaluation.minimal_pairs import minimal_pairs, read_pairs
from .evaluation.perplexity import perplexity
from .pipelines import PipelineSettings, make_pipeline

__version__ = version("spacy-pll")  # setup.cfg has it

__all__ = [
    "PLLScorer",
    "PipelineSettings",
    "WordTable",
    "agree",
    "compare",
    "compare_margins",
    "compare_pairs",
    "load_unigrams",
    "make_pipeline",
    "minimal_pairs",
    "normalise",
    "perplexity",
    "pmi",
    "read_pairs",
    "score",
    "score_continuations",
    "to_dataframe",
    "visualize",
]
