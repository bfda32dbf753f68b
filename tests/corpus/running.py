"""Runs over corpora, with all options by their names."""

from spacy_pll.corpus.inputs import Input
from spacy_pll.corpus.runs import Run
from spacy_pll.corpus.scored_texts import Scoring


def make_run(path, *scoring, table="texts", words=None, column="text", **options):
    """What is read, how it is scored, what is written. scoring, options: Of `Scoring`, such as a pipeline."""
    more = {"words": words} if words else {}
    return Run(Input(str(path), column), Scoring(*scoring, **options), table, **more)
