"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020).

The intervals are percentile bootstrap intervals (Efron & Tibshirani 1993, chapter 13). They are stratified: pairs are
drawn with replacement within each paradigm. A test set fixes its paradigms and the number of pairs of each; what
could have been different is which pairs represent a paradigm. So the intervals are about other pairs of the same
paradigms, not about other paradigms. Like every bootstrap, they understate the spread of small groups: by a factor of
sqrt((n - 1) / n) for n pairs per paradigm. Where all n pairs had the same outcome, the interval has no width.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..corpus.readers import PARQUET, InputError, format_of, get_text, list_files, read_rows
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


def resampled_sums(outcomes: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """For each bootstrap sample, the sum of as many outcomes, drawn with replacement. float64, shape (samples,).

    There are only three different outcomes, so the number of times that each is drawn has a multinomial distribution.
    Drawing these numbers gives the same distribution as drawing pair by pair, at a cost that does not depend on the
    number of pairs.
    """
    values = np.array([0.0, 0.5, 1.0])
    counts = (outcomes[:, None] == values).sum(axis=0)
    return rng.multinomial(len(outcomes), counts / len(outcomes), size=samples) @ values


def accuracies(
    pairs: Sequence[Pair], outcomes: np.ndarray, samples: int = 2000, seed: int = 0, confidence: float = 0.95
) -> list[Accuracy]:
    """Accuracy overall, by phenomenon and by paradigm.

    pairs (Sequence[Pair]): At least one.
    outcomes (float array, shape (pairs,)): 1, 0.5 or 0.
    samples (int): Number of bootstrap samples for the intervals.
    seed (int): Seed of the bootstrap.
    confidence (float): Confidence level of the intervals.
    RETURNS (list[Accuracy]): First "overall", the mean over pairs. Then "macro", the mean over paradigms, but only
        where paradigms differ in size: otherwise both are equal. Then each phenomenon, if pairs have one, and each
        paradigm, sorted by name.
    RAISES (ValueError): There is no pair.
    """
    if not len(pairs):
        raise ValueError("There is no pair, so there is no accuracy.")
    rng = np.random.default_rng(seed)
    strata = defaultdict(list)
    for pair, outcome in zip(pairs, outcomes, strict=True):
        strata[pair.phenomenon, pair.paradigm].append(outcome)
    overall, phenomena, paradigms = [], defaultdict(list), defaultdict(list)
    for (phenomenon, paradigm), group in sorted(strata.items()):
        own = np.array(group)
        stratum = own, resampled_sums(own, samples, rng)
        overall.append(stratum)
        paradigms[paradigm].append(stratum)
        if phenomenon:
            phenomena[phenomenon].append(stratum)
    results = [_accuracy("overall", "", *_pooled(overall), confidence)]
    sizes = {sum(len(own) for own, _ in group) for group in paradigms.values()}
    if len(sizes) > 1:
        means = [_pooled(group)[1:] for group in paradigms.values()]
        mean, resampled = (np.mean(column, axis=0) for column in zip(*means))
        results.append(_accuracy("macro", "", np.array(outcomes), mean, resampled, confidence))
    results += [_accuracy("phenomenon", name, *_pooled(group), confidence) for name, group in sorted(phenomena.items())]
    results += [_accuracy("paradigm", name, *_pooled(group), confidence) for name, group in sorted(paradigms.items())]
    return results


def _pooled(strata: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, float, np.ndarray]:
    """The outcomes of some strata together, their mean, and the means of their resamples, shape (samples,)."""
    own = np.concatenate([own for own, _ in strata])
    return own, float(own.mean()), np.sum([sums for _, sums in strata], axis=0) / len(own)


def _accuracy(
    level: str, name: str, outcomes: np.ndarray, mean: float, resampled: np.ndarray, confidence: float
) -> Accuracy:
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    ties = int((outcomes == 0.5).sum())
    return Accuracy(level, name, len(outcomes), ties, float(mean), float(low), float(high))
