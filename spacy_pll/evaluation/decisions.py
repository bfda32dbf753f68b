"""What minimal pairs and other choices have in common: options that are scored, and items that are decided by them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from spacy.language import Language

from ..arrays import FloatArray
from ..component import get_scorer
from ..errors import InputError
from ..metrics import pll_metrics
from ..tables.dataframe import import_pandas
from .accuracies import OVERALL, Accuracy, Ties, accuracies
from .distinct_texts import score_distinct, score_in_contexts
from .intervals import Estimate
from .items import Item, levels
from .plots import plot_accuracies, plot_curves

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


MOST_CURVES = 10


class Option(NamedTuple):
    """A text, and what stands before it."""

    text: str
    context: str = ""  # read before the text, and not scored
    separator: str = " "  # between the two, unless one of them has white space there

    @property
    def parts(self) -> tuple[str, str]:
        """The context, and the text with the separator before it: together what the model reads."""
        joined = not self.context or self.context[-1].isspace() or self.text[:1].isspace()
        return self.context, self.text if joined else self.separator + self.text


class OptionScores(NamedTuple):
    """The scores of the options of each item."""

    scores: list[list[float]]  # natural log, summed over wordpieces
    pieces: list[list[int]]  # scored wordpieces


class Decided(ABC):
    """Items that several scorers have decided."""

    scores: Mapping[str, Any]  # by metric, or by scorer
    ties: Ties  # see `outcomes_of`

    @property
    @abstractmethod
    def items(self) -> Sequence[Item]: ...

    @abstractmethod
    def decide(self, ties: Ties) -> dict[str, FloatArray]:
        """By scorer, the outcome of each item: see `outcomes_of`."""

    @abstractmethod
    def rows(self) -> Iterator[dict[str, Any]]: ...

    @property
    def outcomes(self) -> dict[str, FloatArray]:
        """By scorer, for each item: 1 where the right option has the highest score, and 0 where it has not. `ties` says
        what a tie counts.
        """
        return self.decide(self.ties)

    def accuracies(self, by: Sequence[str] | None = None) -> list[Accuracy]:
        """The accuracies of each scorer, of all items and of each group, compared with those of the first scorer.

        by (Optional[Sequence[str]]): See `levels`.
        """
        outcomes, shares = self.outcomes, self.decide("share")
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
        """Draw the accuracies of the groups: of those by all columns together, or by the first if others lie in it.

        RAISES (ImportError): matplotlib is not installed.
        """
        columns = _drawn_columns(self.items, by)
        drawn = [one for one in self.accuracies(by) if tuple(one.group) == columns]
        names = [one.name or OVERALL for one in drawn if one.scorer == drawn[0].scorer]
        return plot_accuracies(
            names, {name: [one.estimate for one in drawn if one.scorer == name] for name in self.scores}
        )

    def plot_curves(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw the accuracies over the scorers, as over the checkpoints of a training: of all items, and of the groups
        that `plot` draws, if they are not more than ten. Several metrics have a curve each.

        RAISES (ImportError): matplotlib is not installed.
        """
        columns, found = _drawn_columns(self.items, by), self.accuracies(by)
        groups = {one.name for one in found if tuple(one.group) == columns and one.group}
        if len(groups) > MOST_CURVES:
            groups = set()
        curves: dict[str, dict[str, Estimate]] = {}
        for one in found:
            if one.level == OVERALL and not one.group or tuple(one.group) == columns and one.name in groups:
                scorer, _, metric = one.scorer.rpartition(" ")  # as `score_options` names several metrics
                if metric not in pll_metrics or not scorer:
                    scorer, metric = one.scorer, ""
                curve = " ".join(filter(None, (one.name or OVERALL, metric)))
                curves.setdefault(curve, {})[scorer] = one.estimate
        return plot_curves(curves)


def _drawn_columns(items: Sequence[Item], by: Sequence[str] | None) -> tuple[str, ...]:
    """The columns whose groups are drawn."""
    groups = levels(items, by)
    *_, last = groups
    return last if len(last) > 1 else list(groups)[min(1, len(groups) - 1)]


def score_options(
    nlp: Language | Mapping[str, Language],
    items: Sequence[Sequence[Option]],
    component: str | None,
    batch_size: int,
    n_process: int,
    show_progress: bool,
) -> tuple[dict[str, OptionScores], dict[str, str]]:
    """Score the options of each item under each metric of each pipeline.

    RETURNS: The scores, by scorer; and the attributes of the metrics, where the scorers are metrics of one pipeline.
    RAISES (InputError): An option has no wordpiece.
    """
    found: dict[str, OptionScores] = {}
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
        metrics, pieces = scorer.settings.metrics, [[scores[one].pieces for one in options] for options in items]
        for i, metric in enumerate(metrics):
            label = metric if not name else name if len(metrics) == 1 else f"{name} {metric}"
            found[label] = OptionScores([[scores[one].scores[i] for one in options] for options in items], pieces)
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
