"""Test suites: texts, and what is measured from their scores."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from spacy.language import Language

from ..advice.alike import alike_texts, read_alike
from ..advice.giving import advise
from ..arrays import lazy
from ..component import PLLScorer, get_scorer
from ..errors import InputError, PLLError
from ..metrics import pll_metrics
from ..pipelines import make_pipeline
from ..scoring.kept_encodings import KeptEncodings
from ..scoring.wordpieces import Encoded
from ..settings import BATCH_SIZE, in_order
from ..stream.contexts import Placed, TextInContext, readings
from ..stream.known import KeptScores, score_distinct
from ..stream.workers import Work
from ..tables.dataframe import import_pandas
from .intervals import Estimate
from .measurements import ACCURACY, Measurement
from .plots import plot_accuracies, plot_curves
from .text_scores import TextScores, asked_of, fake_scores, scores_of_texts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_CURVES = 10


class Suite(ABC):
    """Texts, and what is measured from their scores. A test set of another package is a subclass."""

    texts: Sequence[TextInContext]
    unit = "items"  # what the things are called that measurements are of
    by_piece = False  # whether each wordpiece of a text is a part: its number in the vocabulary is known, too
    shared_pieces = True  # whether a wordpiece that context and text share belongs to the context, or is an error
    chance: float | None = None  # the accuracy by chance, if there is one: a line in pictures

    @lazy
    def places(self) -> list[Placed]:
        """The texts in their places."""
        return [text.place for text in self.texts]

    def check(self, per_piece: bool) -> None:  # noqa: B027  # most can be measured in any way
        """RAISES (ValueError): The suite cannot be measured so. This is asked before anything is scored."""

    def warn_of_alike(self, read: Mapping[Placed, bytes], title: str) -> None:
        """Warn of texts that differ, and are the same to the tokenizer of a model.

        read (Mapping[Tuple[Union[str, Doc], str, str], bytes]): What `readings` has of each text in its place.
        title (str): What the model is called.
        """
        if alike := read_alike(read, read):
            advise(alike_texts("Two texts", alike[0], f"{len(alike):,} of {len(read):,} texts", title))

    @abstractmethod
    def measurements(self, scores: Mapping[str, TextScores]) -> Iterable[Measurement]:
        """What is measured. scores (Mapping[str, TextScores]): By scorer, of all texts."""

    def measurements_by(self, scores: Mapping[str, TextScores], by: Sequence[str]) -> Iterable[Measurement]:
        """The same with groups by some columns.

        RAISES (ValueError): The suite has groups of its own, or a column is not there.
        """
        raise PLLError("This suite has groups of its own.", "Leave out `by`.")

    @abstractmethod
    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        """The rows of a table of all scores. scores (Mapping[str, TextScores]): By scorer, of all texts."""


AnySuite = TypeVar("AnySuite", bound=Suite)


@dataclass(frozen=True)
class SuiteScores(Generic[AnySuite]):
    """A test set with its scores: what `minimal_pairs`, `choices` and `score_suite` return."""

    suite: AnySuite
    scores: Mapping[str, TextScores]  # by metric, or by scorer if there are several

    def measurements(self, by: Sequence[str] | None = None) -> list[Measurement]:
        """What is measured under each scorer: of pairs and choices accuracies, of all items and of each group.

        by (Optional[Sequence[str]]): The columns that make the groups of pairs and choices: see `levels`.
        RAISES (ValueError): There is no such column, or the suite has groups of its own.
        """
        if by is None:
            return list(self.suite.measurements(self.scores))
        return list(self.suite.measurements_by(self.scores, in_order(by)))

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows of a table of all scores: one for each pair, for each option of a choice, or for each text or part
        under each metric, with the other columns of the test set.

        RAISES (ValueError): Another column has the name of one of these.
        """
        return self.suite.rows(self.scores)

    def to_dataframe(self) -> "pd.DataFrame":
        """See `rows`. RAISES (ImportError): pandas is not installed."""
        return import_pandas().DataFrame(list(self.rows()))

    def plot(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw the accuracies of the groups by all columns together, or by the first if the others divide its groups.

        RAISES (ValueError): There is no accuracy. RAISES (ImportError): matplotlib is not installed.
        """
        drawn, accuracies = defaultdict[str, dict[str, Estimate]](dict), self._accuracies(by)
        columns = _drawn_columns(accuracies)
        for accuracy in accuracies:
            if accuracy.is_of(columns):
                drawn[accuracy.scorer][accuracy.label] = accuracy.estimate
        return plot_accuracies(drawn, self.suite.chance)

    def plot_curves(self, by: Sequence[str] | None = None) -> "Figure":
        """Draw curves of the accuracies over the scorers, such as checkpoints of a training: of all items, and of the
        groups that `plot` draws, if there are at most ten. Each metric has a curve of its own.

        RAISES (ValueError): There is no accuracy. RAISES (ImportError): matplotlib is not installed.
        """
        accuracies = self._accuracies(by)
        columns = _drawn_columns(accuracies)
        if len({accuracy.name for accuracy in accuracies if accuracy.is_of(columns)}) > MOST_CURVES:
            columns = ()
        curves = defaultdict[str, dict[str, Estimate]](dict)
        for accuracy in accuracies:
            if accuracy.is_of(()) or accuracy.is_of(columns):
                scorer, _, metric = accuracy.scorer.rpartition(" ")  # as `columns_of` names several metrics
                if metric not in pll_metrics or not scorer:
                    scorer, metric = accuracy.scorer, ""
                curves[" ".join(filter(None, (accuracy.label, metric)))][scorer] = accuracy.estimate
        return plot_curves(curves, self.suite.chance)

    def _accuracies(self, by: Sequence[str] | None) -> list[Measurement]:
        accuracies = [measurement for measurement in self.measurements(by) if measurement.measure == ACCURACY]
        if not accuracies:
            raise PLLError("Pictures are of accuracies, and this test set has none.")
        return accuracies


def _drawn_columns(accuracies: Iterable[Measurement]) -> tuple[str, ...]:
    """The columns whose groups are drawn."""
    columns = list(dict.fromkeys(tuple(accuracy.group) for accuracy in accuracies))
    return columns[-1] if len(columns[-1]) > 1 else columns[:2][-1]


def check_suite(scorer: PLLScorer, suite: Suite) -> KeptEncodings | None:
    """Warn of texts that differ, and are the same to the tokenizer.

    RETURNS (Optional[KeptEncodings]): What it made of the texts, for scoring them. None: There is no text.
    RAISES (InputError): A part does not lie in its text, or a text cannot be scored: see `check_places`.
    """
    for text in suite.texts:
        if wrong := [part for part in text.parts or () if not 0 <= part[0] <= part[1] <= len(text.text)]:
            what = f"The part {wrong[0]} does not lie in the text {text.text!r:.100}"
            raise InputError(f"{what}, which ends at {len(text.text)}.")
    places, blocks = dict.fromkeys(suite.places), list[tuple[list[str], Encoded]]()
    read = dict(zip(places, readings(scorer, places, suite.shared_pieces, blocks), strict=True))
    suite.warn_of_alike(read, scorer.model.describe().title)
    return KeptEncodings(scorer.model.load().tokenizer, blocks) if blocks else None


def with_fake_scores(suite: AnySuite, scorers: Mapping[str, Mapping[str, str]]) -> SuiteScores[AnySuite]:
    """The suite with other scores, to see what is made of them.

    scorers (Mapping[str, Mapping[str, str]]): The attributes of each scorer, by metric. One alone has no name.
    """
    fake, columns = fake_scores(suite.texts), dict[str, str]()
    for name, metrics in scorers.items():
        columns |= columns_of(name, metrics)
    return SuiteScores(suite, {label: replace(fake, column=column) for label, column in columns.items()})


def columns_of(name: str, metrics: Mapping[str, str]) -> dict[str, str]:
    """By what results call each metric of a pipeline, what the columns of its scores begin with.

    name (str): Of the pipeline, if there are several, or "".
    metrics (Mapping[str, str]): The attributes, by metric.
    """
    if not name:
        return dict(metrics)
    labels = [name] if len(metrics) == 1 else [f"{name} {metric}" for metric in metrics]
    return dict(zip(labels, labels))


def score_suite(
    nlp: Language | Mapping[str, Language],
    suite: AnySuite,
    *,
    per_piece: bool = False,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> SuiteScores[AnySuite]:
    """Score the texts of a suite. Equal texts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component, whose setting `targets` has no
        effect here; or several to compare, by name.
    suite (Suite): What `read_suite` reads.
    per_piece (bool): Compare means per wordpiece instead of sums.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RAISES (ValueError): A text cannot be scored, or a part does not lie in its text, or the suite cannot be measured
        so.

    ``` title="pairs.csv"
    good,bad
    The cats sleep.,The cats sleeps.
    ```

    ```python
    import spacy_pll

    suite = spacy_pll.read_suite("pairs.csv", "pairs")
    spacy_pll.score_suite(spacy_pll.make_pipeline(), suite).measurements()[0].value  # 1.0
    ```
    """
    used = nlp if isinstance(nlp, Language | Mapping) else make_pipeline(nlp)
    return score_texts(used, suite, Work(batch_size, n_process, show_progress), per_piece=per_piece)


def score_texts(
    nlp: Language | Mapping[str, Language],
    suite: AnySuite,
    work: Work,
    *,
    kept: KeptScores | None = None,
    checked: Collection[KeptEncodings | None] | None = None,
    per_piece: bool = False,
) -> SuiteScores[AnySuite]:
    """See `score_suite`.

    kept (Optional[KeptScores]): Has what is scored already, and gets what is scored.
    checked (Optional[Collection[Optional[KeptEncodings]]]): What `check_suite` returned, or some of it, if this and
        `Suite.check` have found nothing wrong. None: They are asked here.
    RAISES (InputError): Nothing is scored before that is known.
    """
    # One alone has no name: then its metrics are the scorers.
    pipelines = nlp if isinstance(nlp, Mapping) else {"": nlp}
    if checked is None:
        suite.check(per_piece)
        checked = [check_suite(get_scorer(one_nlp), suite) for one_nlp in pipelines.values()]
    asked = asked_of(suite.texts, suite.places, suite.by_piece)
    kept = kept or KeptScores()
    kept.begin((name, in_context, [*parts]) for name in pipelines for in_context, parts in asked.items())
    scores = dict[str, TextScores]()
    for number, (name, one_nlp) in enumerate(pipelines.items()):
        scorer = get_scorer(one_nlp)
        names, tokenizer = scorer.names, scorer.model.load().tokenizer
        encodings = next((encoded for encoded in checked if encoded and encoded.tokenizer is tokenizer), None)
        of_places = score_distinct(one_nlp, asked, work, kept, number * len(asked), encodings)
        text_sums = [sums for _, sums in of_places]
        of_metrics = scores_of_texts(suite.texts, suite.places, asked, text_sums, len(names.metrics))
        for (label, column), of_metric in zip(columns_of(name, names.metrics).items(), of_metrics, strict=True):
            scores[label] = replace(of_metric, per_piece=per_piece, column=column)
    return SuiteScores(suite, scores)
