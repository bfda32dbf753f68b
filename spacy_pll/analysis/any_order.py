"""A lower bound on the log-probability of a text under a masked model, with the error of the draw of orders.

The logarithm of the mean probability over random orders, each by the chain rule, is at least the mean of the logarithms
(Jensen), which is estimated here: the likelihood bound of any-order models (Uria et al. 2014; ARDM, Hoogeboom et al.
2022) and of masked diffusion (Sahoo et al. 2024). docs/metrics.md has more.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from ..arrays import FloatArray, IntArray
from ..attributes.record import PieceRecord
from ..component import PLLScorer, get_scorer
from ..errors import PLLError
from ..metrics import MAX_EXACT, ORDER_PAIRS, MaskRows, Metric, all_orders, orders_of
from ..prediction.adding_up import add_up
from ..prediction.asking import Asking
from ..prediction.batches import batches_of, with_next_ahead
from ..prediction.reading import DocReading
from ..settings import BATCH_SIZE, ScoringSettings
from ..span_getters import TEXT_SPAN
from ..stream.contexts import Placed, check_places, doc_in_context
from ..texts import check_texts, plain_texts

METRIC = "sentence_any_order"
N_LADDERS = 8  # independent ones, whose differences give the standard error


class Bound(NamedTuple):
    """A lower bound on the log-probability of a text, as estimated from some orders."""

    score: float  # natural log: the mean over the orders
    standard_error: float  # of that mean, by the draw of the orders; 0 if all orders were taken


def log_probability_bounds(
    nlp: Language,
    texts: Iterable[str | Doc | Placed],
    *,
    n_pairs: int = ORDER_PAIRS,
    n_passes: int | None = None,
    seed: int = 0,
    unit: Literal["piece", "word"] = "piece",
    batch_size: int = BATCH_SIZE,
    shared_pieces: bool = False,
) -> list[Bound | None]:
    """Estimate a lower bound on the log-probability of each text under a masked model, and the error of the estimate.

    The bound holds for the model that draws an order and reveals the text in it. It is loose for models that were
    seldom trained with most of a text masked. Up to 6 pieces, or words, all orders are taken. What the pipeline reads
    as one context (see `spans`, and windows of long texts) has a bound of its own, and these are added up. With the
    default arguments, the scores are those of the metric `sentence_any_order`.

    If a text is given with the text before and after it, such as an answer after its prompt, the bound is for the
    conditional probability of the text: the model always sees the text before and after it.

    nlp (Language): A pipeline with a `pll` component and a masked model. The setting `targets` has no effect here.
    texts (Iterable[Union[str, Doc, Tuple[Union[str, Doc], str, str]]]): Texts, or docs, which keep the scores that they
        have; or texts, each with the text before and after it, white space included: `(" Paris.", "It is", "")`.
    n_pairs (int): How many random orders to take, each with its reverse. At least 2. Each takes two forward passes a
        piece.
    n_passes (Optional[int]): The number of forward passes for each context instead, however long it is: see `ladder`. A
        multiple of 8.
    seed (int): From 0 to 4095. Another seed draws other orders. The orders of a text depend on its length and on this.
    unit (Literal["piece", "word"]): Whether pieces or words are put in random orders. The pieces of a word (see the
        setting `words`) come from left to right.
    batch_size (int): Number of texts per batch.
    shared_pieces (bool): Take texts that share a wordpiece with what stands beside them: it belongs to the side where
        it begins.
    RETURNS (List[Optional[Bound]]): One per text; None where nothing is scored.
    RAISES (ValueError): An argument is not valid, the model is not a masked one, or a text cannot be scored apart from
        what stands beside it.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    [bound] = spacy_pll.log_probability_bounds(nlp, ["The traveler lost the souvenir."])
    bound.score, bound.standard_error  # -38.28, 0.57
    ```
    """
    draws = draws_of(n_pairs, n_passes, seed, unit)
    check_texts(texts)
    given = list(texts)
    places = [text for text in given if isinstance(text, tuple)]
    check_places(get_scorer(nlp), places, shared_pieces)
    docs: Iterable[Any] = given
    if places:
        docs = (doc_in_context(nlp, *(text if isinstance(text, tuple) else (text,))) for text in given)
    scored = score_draws(nlp, docs, draws, batch_size, targets=TEXT_SPAN if places else None)
    return [bound_of(sums_of_draws(record)) if record.offset else None for _, record, _ in scored]


def sums_of_draws(record: PieceRecord) -> FloatArray:
    """The score of a text under each draw. float, shape (draws,)."""
    return np.sum(list(record.scores.values()), axis=1)


def bound_of(sums: FloatArray) -> Bound:
    """The mean of independent draws, and its standard error. float, shape (draws,)."""
    return Bound(float(sums.mean()), float(sums.std(ddof=1)) / len(sums) ** 0.5)


def draws_of(
    n_pairs: int = ORDER_PAIRS, n_passes: int | None = None, seed: int = 0, unit: str = "piece"
) -> list[Metric]:
    """Independent draws of what is masked. Under each, the mean of a text's score over all draws is its bound.

    RAISES (ValueError): An argument is not valid.
    """
    if n_pairs < 2 or not 0 <= seed < 4096 or unit not in ("piece", "word"):
        raise PLLError(
            "`n_pairs` must be at least 2, `seed` a number from 0 to 4095, and `unit` 'piece' or 'word'. They are "
            f"{n_pairs!r}, {seed!r} and {unit!r}."
        )
    if n_passes is None:
        return [_named(partial(pair_of_orders, number=i, seed=seed, unit=unit)) for i in range(n_pairs)]
    if n_passes < N_LADDERS or n_passes % N_LADDERS or unit != "piece":
        raise PLLError(
            f"`n_passes` must be a multiple of {N_LADDERS}, and `unit` 'piece' with it. They are "
            f"{n_passes!r} and {unit!r}."
        )
    ladders = [partial(ladder, number=i, n_passes=n_passes // N_LADDERS, seed=seed) for i in range(N_LADDERS)]
    for draw in ladders:
        vars(draw)["in_the_mean"] = True
    return list(map(_named, ladders))


def _named(draw: "partial[MaskRows]") -> Metric:
    """A draw as a metric, which messages call as the metric that it is a draw of."""
    vars(draw)["__name__"] = METRIC
    return Metric(draw)


def score_draws(
    nlp: Language,
    texts: Iterable[str | Doc],
    draws: Sequence[Metric],
    batch_size: int = BATCH_SIZE,
    done: int = 0,
    targets: str | None = None,
    keep_pieces: bool = False,
) -> Iterator[tuple[Doc, PieceRecord, bool]]:
    """Score texts under each draw, as a metric of its own. No component `pll` changes the docs.

    done (int): How many texts were scored before the first one.
    targets, keep_pieces: See `ScoringSettings`. The component's own have no effect.
    YIELDS (Tuple[Doc, PieceRecord, bool]): A doc, its record with the scores under each draw, and whether a batch ends
        with it.
    """
    scorer = get_scorer(nlp)
    lookahead, settings = scorer.model.check_metrics([METRIC]), scorer.settings
    asking = Asking(scorer.model, draws, settings.max_batch_tokens)
    named = settings.words, targets, settings.units
    reading, loaded = DocReading(asking, scorer.predictor.get_spans, *named, lookahead=lookahead), asking.prepare()
    kept = ScoringSettings((METRIC,), keep_pieces=keep_pieces)
    # Without those components in this stream. The pipeline is not changed: others may use it, too.
    without = [name for name, pipe in nlp.pipeline if isinstance(pipe, PLLScorer)]
    made = nlp.pipe(plain_texts(texts), batch_size=batch_size, disable=without)
    batches = batches_of(made, reading.ends_of_batches(loaded, batch_size, done))
    submitted = ((docs, reading.submit(docs)) for docs in batches)
    for docs, pending in with_next_ahead(submitted, loaded.on_gpu):
        records = add_up(pending.tokenized, pending.scores, kept, asking, pending.loaded)
        for number, (doc, record) in enumerate(zip(docs, records), 1):
            yield doc, PieceRecord.of(record), number == len(docs)


def pair_of_orders(word: IntArray, *, number: int, seed: int, unit: str) -> MaskRows:
    """Reveal a context in one random order and in its reverse, or, if there are few, in all orders."""
    units = np.unique(word, return_inverse=True)[1] if unit == "word" else np.arange(len(word))
    return of_pieces(orders_of(len(np.unique(units)), [number], seed), units)


def ladder(word: IntArray, *, number: int, n_passes: int, seed: int) -> MaskRows:
    """Mask 1 to k of k pieces in steps of k / n_passes from a random start, and read all masked ones at once: the
    estimate of LLaDA (Nie et al. 2025). A pass that masks n pieces weighs k / n. If all orders take no more passes than
    all ladders do, they are taken.
    """
    k = len(word)
    if k <= MAX_EXACT and 2**k - 1 <= n_passes * N_LADDERS:
        return all_orders(k)
    draw = np.random.RandomState([k, seed, number])
    n_masked = (draw.randint(k) + np.round(np.arange(n_passes) * (k / n_passes)).astype(int)) % k + 1
    masked = np.array([draw.permutation(k) < n for n in n_masked])
    row, target = np.nonzero(masked)
    return MaskRows(target, masked[row], k / (n_passes * n_masked[row]))


def of_pieces(rows: MaskRows, units: IntArray) -> MaskRows:
    """From rows that reveal units to rows that reveal the pieces of each unit from left to right.

    units (int array, shape (pieces,)): The unit of each piece, from 0.
    """
    row, target = np.nonzero(units == rows.target[:, None])
    revealed = (units == units[target][:, None]) & (np.arange(len(units)) < target[:, None])
    return MaskRows(target, rows.masked[row][:, units] & ~revealed, rows.weight[row])
