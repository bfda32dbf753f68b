"""The masking schemes of Kauf & Ivanova (2023), section 3.1, and the registry they live in.

A forward pass of a masked language model answers: with some positions masked, how
likely is the true wordpiece at one masked position? A metric says which question to
ask for each wordpiece; a left-to-right model is asked with nothing masked. It is a
function

    word (int array, shape (pieces,)): which word each piece of a context belongs to
    RETURNS (MaskRows)

registered by name in `spacy.registry.pll_metrics` (entry point group
`spacy_pll_metrics`), so that another package can add one. It may carry an attribute
`model_kind` that names the kind of language model that can answer (default
"masked"). Nothing after this module knows a metric's name.
"""

from collections.abc import Callable
from typing import NamedTuple

import catalogue
import numpy as np
from spacy.util import registry

if not hasattr(registry, "pll_metrics"):
    registry.pll_metrics = catalogue.create("spacy", "pll_metrics", entry_points=True)


class MaskRows(NamedTuple):
    """The masked contexts whose answers make up the scores of a context's pieces.

    The score of piece t is the sum, over the rows r with `target[r] == t`, of
    `weight[r]` times the log-probability of piece t with `masked[r]` masked.
    """

    target: np.ndarray  # int, shape (rows,): the piece that is scored
    masked: np.ndarray  # bool, shape (rows, pieces)
    weight: np.ndarray  # float, shape (rows,)


Metric = Callable[[np.ndarray], MaskRows]


def one_row_per_piece(masked: np.ndarray) -> MaskRows:
    """Row t of a (pieces, pieces) matrix is what is masked while piece t is scored."""
    n = len(masked)
    return MaskRows(np.arange(n), masked, np.ones(n))


@registry.pll_metrics("original")
def original(word: np.ndarray) -> MaskRows:
    """Mask the target alone: `i == t` (K&I equation 1; Salazar et al. 2020)."""
    return one_row_per_piece(np.eye(len(word), dtype=bool))


@registry.pll_metrics("word_l2r")
def word_l2r(word: np.ndarray) -> MaskRows:
    """Mask the target and what follows it in its word: `word[i] == word[t] and i >= t` (K&I equation 2)."""
    return one_row_per_piece(np.triu(word[:, None] == word[None, :]))


@registry.pll_metrics("whole_word")
def whole_word(word: np.ndarray) -> MaskRows:
    """Mask the whole word of the target: `word[i] == word[t]` (K&I equation 3)."""
    return one_row_per_piece(word[:, None] == word[None, :])


@registry.pll_metrics("sentence_l2r")
def sentence_l2r(word: np.ndarray) -> MaskRows:
    """Mask the target and everything after it: `i >= t` (K&I equation 4)."""
    return one_row_per_piece(np.triu(np.ones((len(word), len(word)), dtype=bool)))


@registry.pll_metrics("causal")
def causal(word: np.ndarray) -> MaskRows:
    """Mask nothing: a left-to-right model sees only what precedes the target (K&I appendix B)."""
    return one_row_per_piece(np.zeros((len(word), len(word)), dtype=bool))


causal.model_kind = "causal"


def get_metric(name: str) -> Metric:
    """The metric registered under a name.

    RAISES (ValueError): No metric has that name; the message lists those there are.
    """
    if name not in registry.pll_metrics:
        known = ", ".join(sorted(registry.pll_metrics.get_all()))
        raise ValueError(f"Unknown PLL metric {name!r}. Set `metrics` to a list of these: {known}.")
    return registry.pll_metrics.get(name)
