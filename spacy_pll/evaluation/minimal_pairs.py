"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020)."""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..corpus.readers import PARQUET, InputError, format_of, get_text, list_files, read_rows
from .intervals import Estimate, mean_proportion, proportion
from .scoring import TextScore

ENDINGS = (".jsonl", ".csv", ".tsv", PARQUET)
# What the columns are called in BLiMP's own files.
BLIMP = {"good": "sentence_good", "bad": "sentence_bad", "phenomenon": "linguistics_term", "paradigm": "UID"}


class Pair(NamedTuple):
    """Two sentences that differ little, and what the pair tests."""

    good: str
    bad: str
    phenomenon: str  # "" where it is not known
    paradigm: str


class Accuracy(NamedTuple):
    """How often the better sentence has the higher score, in a group of pairs."""

    level: str  # "overall", "macro", "phenomenon" or "paradigm"
    name: str  # of the phenomenon or paradigm
    pairs: int
    ties: int
    accuracy: float  # 0 to 1; a tie counts as half
    low: float  # 95 % interval
    high: float


def read_pairs(path: str, columns: Mapping[str, str | None] = BLIMP) -> list[Pair]:
    """Read minimal pairs from a file, or from the files of a folder in the order of their names.

    columns (Mapping[str, Optional[str]]): The names of the columns "good", "bad", "phenomenon" and "paradigm". For
        None the name is BLiMP's, and the last two may then be missing: the phenomenon is "", and the paradigm is the
        name of the file, with its subfolder.
    RAISES (InputError): A pair cannot be read; the message gives the line.
    """
    if not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give a file of minimal pairs, or a folder of them.")
    files = list_files(path, ENDINGS)
    if format_of(files[0]) not in ENDINGS:
        raise InputError(f"{path!r} is no file that ends in {', '.join(ENDINGS)}, and no folder that holds one.")
    pairs = []
    for file in files:
        name = file.relative_to(path).as_posix() if Path(path).is_dir() else file.name
        name = name[: name.lower().rindex(format_of(file))]  # without its endings
        pairs += [_pair(row, place, name, columns) for place, row in read_rows(file)]
    if not pairs:
        raise InputError(f"There is no pair in {path!r}.")
    return pairs


def _pair(row: dict[str, Any], place: str, file_name: str, columns: Mapping[str, str | None]) -> Pair:
    return Pair(
        _sentence(row, place, columns, "good"),
        _sentence(row, place, columns, "bad"),
        _group(row, place, columns, "phenomenon", ""),
        _group(row, place, columns, "paradigm", file_name),
    )


def _sentence(row: dict[str, Any], place: str, columns: Mapping[str, str | None], side: str) -> str:
    column = columns[side] or BLIMP[side]
    sentence = get_text(row, place, column, f"--{side}")
    if not sentence.strip():
        raise InputError(f"{place}: {column!r} is empty. Each pair needs two sentences.")
    return sentence


def _group(row: dict[str, Any], place: str, columns: Mapping[str, str | None], kind: str, default: str) -> str:
    if columns[kind] is None and BLIMP[kind] not in row:
        return default
    return get_text(row, place, columns[kind] or BLIMP[kind], f"--{kind}")


def group_by_paradigm(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each paradigm. Paradigms and pairs keep their order."""
    groups = defaultdict(list)
    for pair in pairs:
        groups[pair.paradigm].append(pair)
    return dict(groups)


def sample_pairs(pairs: Iterable[Pair], per_paradigm: int) -> list[Pair]:
    """A random sample of at most `per_paradigm` pairs of each paradigm.

    The seed is the paradigm's name, so the sample is the same each time.
    """
    return [
        pair
        for paradigm, group in group_by_paradigm(pairs).items()
        for pair in random.Random(paradigm).sample(group, min(per_paradigm, len(group)))
    ]


def first_pairs(pairs: Iterable[Pair], per_paradigm: int) -> list[Pair]:
    """The first `per_paradigm` pairs of each paradigm."""
    return [pair for group in group_by_paradigm(pairs).values() for pair in group[:per_paradigm]]


def outcomes(good: Sequence[float], bad: Sequence[float]) -> np.ndarray:
    """1 where the good sentence scores higher, 0 where the bad one does, 0.5 on a tie. float64, shape (pairs,)."""
    a, b = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("A score is not a number (NaN), so its pair has no outcome. Score the sentences again.")
    return (a > b) + 0.5 * (a == b)


def wins(
    pairs: Sequence[Pair], scores: dict[str, TextScore], metrics: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """The outcomes of the pairs under each metric.

    scores (dict[str, TextScore]): The scores of each sentence, one per metric, in the order of `metrics`.
    YIELDS (tuple[str, float array of shape (pairs,)]): A metric, and the `outcomes` under it.
    RAISES (InputError): A sentence has no wordpiece, so it has no score.
    """
    for sentence in (sentence for pair in pairs for sentence in pair[:2]):
        if not scores[sentence].pieces:
            raise InputError(
                f"The sentence {sentence!r} has no wordpiece under this model's tokenizer, so its pair has no outcome. "
                "Leave this pair out."
            )
    for i, metric in enumerate(metrics):
        good, bad = ([scores[sentence].scores[i] for sentence in side] for side in zip(*(pair[:2] for pair in pairs)))
        yield metric, outcomes(good, bad)


def accuracies(pairs: Sequence[Pair], outcomes: np.ndarray) -> list[Accuracy]:
    """Accuracy overall, by phenomenon and by paradigm.

    pairs (Sequence[Pair]): At least one.
    outcomes (float array, shape (pairs,)): 1, 0.5 or 0.
    RETURNS (list[Accuracy]): First "overall", the mean over pairs. Then "macro", the mean over paradigms, but only
        where paradigms differ in size: otherwise both are equal. Then each phenomenon, if pairs have one, and each
        paradigm, sorted by name.
    RAISES (ValueError): There is no pair.
    """

    def group_by(names: Iterable[str]) -> dict[str, np.ndarray]:
        groups = defaultdict(list)
        for name, outcome in zip(names, outcomes, strict=True):
            groups[name].append(outcome)
        return {name: np.array(group) for name, group in sorted(groups.items()) if name}

    phenomena, paradigms = group_by(pair.phenomenon for pair in pairs), group_by(pair.paradigm for pair in pairs)
    results = [_accuracy("overall", "", outcomes, proportion(outcomes))]
    if len({len(group) for group in paradigms.values()}) > 1:
        results.append(_accuracy("macro", "", outcomes, mean_proportion(list(paradigms.values()))))
    for level, groups in (("phenomenon", phenomena), ("paradigm", paradigms)):
        results += [_accuracy(level, name, group, proportion(group)) for name, group in groups.items()]
    return results


def _accuracy(level: str, name: str, outcomes: np.ndarray, estimate: Estimate) -> Accuracy:
    return Accuracy(level, name, len(outcomes), int((outcomes == 0.5).sum()), *estimate)
