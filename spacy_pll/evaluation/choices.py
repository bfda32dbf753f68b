"""Choices: how often the right one of several options has the highest score, in a context or without one; or, where no
option is right, how the scores correlate with the preferences of people. A minimal pair is a choice of two.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
from spacy.language import Language

from ..advice.alike import alike_texts, read_alike
from ..advice.giving import advise
from ..advice.items import begun_apart, ended_apart, equal_options, judged_options
from ..arrays import FloatArray, Groups, IntArray, lazy
from ..errors import InputError, PLLError
from ..settings import BATCH_SIZE, in_order, with_known_values
from ..stream.contexts import Placed
from ..stream.workers import Work
from .items import ONE_OPTION, Choice, Item, Option, levels, smallest
from .measurements import Measurement, Ties, accuracies, correlations, outcomes_of
from .suites import Suite, SuiteScores, score_texts
from .text_scores import TextScores


@with_known_values
def choices(
    nlp: Language | Mapping[str, Language],
    items: Iterable[Choice],
    *,
    per_piece: bool = False,
    ties: Ties = "share",
    shared_pieces: bool = False,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> "SuiteScores[ChoiceSuite]":
    """Score the options of choices. Equal texts in equal contexts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
        Its setting `targets` has no effect where there are contexts.
    items (Iterable[Choice]): What `read_choices` reads, or your own.
    per_piece (bool): Compare means per wordpiece instead of sums.
    ties (Literal["share", "first"]): How a tie counts, if the right option is one of the best. share: 1 divided by the
        number of equal options. first: 1 if the right option comes first, else 0.
    shared_pieces (bool): A wordpiece that context and text share belongs to the context, where it begins. Otherwise it
        is an error.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RAISES (ValueError): There is no choice, or one is not valid, or an option cannot be scored.

    ```python
    import spacy_pll
    from spacy_pll import Choice, Option

    nlp = spacy_pll.make_pipeline()
    items = [Choice([Option("are here.", "The keys"), Option("is here.", "The keys")], right=0)]
    spacy_pll.choices(nlp, items).measurements()[0].value  # 1.0
    ```
    """
    read = [item._replace(options=in_order(item.options)) if isinstance(item, Choice) else item for item in items]
    suite, work = ChoiceSuite(read, shared_pieces, ties), Work(batch_size, n_process, show_progress)
    return score_texts(nlp, suite, work, per_piece=per_piece)


def check_choice(choice: Any, location: str) -> None:
    """RAISES (InputError): It is no choice, or its options and the number of the right one are not valid."""
    if not isinstance(choice, Choice) or not all(isinstance(option, Option) for option in choice.options):
        raise InputError(f"{location} must be a `Choice` of `Option`s. It is {choice!r:.100}.")
    n = len(choice.options)
    if n < 2:
        raise InputError(f"{location}: a choice needs two options or more. It has {n}.", ONE_OPTION)
    if not isinstance(choice.right, int | np.integer) or not 0 <= choice.right < n:
        raise InputError(f"{location}: the right option has the number {choice.right!r}, and there are 0 to {n - 1}.")
    if choice.preference is not None and not (n == 2 and math.isfinite(choice.preference)):
        raise InputError(
            f"{location}: the preference for the first of two options must be a finite number. It is "
            f"{choice.preference!r}, and there are {n} options."
        )
    for option in choice.options:
        if not isinstance(option.text, str) or not isinstance(option.context, str):
            given = f"They are {tuple(option)!r:.100}."
            raise InputError(f"{location}: text and context of an option must be strings. {given}")
        if option.parts:
            raise InputError(f"{location}: an option has `parts`, and is scored whole.", "Leave them out.")
        if not option.text.strip():
            raise InputError(f"{location}: an option is empty. Each needs a text.")


class ChoiceSuite(Suite):
    """The options of choices, and which of them win.

    items (Sequence[Choice]): The choices.
    shared_pieces (bool): See `choices`.
    ties (Literal["share", "first"]): See `choices`.
    """

    unit = "choices"

    def __init__(self, items: Sequence[Any], shared_pieces: bool = False, ties: Ties = "share"):
        self.items: Sequence[Item] = items
        self.choices: Sequence[Choice] = self._choices_of(items)
        self.shared_pieces, self.ties = shared_pieces, ties
        for choice, location in zip(self.choices, self.locations):
            check_choice(choice, location)
        self.texts = [option for choice in self.choices for option in choice.options]
        self.options = Groups.of([choice.options for choice in self.choices])
        self.right = np.array([choice.right for choice in self.choices], dtype=np.int64)

    def _choices_of(self, items: Sequence[Any]) -> Sequence[Choice]:
        return items

    @property
    def has_preferences(self) -> bool:
        """Whether the choices have preferences of people instead of a right option."""
        return any(choice.preference is not None for choice in self.choices[:1])

    @lazy
    def locations(self) -> list[str]:
        """Where each choice is from, for messages."""
        named = (f"{self.unit.removesuffix('s').capitalize()} {i}" for i in count(1))
        fields = (getattr(choice, "fields", None) for choice in self.choices)
        return [str(getattr(of_choice, "place", name)) for of_choice, name in zip(fields, named)]

    @lazy
    def with_equal_options(self) -> list[int]:
        """Which choices have their right option twice. White space at the ends makes no difference."""
        read = [tuple(map(str.strip, map(str, in_context))) for in_context in self.places]
        own = zip(self.options, self.right.tolist())
        return [i for i, (options, right) in enumerate(own) if read[options].count(read[options.start + right]) > 1]

    def check(self, per_piece: bool) -> None:
        if not self.choices:
            raise PLLError(f"There is no {self.unit.removesuffix('s')}, so there is no accuracy.")
        if len({choice.preference is None for choice in self.choices}) > 1:
            problem = "Some choices have a right option, and others the preferences of people."
            raise InputError(problem, "Score them one after the other.")
        if len(self.with_equal_options) == len(self.choices):
            problem = f"{self.locations[0]}: {self._equal_options(0)}, as in all {self.unit}."
            raise InputError(problem, "Is one column given twice? Name the columns of both.")
        options, in_places = [choice.options for choice in self.choices], (self.locations, self.unit)
        advise(
            equal_options({i: self._equal_options(i) for i in self.with_equal_options}, *in_places),
            begun_apart(options, *in_places),
            ended_apart(options, *in_places),
            judged_options(options, self.right.tolist(), *in_places),
        )

    def _equal_options(self, i: int) -> str:
        """What is said of a choice whose right option is there twice."""
        choice, what = self.choices[i], "both sentences are" if self.unit == "pairs" else "two options are"
        return f"{what} equal, {choice.options[choice.right].text!r:.100}"

    def warn_of_alike(self, read: Mapping[Placed, bytes], title: str) -> None:
        each = ((i, read_alike(self.places[options], read)) for i, options in enumerate(self.options))
        if alike := [(i, differing) for i, differing in each if differing]:
            (first, (two, *_)), unit = alike[0], self.unit
            what = "both sentences" if unit == "pairs" else "two options"
            counts = f"{len(alike):,} of {len(self.choices):,} {unit}"
            advise(alike_texts(f"{self.locations[first]}: {what}", two, counts, title))

    @property
    def chance(self) -> float:  # type: ignore[override]  # of these there is one
        return float(np.mean(1 / self.options.lengths))

    def compared(self, scores: TextScores) -> FloatArray:
        """The numbers that are compared: see `TextScores`. Shape (choices, options); minus infinity where a choice has
        fewer options than others.
        """
        table = np.full((len(self.choices), int(self.options.lengths.max())), -np.inf)
        table[self.options.owner, self.options.within] = scores.compared
        return table

    def outcomes(self, scores: TextScores, ties: Ties | None = None) -> FloatArray:
        """For each choice, 1 if the right option has the highest score, and 0 if not: see `outcomes_of`. Shape
        (choices,).

        ties (Optional[Literal["share", "first"]]): None: as the suite has it.
        RAISES (ValueError): The choices have preferences of people instead of a right option.
        """
        if self.has_preferences:
            raise PLLError("These choices have no right option, so there is no accuracy.")
        return outcomes_of(self.compared(scores), self.right, ties or self.ties)

    def probabilities(self, scores: TextScores) -> FloatArray:
        """exp of the numbers that are compared, normalised so that the options of a choice sum to 1. Shape (choices,
        options).
        """
        compared = self.compared(scores)
        weights = np.exp(compared - compared.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def chosen(self, scores: TextScores) -> IntArray:
        """The number of the option with the highest score, for each choice; of equal ones the first."""
        return self.compared(scores).argmax(axis=1)

    def measurements(self, scores: Mapping[str, TextScores]) -> list[Measurement]:
        return self._measured(scores, None)

    def measurements_by(self, scores: Mapping[str, TextScores], by: Sequence[str]) -> list[Measurement]:
        return self._measured(scores, by)

    def _measured(self, scores: Mapping[str, TextScores], by: Sequence[str] | None) -> list[Measurement]:
        """Accuracies; or, where no option is right, how the probability of the first option correlates with the
        preferences of people.
        """
        if self.has_preferences:
            people = np.array([choice.preference for choice in self.choices], dtype=np.float64)
            first = {scorer: self.probabilities(of_scorer)[:, 0] for scorer, of_scorer in scores.items()}
            return correlations(self.items, first, people, by)
        outcomes = {scorer: self.outcomes(of_scorer) for scorer, of_scorer in scores.items()}
        shares = {scorer: self.outcomes(of_scorer, "share") for scorer, of_scorer in scores.items()}
        tied = {scorer: (share > 0) & (share < 1) for scorer, share in shares.items()}
        return accuracies(self.items, outcomes, by, tied=tied)

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        """One row per option: the numbers of choice and option, whether it is right (None where none is), its context
        and text, the other columns of the choice, and under each scorer its score, wordpieces, whether it was chosen,
        and its probability among the options.

        RAISES (ValueError): Another column has the name of one of these.
        """
        owner, within = self.options.owner, self.options.within
        columns = dict[str, list[Any]]()
        for of_scorer in scores.values():
            columns[of_scorer.column] = of_scorer.sums.tolist()
            columns[f"{of_scorer.column}_pieces"] = of_scorer.pieces.tolist()
            columns[f"{of_scorer.column}_chosen"] = (self.chosen(of_scorer)[owner] == within).tolist()
            columns[f"{of_scorer.column}_probability"] = self.probabilities(of_scorer)[owner, within].tolist()
        for option, i, k, *values in zip(self.texts, owner.tolist(), within.tolist(), *columns.values()):
            choice = self.choices[i]
            right = k == choice.right if choice.preference is None else None
            row = {"choice": i + 1, "option": k + 1, "right": right, "context": option.context, "text": option.text}
            row |= {"after": option.after} if option.after else {}
            yield self._row(row, choice.fields, dict(zip(columns, values)))

    def _row(self, own: Mapping[str, Any], fields: Mapping[str, Any], scores: Mapping[str, Any]) -> dict[str, Any]:
        """A row of `rows`."""
        if clash := {*own, *scores} & fields.keys():
            raise PLLError(f"The {self.unit} have a column {clash.pop()!r}, as their scores do. Rename it.")
        return {**own, **fields, **scores}

    def predictions(self, scores: TextScores, by: Sequence[str] | None = None) -> dict[str, Any]:
        """The chosen texts by group, as the BabyLM evaluation pipeline (2025) writes them: an option with the space
        before it; where the options are a text in several contexts, context and text. Where no option is right, they
        have the probability of the first.

        by (Optional[Sequence[str]]): See `levels`; the smallest groups are taken.
        """
        _, groups = smallest(levels(self.items, in_order(by)))
        made, probabilities = list[dict[str, Any]](), self.probabilities(scores)[:, 0].tolist()
        for choice, options, chosen, probability in zip(
            self.choices, self.options, self.chosen(scores).tolist(), probabilities
        ):
            option, contexts = choice.options[chosen], {option.context for option in choice.options}
            text, before, _ = self.places[options.start + chosen]
            made.append({"pred": f"{before if len(contexts) > 1 else before[len(option.context) :]}{text}"})
            made[-1] |= {"prob": probability} if self.has_preferences else {}
        return {
            name: {"predictions": [{"id": f"{name}_{n}", **made[i]} for n, i in enumerate(members)]}
            for name, _, members in groups
        }
