"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020)."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..arrays import FloatArray, IntArray
from ..component import get_scorer
from ..corpus.readers import format_of, list_files, read_rows
from ..corpus.records import PARQUET, InputError, get_text
from ..settings import BATCH_SIZE
from ..tables.dataframe import import_pandas
from ..visualize.plots import plot_accuracies
from .intervals import mcnemar, mean_proportion, paired_difference, proportion
from .scoring import TextSums, score_distinct

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ENDINGS = (".jsonl", ".csv", ".tsv", PARQUET)
# What the columns of the two sentences are called where nothing else is said, in BLiMP's files and in others.
GOOD, BAD = ("sentence_good", "good"), ("sentence_bad", "bad")
# BLiMP's columns of groups and of smaller groups; and the field that pairs from a folder have.
PHENOMENON, PARADIGM, FILE = "linguistics_term", "UID", "file"
OVERALL, MACRO = "overall", "macro"


class Pair(NamedTuple):
    """Two sentences that differ little."""

    good: str
    bad: str
    fields: Mapping[str, Any] = {}  # the other columns: ids and conditions

    @property
    def phenomenon(self) -> str:
        """As BLiMP has it, or ""."""
        return str(self.fields.get(PHENOMENON, ""))

    @property
    def paradigm(self) -> str:
        """As BLiMP has it, or the name of the file, or ""."""
        return str(self.fields.get(PARADIGM, self.fields.get(FILE, "")))


class Accuracy(NamedTuple):
    """How often the better sentence has the higher score, in a group of pairs."""

    scorer: str  # the metric, or the scorer if there are several
    level: str  # "overall", "macro" (the mean over the groups of `name`), or the columns that the group is made by
    name: str  # of the group: the values in these columns, as text
    pairs: int
    ties: int
    accuracy: float  # 0 to 1; a tie counts as half
    low: float  # 95 % interval
    high: float
    # How much more often it is right than the first scorer, on the same pairs; None for the first, and for "macro".
    difference: float | None = None  # of the accuracies, -1 to 1
    difference_low: float | None = None  # 95 % interval
    difference_high: float | None = None
    better: int | None = None  # pairs with a better outcome
    worse: int | None = None
    p: float | None = None  # McNemar's, exact and two-sided
    group: Mapping[str, Any] = {}  # its value in each of these columns


class Group(NamedTuple):
    """Pairs that have the same values in some columns."""

    name: str  # the values as text, which no other group of these columns has
    values: tuple[Any, ...]
    members: list[int]  # the numbers of the pairs, from 0


class Sides(NamedTuple):
    """The scores of the two sentences of each pair."""

    good: FloatArray  # natural log, summed over wordpieces
    bad: FloatArray
    good_pieces: IntArray
    bad_pieces: IntArray


@dataclass(frozen=True)
class PairScores:
    """Minimal pairs with their scores."""

    pairs: Sequence[Pair]
    scores: Mapping[str, Sides]  # by metric, or by scorer
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
        found = accuracies(self.pairs, base, by, first)
        return found + [one for scorer, won in others for one in accuracies(self.pairs, won, by, scorer, base)]

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
                own = {name: column[i].item() for name, column in sides._asdict().items()}
                own |= {f"{side}_per_piece": own[side] / own[f"{side}_pieces"] for side in ("good", "bad")}
                own = {"correct": float(outcomes[scorer][i]), **own, "difference": own["good"] - own["bad"]}
                own["difference_per_piece"] = own["good_per_piece"] - own["bad_per_piece"]
                scores |= {f"{self.columns.get(scorer, scorer)}_{name}": value for name, value in own.items()}
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
        found = levels(self.pairs, by)
        *_, last = found
        columns = last if len(last) > 1 else list(found)[min(1, len(found) - 1)]
        shown = [one for one in self.accuracies(by) if tuple(one.group) == columns]
        names = [group.name or OVERALL for group in found[columns]]
        return plot_accuracies(names, {name: [one[5:8] for one in shown if one.scorer == name] for name in self.scores})


def minimal_pairs(
    nlp: Language | Mapping[str, Language],
    pairs: Iterable[Pair | Sequence[str]],
    *,
    per_piece: bool = False,
    component: str | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool | None = False,
) -> PairScores:
    """Score minimal pairs. A sentence that occurs in several pairs is scored once.

    nlp (Union[Language, Mapping[str, Language]]): A pipeline with a `pll` component; or several to compare, by name.
    pairs (Iterable[Union[Pair, Sequence[str]]]): What `read_pairs` reads, or (good sentence, bad sentence).
    per_piece (bool): Compare means per wordpiece instead of sums.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    batch_size (int): Number of sentences per batch. Masked contexts that are equal within a batch run once.
    n_process (int): Worker processes.
    show_progress (Optional[bool]): Show a progress bar for each pipeline. None: if standard error is a terminal.
    RAISES (ValueError): There is no pair, or one is not of this form, or a sentence cannot be scored.
    """
    items = _checked(pairs)
    found: dict[str, Sides] = {}
    columns: dict[str, str] = {}
    for name, one in (nlp if isinstance(nlp, Mapping) else {"": nlp}).items():
        scorer = get_scorer(one, component)
        sentences = [sentence for pair in items for sentence in pair[:2]]
        scores = score_distinct(one, scorer.names, sentences, batch_size, show_progress, n_process)
        metrics = scorer.settings.metrics
        for i, metric in enumerate(metrics):
            label = metric if not name else name if len(metrics) == 1 else f"{name} {metric}"
            found[label] = _sides(items, scores, i)
            if not name:
                columns[label] = scorer.names.metrics[metric]
    return PairScores(items, found, per_piece, columns)


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


def _sides(pairs: Sequence[Pair], scores: Mapping[str, TextSums], metric: int) -> Sides:
    """RAISES (InputError): A sentence has no wordpiece, so it has no score."""
    good, bad = ([scores[sentence] for sentence in side] for side in zip(*(pair[:2] for pair in pairs)))
    for sentence in (sentence for pair in pairs for sentence in pair[:2]):
        if not scores[sentence].pieces:
            raise InputError(
                f"The sentence {sentence!r} has no wordpiece under this model's tokenizer, so its pair has no outcome. "
                "Leave this pair out."
            )
    a, b = (np.array([one.scores[metric] for one in side], dtype=np.float64) for side in (good, bad))
    return Sides(a, b, np.array([one.pieces for one in good]), np.array([one.pieces for one in bad]))


def read_pairs(
    path: str, good: str | None = None, bad: str | None = None, header: Sequence[str] | None = None
) -> list[Pair]:
    """Read minimal pairs from a file, or from the files of a folder in the order of their names.

    good, bad (Optional[str]): The columns of the sentences. None is BLiMP's name or "good" and "bad".
    header (Optional[Sequence[str]]): The names of the columns of .csv and .tsv files that have no header.
    RETURNS (list[Pair]): Those from a folder also have the field `file`: the name without endings, with its subfolder.
    RAISES (InputError): A pair cannot be read; the message gives the line.
    """
    if not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give a file of minimal pairs, or a folder of them.")
    files = list_files(path, ENDINGS)
    if format_of(files[0]) not in ENDINGS:
        raise InputError(f"{path!r} is no file that ends in {', '.join(ENDINGS)}, and no folder that holds one.")
    pairs, sides = [], ((good, GOOD), (bad, BAD))
    for file in files:
        name = file.relative_to(path).as_posix()
        own = {FILE: name[: name.lower().rindex(format_of(file))]} if Path(path).is_dir() else {}
        table = header is None and format_of(file) in (".csv", ".tsv")
        hint = ", or, if the file has no header, name its columns with --columns" if table else ""
        for place, row in read_rows(file, header):
            names = [one or next((name for name in usual if name in row), usual[0]) for one, usual in sides]
            both = [_sentence(row, place, name, option + hint) for name, option in zip(names, ("--good", "--bad"))]
            pairs.append(Pair(both[0], both[1], {**own, **{k: v for k, v in row.items() if k not in names}}))
    if not pairs:
        raise InputError(f"There is no pair in {path!r}.")
    return pairs


def _sentence(row: dict[str, Any], place: str, column: str, option: str) -> str:
    sentence = get_text(row, place, column, option)
    if not sentence.strip():
        raise InputError(f"{place}: {column!r} is empty. Each pair needs two sentences.")
    return sentence


def default_columns(pairs: Sequence[Pair]) -> list[str]:
    """BLiMP's columns of phenomena and paradigms as far as all pairs have them; without paradigms, the files."""
    if not pairs:
        raise ValueError("There is no pair, so there is no accuracy.")
    shared = set.intersection(*(set(pair.fields) for pair in pairs))
    smaller = PARADIGM if PARADIGM in shared else FILE
    return [column for column in (PHENOMENON, smaller) if column in shared]


def levels(pairs: Sequence[Pair], by: Sequence[str] | None = None) -> dict[tuple[str, ...], list[Group]]:
    """The groups that the pairs are divided into.

    by (Optional[Sequence[str]]): Columns: the values of each make groups, and so do all of them crossed, unless the
        groups of one lie in those of the others. None is `default_columns`.
    RETURNS (dict[tuple[str, ...], list[Group]]): By columns, sorted by name. First, by none, all pairs as one group.
    RAISES (InputError): A pair has no such column.
    """
    if isinstance(by, str):
        raise ValueError(f"`by` must be a list of columns, such as {[by]}. It is {by!r}.")
    columns = list(by) if by is not None else default_columns(pairs)
    for number, pair in enumerate(pairs, 1):
        for column in columns:
            if column not in pair.fields:
                names = ", ".join(map(repr, pair.fields)) or "none"
                raise InputError(f"Pair {number} has no column {column!r}. Its columns are: {names}.")
    found: dict[tuple[str, ...], list[Group]] = {(): [Group("", (), list(range(len(pairs))))]}
    for chosen in [*((column,) for column in columns), *([tuple(columns)] if len(columns) > 1 else [])]:
        groups = _groups(pairs, chosen)
        if len(chosen) == 1 or len(groups) > max(map(len, found.values())):
            found[chosen] = groups
    return found


def _groups(pairs: Sequence[Pair], columns: tuple[str, ...]) -> list[Group]:
    found: dict[str, Group] = {}
    for i, pair in enumerate(pairs):
        values = tuple(pair.fields[column] for column in columns)
        # A value may be a list. And 1 is not True here.
        name = " x ".join(map(str, values))
        found.setdefault(repr(values), Group(name, values, [])).members.append(i)
    count = Counter(group.name for group in found.values())
    groups = (
        one if count[one.name] == 1 else one._replace(name=" x ".join(map(repr, one.values))) for one in found.values()
    )
    return sorted(groups, key=lambda group: group.name)


def smallest_groups(pairs: Sequence[Pair], by: Sequence[str] | None = None) -> dict[str, list[Pair]]:
    """The pairs of each of the smallest groups (see `levels`), in the order in which they come."""
    groups = sorted(list(levels(pairs, by).values())[-1], key=lambda group: group.members)
    return {group.name: [pairs[i] for i in group.members] for group in groups}


def sample_pairs(pairs: Sequence[Pair], n: int, by: Sequence[str] | None = None) -> list[Pair]:
    """A random sample of at most `n` pairs of each of the smallest groups, in BLiMP of each paradigm.

    The seed is the group's name, so the sample is the same each time.
    """
    groups = smallest_groups(pairs, by).items()
    return [pair for name, group in groups for pair in random.Random(name).sample(group, min(n, len(group)))]


def outcomes(good: Sequence[float] | FloatArray, bad: Sequence[float] | FloatArray) -> FloatArray:
    """1 where the good sentence scores higher, 0 where the bad one does, 0.5 on a tie. float64, shape (pairs,)."""
    a, b = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("A score is not a number (NaN), so its pair has no outcome. Score the sentences again.")
    return (a > b) + 0.5 * (a == b)


def accuracies(
    pairs: Sequence[Pair],
    outcomes: FloatArray,
    by: Sequence[str] | None = None,
    scorer: str = "",
    base: FloatArray | None = None,
) -> list[Accuracy]:
    """The accuracy of all pairs, and of each group.

    pairs (Sequence[Pair]): At least one.
    outcomes (float array, shape (pairs,)): 1, 0.5 or 0.
    by (Optional[Sequence[str]]): See `levels`.
    base (Optional[float array]): The outcomes under the scorer to compare with.
    RETURNS (list[Accuracy]): First "overall", the mean over pairs. Then "macro", the mean over the smallest groups, but
        only where they differ in size: otherwise both are equal. Then the groups of each level, sorted by name.
    """
    found = levels(pairs, by)
    results = []
    for columns, groups in found.items():
        level = " x ".join(columns) or OVERALL
        for name, values, members in groups:
            own = outcomes[members]
            gain = () if base is None else _gain(own - base[members])
            one = Accuracy(scorer, level, name, len(own), _ties(own), *proportion(own), *gain)
            results.append(one._replace(group=dict(zip(columns, values))))
    if len({len(group.members) for group in groups}) > 1:
        mean = mean_proportion([outcomes[group.members] for group in groups])
        results.insert(1, Accuracy(scorer, MACRO, level, len(outcomes), _ties(outcomes), *mean))
    return results


def _ties(outcomes: FloatArray) -> int:
    return int((outcomes == 0.5).sum())


def _gain(change: FloatArray) -> tuple[Any, ...]:
    signs = int((change > 0).sum()), int((change < 0).sum())
    return *paired_difference(change), *signs, mcnemar(*signs)
