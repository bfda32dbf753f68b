"""Choices: how often the right one of several options has the highest score, in a context or without one; or, where no
option is right, how the scores correlate with the preferences of people.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..errors import InputError
from ..settings import BATCH_SIZE
from .accuracies import Ties, outcomes_of
from .decisions import Decided, Option, score_options
from .items import levels
from .preferences import Correlation, correlations


class Choice(NamedTuple):
    """Options, one of which is right: texts in the same context, or a text in several contexts."""

    options: Sequence[Option]
    right: int = 0  # the number of the right option, from 0
    fields: Mapping[str, Any] = {}  # other columns: ids and conditions
    preference: float | None = None  # how much people prefer the first option, on any scale; then none is right


@dataclass(frozen=True)
class ChoiceScores(Decided):
    """Choices with their scores."""

    choices: Sequence[Choice]
    scores: Mapping[str, Sequence[Sequence[float]]]  # by scorer, of each option of each choice: natural log, summed
    pieces: Mapping[str, Sequence[Sequence[int]]]  # scored wordpieces
    per_piece: bool = False  # whether means per wordpiece are compared, instead of sums
    ties: Ties = "share"
    columns: Mapping[str, str] = field(default_factory=dict)  # what columns begin with where it is not the scorer

    @property
    def items(self) -> Sequence[Choice]:
        return self.choices

    def compared(self, scorer: str) -> FloatArray:
        """What is compared: sums, or means per wordpiece. Shape (choices, options); minus infinity where a choice has
        fewer options than others.
        """
        table = np.full((len(self.choices), max(len(choice.options) for choice in self.choices)), -np.inf)
        for row, scores, pieces in zip(table, self.scores[scorer], self.pieces[scorer]):
            row[: len(scores)] = np.divide(scores, pieces if self.per_piece else 1)
        return table

    def decide(self, ties: Ties) -> dict[str, FloatArray]:
        """See `Decided`. RAISES (ValueError): The choices have preferences of people instead of a right option."""
        if self.has_preferences:
            raise ValueError("These choices have no right option, so there is no accuracy. Use `correlations`.")
        right = [choice.right for choice in self.choices]
        return {scorer: outcomes_of(self.compared(scorer), right, ties) for scorer in self.scores}

    @property
    def has_preferences(self) -> bool:
        """Whether the choices have preferences of people instead of a right option."""
        return self.choices[0].preference is not None

    def probabilities(self, scorer: str) -> FloatArray:
        """exp of what is compared, normalised so that the options of a choice sum to 1. Shape (choices, options)."""
        compared = self.compared(scorer)
        weights = np.exp(compared - compared.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def correlations(self, by: Sequence[str] | None = None) -> list[Correlation]:
        """By scorer and group, how the probability of the first option correlates with the preferences of people.

        by (Optional[Sequence[str]]): See `levels`.
        RAISES (ValueError): The choices have no preferences of people.
        """
        if not self.has_preferences:
            raise ValueError("These choices have no preferences of people. Use `accuracies`.")
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
                row: dict[str, Any] = {"choice": i + 1, "option": k + 1, "right": None}
                if choice.preference is None:
                    row["right"] = k == choice.right
                row |= {"context": option.context, "text": option.text}
                scores = dict[str, Any]()
                for scorer in self.scores:
                    name = self.columns.get(scorer, scorer)
                    scores[name] = float(self.scores[scorer][i][k])
                    scores |= {
                        f"{name}_pieces": self.pieces[scorer][i][k],
                        f"{name}_chosen": bool(chosen[scorer][i] == k),
                        f"{name}_probability": float(probabilities[scorer][i, k]),
                    }
                if clash := {*row, *scores} & choice.fields.keys():
                    raise ValueError(f"The choices have a column {clash.pop()!r}, as their scores do. Rename it.")
                yield {**row, **choice.fields, **scores}

    def predictions(self, scorer: str, by: Sequence[str] | None = None) -> dict[str, Any]:
        """The chosen texts by group, as the BabyLM evaluation pipeline (2025) writes them: an option with the space
        before it; where the options are a text in several contexts, context and text. Where no option is right, they
        have the probability of the first.

        by (Optional[Sequence[str]]): See `levels`; the smallest groups are taken.
        """
        *_, groups = levels(self.choices, by).values()
        made = [{"pred": _chosen_text(*one)} for one in zip(self.choices, self.chosen(scorer))]
        if self.has_preferences:
            first = self.probabilities(scorer)[:, 0].tolist()
            made = [{**one, "prob": probability} for one, probability in zip(made, first)]
        return {
            name: {"predictions": [{"id": f"{name}_{n}", **made[i]} for n, i in enumerate(members)]}
            for name, _, members in groups
        }


def _chosen_text(choice: Choice, chosen: int) -> str:
    context, text = choice.options[chosen].parts
    return context + text if len({option.context for option in choice.options}) > 1 else text


def choices(
    nlp: Language | Mapping[str, Language],
    items: Iterable[Choice],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> ChoiceScores:
    """Score the options of choices. Equal texts in equal contexts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
        Its setting `targets` has no effect where there are contexts.
    items (Iterable[Choice]): What `read_choices` reads, or your own.
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): What a tie of the right option with others counts: one share of it, so a half with
        one other; or 1 if the right option comes first, and otherwise 0.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Number of texts per batch.
    n_process (int): Worker processes.
    show_progress (bool): Show a progress bar for each pipeline.
    RAISES (ValueError): There is no choice, or one is not valid, or an option cannot be scored.
    """
    found = list(items)
    for number, choice in enumerate(found, 1):
        check_choice(choice, f"Choice {number}")
    if not found:
        raise ValueError("There is no choice, so there is no accuracy.")
    if len({choice.preference is None for choice in found}) > 1:
        raise InputError(
            "Some choices have a right option, and others the preferences of people. Score them one after the other."
        )
    scored, columns = score_options(
        nlp, [choice.options for choice in found], component, batch_size, n_process, show_progress
    )
    scores = {scorer: options.scores for scorer, options in scored.items()}
    pieces = {scorer: options.pieces for scorer, options in scored.items()}
    return ChoiceScores(found, scores, pieces, per_piece, ties, columns)


def check_choice(choice: Any, place: str) -> None:
    """RAISES (InputError): It is no choice, or its options and the number of the right one are not valid."""
    if not isinstance(choice, Choice) or not all(isinstance(one, Option) for one in choice.options):
        raise InputError(f"{place} must be a `Choice` of `Option`s. It is {choice!r:.100}.")
    n = len(choice.options)
    if n < 2:
        raise InputError(f"{place}: a choice needs two options or more. It has {n}.")
    if not isinstance(choice.right, int | np.integer) or not 0 <= choice.right < n:
        raise InputError(f"{place}: the right option has the number {choice.right!r}, and there are 0 to {n - 1}.")
    if choice.preference is not None and not (n == 2 and math.isfinite(choice.preference)):
        raise InputError(
            f"{place}: the preference for the first of two options must be a finite number. It is "
            f"{choice.preference!r}, and there are {n} options."
        )
    for option in choice.options:
        if not isinstance(option.text, str) or not isinstance(option.context, str):
            raise InputError(
                f"{place}: text and context of an option must be strings. They are {tuple(option)!r:.100}."
            )
        if not option.text.strip():
            raise InputError(f"{place}: an option is empty. Each needs a text.")
