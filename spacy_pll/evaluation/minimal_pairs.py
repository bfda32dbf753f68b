"""Minimal pairs: how often the better sentence of a pair has the higher score (BLiMP: Warstadt et al. 2020).

The intervals are percentile bootstrap intervals (Efron & Tibshirani 1993, chapter 13) over pairs, stratified: pairs
are drawn again within each paradigm. A test set fixes its paradigms and how many pairs each has, and what could have
come out otherwise is which pairs stand for a paradigm. So the intervals speak of other pairs of the same paradigms,
not of other paradigms. As every bootstrap does, they understate the spread of small groups: by a factor of
sqrt((n - 1) / n) for n pairs a paradigm, and to nothing where all n came out alike.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..corpus.readers import InputError, get_text, list_files, read_rows
from .scoring import TextScore

ENDINGS = (".jsonl", ".csv", ".tsv")
# What the columns are called in BLiMP's own files.
BLIMP = {"good": "sentence_good", "bad": "sentence_bad", "phenomenon": "linguistics_term", "paradigm": "UID"}


class Pair(NamedTuple):
    """Two sentences that differ little, and what the pair is an example of."""

    good: str
    bad: str
    phenomenon: str  # "" where it is not known
    paradigm: str


class Accuracy(NamedTuple):
    """How often the better sentence won, in a group of pairs."""

    level: str  # "overall", "macro", "phenomenon" or "paradigm"
    name: str  # of the phenomenon or paradigm
    pairs: int
    ties: int
    accuracy: float  # 0 to 1; a tie counts as half
    low: float  # 95 % interval
    high: float


def read_pairs(path: str, columns: dict[str, str | None] = BLIMP) -> list[Pair]:
    """Minimal pairs from a file, or from a folder's files in the order of their names.

    columns (dict[str, Optional[str]]): The columns "good", "bad", "phenomenon" and "paradigm". For None: BLiMP's,
        where a row has it; a paradigm is else the file's name, with its subfolder.
    RAISES (InputError): A pair cannot be read; the message gives the line.
    """
    if not Path(path).exists():
        raise InputError(f"There is no file or folder {path!r}. Give a file of minimal pairs, or a folder of them.")
    files = [file for file in list_files(path) if file.suffix.lower() in ENDINGS]
    if not files:
        raise InputError(f"{path!r} is no file that ends in {', '.join(ENDINGS)}, and no folder that holds one.")
    pairs = []
    for file in files:
        name = file.relative_to(path).with_suffix("").as_posix() if Path(path).is_dir() else file.stem
        pairs += [_pair(row, place, name, columns) for place, row in read_rows(file)]
    if not pairs:
        raise InputError(f"There is no pair in {path!r}.")
    return pairs


def _pair(row: dict, place: str, file_name: str, columns: dict[str, str | None]) -> Pair:
    sentences = [get_text(row, place, columns[side], f"--{side}") for side in ("good", "bad")]
    for side, sentence in zip(("good", "bad"), sentences):
        if not sentence.strip():
            raise InputError(f"{place}: {columns[side]!r} is empty. Each pair needs two sentences.")
    phenomenon = _group(row, place, columns, "phenomenon", "")
    return Pair(*sentences, phenomenon, _group(row, place, columns, "paradigm", file_name))


def _group(row: dict, place: str, columns: dict[str, str | None], kind: str, default: str) -> str:
    if columns[kind] is None and BLIMP[kind] not in row:
        return default
    return get_text(row, place, columns[kind] or BLIMP[kind], f"--{kind}")


def sample_pairs(pairs: Sequence[Pair], per_paradigm: int) -> list[Pair]:
    """Draw at most so many pairs of each paradigm, the same each time: the seed is the paradigm's name."""
    by_paradigm = defaultdict(list)
    for pair in pairs:
        by_paradigm[pair.paradigm].append(pair)
    return [
        pair
        for paradigm, group in by_paradigm.items()
        for pair in random.Random(paradigm).sample(group, min(per_paradigm, len(group)))
    ]


def outcomes(good: Sequence[float], bad: Sequence[float]) -> np.ndarray:
    """1 where the good sentence scores higher, 0 where the bad one does, 0.5 on a tie. float64, shape (pairs,)."""
    good, bad = np.asarray(good, dtype=np.float64), np.asarray(bad, dtype=np.float64)
    if np.isnan(good).any() or np.isnan(bad).any():
        raise ValueError("A score is not a number (NaN), so its pair has no outcome. Score the sentences anew.")
    return (good > bad) + 0.5 * (good == bad)


def wins(
    pairs: Sequence[Pair], scores: dict[str, TextScore], metrics: Sequence[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """By metric, the outcomes of the pairs.

    scores (dict[str, TextScore]): Of each sentence, with one score a metric, in their order.
    """
    for i, metric in enumerate(metrics):
        good, bad = ([scores[sentence].scores[i] for sentence in side] for side in zip(*(pair[:2] for pair in pairs)))
        yield metric, outcomes(good, bad)


def resampled_sums(outcomes: np.ndarray, samples: int, rng: np.random.Generator) -> np.ndarray:
    """Sums of as many outcomes, drawn with replacement. float64, shape (samples,).

    There are only three outcomes, so how often each is drawn is multinomial: the same
    distribution as drawing pair by pair, whatever the number of pairs.
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
    samples (int): How many bootstrap samples the intervals rest on.
    seed (int): Of the bootstrap.
    RETURNS: "overall" is the mean over pairs. "macro", the mean over paradigms, follows where paradigms differ in
        size; where they do not, the two are equal. Then phenomena, if pairs have any, and paradigms, by name.
    """
    if not len(pairs):
        raise ValueError("There is no pair, so there is no accuracy.")
    rng = np.random.default_rng(seed)
    strata = defaultdict(list)
    for pair, outcome in zip(pairs, outcomes, strict=True):
        strata[pair.phenomenon, pair.paradigm].append(outcome)
    overall, phenomena, paradigms = [], defaultdict(list), defaultdict(list)
    for (phenomenon, paradigm), own in sorted(strata.items()):
        own = np.array(own)
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


def _pooled(strata: list[tuple[np.ndarray, np.ndarray]]):
    """The outcomes of some strata together, their mean, and the means of their resamples, shape (samples,)."""
    own = np.concatenate([own for own, _ in strata])
    return own, own.mean(), sum(sums for _, sums in strata) / len(own)


def _accuracy(level, name, outcomes, mean, resampled, confidence) -> Accuracy:
    low, high = np.quantile(resampled, [(1 - confidence) / 2, (1 + confidence) / 2])
    ties = int((outcomes == 0.5).sum())
    return Accuracy(level, name, len(outcomes), ties, float(mean), float(low), float(high))
