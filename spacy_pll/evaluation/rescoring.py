"""Rescoring of n-best lists by log-linear interpolation (Salazar et al. 2020, section 3).

A speech recogniser or translation system proposes hypotheses, each with a log-probability: the first-pass score. The
second pass ranks them by

    first pass + weight * PLL

The weight is the one with the best word error rate, or BLEU, on a development set.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..corpus.outputs import check_fields
from ..corpus.readers import read_json_rows
from ..corpus.records import InputError, get_text
from ..corpus.rows import check_columns
from ..requirements import install_command
from .scoring import TextSums

FORMAT = '{"id": ..., "hypotheses": [{"text": ..., "score": ...}, ...], "reference": ...}'
ADDED = ("pll", "pieces", "rescored")  # what each hypothesis gets
# From one hypothesis per text, and the references of each, to the figures of a corpus. The first is the measure.
Measure = Callable[[Sequence[str], Sequence[Sequence[str]]], dict[str, float]]


class NBest(NamedTuple):
    """The hypotheses for one utterance or source sentence."""

    texts: Sequence[str]
    first_pass: np.ndarray  # float64, shape (hypotheses,), natural log
    references: Sequence[str]  # one or none; translations may have several
    row: dict[str, Any]  # of the file
    pll: np.ndarray = np.zeros(0)  # the same shape, before it is weighted; NaN without a wordpiece


def read_nbest(path: str, several_references: bool = False, added: Sequence[str] = ()) -> list[NBest]:
    """Read n-best lists from a .jsonl file.

    several_references (bool): Whether a list may have more than one reference.
    added (Sequence[str]): If the lists will be written: what each hypothesis gets, and must not have yet.
    RAISES (InputError): A list cannot be read; the message gives the line.
    """
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a .jsonl file of n-best lists: {FORMAT}")
    lists = []
    with open(path, "rb") as file:
        for place, row in read_json_rows(file, path):
            lists.append(_nbest(row, place, several_references))
            if added:
                check_fields(row, place)
                for number, hypothesis in enumerate(row["hypotheses"], 1):
                    check_columns(list(hypothesis), list(added), f"{place}, hypothesis {number}")
    if not lists:
        raise InputError(f"There is no n-best list in {path!r}. Each line is one: {FORMAT}")
    return lists


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
    return NBest(texts, np.array(scores), _references(row, place, several_references), row)


def _score(hypothesis: dict[str, Any], where: str) -> float:
    score = hypothesis.get("score")
    # NaN, infinity and whole numbers that no float can hold are not below the limit.
    if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= sys.float_info.max:
        raise InputError(
            f"{where}: 'score' must be a finite number, the first pass's log-probability. It is {score!r:.100}."
        )
    return float(score)


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


def with_pll(lists: Sequence[NBest], scores: dict[str, TextSums], per_piece: bool) -> list[NBest]:
    """The lists with the PLL of their hypotheses. per_piece (bool): The mean per wordpiece instead of the sum."""
    used = {text: (score.per_piece() if per_piece else score).scores[0] for text, score in scores.items()}
    return [nbest._replace(pll=np.array([used[text] for text in nbest.texts])) for nbest in lists]


def interpolate(nbest: NBest, weight: float) -> np.ndarray:
    """The second-pass scores, natural log up to a constant. With weight 0, the first pass decides about all."""
    return nbest.first_pass + weight * nbest.pll if weight else nbest.first_pass


def ranking(nbest: NBest, weight: float) -> np.ndarray:
    """The indices of the hypotheses, best first. int, shape (hypotheses,).

    Ties are ordered by the first-pass score, then by their order in the list. NaN comes last.
    """
    return np.lexsort((-nbest.first_pass, -interpolate(nbest, weight)))


def evaluate(lists: Sequence[NBest], weight: float, measure: Measure) -> dict[str, float]:
    """The figures of the best hypothesis of each list, ranked with a weight."""
    return measure([nbest.texts[ranking(nbest, weight)[0]] for nbest in lists], [nbest.references for nbest in lists])


def tune(lists: Sequence[NBest], measure: Measure, weights: Sequence[float]) -> float:
    """The weight with the best measure; of equally good ones the smallest."""
    values = {weight: next(iter(evaluate(lists, weight, measure).values())) for weight in sorted(weights)}
    return (max if measure is bleu else min)(values, key=values.__getitem__)


def word_error_rate(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Substitutions, deletions and insertions of a corpus, divided by the number of words in its references, in
    percent. Words are what white space separates; case and punctuation count.

    RAISES (ImportError): jiwer is not installed.
    """
    try:
        import jiwer
    except ImportError as error:
        raise ImportError(f"The word error rate needs jiwer. Install it with: {install_command('rescore')}") from error
    edits = jiwer.process_words([own[0] for own in references], list(hypotheses))
    words = edits.hits + edits.substitutions + edits.deletions
    kinds = {name: getattr(edits, name) for name in ("substitutions", "deletions", "insertions")}
    return {"WER": 100 * sum(kinds.values()) / max(1, words), **kinds, "words": words}


def oracle(lists: Sequence[NBest]) -> dict[str, float]:
    """The figures of the hypothesis with the fewest word errors of each list: no ranking can do better."""

    def errors(text: str, references: Sequence[str]) -> float:
        return sum(word_error_rate([text], [references])[kind] for kind in ("substitutions", "deletions", "insertions"))

    best = [min(nbest.texts, key=lambda text: errors(text, nbest.references)) for nbest in lists]
    return word_error_rate(best, [nbest.references for nbest in lists])


def bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """BLEU as sacrebleu computes it by default (Post 2018): cased, tokenised by 13a, exponential smoothing.

    RAISES (ImportError): sacrebleu is not installed.
    """
    try:
        from sacrebleu.metrics import BLEU
    except ImportError as error:
        raise ImportError(f"BLEU needs sacrebleu. Install it with: {install_command('rescore')}") from error
    return {"BLEU": BLEU().corpus_score(list(hypotheses), list(zip_longest(*references))).score}


def rescored_rows(lists: Sequence[NBest], scores: dict[str, TextSums], weight: float) -> Iterator[dict[str, Any]]:
    """The rows with their hypotheses reranked. Each hypothesis also gets its `pll`, `pieces` and total, `rescored`."""
    for nbest in lists:
        total = interpolate(nbest, weight)
        hypotheses = []
        for i in ranking(nbest, weight):
            score = scores[nbest.texts[i]]
            added = dict(zip(ADDED, (score.scores[0], score.pieces, float(total[i])), strict=True))
            hypotheses.append({**nbest.row["hypotheses"][i], **added})
        yield {**nbest.row, "hypotheses": hypotheses}
