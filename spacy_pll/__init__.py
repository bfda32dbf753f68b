"""Pseudo-log-likelihood scores for spaCy, from masked language models (Kauf & Ivanova 2023).

Start here:

score            the scores of a few texts, and of their words: spacy_pll.score("The cats sleep.")
make_pipeline    a spaCy pipeline that scores: for many texts, nlp.pipe(texts), and for the functions below
score_words      surprisal in a table with one word in each row
compare          two versions of a sentence, word by word; compare_pairs: many of them
visualize        texts in colour, in notebooks and on pages
minimal_pairs    how often a model prefers the right sentence; read_pairs: from a file
slots            which word fits into a gap; score_continuations: how a text goes on
perplexity       the pseudo-perplexity of a corpus
to_dataframe     the scores of docs as a pandas data frame

Each of them has an example: help(spacy_pll.score). All settings: help(spacy_pll.PipelineSettings), ScoringSettings.
"""

from importlib.metadata import version

from . import visualize
from .analysis.any_order import log_probability_bounds
from .analysis.comparison import Comparison, compare, compare_pairs
from .analysis.continuations import score_continuations
from .analysis.filling import Filler
from .analysis.normalised import normalise
from .analysis.slots import slots
from .analysis.unigrams import Unigrams, load_unigrams
from .component import PLLScorer, get_scorer
from .errors import InputError, PLLError
from .evaluation.agreement import Agreement, agree
from .evaluation.choice_readers import read_choices
from .evaluation.choices import choices
from .evaluation.items import Choice, Option, Pair, levels
from .evaluation.margins import compare_margins
from .evaluation.measurements import Measurement
from .evaluation.minimal_pairs import minimal_pairs
from .evaluation.pair_readers import read_pairs
from .evaluation.perplexity import Perplexity, perplexity, window_perplexities
from .evaluation.rescoring import rescore, tune_rescoring
from .evaluation.suite_readers import read_suite
from .evaluation.suites import Suite, SuiteScores, score_suite
from .metrics import MaskRows, register_metric
from .pipelines import PipelineSettings, make_pipeline
from .proteins.assays import read_assays, score_assays
from .proteins.readers import read_fasta, read_variants
from .proteins.variants import Variant, VariantScores, variants
from .settings import ScoringSettings
from .stream.contexts import TextInContext
from .stream.workers import score_docs
from .tables.dataframe import to_dataframe
from .tables.results import Scores, score
from .tables.word_rows import score_words
from .tables.words import WordTable

__version__ = version("spacy-pll")  # setup.cfg has it

__all__ = [
    "Agreement",
    "Choice",
    "Comparison",
    "Filler",
    "InputError",
    "MaskRows",
    "Measurement",
    "Option",
    "PLLError",
    "PLLScorer",
    "Pair",
    "Perplexity",
    "PipelineSettings",
    "Scores",
    "ScoringSettings",
    "Suite",
    "SuiteScores",
    "TextInContext",
    "Unigrams",
    "Variant",
    "VariantScores",
    "WordTable",
    "agree",
    "choices",
    "compare",
    "compare_margins",
    "compare_pairs",
    "get_scorer",
    "levels",
    "load_unigrams",
    "log_probability_bounds",
    "make_pipeline",
    "minimal_pairs",
    "normalise",
    "perplexity",
    "read_assays",
    "read_choices",
    "read_fasta",
    "read_pairs",
    "read_suite",
    "read_variants",
    "register_metric",
    "rescore",
    "score",
    "score_assays",
    "score_continuations",
    "score_docs",
    "score_suite",
    "score_words",
    "slots",
    "to_dataframe",
    "tune_rescoring",
    "variants",
    "visualize",
    "window_perplexities",
]
