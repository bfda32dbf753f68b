"""Choices: how often the right one of several options has the highest score, in a context or without one; or, where no
option is right, how the scores correlate with the preferences of people. A minimal pair is a choice of two.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..errors import InputError, PLLError
from ..metrics import pll_metrics
from ..settings import BATCH_SIZE, in_order, with_known_values
from ..stream.contexts import Placed
from ..stream.workers import Work
from ..tables.dataframe import import_pandas
from ..user_warnings import warn_user
from .accuracies import OVERALL, Accuracy, Ties, accuracies, outcomes_of
from .intervals import Estimate
from .items import ONE_OPTION, Choice, Item, Option, levels, smallest
from .labels import JUDGMENT, check_judgments
from .plots import plot_accuracies, plot_curves
from .preferences import Correlation, correlations
from .suites import Measure, PartScores, Suite, read_alike, score_texts, warn_of_alike

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_CURVES = 10
SEVERAL = 10  # of so many choices, not all are meant to differ in their punctuation
SENTENCE_END = re.compile(r"""[.!?…。！？؟।]["'”’»)\]\s]*\Z""")


@with_known_values
def choices(
    nlp: Language | Mapping[str, Language],
    items: Iterable[Choice],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    shared_pieces: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> "ChoiceScores":
    """Score the options of choices. Equal texts in equal contexts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
        Its setting `targets` has no effect where there are contexts.
    items (Iterable[Choice]): What `read_choices` reads, or your own.
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): What a tie of the right option with others counts: one share of it, so a half with
        one other; or 1 if the right option comes first, and otherwise 0.
    shared_pieces (bool): A wordpiece that context and text share belongs to the context, where it begins. Otherwise it
        is an error.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RAISES (ValueError): There is no choice, or one is not valid, or an option cannot be scored.

    ```python
    import spacy_pll
    from spacy_pll import Choice, Option

    nlp = spacy_pll.make_pipeline()
    items = [Choice([Option("are here.", "The keys"), Option("is here.", "The keys")], right=0)]
    spacy_pll.choices(nlp, items).accuracies()[0].accuracy  # 1.0
    ```
    """
    read = [one._replace(options=in_order(one.options)) if isinstance(one, Choice) else one for one in items]
    suite, work = ChoiceSuite(read, shared_pieces), Work(batch_size, n_process, show_progress)
    return score_texts(nlp, suite, work, component, per_piece=per_piece, ties=ties)


def check_choice(choice: Any, place: str) -> None:
    """RAISES (InputError): It is no choice, or its options and the number of the right one are not valid."""
    if not isinstance(choice, Choice) or not all(isinstance(one, Option) for one in choice.options):
        raise InputError(f"{place} must be a `Choice` of `Option`s. It is {choice!r:.100}.")
    n = len(choice.options)
    if n < 2:
        raise InputError(f"{place}: a choice needs two options or more. It has {n}.", ONE_OPTION)
    if not isinstance(choice.right, int | np.integer) or not 0 <= choice.right < n:
        raise InputError(f"{place}: the right option has the number {choice.right!r}, and there are 0 to {n - 1}.")
    if choice.preference is not None and not (n == 2 and math.isfinite(choice.preference)):
        raise InputError(
            f"{place}: the preference for the first of two options must be a finite number. It is "
            f"{choice.preference!r}, and there are {n} options."
        )
    for option in choice.options:
        if not isinstance(option.text, str) or not isinstance(option.context, str):
            given = f"They are {tuple(option)!r:.100}."
            raise InputError(f"{place}: text and context of an option must be strings. {given}")
        if option.parts:
            raise InputError(f"{place}: an option has `parts`, and is scored whole.", "Leave them out.")
        if not option.text.strip():
            raise InputError(f"{place}: an option is empty. Each needs a text.")


def with_equal_options(items: Sequence[Choice]) -> list[int]:
    """Which choices have their right option twice. White space at the ends makes no difference."""
    read = [[tuple(map(str.strip, map(str, one.place))) for one in choice.options] for choice in items]
    return [i for i, options in enumerate(read) if options.count(options[items[i].right]) > 1]


def place_of(items: Sequence[Choice], i: int, unit: str) -> str:
    """Where a choice is from, for messages."""
    fields = getattr(items[i], "fields", None)
    return str(getattr(fields, "place", f"{unit.removesuffix('s').capitalize()} {i + 1}"))


def check_different(items: Sequence[Choice], unit: str) -> None:
    """Warn if the right option of more than one choice in a hundred is there twice: no score can tell the two apart.
    (Of the 67,000 pairs of BLiMP, 7 are so.)

    unit (str): What the choices are called.
    RAISES (InputError): It is so in all of them.
    """
    equal = with_equal_options(items)
    if len(equal) <= len(items) / 100:
        return
    choice, what = items[equal[0]], "both sentences are" if unit == "pairs" else "two options are"
    problem = f"{place_of(items, equal[0], unit)}: {what} equal, {choice.options[choice.right].text!r:.100}"
    if len(equal) == len(items):
        raise InputError(f"{problem}, as in all {unit}.", "Is one column given twice? Name the columns of both.")
    warn_user(
        f"{problem}, as in {len(equal):,} of {len(items):,} {unit}. These are ties whatever the model says. Correct "
        "them, or leave them out."
    )


def check_ended_alike(items: Sequence[Choice], unit: str) -> None:
    """Warn if a full stop stands behind some options of a choice alone. unit (str): What the choices are called."""
    ended = ({bool(SENTENCE_END.search(one.text)) for one in choice.options if not one.after} for choice in items)
    odd = [i for i, kinds in enumerate(ended) if len(kinds) > 1]
    if odd and len(items) >= SEVERAL:
        warn_user(
            f"{place_of(items, odd[0], unit)}: a full stop or the like stands behind one option and not another, as in "
            f"{len(odd):,} of {len(items):,} {unit}. If that is not what you want to compare, correct it."
        )


def check_begun_alike(items: Sequence[Choice], unit: str) -> None:
    """Warn if white space stands before some options of a choice alone. unit (str): What the choices are called."""
    begun = ({(option.context + option.text)[:1].isspace() for option in choice.options} for choice in items)
    if odd := [i for i, kinds in enumerate(begun) if len(kinds) > 1]:
        warn_user(
            f"{place_of(items, odd[0], unit)}: white space stands before one option, and not before another, as in "
            f"{len(odd):,} of {len(items):,} {unit}. Models with byte-level BPE, such as RoBERTa, read other "
            "wordpieces for the first word after a space. If that is not what you want to compare, remove it."
        )


@dataclass(frozen=True)
class ChoiceScores:
    """Choices with their scores."""

    choices: Sequence[Choice]
    scores: Mapping[str, Sequence[Sequence[float]]]  # by scorer, of each option of each choice: natural log, summed
    pieces: Mapping[str, Sequence[Sequence[int]]]  # scored wordpieces
    per_piece: bool = False  # whether means per wordpiece are compared, instead of sums
    ties: Ties = "share"
    columns: Mapping[str, str] = field(default_factory=dict)  # what columns begin with where it is not the scorer
    unit = "choices"  # what they are called

    @property
    def items(self) -> Sequence[Item]:
        """What the choices are made of."""
        return self.choices

    def compared(self, scorer: str) -> FloatArray:
        """The values that are compared: sums, or means per wordpiece. Shape (choices, options); minus infinity where a
        choice has fewer options than others.
        """
        table = np.full((len(self.choices), max(len(choice.options) for choice in self.choices)), -np.inf)
        for row, scores, pieces in zip(table, self.scores[scorer], self.pieces[scorer]):
            row[: len(scores)] = np.divide(scores, pieces if self.per_piece else 1)
        return table

    @property
    def outcomes(self) -> dict[str, FloatArray]:
        """By scorer, for each choice: 1 if the right option has the highest score, and 0 if not. `ties`
        says what a tie counts: see `outcomes_of`.

        RAISES (ValueError): The choices have preferences of people instead of a right option.
        """
        return self._decided(self.ties)

    def _decided(self, ties: Ties) -> dict[str, FloatArray]:
        if self.has_preferences:
            raise PLLError("These choices have no right option, so there is no accuracy. Use `correlations`.")
        right = [choice.right for choice in self.choices]
        return {scorer: outcomes_of(self.compared(scorer), right, ties) for scorer in self.scores}

    def accuracies(self, by: Sequence[str] | None = None) -> list[Accuracy]:
        """The accuracies of each scorer, of all items and of each group, compared with those of the first scorer.

        by (Optional[Sequence[str]]): See `levels`.
        """
        by, outcomes, shares = in_order(by), self.outcomes, self._decided("share")
        base, found = None, list[Accuracy]()
        for scorer, won in outcomes.items():
            tied = (shares[scorer] > 0) & (shares[scorer] < 1)
            found += accuracies(self.items, won, by, scorer, base, tied)
            base = won if base is None else base
        return found

    def to_dataframe(self) -> "pd.DataFrame":
        """See `rows`. RAISES (ImportError): pandas is not installed."""
        return import_pandas().DataFrame(list(self.rows()))

    def plot(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw the accuracies of the groups by all columns together, or by the first if the others divide its groups.

        RAISES (ImportError): matplotlib is not installed.
        """
        by, drawn = in_order(by), defaultdict[str, dict[str, Estimate]](dict)
        columns = _drawn_columns(self.items, by)
        for one in self.accuracies(by):
            if tuple(one.group) == columns:
                drawn[one.scorer][one.name or OVERALL] = one.estimate
        return plot_accuracies(drawn, self._chance)

    def plot_curves(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw curves of the accuracies over the scorers, such as checkpoints of a training: of all items, and of the
        groups that `plot` draws, if there are at most ten. Each metric has a curve of its own.

        RAISES (ImportError): matplotlib is not installed.
        """
        by = in_order(by)
        columns, found = _drawn_columns(self.items, by), self.accuracies(by)
        if len({one.name for one in found if tuple(one.group) == columns}) > MOST_CURVES:
            columns = ()
        curves = defaultdict[str, dict[str, Estimate]](dict)
        for one in found:
            if one.level == OVERALL and not one.group or one.group and tuple(one.group) == columns:
                scorer, _, metric = one.scorer.rpartition(" ")  # as `labels_of` names several metrics
                if metric not in pll_metrics or not scorer:
                    scorer, metric = one.scorer, ""
                curves[" ".join(filter(None, (one.name or OVERALL, metric)))][scorer] = one.estimate
        return plot_curves(curves, self._chance)

    @property
    def _chance(self) -> float:
        return float(np.mean([1 / len(choice.options) for choice in self.choices]))

    @property
    def has_preferences(self) -> bool:
        """Whether the choices have preferences of people instead of a right option."""
        return self.choices[0].preference is not None

    def probabilities(self, scorer: str) -> FloatArray:
        """exp of the values that are compared, normalised so that the options of a choice sum to 1. Shape (choices,
        options).
        """
        compared = self.compared(scorer)
        weights = np.exp(compared - compared.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def correlations(self, by: Sequence[str] | None = None) -> list[Correlation]:
        """By scorer and group, how the probability of the first option correlates with the preferences of people.

        by (Optional[Sequence[str]]): See `levels`.
        RAISES (ValueError): The choices have no preferences of people.
        """
        if not self.has_preferences:
            raise PLLError("These choices have no preferences of people. Use `accuracies`.")
        by = in_order(by)
        people = np.array([choice.preference for choice in self.choices], dtype=np.float64)
        each = ((scorer, self.probabilities(scorer)[:, 0]) for scorer in self.scores)
        return [one for scorer, model in each for one in correlations(self.choices, model, people, by, scorer)]

    def chosen(self, scorer: str) -> IntArray:
        """The number of the option with the highest score, for each choice; of equal ones the first."""
        return self.compared(scorer).argmax(axis=1)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per option: the numbers of choice and option, whether it is right (None where none is), its context
        and text, the other columns of the choice, and under each scorer its score, wordpieces, whether it was chosen,
        and its probability among the options.

        RAISES (ValueError): Another column has the name of one of these.
        """
        chosen = {scorer: self.chosen(scorer) for scorer in self.scores}
        probabilities = {scorer: self.probabilities(scorer) for scorer in self.scores}
        for i, choice in enumerate(self.choices):
            for k, option in enumerate(choice.options):
                right = k == choice.right if choice.preference is None else None
                row = {"choice": i + 1, "option": k + 1, "right": right, "context": option.context, "text": option.text}
                row |= {"after": option.after} if option.after else {}
                scores = dict[str, Any]()
                for scorer in self.scores:
                    name = self.columns.get(scorer, scorer)
                    scores[name] = float(self.scores[scorer][i][k])
                    scores[f"{name}_pieces"] = self.pieces[scorer][i][k]
                    scores[f"{name}_chosen"] = bool(chosen[scorer][i] == k)
                    scores[f"{name}_probability"] = float(probabilities[scorer][i, k])
                yield self._row(row, choice.fields, scores)

    def _row(self, own: Mapping[str, Any], fields: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, Any]:
        """A row of `rows`."""
        if clash := {*own, *scores} & fields.keys():
            raise PLLError(f"The {self.unit} have a column {clash.pop()!r}, as their scores do. Rename it.")
        return {**own, **fields, **scores}

    def predictions(self, scorer: str, by: Sequence[str] | None = None) -> dict[str, Any]:
        """The chosen texts by group, as the BabyLM evaluation pipeline (2025) writes them: an option with the space
        before it; where the options are a text in several contexts, context and text. Where no option is right, they
        have the probability of the first.

        by (Optional[Sequence[str]]): See `levels`; the smallest groups are taken.
        """
        _, groups = smallest(levels(self.choices, by))
        made, probabilities = list[dict[str, Any]](), self.probabilities(scorer)[:, 0].tolist()
        for choice, chosen, probability in zip(self.choices, self.chosen(scorer), probabilities):
            option, contexts = choice.options[chosen], {option.context for option in choice.options}
            text, before, _ = option.place
            made.append({"pred": f"{before if len(contexts) > 1 else before[len(option.context) :]}{text}"})
            made[-1] |= {"prob": probability} if self.has_preferences else {}
        return {
            name: {"predictions": [{"id": f"{name}_{n}", **made[i]} for n, i in enumerate(members)]}
            for name, _, members in groups
        }


def _drawn_columns(items: Sequence[Item], by: Sequence[str] | None) -> tuple[str, ...]:
    """The columns whose groups are drawn."""
    groups = list(levels(items, by))
    return groups[-1] if len(groups[-1]) > 1 else groups[:2][-1]


class ChoiceSuite(Suite):
    """The options of choices, and which of them win.

    items (Sequence[Choice]): The choices.
    shared_pieces (bool): See `choices`.
    """

    made: type[ChoiceScores] = ChoiceScores

    def __init__(self, items: Sequence[Any], shared_pieces: bool = False):
        self.items, self.shared_pieces, self.unit = items, shared_pieces, self.made.unit
        self.choices: Sequence[Choice] = items
        for i, choice in enumerate(self.choices):
            check_choice(choice, place_of(self.choices, i, self.unit))
        self.texts = [option for choice in self.choices for option in choice.options]

    def check(self, per_piece: bool) -> None:
        if not self.choices:
            raise PLLError(f"There is no {self.unit.removesuffix('s')}, so there is no accuracy.")
        if len({choice.preference is None for choice in self.choices}) > 1:
            problem = "Some choices have a right option, and others the preferences of people."
            raise InputError(problem, "Score them one after the other.")
        check_different(self.choices, self.unit)
        check_begun_alike(self.choices, self.unit)
        check_ended_alike(self.choices, self.unit)
        marks = [[bool(JUDGMENT.match(option.text)) for option in choice.options] for choice in self.choices]
        marked = [any(of_one) and not of_one[choice.right] for of_one, choice in zip(marks, self.choices)]
        check_judgments(marked, [place_of(self.choices, i, self.unit) for i in range(len(marked))], self.unit)

    def warn_of_alike(self, read: Mapping[Placed, bytes], title: str) -> None:
        each = ((i, read_alike([one.place for one in choice.options], read)) for i, choice in enumerate(self.choices))
        if alike := [(i, found) for i, found in each if found]:
            (first, (two, *_)), unit = alike[0], self.unit
            what = "both sentences" if unit == "pairs" else "two options"
            counts = f"{len(alike):,} of {len(self.choices):,} {unit}"
            warn_of_alike(f"{place_of(self.choices, first, unit)}: {what}", two, counts, title)

    def measures(self, scores: PartScores, per_piece: bool) -> list[Measure]:
        found = self.results({"": scores}, {}, per_piece).accuracies()
        return [Measure("accuracy", one.label, one.pairs, *one.estimate) for one in found]

    def rows(self, scores: PartScores) -> Iterator[dict[str, Any]]:
        return self.results({"": scores}, {}, False).rows()

    def results(
        self, scores: dict[str, PartScores], columns: Mapping[str, str], per_piece: bool, **how: Any
    ) -> ChoiceScores:
        sums, pieces = dict[str, Any](), dict[str, Any]()
        for scorer, of_options in scores.items():
            parts = (one for (one,) in of_options)
            by_choice = [list(islice(parts, len(choice.options))) for choice in self.choices]
            sums[scorer] = [[one.score for one in options] for options in by_choice]
            pieces[scorer] = [[one.pieces for one in options] for options in by_choice]
        return self.made(self.choices, sums, pieces, per_piece, columns=columns, **how)
