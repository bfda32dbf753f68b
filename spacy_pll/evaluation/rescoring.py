"""Rescoring of n-best lists by log-linear interpolation (Salazar et al. 2020, section 3).

A speech recogniser or translation system proposes hypotheses, each with a log-probability: the first-pass score. The
second pass ranks them by

    first pass + weight * PLL

The weight is the one with the best word error rate, or BLEU, on a development set.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..corpus.fields import check_fields
from ..corpus.readers import InputError, get_text, read_json_rows
from ..corpus.rows import check_columns
from ..requirements import install_command
from .scoring import TextScore

FORMAT = '{"id": ..., "hypotheses": [{"text": ..., "score": ...}, ...], "reference": ...}'


MAX_WEIGHTS = 100_000  # in a grid
ADDED = ("pll", "pieces", "rescored")  # what each hypothesis gets


class NBest(NamedTuple):
    """The hypotheses for one utterance or source sentence."""

    texts: list[str]
    first_pass: np.ndarray  # float64, shape (hypotheses,), natural log
    references: list[str]  # one or none; translations may have several


class Measure(NamedTuple):
    """A measure of a corpus, computed from counts that are summed over its texts."""

    name: str
    counts: Callable[[str, list[str]], list[int]]  # of one hypothesis, against its references
    value: Callable[[np.ndarray], float]  # of the summed counts, in percent
    best: Callable[[Iterable[float]], float]  # min or max


def read_nbest(
    path: str, several_references: bool = False, added: Sequence[str] = ()
) -> tuple[list[dict[str, Any]], list[NBest]]:
    """Read n-best lists from a .jsonl file.

    several_references (bool): Whether a list may have more than one reference.
    added (Sequence[str]): If the lists will be written: what each hypothesis gets, and must not have yet.
    RETURNS (tuple[list[dict], list[NBest]]): The rows of the file, and the list in each of them.
    RAISES (InputError): A list cannot be read; the message gives the line.
    """
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a .jsonl file of n-best lists: {FORMAT}")
    rows, lists = [], []
    with open(path, "rb") as file:
        for place, row in read_json_rows(file, path):
            rows.append(row)
            lists.append(_nbest(row, place, several_references))
            if added:
                check_fields(row, place)
                for number, hypothesis in enumerate(row["hypotheses"], 1):
                    check_columns(list(hypothesis), list(added), f"{place}, hypothesis {number}")
    if not lists:
        raise InputError(f"There is no n-best list in {path!r}. Each line is one: {FORMAT}")
    return rows, lists


def _nbest(row: dict[str, Any], place: str, several_references: bool) -> NBest:
    hypotheses = row.get("hypotheses")
    if not isinstance(hypotheses, list) or not hypotheses:
        raise InputError(f"{place}: 'hypotheses' must be a list that is not empty. It is {hypotheses!r:.100}. {FORMAT}")
    texts, scores = [], []
    for number, hypothesis in enumerate(hypotheses, 1):
        where = f"{place}, hypothesis {number}"
        if not isinstance(hypothesis, dict):
            raise InputError(f"{where}: it must be an object with 'text' and 'score'. It is {hypothesis!r:.100}.")
        texts.append(get_text(hypothesis, where, "text", option=None))
        scores.append(_score(hypothesis, where))
    return NBest(texts, np.array(scores), _references(row, place, several_references))


def _score(hypothesis: dict[str, Any], where: str) -> float:
    score = hypothesis.get("score")
    try:
        finite = not isinstance(score, bool) and isinstance(score, int | float) and math.isfinite(score)
    except OverflowError:  # a whole number that no float can hold
        finite = False
    if not finite:
        raise InputError(
            f"{where}: 'score' must be a finite number, the first pass's log-probability. It is {score!r:.100}."
        )
    return float(score)  # type: ignore[arg-type]


def _references(row: dict[str, Any], place: str, several: bool) -> list[str]:
    """The texts of `reference` (one text) or `references` (a list). None where both are absent or null."""
    if row.get("reference") is not None and row.get("references") is not None:
        raise InputError(f"{place}: there is a 'reference' and a list of 'references'. Keep one of the two.")
    if row.get("references") is None:
        return [] if row.get("reference") is None else [get_text(row, place, "reference", option=None)]
    references = row["references"]
    if not isinstance(references, list) or not all(isinstance(text, str) for text in references):
        raise InputError(f"{place}: 'references' must be a list of texts. It is {references!r:.100}.")
    if len(references) > 1 and not several:
        raise InputError(
            f"{place}: {len(references)} references. The word error rate takes one; for translations use --bleu."
        )
    return references


def ranking(first_pass: np.ndarray, pll: np.ndarray, weight: float) -> np.ndarray:
    """The indices of the hypotheses, best first. int, shape (hypotheses,).

    Ties are ordered by the first-pass score, then by their order in the list. A hypothesis without a wordpiece has no
    score (NaN), and comes last.
    """
    return np.lexsort((-first_pass, -interpolate(first_pass, pll, weight)))


def interpolate(first_pass: np.ndarray, pll: np.ndarray, weight: float) -> np.ndarray:
    """The second-pass scores, natural log up to a constant (Salazar et al. 2020, section 3).

    With weight 0, the first pass decides, also about hypotheses without a PLL (NaN).
    """
    return first_pass + weight * pll if weight else first_pass


def corpus_value(counts: Sequence[np.ndarray], chosen: Sequence[int], measure: Measure) -> float:
    """The measure of a corpus, with one hypothesis chosen from each list.

    counts (Sequence[int array, shape (hypotheses, counts)]): One array per list.
    chosen (Sequence[int]): The index of the chosen hypothesis, one per list.
    """
    return measure.value(np.sum([of_list[i] for of_list, i in zip(counts, chosen, strict=True)], axis=0))


def best_by(lists: Sequence[NBest], plls: Sequence[np.ndarray], weight: float) -> list[int]:
    """The index of the best hypothesis of each list. With weight 0, the first pass decides."""
    return [int(ranking(nbest.first_pass, pll, weight)[0]) for nbest, pll in zip(lists, plls, strict=True)]


def tune(
    lists: Sequence[NBest],
    plls: Sequence[np.ndarray],
    counts: Sequence[np.ndarray],
    measure: Measure,
    weights: Sequence[float],
) -> tuple[float, float]:
    """Choose the best of some weights: the one with the best measure, and of equally good ones the smallest.

    lists (Sequence[NBest]): The development set, each list with its references.
    plls (Sequence[float array, shape (hypotheses,)]): The PLL of each hypothesis, one array per list.
    counts (Sequence[int array, shape (hypotheses, counts)]): `measure.counts` of each hypothesis, one array per list.
    RETURNS (tuple[float, float]): The weight, and the measure with it.
    """
    values = {weight: corpus_value(counts, best_by(lists, plls, weight), measure) for weight in sorted(weights)}
    best = measure.best(values.values())
    return next((weight, value) for weight, value in values.items() if value == best)


def grid(start: float, stop: float, step: float) -> list[float]:
    """Weights from `start` to `stop` in steps of `step`; `stop` is included where a step ends there."""
    if not (step > 0 and start <= stop and (stop - start) / step < MAX_WEIGHTS):
        raise ValueError(
            f"A grid needs start <= stop, a step above 0 and at most {MAX_WEIGHTS:,} steps. "
            f"It is {start}:{stop}:{step}."
        )
    n = int(np.floor((stop - start) / step + 1e-9)) + 1
    return [round(start + i * step, 10) for i in range(n)]


def word_error_rate() -> Measure:
    """Substitutions, deletions and insertions, divided by the number of words in the references.

    Both are summed over the corpus before the division. Words are what white space separates; case and punctuation
    count.
    RAISES (ImportError): jiwer is not installed.
    """
    try:
        import jiwer
    except ImportError as error:
        raise ImportError(f"The word error rate needs jiwer. Install it with: {install_command('rescore')}") from error

    def counts(hypothesis: str, references: list[str]) -> list[int]:
        if len(references) != 1:
            raise ValueError(
                f"The word error rate takes one reference, and there are {len(references)}. For translations use BLEU."
            )
        edits = jiwer.process_words(references[0], hypothesis)
        words = edits.hits + edits.substitutions + edits.deletions
        return [edits.substitutions, edits.deletions, edits.insertions, words]

    return Measure("WER", counts, lambda total: 100 * float(total[:3].sum() / max(1, total[3])), min)


def oracle(counts: Sequence[np.ndarray]) -> list[int]:
    """The index of the hypothesis with the fewest word errors, one per list: no ranking can do better."""
    return [int(of_list[:, :3].sum(axis=1).argmin()) for of_list in counts]


def bleu() -> Measure:
    """BLEU as sacrebleu computes it by default (Post 2018): cased, tokenised by 13a, exponential smoothing.

    RAISES (ImportError): sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError as error:
        raise ImportError(f"BLEU needs sacrebleu. Install it with: {install_command('rescore')}") from error

    # The effective order changes only the score of the sentence, which is not used, and prevents a warning about it.
    of_sentence = BLEU(effective_order=True)

    def counts(hypothesis: str, references: list[str]) -> list[int]:
        score = of_sentence.sentence_score(hypothesis, references)
        return [*score.counts, *score.totals, score.sys_len, score.ref_len]

    def value(total: np.ndarray) -> float:
        correct, possible = total[:-2].reshape(2, -1).tolist()
        hypothesis_length, reference_length = total[-2:].tolist()
        return BLEU.compute_bleu(correct, possible, hypothesis_length, reference_length, smooth_method="exp").score

    return Measure("BLEU", counts, value, max)


def second_pass(lists: Sequence[NBest], scores: dict[str, TextScore], per_piece: bool) -> list[np.ndarray]:
    """The PLL of each hypothesis, before it is weighted.

    per_piece (bool): Use the mean per wordpiece instead of the sum.
    RETURNS (list[float array, shape (hypotheses,)]): One entry per list.
    """
    used = {text: (score.per_piece() if per_piece else score).scores[0] for text, score in scores.items()}
    return [np.array([used[text] for text in nbest.texts]) for nbest in lists]


class ReferencedLists(NamedTuple):
    """The lists that have references, with what is needed to evaluate a ranking of them."""

    lists: list[NBest]
    plls: list[np.ndarray]  # (hypotheses,) each
    counts: list[np.ndarray]  # (hypotheses, counts) each: those of the measure

    @classmethod
    def select(
        cls, lists: Sequence[NBest], scores: dict[str, TextScore], per_piece: bool, measure: Measure | None
    ) -> "ReferencedLists":
        """The lists that have references.

        measure (Optional[Measure]): May be None if none has.
        """
        if measure is None:
            return cls([], [], [])
        lists = [nbest for nbest in lists if nbest.references]
        counts = [np.array([measure.counts(text, nbest.references) for text in nbest.texts]) for nbest in lists]
        return cls(lists, second_pass(lists, scores, per_piece), counts)

    def value(self, measure: Measure, weight: float) -> float:
        """The measure, if the lists are ranked with this weight of the PLL."""
        return corpus_value(self.counts, best_by(self.lists, self.plls, weight), measure)

    def tune(self, measure: Measure, weights: Sequence[float]) -> tuple[float, float]:
        """The best of some weights, and the measure with it."""
        return tune(self.lists, self.plls, self.counts, measure, weights)


def rescored_rows(
    rows: Sequence[dict[str, Any]],
    lists: Sequence[NBest],
    plls: Sequence[np.ndarray],
    scores: dict[str, TextScore],
    weight: float,
) -> Iterator[dict[str, Any]]:
    """The rows with their hypotheses reranked. Each hypothesis also gets its `pll`, `pieces` and total, `rescored`."""
    for row, nbest, pll in zip(rows, lists, plls, strict=True):
        total = interpolate(nbest.first_pass, pll, weight)
        hypotheses = []
        for i in ranking(nbest.first_pass, pll, weight):
            score = scores[nbest.texts[i]]
            added = dict(zip(ADDED, (score.scores[0], score.pieces, float(total[i])), strict=True))
            hypotheses.append({**row["hypotheses"][i], **added})
        yield {**row, "hypotheses": hypotheses}
