"""Choices: how often the right one of several options has the highest score, in a context or without one."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..component import get_scorer
from ..errors import InputError
from ..settings import BATCH_SIZE
from ..tables.dataframe import import_pandas
from .accuracies import OVERALL, Accuracy, Ties, accuracies, outcomes_of
from .groups import Item, levels, smallest_groups
from .plots import plot_accuracies
from .scoring import TextSums, score_distinct, score_in_contexts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Option(NamedTuple):
    """A text, and what stands before it."""

    text: str  # a space goes before it where there is a context, and no white space between the two
    context: str = ""  # read before the text, and not scored

    @property
    def parts(self) -> tuple[str, str]:
        """The context, and the text with the space before it: together what the model reads."""
        joined = not self.context or self.context[-1].isspace() or self.text[:1].isspace()
        return self.context, self.text if joined else f" {self.text}"


class Choice(NamedTuple):
    """Options, one of which is right: texts in the same context, or a text in several contexts."""

    options: Sequence[Option]
    right: int = 0  # the number of the right option, from 0
    fields: Mapping[str, Any] = {}  # other columns: ids and conditions


class Scored:
    """Items that several scorers have decided: what minimal pairs and other choices have in common."""

    scores: Mapping[str, Any]  # by metric, or by scorer

    @property
    @abstractmethod
    def items(self) -> Sequence[Item]: ...

    @property
    @abstractmethod
    def outcomes(self) -> dict[str, FloatArray]:
        """By scorer, for each item: 1 where the right option has the highest score, 0 where it has not; on a tie the
        share of it, or what `ties` says.
        """

    @abstractmethod
    def rows(self) -> Iterator[dict[str, Any]]: ...

    def accuracies(self, by: Sequence[str] | None = None) -> list[Accuracy]:
        """The accuracies of each scorer, of all items and of each group, compared with those of the first scorer.

        by (Optional[Sequence[str]]): See `levels`.
        """
        (first, base), *others = self.outcomes.items()
        compared = [one for scorer, won in others for one in accuracies(self.items, won, by, scorer, base)]
        return accuracies(self.items, base, by, first) + compared

    def to_dataframe(self) -> "pd.DataFrame":
        """See `rows`. RAISES (ImportError): pandas is not installed."""
        return import_pandas().DataFrame(list(self.rows()))

    def plot(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw the accuracies of the groups: of those by all columns together, or by the first if others lie in it.

        RAISES (ImportError): matplotlib is not installed.
        """
        groups = levels(self.items, by)
        *_, last = groups
        columns = last if len(last) > 1 else list(groups)[min(1, len(groups) - 1)]
        drawn = [one for one in self.accuracies(by) if tuple(one.group) == columns]
        names = [group.name or OVERALL for group in groups[columns]]
        return plot_accuracies(
            names, {name: [one.estimate for one in drawn if one.scorer == name] for name in self.scores}
        )


@dataclass(frozen=True)
class ChoiceScores(Scored):
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

    @property
    def outcomes(self) -> dict[str, FloatArray]:
        right = [choice.right for choice in self.choices]
        return {scorer: outcomes_of(self.compared(scorer), right, self.ties) for scorer in self.scores}

    def chosen(self, scorer: str) -> IntArray:
        """The number of the option with the highest score, for each choice; of equal ones the first."""
        return self.compared(scorer).argmax(axis=1)

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per option: the numbers of choice and option, whether it is right, its context and text, the other
        columns of the choice, and under each scorer its score, wordpieces, and whether it was chosen.

        RAISES (ValueError): Another column has the name of one of these.
        """
        chosen = {scorer: self.chosen(scorer) for scorer in self.scores}
        for i, choice in enumerate(self.choices):
            for k, option in enumerate(choice.options):
                row: dict[str, Any] = {"choice": i + 1, "option": k + 1, "right": k == choice.right}
                row |= {"context": option.context, "text": option.text}
                scores = dict[str, Any]()
                for scorer in self.scores:
                    name = self.columns.get(scorer, scorer)
                    scores[name] = float(self.scores[scorer][i][k])
                    scores |= {
                        f"{name}_pieces": self.pieces[scorer][i][k],
                        f"{name}_chosen": bool(chosen[scorer][i] == k),
                    }
                if clash := {*row, *scores} & choice.fields.keys():
                    raise ValueError(f"The choices have a column {clash.pop()!r}, as their scores do. Rename it.")
                yield {**row, **choice.fields, **scores}

    def predictions(self, scorer: str, by: Sequence[str] | None = None) -> dict[str, Any]:
        """The chosen texts by group, as the BabyLM evaluation pipeline (2025) writes them: an option with the space
        before it; where the options are a text in several contexts, context and text.

        by (Optional[Sequence[str]]): See `levels`; the smallest groups are taken.
        """
        found: dict[str, Any] = {}
        chosen = dict(zip(map(id, self.choices), self.chosen(scorer)))
        for name, group in smallest_groups(self.choices, by).items():
            texts = []
            for choice in group:
                context, text = choice.options[chosen[id(choice)]].parts
                in_contexts = len({option.context for option in choice.options}) > 1
                texts.append(context + text if in_contexts else text)
            found[name] = {"predictions": [{"id": f"{name}_{i}", "pred": text} for i, text in enumerate(texts)]}
        return found


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
    scored, columns = score_options(
        nlp, [choice.options for choice in found], component, batch_size, n_process, show_progress
    )
    scores = {label: [[one.scores[0] for one in options] for options in of] for label, of in scored.items()}
    pieces = {label: [[one.pieces for one in options] for options in of] for label, of in scored.items()}
    return ChoiceScores(found, scores, pieces, per_piece, ties, columns)


def check_choice(choice: Any, place: str) -> None:
    """RAISES (InputError): It is no choice, or its options and the number of the right one are not valid."""
    if not isinstance(choice, Choice) or not all(isinstance(one, Option) for one in choice.options):
        raise InputError(f"{place} must be a `Choice` of `Option`s. It is {choice!r:.100}.")
    n = len(choice.options)
    if n < 2:
        raise InputError(f"{place}: a choice needs two options or more. It has {n}.")
    if not isinstance(choice.right, int) or not 0 <= choice.right < n:
        raise InputError(f"{place}: the right option has the number {choice.right!r}, and there are 0 to {n - 1}.")
    for option in choice.options:
        if not option.text.strip():
            raise InputError(f"{place}: an option is empty. Each needs a text.")
    if len(set(choice.options)) < n:
        raise InputError(f"{place}: two options are equal: {choice.options!r:.200}. Leave one out.")


def score_options(
    nlp: Language | Mapping[str, Language],
    items: Sequence[Sequence[Option]],
    component: str | None,
    batch_size: int,
    n_process: int,
    show_progress: bool,
) -> tuple[dict[str, list[list[TextSums]]], dict[str, str]]:
    """Score the options of each item under each metric of each pipeline.

    RETURNS: By scorer, of each option of each item, its one score and its wordpieces; and the attributes of the
        metrics, where the scorers are metrics of one pipeline.
    RAISES (InputError): An option has no wordpiece.
    """
    found: dict[str, list[list[TextSums]]] = {}
    columns: dict[str, str] = {}
    distinct = dict.fromkeys(option for options in items for option in options)
    how = batch_size, show_progress, n_process
    for name, one in (nlp if isinstance(nlp, Mapping) else {"": nlp}).items():
        scorer = get_scorer(one, component)
        if any(option.context for option in distinct):
            in_context = score_in_contexts(one, [option.parts for option in distinct], *how, component=component)
            scores = {option: in_context[option.parts] for option in distinct}
        else:
            alone = score_distinct(one, scorer.names, [option.text for option in distinct], *how)
            scores = {option: alone[option.text] for option in distinct}
        for option, score in scores.items():
            if not score.pieces:
                raise InputError(_without_piece(option))
        metrics = scorer.settings.metrics
        for i, metric in enumerate(metrics):
            label = metric if not name else name if len(metrics) == 1 else f"{name} {metric}"
            found[label] = [
                [scores[one]._replace(scores=(scores[one].scores[i],)) for one in options] for options in items
            ]
            if not name:
                columns[label] = scorer.names.metrics[metric]
    return found, columns


def _without_piece(option: Option) -> str:
    if not option.context:
        return (
            f"The sentence {option.text!r} has no wordpiece under this model's tokenizer, so what it belongs to has no "
            "outcome. Leave it out."
        )
    return (
        f"The text {option.text!r} has no wordpiece of its own after {option.context[-80:]!r}: a wordpiece belongs to "
        "where it begins. Put a space between the two, or leave this choice out."
    )
