"""Scores of suites that are given, and not computed."""

import numpy as np

from spacy_pll import SuiteScores
from spacy_pll.arrays import Groups
from spacy_pll.evaluation.text_scores import TextScores


def of_parts(texts, **more):
    """The scores of texts. texts: Of each, the score and the number of wordpieces of each of its parts."""
    sums, pieces = zip(*(part for parts in texts for part in parts))
    return TextScores(np.array(sums, float), np.array(pieces), Groups.of(texts), **more)


def of_pieces(texts):
    """The scores of texts by wordpiece. texts: Of each, the score and the id of each of its wordpieces."""
    sums, ids = zip(*(piece for pieces in texts for piece in pieces))
    return TextScores(np.array(sums, float), np.ones(len(sums), int), Groups.of(texts), np.array(ids))


def suite_scores(suite, sums, pieces, columns=None, **more):
    """Choices with their scores. sums, pieces: By scorer, of each option of each choice."""
    scores = {}
    for scorer, of_choices in sums.items():
        parts = [[part] for two in zip(of_choices, pieces[scorer], strict=True) for part in zip(*two, strict=True)]
        scores[scorer] = of_parts(parts, column=(columns or {}).get(scorer, scorer), **more)
    return SuiteScores(suite, scores)
