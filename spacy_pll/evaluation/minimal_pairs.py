"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..errors import PLLError
from ..settings import BATCH_SIZE, in_order, with_known_values
from ..stream.workers import Work
from .choices import ChoiceSuite
from .items import Choice, Option, Pair
from .measurements import Ties
from .suites import SuiteScores, score_texts
from .text_scores import TextScores


@with_known_values
def minimal_pairs(
    nlp: Language | Mapping[str, Language],
    pairs: Iterable[Pair | Sequence[str]],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> "SuiteScores[PairSuite]":
    """Score minimal pairs. A sentence that occurs in several pairs is scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
    pairs (Iterable[Union[Pair, Sequence[str]]]): What `read_pairs` reads, or (good sentence, bad sentence).
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): Whether a tie counts as half, or as right.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RAISES (ValueError): There is no pair, or one is not of this form, or a sentence cannot be scored.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline(metrics=["word_l2r", "original"])
    pairs = [("The cats sleep.", "The cats sleeps."), ("She saw herself.", "She saw himself.")]
    scored = spacy_pll.minimal_pairs(nlp, pairs)
    [one.value for one in scored.measurements()]  # [1.0, 1.0]
    ```
    """
    items = []
    for number, pair in enumerate([pairs] if isinstance(pairs, str | Path) else pairs, 1):
        two = pair[:2] if isinstance(pair, Pair) else in_order(pair)
        if not isinstance(two, list | tuple) or len(two) != 2 or not all(isinstance(text, str) for text in two):
            raise PLLError(
                f"Pair {number} must be two texts, or a `Pair`. It is {pair!r:.100}. `spacy_pll.read_pairs` reads a "
                "file."
            )
        items.append(pair if isinstance(pair, Pair) else Pair(*two))
    work = Work(batch_size, n_process, show_progress)
    return score_texts(nlp, PairSuite(items, ties=ties), work, per_piece=per_piece)


class PairSuite(ChoiceSuite):
    """The sentences of minimal pairs: each is a choice of two options, of which the first is the good sentence.

    items (Sequence[Pair]): The pairs.
    """

    unit = "pairs"

    def _choices_of(self, items: Sequence[Pair]) -> list[Choice]:
        return [Choice((Option(good), Option(bad)), 0, fields) for good, bad, fields in items]

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        """One row per pair: its number, the sentences, the other columns, and under each scorer the outcome, the scores
        of both sentences, the numbers of wordpieces, and the difference, also per wordpiece. A column `pair` of the
        pairs takes the place of the number.

        RAISES (ValueError): Another column has the name of a column of scores.
        """
        columns = dict[str, list[Any]]()
        for of_scorer in scores.values():
            (good, bad), (good_pieces, bad_pieces) = of_scorer.sums.reshape(-1, 2).T, of_scorer.pieces.reshape(-1, 2).T
            good_mean, bad_mean = good / good_pieces, bad / bad_pieces
            own = {"correct": self.outcomes(of_scorer), "good": good, "bad": bad}
            own |= {"good_pieces": good_pieces, "bad_pieces": bad_pieces}
            own |= {"good_per_piece": good_mean, "bad_per_piece": bad_mean}
            own |= {"difference": good - bad, "difference_per_piece": good_mean - bad_mean}
            columns |= {f"{of_scorer.column}_{end}": values.tolist() for end, values in own.items()}
        for number, ((good, bad, fields), *values) in enumerate(zip(self.items, *columns.values()), 1):
            sentences = {"sentence_good": good, "sentence_bad": bad}
            yield {"pair": number, **self._row(sentences, fields, dict(zip(columns, values)))}
