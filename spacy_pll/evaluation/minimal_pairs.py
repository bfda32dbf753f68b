"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..component import get_scorer
from ..errors import InputError
from ..settings import BATCH_SIZE
from ..tables.dataframe import import_pandas
from .accuracies import OVERALL, Accuracy, accuracies, outcomes
from .groups import Pair, levels
from .plots import plot_accuracies
from .readers import BAD, GOOD
from .scoring import TextSums, score_distinct

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class SentenceScores(NamedTuple):
    """The scores of the two sentences of each pair."""

    good: FloatArray  # natural log, summed over wordpieces
    bad: FloatArray
    good_pieces: IntArray
    bad_pieces: IntArray


@dataclass(frozen=True)
class PairScores:
    """Minimal pairs with their scores."""

    pairs: Sequence[Pair]
    scores: Mapping[str, SentenceScores]  # by metric, or by scorer
    per_piece: bool = False  # whether means per wordpiece are compared, instead of sums
    columns: Mapping[str, str] = field(default_factory=dict)  # what columns begin with where it is not the scorer

    @property
    def outcomes(self) -> dict[str, FloatArray]:
        """1 for each pair whose good sentence scores higher, 0 where the bad one does, 0.5 on a tie."""
        return {
            scorer: outcomes(good / good_pieces, bad / bad_pieces) if self.per_piece else outcomes(good, bad)
            for scorer, (good, bad, good_pieces, bad_pieces) in self.scores.items()
        }

    def accuracies(self, by: Sequence[str] | None = None) -> list[Accuracy]:
        """The accuracies of each scorer, of all pairs and of each group, compared with those of the first scorer.

        by (Optional[Sequence[str]]): See `levels`.
        """
        (first, base), *others = self.outcomes.items()
        compared = [one for scorer, won in others for one in accuracies(self.pairs, won, by, scorer, base)]
        return accuracies(self.pairs, base, by, first) + compared

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per pair: its number, the sentences, the other columns, and under each scorer the outcome, the scores
        of both sentences, the numbers of wordpieces, and the difference, also per wordpiece. A column `pair` of the
        pairs takes the place of the number.

        RAISES (ValueError): Another column has the name of a column of scores.
        """
        outcomes = self.outcomes
        for i, pair in enumerate(self.pairs):
            sentences, scores = {GOOD[0]: pair.good, BAD[0]: pair.bad}, dict[str, Any]()
            for scorer, sides in self.scores.items():
                values = {name: column[i].item() for name, column in sides._asdict().items()}
                values |= {f"{side}_per_piece": values[side] / values[f"{side}_pieces"] for side in ("good", "bad")}
                values = {"correct": float(outcomes[scorer][i]), **values, "difference": values["good"] - values["bad"]}
                values["difference_per_piece"] = values["good_per_piece"] - values["bad_per_piece"]
                scores |= {f"{self.columns.get(scorer, scorer)}_{name}": value for name, value in values.items()}
            if clash := {*sentences, *scores} & pair.fields.keys():
                raise ValueError(f"The pairs have a column {clash.pop()!r}, as their scores do. Rename it.")
            yield {"pair": i + 1, **sentences, **pair.fields, **scores}

    def to_dataframe(self) -> "pd.DataFrame":
        """One row per pair: see `rows`. RAISES (ImportError): pandas is not installed."""
        return import_pandas().DataFrame(list(self.rows()))

    def plot(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw the accuracies of the groups: of those by all columns together, or by the first if others lie in it.

        RAISES (ImportError): matplotlib is not installed.
        """
        groups = levels(self.pairs, by)
        *_, last = groups
        columns = last if len(last) > 1 else list(groups)[min(1, len(groups) - 1)]
        drawn = [one for one in self.accuracies(by) if tuple(one.group) == columns]
        names = [group.name or OVERALL for group in groups[columns]]
        return plot_accuracies(
            names, {name: [one.estimate for one in drawn if one.scorer == name] for name in self.scores}
        )


def minimal_pairs(
    nlp: Language | Mapping[str, Language],
    pairs: Iterable[Pair | Sequence[str]],
    *,
    per_piece: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> PairScores:
    """Score minimal pairs. A sentence that occurs in several pairs is scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
    pairs (Iterable[Union[Pair, Sequence[str]]]): What `read_pairs` reads, or (good sentence, bad sentence).
    per_piece (bool): Compare means per wordpiece instead of sums.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Number of sentences per batch. Masked contexts that are equal within a batch run once.
    n_process (int): Worker processes.
    show_progress (bool): Show a progress bar for each pipeline.
    RAISES (ValueError): There is no pair, or one is not of this form, or a sentence cannot be scored.
    """
    items = _checked(pairs)
    scored: dict[str, SentenceScores] = {}
    columns: dict[str, str] = {}
    for name, one in (nlp if isinstance(nlp, Mapping) else {"": nlp}).items():
        scorer = get_scorer(one, component)
        sentences = [sentence for pair in items for sentence in pair[:2]]
        scores = score_distinct(one, scorer.names, sentences, batch_size, show_progress, n_process)
        metrics = scorer.settings.metrics
        for i, metric in enumerate(metrics):
            label = metric if not name else name if len(metrics) == 1 else f"{name} {metric}"
            scored[label] = _sentence_scores(items, scores, i)
            if not name:
                columns[label] = scorer.names.metrics[metric]
    return PairScores(items, scored, per_piece, columns)


def _checked(pairs: Iterable[Pair | Sequence[str]]) -> list[Pair]:
    items = []
    for number, pair in enumerate([pairs] if isinstance(pairs, str | Path) else pairs, 1):
        two = pair[:2] if isinstance(pair, Pair) else pair
        if not isinstance(two, tuple | list) or len(two) != 2 or not all(isinstance(text, str) for text in two):
            raise ValueError(
                f"Pair {number} must be two texts, or a `Pair`. It is {pair!r:.100}. `spacy_pll.read_pairs` reads a "
                "file."
            )
        items.append(pair if isinstance(pair, Pair) else Pair(*two))
    if not items:
        raise ValueError("There is no pair, so there is no accuracy.")
    return items


def _sentence_scores(pairs: Sequence[Pair], scores: Mapping[str, TextSums], metric: int) -> SentenceScores:
    """RAISES (InputError): A sentence has no wordpiece, so it has no score."""
    good, bad = ([scores[sentence] for sentence in side] for side in zip(*(pair[:2] for pair in pairs)))
    for sentence in (sentence for pair in pairs for sentence in pair[:2]):
        if not scores[sentence].pieces:
            raise InputError(
                f"The sentence {sentence!r} has no wordpiece under this model's tokenizer, so its pair has no outcome. "
                "Leave this pair out."
            )
    a, b = (np.array([one.scores[metric] for one in side], dtype=np.float64) for side in (good, bad))
    return SentenceScores(a, b, np.array([one.pieces for one in good]), np.array([one.pieces for one in bad]))
