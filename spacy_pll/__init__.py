"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023)."""

from importlib.metadata import version

from . import visualize
from .analysis.comparison import Comparison, Segment, compare, compare_pairs
from .analysis.continuations import Continuation, score_continuations
from .analysis.normalised import normalise, pmi
from .analysis.unigrams import Unigrams, load_unigrams
from .component import PLLScorer
from .evaluation.accuracies import Accuracy
from .evaluation.agreement import Agreement, LevelAgreement, agree
from .evaluation.groups import Pair
from .evaluation.margins import MarginAgreement, compare_margins
from .evaluation.minimal_pairs import PairScores, minimal_pairs
from .evaluation.perplexity import Perplexity, perplexity
from .evaluation.readers import read_pairs
from .pipelines import PipelineSettings, make_pipeline
from .settings import ScoringSettings
from .tables.dataframe import to_dataframe
from .tables.results import Scores, TextScore, TokenScore, score
from .tables.words import WordTable

__version__ = version("spacy-pll")  # setup.cfg has it

__all__ = [
    "Accuracy",
    "Agreement",
    "Comparison",
    "Continuation",
    "LevelAgreement",
    "MarginAgreement",
    "PLLScorer",
    "Pair",
    "PairScores",
    "Perplexity",
    "PipelineSettings",
    "Scores",
    "ScoringSettings",
    "Segment",
    "TextScore",
    "TokenScore",
    "Unigrams",
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
