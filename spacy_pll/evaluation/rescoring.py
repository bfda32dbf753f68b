"""Rescoring of n-best lists by log-linear interpolation (Salazar et al. 2020, section 3).

A speech recogniser or translation system proposes hypotheses, each with a log-probability: the first-pass score. The
second pass ranks them by

    first pass + weight * PLL + word weight * words

The weights are those with the best word error rate on a development set.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal

import numpy as np
from spacy.language import Language

from ..component import get_scorer
from ..errors import PLLError
from ..requirements import extra
from ..settings import BATCH_SIZE, in_order, with_known_values
from ..stream.contexts import Placed, check_reads_context
from ..stream.known import KeptScores, TextSums, score_places
from ..stream.workers import AS_USUAL, Work
from ..unspaced import UNSPACED_CHARACTER
from .readers import NBest, parse_nbest

ADDED = ("pll", "pieces", "rescored")  # what each hypothesis gets
# From hypotheses and references to a rate in percent, kinds of errors, and the number of words or characters.
ErrorRate = Callable[[Sequence[str], Sequence[str]], dict[str, float]]
ErrorKind = Literal["auto", "wer", "cer"]
TRIED_WEIGHTS = tuple(i / 20 for i in range(41))  # to try, as the command's grid 0:2:0.05


def score_hypotheses(
    nlp: Language,
    lists: Iterable[NBest],
    work: Work = AS_USUAL,
    kept: KeptScores | None = None,
) -> dict[Placed, TextSums]:
    """The scores of all hypotheses, each in its place.

    kept (Optional[KeptScores]): Has what is scored already, and gets what is scored.
    RAISES (ValueError): A text cannot be scored, or the component would not read the context of a list.
    """
    places = [in_context for nbest in lists for in_context in nbest.places]
    if any(before for _, before, _ in places):
        check_reads_context(get_scorer(nlp))
    kept = kept or KeptScores()
    kept.begin(list(dict.fromkeys(places)), "hypotheses")
    return score_places(nlp, places, work, kept)


def with_pll(lists: Sequence[NBest], scores: dict[Placed, TextSums], per_piece: bool) -> list[NBest]:
    """The lists with the PLL of their hypotheses. per_piece (bool): The mean per wordpiece instead of the sum."""
    used = {in_context: (score.per_piece() if per_piece else score).scores[0] for in_context, score in scores.items()}
    return [nbest._replace(pll=np.array([used[in_context] for in_context in nbest.places])) for nbest in lists]


def interpolate(nbest: NBest, weight: float, word_weight: float = 0.0) -> np.ndarray:
    """The second-pass scores, natural log up to a constant. With weight 0, the PLL has no part in them."""
    total = nbest.first_pass + word_weight * np.array([len(text.split()) for text in nbest.texts])
    return total + weight * nbest.pll if weight else total


def ranking(nbest: NBest, *weights: float) -> np.ndarray:
    """The indices of the hypotheses, best first. int, shape (hypotheses,).

    Ties are ordered by the first-pass score, then by their order in the list. NaN comes last, unless `keeps_order`.
    """
    total = nbest.first_pass if keeps_order(nbest, weights[0]) else interpolate(nbest, *weights)
    return np.lexsort((-nbest.first_pass, -total))


def keeps_order(nbest: NBest, weight: float) -> bool:
    """Whether the first pass prefers a hypothesis without a wordpiece, such as silence, which has no PLL to compare."""
    return bool(weight and np.isnan(nbest.pll[nbest.first_pass.argmax()]))


def is_silence_last(nbest: NBest, weight: float) -> bool:
    """Whether an empty hypothesis is right, by the only reference, and comes last, since it has no PLL."""
    is_right = len(nbest.references) == 1 and not nbest.references[0].strip()
    return bool(is_right and weight and not keeps_order(nbest, weight) and not all(map(str.strip, nbest.texts)))


def errors_at(lists: Sequence[NBest], *weights: float, error_rate: ErrorRate | None = None) -> dict[str, float]:
    """The errors of the best hypothesis of each list, ranked with the weights. Each list has one reference.

    error_rate (Optional[ErrorRate]): `word_error_rate` or `character_error_rate`. None: words.
    """
    best = [nbest.texts[ranking(nbest, *weights)[0]] for nbest in lists]
    return (error_rate or word_error_rate)(best, [nbest.references[0] for nbest in lists])


def best_weights(
    lists: Sequence[NBest],
    weights: Sequence[float],
    word_weights: Sequence[float] = (0.0,),
    error_rate: ErrorRate | None = None,
) -> tuple[float, float]:
    """Those with the fewest errors, of all combinations; of equally good ones the smallest, then the word weight
    nearest to 0.

    error_rate (Optional[ErrorRate]): See `errors_at`.
    """

    def n_errors(text: str, reference: str) -> int:
        figures = (error_rate or word_error_rate)([text], [reference])
        return int(figures["substitutions"] + figures["deletions"] + figures["insertions"])

    errors = [[n_errors(text, nbest.references[0]) for text in nbest.texts] for nbest in lists]
    tried = product(sorted(weights), sorted(word_weights, key=abs))
    return min(tried, key=lambda both: sum(of[ranking(nbest, *both)[0]] for of, nbest in zip(errors, lists)))


def with_reference(lists: Iterable[NBest]) -> list[NBest]:
    """Those with one reference, which the word error rate takes."""
    return [nbest for nbest in lists if len(nbest.references) == 1]


def word_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Substitutions, deletions and insertions of a corpus, divided by the number of words in its references, in
    percent. Words are what white space separates; case and punctuation count.

    RAISES (ImportError): jiwer is not installed.
    """
    with extra("rescore", "The word error rate needs jiwer"):
        import jiwer
    # jiwer divides at spaces alone.
    spaced = [[" ".join(text.split()) for text in texts] for texts in (references, hypotheses)]
    return _errors(jiwer.process_words(spaced[0], spaced[1]), "WER", "words")


def character_error_rate(hypotheses: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """The same with characters in place of words, for languages that are written without spaces. White space does not
    count.

    RAISES (ImportError): jiwer is not installed.
    """
    with extra("rescore", "The character error rate needs jiwer"):
        import jiwer
    joined = [["".join(text.split()) for text in texts] for texts in (references, hypotheses)]
    return _errors(jiwer.process_characters(joined[0], joined[1]), "CER", "characters")


def _errors(edits: Any, name: str, units: str) -> dict[str, float]:
    n = edits.hits + edits.substitutions + edits.deletions
    kinds = {kind: getattr(edits, kind) for kind in ("substitutions", "deletions", "insertions")}
    return {name: 100 * sum(kinds.values()) / max(1, n), **kinds, units: n}


def choose_error_rate(lists: Sequence[NBest], kind: ErrorKind = "auto") -> ErrorRate:
    """What is measured on some lists. With "auto", these are characters if most letters of the references are of
    scripts that are written without spaces, such as Chinese, and words otherwise.
    """
    if kind == "auto":
        letters = [letter for nbest in lists for text in nbest.references for letter in text if letter.isalpha()]
        kind = "cer" if 2 * sum(map(bool, map(UNSPACED_CHARACTER.match, letters))) > len(letters) else "wer"
    return character_error_rate if kind == "cer" else word_error_rate


def rescored_rows(lists: Sequence[NBest], scores: dict[Placed, TextSums], *weights: float) -> Iterator[dict[str, Any]]:
    """The rows with their hypotheses reranked. Each hypothesis also gets its `pll`, `pieces` and total, `rescored`."""
    for nbest in lists:
        total = interpolate(nbest, *weights)
        hypotheses = []
        for i in ranking(nbest, *weights):
            score = scores[nbest.places[i]]
            added = dict(zip(ADDED, (score.scores[0], score.pieces, float(total[i])), strict=True))
            hypotheses.append({**nbest.row["hypotheses"][i], **added})
        yield {**nbest.row, "hypotheses": hypotheses}


def rescore(
    nlp: Language,
    lists: Iterable[Mapping[str, Any]],
    weight: float,
    *,
    word_weight: float = 0.0,
    per_piece: bool = False,
    costs: bool | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> list[dict[str, Any]]:
    """Rerank n-best lists by first-pass score + weight * PLL + word_weight * words, under the primary metric.

    nlp (Language): A pipeline with a `pll` component.
    lists (Iterable[Mapping[str, Any]]): Each has "hypotheses", a list of dicts with "text" and "score", the
        log-probability of the first pass. It may have a "context", such as the sentence before: the model reads it
        before each hypothesis, with a space between, and it is not scored. Other keys of the lists and dicts are kept.
    weight (float): The weight of the PLL.
    word_weight (float): The weight of the number of words (between white space).
    per_piece (bool): Use the mean per wordpiece instead of the sum.
    costs (Optional[bool]): The scores are costs, of which the lowest is the best: their sign is changed. None: they are
        not costs, and a score above 0 is an error.
    batch_size, n_process, show_progress: See `spacy_pll.score`.
    RETURNS (list[dict[str, Any]]): The lists with the best hypothesis first. Each hypothesis also has "pll", "pieces"
        and "rescored", by which they are sorted; a hypothesis without a wordpiece has NaN and is last. If the first
        pass prefers such a hypothesis, the list keeps the order of the first pass.
    RAISES (ValueError): A weight is not finite, a list is not of this form, or a text cannot be scored.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    hypotheses = [{"text": "the cats at", "score": -2.9}, {"text": "the cat sat", "score": -3.1}]
    [reranked] = spacy_pll.rescore(nlp, [{"hypotheses": hypotheses}], weight=0.4)
    reranked["hypotheses"][0]["text"]  # 'the cat sat'
    ```
    """
    for name, value in (("weight", weight), ("word_weight", word_weight)):
        if not math.isfinite(value):
            raise PLLError(f"`{name}` must be a finite number, such as 0.5. It is {value}.")
    nbests = _parse(lists, costs)
    scores = score_hypotheses(nlp, nbests, Work(batch_size, n_process, show_progress))
    return list(rescored_rows(with_pll(nbests, scores, per_piece), scores, weight, word_weight))


@with_known_values
def tune_rescoring(
    nlp: Language,
    lists: Iterable[Mapping[str, Any]],
    weights: Sequence[float] = TRIED_WEIGHTS,
    word_weights: Sequence[float] = (0.0,),
    *,
    error_rate: ErrorKind = "auto",
    per_piece: bool = False,
    costs: bool | None = None,
    batch_size: int = BATCH_SIZE,
    n_process: int = 1,
    show_progress: bool = False,
) -> tuple[float, float]:
    """The weights for `rescore` with the lowest error rate on n-best lists with references, a development set.

    lists (Iterable[Mapping[str, Any]]): As for `rescore`. Each also has a "reference", the right text; lists without
        one, or with several "references", are left out.
    weights (Sequence[float]): The weights of the PLL to try. The default is 0, 0.05, ... 2.
    word_weights (Sequence[float]): The weights of the number of words to try, with each weight of the PLL.
    error_rate (Literal["auto", "wer", "cer"]): Whether words (wer) or characters (cer) are compared. With auto, these
        are characters if most letters of the references are of scripts without spaces, such as Chinese.
    per_piece, costs, batch_size, n_process, show_progress: See `rescore`.
    RETURNS (tuple[float, float]): `weight` and `word_weight`. Of equally good ones the smallest weight, then the word
        weight nearest to 0.
    RAISES (ValueError): There is no weight to try, or one is not finite; no list has one reference, or a list cannot be
        scored.
    RAISES (ImportError): jiwer is not installed.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    hypotheses = [{"text": "the cats at", "score": -2.9}, {"text": "the cat sat", "score": -3.1}]
    weight, word_weight = spacy_pll.tune_rescoring(nlp, [{"hypotheses": hypotheses, "reference": "the cat sat"}])
    weight  # 0.05
    ```
    """
    weights, word_weights = [*weights], [*word_weights]
    for name, values in (("weights", weights), ("word_weights", word_weights)):
        if not len(values) or not all(map(math.isfinite, values)):
            raise PLLError(f"`{name}` must be finite numbers, such as [0.0, 0.5]. They are {values!r:.100}.")
    nbests = with_reference(_parse(lists, costs))
    if not nbests:
        raise PLLError("No list has one reference, so no weight can be tuned. Give lists with a 'reference'.")
    chosen = choose_error_rate(nbests, error_rate)
    chosen(["a"], ["a"])  # fails here without jiwer, before anything is scored
    scores = score_hypotheses(nlp, nbests, Work(batch_size, n_process, show_progress))
    return best_weights(with_pll(nbests, scores, per_piece), weights, word_weights, chosen)


def _parse(lists: Iterable[Mapping[str, Any]], costs: bool | None) -> list[NBest]:
    rows = map(dict[str, Any], lists)
    read = (
        {**row, **{name: in_order(row[name]) for name in ("hypotheses", "references") if name in row}} for row in rows
    )
    return [parse_nbest(row, f"list {number}", costs) for number, row in enumerate(read, 1)]
