"""Test suites: texts, and what is computed from the scores of each text or of its parts."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from os.path import commonprefix
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..component import PLLScorer, get_scorer
from ..errors import InputError
from ..pipelines import make_pipeline
from ..scoring.kept_encodings import KeptEncodings
from ..scoring.wordpieces import Encoded
from ..settings import BATCH_SIZE
from ..stream.contexts import Part, Placed, TextInContext, readings
from ..stream.known import KeptScores, TextSums, score_distinct
from ..stream.workers import Work
from ..user_warnings import warn_user


class PartScore(NamedTuple):
    """The score of a text, or of a part of it."""

    score: float  # natural log, summed over wordpieces; 0.0 for a part without a wordpiece
    pieces: int  # scored wordpieces


class PieceScore(PartScore):
    """The score of a wordpiece, in a suite in which each is a part."""

    id: int  # in the vocabulary

    def __new__(cls, score: float, id: int) -> "PieceScore":
        made = super().__new__(cls, score, 1)
        made.id = id
        return made


class Measure(NamedTuple):
    """A value that a suite has, for all items or a group of them."""

    measure: str  # such as "accuracy"
    group: str  # "overall", or what the items have in common
    n: int  # items
    value: float
    low: float | None = None  # 95 % interval, if there is one
    high: float | None = None
    scorer: str = ""  # the metric, or the scorer if there are several


PartScores = Sequence[Sequence[PartScore]]  # for each text, its parts in their order; a text without parts is one


class Suite(ABC):
    """Texts, and what is computed from their scores."""

    texts: Sequence[TextInContext]
    by_piece = False  # whether each wordpiece of a text is a part, a `PieceScore`
    shared_pieces = True  # whether a wordpiece that context and text share belongs to the context, or is an error

    def check(self, per_piece: bool) -> None:  # noqa: B027  # most can be measured in any way
        """RAISES (ValueError): The suite cannot be measured so. This is asked before anything is scored."""

    def warn_of_alike(self, read: Mapping[Placed, bytes], title: str) -> None:
        """Warn of texts that differ, and are the same to the tokenizer of a model.

        read (Mapping[Tuple[Union[str, Doc], str, str], bytes]): What `readings` has of each text in its place.
        title (str): What the model is called.
        """
        if alike := read_alike(read, read):
            warn_of_alike("Two texts", alike[0], f"{len(alike):,} of {len(read):,} texts", title)

    @abstractmethod
    def measures(self, scores: PartScores, per_piece: bool) -> list[Measure]:
        """What the suite measures.

        scores (Sequence[Sequence[PartScore]]): For each text, its parts in their order.
        per_piece (bool): Compare means per wordpiece instead of sums.
        """

    @abstractmethod
    def rows(self, scores: PartScores) -> Iterator[dict[str, Any]]:
        """One row for each part or text, with its score and wordpieces."""

    def results(self, scores: dict[str, PartScores], columns: Mapping[str, str], per_piece: bool, **how: Any) -> Any:
        """The suite with its scores. columns (Mapping[str, str]): What columns of scores begin with, by scorer."""
        return SuiteScores(self, scores, per_piece, **how)


@dataclass(frozen=True)
class SuiteScores:
    """A suite with its scores."""

    suite: Suite
    scores: Mapping[str, PartScores]  # by metric, or by scorer if there are several
    per_piece: bool = False

    def measures(self) -> list[Measure]:
        """What the suite measures, under each metric."""
        found = ((metric, self.suite.measures(scores, self.per_piece)) for metric, scores in self.scores.items())
        return [one._replace(scorer=metric) for metric, measures in found for one in measures]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row for each part or text under each metric."""
        for metric, scores in self.scores.items():
            for row in self.suite.rows(scores):
                yield {"metric": metric, **row}


def read_alike(places: Iterable[Placed], read: Mapping[Placed, bytes]) -> list[tuple[str, str]]:
    """Of texts that differ from an earlier one, and are the same to the tokenizer, what differs: the two texts, or what
    stands before or after them. White space at the ends makes no difference.

    read (Mapping[Tuple[Union[str, Doc], str, str], bytes]): What `readings` has of each text in its place.
    """

    def plain(side: str | Doc) -> str:
        return side.text if isinstance(side, Doc) else side

    first, found = dict[bytes, Placed](), list[tuple[str, str]]()
    for place in places:
        other = first.setdefault(read[place], place)
        if other is not place:
            both = zip(*([plain(side).strip() for side in sides] for sides in (other, place)))
            found += [two for two in both if two[0] != two[1]][:1]
    return found


def warn_of_alike(what: str, two: tuple[str, str], counts: str, title: str) -> None:
    """what (str): What the two are called. two (Tuple[str, str]): See `read_alike`. counts (str): "3 of 50 pairs"."""
    begin = max(0, len(commonprefix(two)) - 40)
    one, other = (f"{'…' if begin else ''}{text[begin : begin + 80]}" for text in two)
    warn_user(
        f"{what} differ, {one!r} and {other!r}, but to the tokenizer of {title} they are the same wordpieces, as in "
        f"{counts}. At most what counts as a word can tell them apart. Leave them out, or give a `model` whose "
        "tokenizer keeps what differs, such as case, accents or rare characters."
    )


def check_suite(scorer: PLLScorer, suite: Suite) -> KeptEncodings | None:
    """Warn of texts that differ, and are the same to the tokenizer.

    RETURNS (Optional[KeptEncodings]): What it made of the texts, for scoring them. None: There is no text.
    RAISES (InputError): A part does not lie in its text, or a text cannot be scored: see `check_places`.
    """
    for one in suite.texts:
        if wrong := [part for part in one.parts or () if not 0 <= part[0] <= part[1] <= len(one.text)]:
            what = f"The part {wrong[0]} does not lie in the text {one.text!r:.100}"
            raise InputError(f"{what}, which ends at {len(one.text)}.")
    places = dict.fromkeys(one.place for one in suite.texts)
    blocks = list[tuple[list[str], Encoded]]()
    read = dict(zip(places, readings(scorer, places, suite.shared_pieces, blocks), strict=True))
    suite.warn_of_alike(read, scorer.model.describe().title)
    return KeptEncodings(scorer.model.load().tokenizer, blocks) if blocks else None


def fake_scores(suite: Suite) -> PartScores:
    """Scores of the same form, each of another number, to see what is made of them."""
    return [[PieceScore(-1.0 - number, 0)] * len(one.parts or [one]) for number, one in enumerate(suite.texts)]


def check_rows(suite: Suite, scorers: Mapping[str, Mapping[str, str]]) -> list[dict[str, Any]]:
    """The rows of the suite with other scores. RAISES (ValueError): They cannot be made, whatever the scores are.

    scorers (Mapping[str, Mapping[str, str]]): The attributes of each scorer, by metric. One alone has no name.
    """
    fake = fake_scores(suite)
    labels = [label for name, attributes in scorers.items() for label in labels_of(name, attributes)]
    return list(suite.results(dict.fromkeys(labels, fake), scorers.get("", {}), False).rows())


def labels_of(name: str, metrics: Collection[str]) -> list[str]:
    """What results call the metrics of a pipeline."""
    return [metric if not name else name if len(metrics) == 1 else f"{name} {metric}" for metric in metrics]


def score_suite(
    nlp: Language | Mapping[str, Language],
    suite: Suite,
    *,
    per_piece: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> Any:
    """Score the texts of a suite. Equal texts are scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component, whose setting `targets` has no
        effect here; or several to compare, by name.
    suite (Suite): What `read_suite` reads.
    per_piece (bool): Compare means per wordpiece instead of sums.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RETURNS (Union[SuiteScores, PairScores, ChoiceScores]): By what the suite is.
    RAISES (ValueError): A text cannot be scored, or a part does not lie in its text, or the suite cannot be measured
        so.

    ``` title="pairs.csv"
    good,bad
    The cats sleep.,The cats sleeps.
    ```

    ```python
    import spacy_pll

    suite = spacy_pll.read_suite("pairs.csv", "pairs")
    spacy_pll.score_suite(spacy_pll.make_pipeline(), suite).accuracies()[0].accuracy  # 1.0
    ```
    """
    used = nlp if isinstance(nlp, Language | Mapping) else make_pipeline(nlp)
    return score_texts(used, suite, Work(batch_size, n_process, show_progress), component, per_piece=per_piece)


def score_texts(
    nlp: Language | Mapping[str, Language],
    suite: Suite,
    work: Work,
    component: str | None = None,
    *,
    kept: KeptScores | None = None,
    checked: Collection[KeptEncodings | None] | None = None,
    per_piece: bool = False,
    **how: Any,
) -> Any:
    """See `score_suite`.

    kept (Optional[KeptScores]): Has what is scored already, and gets what is scored.
    checked (Optional[Collection[Optional[KeptEncodings]]]): What `check_suite` returned, or some of it, if this and
        `Suite.check` have found nothing wrong. None: They are asked here.
    how (Any): More for `Suite.results`.
    RAISES (InputError): Nothing is scored before that is known.
    """
    # One alone has no name: then its metrics are the scorers.
    pipelines = nlp if isinstance(nlp, Mapping) else {"": nlp}
    if checked is None:
        suite.check(per_piece)
        checked = [check_suite(get_scorer(one_nlp, component), suite) for one_nlp in pipelines.values()]
    whole: list[Part | None] = [] if suite.by_piece else [None]
    asked = [[(a, b) for a, b in one.parts or ()] or whole for one in suite.texts]
    places = [one.place for one in suite.texts]
    parts = dict[Placed, dict[Part | None, None]]()  # of each distinct text in its place, each once
    for place, of_text in zip(places, asked):
        parts.setdefault(place, {}).update(dict.fromkeys(of_text))
    kept = kept or KeptScores()
    kept.begin((name, place, [*of_place]) for name in pipelines for place, of_place in parts.items())
    scores, columns = dict[str, PartScores](), dict[str, str]()
    for number, (name, one_nlp) in enumerate(pipelines.items()):
        names, tokenizer = get_scorer(one_nlp, component).names, get_scorer(one_nlp, component).model.load().tokenizer
        encodings = next((one for one in checked if one and one.tokenizer is tokenizer), None)
        of_scorer = score_distinct(one_nlp, parts, work, component, kept, number * len(parts), encodings)
        found = {place: dict(zip(parts[place] or count(), sums)) for place, sums in of_scorer}
        of_texts = ((found[place], of_text) for place, of_text in zip(places, asked))
        sums_of = [[sums[part] for part in of_text or sums] for sums, of_text in of_texts]
        for i, label in enumerate(labels_of(name, names.metrics)):
            scores[label] = [[_part_score(sums, i) for sums in of_text] for of_text in sums_of]
        columns |= names.metrics if not name else {}
    return suite.results(scores, columns, per_piece, **how)


def _part_score(sums: TextSums, metric: int) -> PartScore:
    score = sums.scores[metric]
    return PartScore(score, sums.pieces) if sums.id is None else PieceScore(score, sums.id)


def compared(part: PartScore, per_piece: bool) -> float:
    """The number that is compared: the sum, or the mean per wordpiece."""
    return part.score / max(1, part.pieces) if per_piece else part.score
