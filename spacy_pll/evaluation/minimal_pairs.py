"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..settings import BATCH_SIZE
from .accuracies import Ties, outcomes
from .decisions import Decided, Option, OptionScores, score_options
from .items import Pair


class SentenceScores(NamedTuple):
    """The scores of the two sentences of each pair."""

    good: FloatArray  # natural log, summed over wordpieces
    bad: FloatArray
    good_pieces: IntArray
    bad_pieces: IntArray


@dataclass(frozen=True)
class PairScores(Decided):
    """Minimal pairs with their scores."""

    pairs: Sequence[Pair]
    scores: Mapping[str, SentenceScores]  # by metric, or by scorer
    per_piece: bool = False  # whether means per wordpiece are compared, instead of sums
    columns: Mapping[str, str] = field(default_factory=dict)  # what columns begin with where it is not the scorer
    ties: Ties = "share"

    @property
    def items(self) -> Sequence[Pair]:
        return self.pairs

    def decide(self, ties: Ties) -> dict[str, FloatArray]:
        """By scorer, 1 for each pair whose good sentence scores higher, 0 where the bad one does; on a tie 0.5, or 1 if
        the first is taken.
        """
        return {
            scorer: outcomes(good / good_pieces, bad / bad_pieces, ties=ties)
            if self.per_piece
            else outcomes(good, bad, ties=ties)
            for scorer, (good, bad, good_pieces, bad_pieces) in self.scores.items()
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per pair: its number, the sentences, the other columns, and under each scorer the outcome, the scores
        of both sentences, the numbers of wordpieces, and the difference, also per wordpiece. A column `pair` of the
        pairs takes the place of the number.

        RAISES (ValueError): Another column has the name of a column of scores.
        """
        outcomes = self.outcomes
        for i, pair in enumerate(self.pairs):
            sentences, scores = {"sentence_good": pair.good, "sentence_bad": pair.bad}, dict[str, Any]()
            for scorer, sides in self.scores.items():
                values = {name: column[i].item() for name, column in sides._asdict().items()}
                values |= {f"{side}_per_piece": values[side] / values[f"{side}_pieces"] for side in ("good", "bad")}
                values = {"correct": float(outcomes[scorer][i]), **values, "difference": values["good"] - values["bad"]}
                values["difference_per_piece"] = values["good_per_piece"] - values["bad_per_piece"]
                scores |= {f"{self.columns.get(scorer, scorer)}_{name}": value for name, value in values.items()}
            if clash := {*sentences, *scores} & pair.fields.keys():
                raise ValueError(f"The pairs have a column {clash.pop()!r}, as their scores do. Rename it.")
            yield {"pair": i + 1, **sentences, **pair.fields, **scores}


def minimal_pairs(
    nlp: Language | Mapping[str, Language],
    pairs: Iterable[Pair | Sequence[str]],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> PairScores:
    """Score minimal pairs. A sentence that occurs in several pairs is scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
    pairs (Iterable[Union[Pair, Sequence[str]]]): What `read_pairs` reads, or (good sentence, bad sentence).
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): Whether a tie counts as half, or as right.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Number of sentences per batch. Masked contexts that are equal within a batch run once.
    n_process (int): Worker processes.
    show_progress (bool): Show a progress bar for each pipeline.
    RAISES (ValueError): There is no pair, or one is not of this form, or a sentence cannot be scored.
    """
    items = _checked(pairs)
    options = [(Option(pair.good), Option(pair.bad)) for pair in items]
    scored, columns = score_options(nlp, options, component, batch_size, n_process, show_progress)
    return PairScores(items, {label: _sentence_scores(of) for label, of in scored.items()}, per_piece, columns, ties)


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


def _sentence_scores(of_pairs: OptionScores) -> SentenceScores:
    return SentenceScores(*np.array(of_pairs.scores, dtype=np.float64).T, *np.array(of_pairs.pieces).T)
