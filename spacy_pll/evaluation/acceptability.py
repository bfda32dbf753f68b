"""Acceptability judgments (CoLA: Warstadt et al. 2019; RuCoLA: Mikhailov et al. 2022): sentences that are labelled as
acceptable or not, and how well scores tell them apart.

AUC is the probability that an acceptable sentence scores higher than another one. Its interval is that of Newcombe
(2006, Statistics in Medicine 25: 559-573, method 5), which has a width also if AUC is 1. MCC is Matthews' correlation
between the labels and whether a sentence scores above a threshold. Its interval is of a bootstrap over sentences, with
the threshold as it is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..advice.giving import advise
from ..advice.items import judged_sentences
from ..arrays import BoolArray, FloatArray, IntArray
from ..corpus.records import FileOptions, get_text
from ..errors import InputError, no_column
from ..stream.contexts import TextInContext
from ..tables.rows import check_columns
from .intervals import Estimate, Z, furthest_where, percentiles, ranks
from .items import Fields
from .labels import is_good
from .measurements import Measurement
from .readers import check_distinct, of_folders, rows_of
from .suites import Suite
from .text_scores import TextScores

SENTENCES, LABELS = ("sentence", "Sentence", "text"), ("label", "acceptable", "acceptability", "Grammaticality")
SAMPLES, SEED = 1000, 0
COLUMNS = ("metric", "sentence", "acceptable", "score", "pieces")  # what rows have besides those of the file


class Acceptability(Suite):
    """Sentences with labels: which are acceptable.

    threshold (Optional[float]): For MCC, beside the best one.
    fields (Sequence[Mapping[str, Any]]): The other columns of each sentence. Empty: there are none.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        labels: Sequence[bool],
        threshold: float | None = None,
        fields: Sequence[Mapping[str, Any]] = (),
    ):
        self.texts, self.fields = [TextInContext(sentence) for sentence in sentences], fields or [{}] * len(sentences)
        self.labels, self.threshold = np.array(labels, dtype=bool), threshold

    def measurements(self, scores: Mapping[str, TextScores]) -> Iterator[Measurement]:
        for scorer, of_scorer in scores.items():
            values = of_scorer.compared
            best = best_threshold(values, self.labels)
            thresholds = {f"MCC above {best:.4g}, the best threshold for these": best}
            if self.threshold is not None:
                thresholds[f"MCC above {self.threshold:g}"] = self.threshold
            of_thresholds = {name: mcc(values > threshold, self.labels) for name, threshold in thresholds.items()}
            for measure, estimate in {"AUC": auc(values, self.labels), **of_thresholds}.items():
                yield Measurement(scorer, measure, len(values), *estimate)

    def rows(self, scores: Mapping[str, TextScores]) -> Iterator[dict[str, Any]]:
        for scorer, of_scorer in scores.items():
            values = zip(self.labels.tolist(), of_scorer.sums.tolist(), of_scorer.pieces.tolist())
            for text, fields, (label, score, pieces) in zip(self.texts, self.fields, values):
                check_columns(fields, COLUMNS, getattr(fields, "place", "The table"))
                own = {"metric": scorer, "sentence": text.text, "acceptable": label}
                yield {**own, **fields, "score": score, "pieces": pieces}


def auc(values: FloatArray, labels: BoolArray) -> Estimate:
    """The area under the ROC curve; a tie counts as half. labels (bool array): Which are acceptable: some, not all."""
    n_good = int(labels.sum())
    n_bad, n = len(labels) - n_good, len(labels) / 2 - 1
    area = float((ranks(values)[labels].sum() - n_good * (n_good + 1) / 2) / (n_good * n_bad))

    def is_kept(p: float) -> bool:
        spread = p * (1 - p) * (1 + n * (1 - p) / (2 - p) + n * p / (1 + p)) / (n_good * n_bad)
        return abs(p - area) <= Z * math.sqrt(spread)

    return Estimate(area, furthest_where(is_kept, area, 0.0), furthest_where(is_kept, area, 1.0))


def _mcc(counts: FloatArray | IntArray) -> FloatArray:
    """From the numbers of true and false positives, and of false and true negatives: shape (..., 4). 0 if undefined."""
    tp, fp, fn, tn = np.moveaxis(counts.astype(np.float64), -1, 0)
    below = np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    return np.asarray((tp * tn - fp * fn) / np.where(below > 0, below, 1))


def mcc(predicted: BoolArray, labels: BoolArray) -> Estimate:
    """Matthews' correlation coefficient."""
    cells = (predicted & labels, predicted & ~labels, ~predicted & labels, ~predicted & ~labels)
    counts = np.array([cell.sum() for cell in cells])
    samples = np.random.default_rng(SEED).multinomial(len(labels), counts / len(labels), size=SAMPLES)
    low, high = percentiles(_mcc(samples)) or (-1.0, 1.0)
    return Estimate(float(_mcc(counts)), low, high)


def best_threshold(values: FloatArray, labels: BoolArray) -> float:
    """The threshold with the highest MCC, in the middle between two values; of equally good ones the lowest.

    RETURNS (float): Minus infinity if it is best to accept all.
    """
    distinct, index = np.unique(values, return_inverse=True)
    good = np.bincount(index, weights=labels, minlength=len(distinct))
    bad = np.bincount(index, weights=~labels, minlength=len(distinct))
    fn, tn = (np.cumsum([0, *counts[:-1]]) for counts in (good, bad))
    best = int(_mcc(np.stack((good.sum() - fn, bad.sum() - tn, fn, tn), axis=-1)).argmax())
    return float((distinct[best - 1] + distinct[best]) / 2) if best else -math.inf


@of_folders
def read_acceptability(
    path: str,
    sentence: str | None = None,
    label: str | None = None,
    threshold: float | None = None,
    **file_options: Any,
) -> Acceptability:
    """Read sentences with labels.

    sentence (Optional[str]): With the reader acceptability: the column of the sentences. None: as CoLA and RuCoLA call
        it.
    label (Optional[str]): With the reader acceptability: the column of the labels, and what acceptable sentences have
        there, as in "judgment=ok". None: as CoLA and RuCoLA call it.
    threshold (Optional[float]): With the reader acceptability: also MCC for scores above this one.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RAISES (InputError): A row cannot be read, or all sentences have the same label.
    """
    files = FileOptions.of(file_options, "sentences with labels")
    column, _, good = (label or "").partition("=")
    sentences, labels, fields = [], [], []
    for _, location, row, of_file in rows_of(path, "sentences with labels", files):
        of_text = sentence or next((name for name in SENTENCES if name in row), SENTENCES[0])
        of_label = column or next((name for name in LABELS if name in row), LABELS[0])
        check_distinct(sentence=[of_text], label=[of_label])
        if of_label not in row:
            raise no_column(location, of_label, row, "Give `label`.")
        sentences.append(get_text(row, location, of_text, "`sentence`"))
        if not sentences[-1].strip():
            raise InputError(f"{location}: {of_text!r} is empty.", "Leave the row out.")
        labels.append(is_good(row[of_label], location, of_label, good or None))
        fields.append(Fields(location, {**of_file, **{k: v for k, v in row.items() if k not in (of_text, of_label)}}))
    if len(set(labels)) < 2:
        raise InputError(f"All {len(labels)} sentences in {path!r} have the same label.", "Both kinds are needed.")
    bad, acceptable = ([s for s, label in zip(sentences, labels) if label is kind] for kind in (False, True))
    advise(judged_sentences(bad, acceptable, [of_row.place for of_row, label in zip(fields, labels) if not label]))
    return Acceptability(sentences, labels, threshold, fields)
