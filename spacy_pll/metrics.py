"""The masking schemes of Kauf & Ivanova (2023), section 3.1, and the registry they live in.

A forward pass of a masked language model gives the probability of the true wordpiece at a
masked position, with some positions masked. A metric says what is masked while each wordpiece
is scored. For a left-to-right model nothing is masked. A metric is a function

    word (int array, shape (pieces,)): the number of each piece's word, non-decreasing. It need not begin with 0, and
        there are gaps where words were joined (`units`) or not all of a text is scored (`targets`): compare the
        numbers, and do not count with them.
    RETURNS (MaskRows)

registered by name in `spacy.registry.pll_metrics` (entry point group `spacy_pll_metrics`),
so that another package can add one. It may have these attributes:

    model_kind (str): the kind of language model that it needs; default "masked"
    within_words (bool): whether each row masks its target and otherwise only pieces of the
        target's word, whatever the other words are. Only such rows can share a forward pass
        (`mask_spacing`, `mask_margin`). If a metric does not have it, its rows are checked when they share one.
    in_the_mean (bool): whether it draws its rows so that the weights of a piece sum to 1 in the mean over the draws
        alone; default False

With weights, a metric can average over several masked
contexts per piece, as `word_any_order` does.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.metadata import EntryPoints, entry_points
from typing import Any, NamedTuple

import catalogue
import numpy as np
from spacy.util import registry

from .arrays import BoolArray, FloatArray, IntArray, lazy
from .errors import PLLError, similar

if not hasattr(registry, "pll_metrics"):
    setattr(registry, "pll_metrics", catalogue.create("spacy", "pll_metrics", entry_points=True))  # noqa: B010
pll_metrics: Any = getattr(registry, "pll_metrics")  # noqa: B009

# `word_any_order`: the longest word of which all orders are averaged (63 masked contexts), and how many
# orders, with their reverses, are drawn for longer ones.
MAX_EXACT = 6
ORDER_PAIRS = 8


class MaskRows(NamedTuple):
    """The masked contexts whose log-probabilities make up the scores of a context's pieces.

    The score of piece t is the sum, over the rows r with `target[r] == t`, of
    `weight[r]` times the log-probability of piece t with `masked[r]` masked, and without `removed[r]`.

    If `removed` is given, `masked` may have more columns than there are pieces. Where such a column is True, the row
    has one more mask after the last piece.
    """

    target: IntArray  # int, shape (rows,): the piece that is scored
    masked: BoolArray  # bool, shape (rows, pieces or more)
    weight: FloatArray  # float, shape (rows,)
    removed: BoolArray | None = None  # bool, shape (rows, pieces): what the row does not have at all. None: nothing


Masking = Callable[[IntArray], MaskRows]


def register_metric(name: str, *, within_words: bool, model_kind: str = "masked") -> Callable[[Masking], Masking]:
    """Register a function as a metric. The decorator sets its attributes `within_words` and `model_kind`.

    ```python
    import numpy as np
    import spacy_pll

    @spacy_pll.register_metric("with_next_word", within_words=False)
    def with_next_word(word):
        # Hides the word of the target and the one after it.
        distance = word[None, :] - word[:, None]
        return spacy_pll.MaskRows(np.arange(len(word)), (distance == 0) | (distance == 1), np.ones(len(word)))

    spacy_pll.score("The traveler lost the souvenir.", metrics=["with_next_word"])[0].score  # -51.35
    ```
    """

    def register(function: Masking) -> Masking:
        vars(function).update(within_words=within_words, model_kind=model_kind)
        pll_metrics.register(name, func=function)
        return function

    return register


def one_row_per_piece(masked: BoolArray) -> MaskRows:
    """Row t of a (pieces, pieces) matrix is what is masked while piece t is scored."""
    n = len(masked)
    return MaskRows(np.arange(n), masked, np.ones(n))


@register_metric("original", within_words=True)
def original(word: IntArray) -> MaskRows:
    """Mask only the target: `i == t` (Kauf & Ivanova, equation 1; Salazar et al. 2020)."""
    return one_row_per_piece(np.eye(len(word), dtype=bool))


@register_metric("word_l2r", within_words=True)
def word_l2r(word: IntArray) -> MaskRows:
    """Mask the target and later pieces of its word: `word[i] == word[t] and i >= t` (Kauf & Ivanova, equation 2)."""
    return one_row_per_piece(np.triu(word[:, None] == word[None, :]))


@register_metric("word_r2l", within_words=True)
def word_r2l(word: IntArray) -> MaskRows:
    """Mask the target and earlier pieces of its word: `word[i] == word[t] and i <= t`, from right to left."""
    return one_row_per_piece(np.tril(word[:, None] == word[None, :]))


@register_metric("whole_word", within_words=True)
def whole_word(word: IntArray) -> MaskRows:
    """Mask the whole word of the target: `word[i] == word[t]` (Kauf & Ivanova, equation 3)."""
    return one_row_per_piece(word[:, None] == word[None, :])


@register_metric("sentence_l2r", within_words=False)
def sentence_l2r(word: IntArray) -> MaskRows:
    """Mask the target and everything after it: `i >= t` (Kauf & Ivanova, equation 4)."""
    return one_row_per_piece(np.triu(np.ones((len(word), len(word)), dtype=bool)))


# How many masks stand for the target and what follows it under `left_context`.
LEFT_CONTEXT_MASKS = 3


@register_metric("left_context", within_words=False)
def left_context(word: IntArray) -> MaskRows:
    """Replace the target and everything after it by three masks; the target is at the first mask (Samuel 2024).

    Under `sentence_l2r` there are as many masks as pieces, which tells the length of the text. With a fixed number, a
    masked model predicts as it does when it generates text (Samuel 2024, "BERTs are Generative In-Context Learners").
    BabyLM's reading task does the same.
    """
    n, k = len(word), LEFT_CONTEXT_MASKS
    ahead = np.arange(n + (k - 1 if n else 0)) - np.arange(n)[:, None]  # how far behind the target each column is
    return MaskRows(np.arange(n), (0 <= ahead) & (ahead < k), np.ones(n), ahead[:, :n] >= k)


@register_metric("causal", within_words=False, model_kind="causal")
def causal(word: IntArray) -> MaskRows:
    """Mask nothing: a left-to-right model sees only the text before the target (Kauf & Ivanova, appendix B)."""
    return one_row_per_piece(np.zeros((len(word), len(word)), dtype=bool))


@register_metric("unmasked", within_words=False)
def unmasked(word: IntArray) -> MaskRows:
    """Mask nothing: the model also sees the target, in one pass for a whole text (AUL: Kaneko & Bollegala 2022).

    So this is no probability of the piece given the others.
    """
    return one_row_per_piece(np.zeros((len(word), len(word)), dtype=bool))


@register_metric("word_any_order", within_words=True)
def word_any_order(word: IntArray) -> MaskRows:
    """Reveal the pieces of a word in all orders, and average: the joint probability of the pieces.

    For a word w of k pieces, with the rest of the sentence as context c, the chain rule holds for
    every order o of its pieces: log P(w | c) = sum_i log P(w[o_i] | w[o_1], ..., w[o_i-1], c). For the
    conditionals of a masked language model the k! right sides differ; `word_l2r` and `word_r2l`
    take one of them each. The average over all orders prefers none:

        score(w) = 1/k! sum_o sum_i log P(w[o_i] | w[o_1], ..., w[o_i-1], c)

    It takes the 2^k - 1 masked contexts of the word. Words of more than `MAX_EXACT` pieces take the average over
    `ORDER_PAIRS` random orders and their reverses, drawn with a seed that is the number of pieces. docs/metrics.md has
    the derivation, and the sources: Uria et al. 2014, Hoogeboom et al. 2022, Sahoo et al. 2024.
    """
    return in_each_word(word, any_order)


@register_metric("sentence_any_order", within_words=False)
def sentence_any_order(word: IntArray) -> MaskRows:
    """Reveal the pieces of the whole text in several orders, and average: a bound on the log-probability.

    Each order is a chain of conditionals, so exp of its sum is a probability, and the mean of the sums is at most the
    logarithm of the mean probability (Jensen): a lower bound on the log-probability of the text under a mixture of the
    orders (Uria et al. 2014, Hoogeboom et al. 2022).
    """
    return orders_of(len(word))


def orders_of(k: int, pairs: Sequence[int] = range(ORDER_PAIRS), seed: int = 0) -> MaskRows:
    """The mask rows that reveal k pieces in all orders, or, if these are many, in some that are drawn.

    pairs (Sequence[int]): Which of the draws to take, each with its reverse.
    """
    if k <= MAX_EXACT:
        return all_orders(k)
    rank = draw_orders(k, max(pairs) + 1, seed)[list(pairs)]
    return some_orders(np.concatenate([rank, -rank]))


any_order = lru_cache(maxsize=64)(orders_of)  # for words, which are short and come again


def draw_orders(k: int, n: int, seed: int = 0) -> IntArray:
    """Random orders of k pieces, the same each time: for each the place of each piece. Shape (n, k)."""
    draw = np.random.RandomState(k + (seed << 20))  # whose stream is the one that numpy promises never to change
    return np.array([draw.permutation(k) for _ in range(n)])


def all_orders(k: int) -> MaskRows:
    """Average over all k! orders in which the pieces of a word can be revealed, by way of the 2^k - 1 masked sets.

    Of these orders, |S|! (k-1-|S|)! reveal just the set S before a target.
    """
    masked = (np.arange(1, 2**k)[:, None] >> np.arange(k)) % 2 == 1
    row, target = np.nonzero(masked)
    n_masked = masked.sum(axis=1)[row]
    factorial = np.array([math.factorial(n) for n in range(k + 1)], dtype=float)
    return MaskRows(target, masked[row], factorial[k - n_masked] * factorial[n_masked - 1] / factorial[k])


def some_orders(rank: IntArray) -> MaskRows:
    """Average over some orders; rank (int array, shape (orders, k)): the smaller, the earlier a piece is revealed."""
    n_orders, k = rank.shape
    # While piece t is the target, those are masked whose turn comes no earlier.
    masked = rank[:, None, :] >= rank[:, :, None]
    return MaskRows(np.tile(np.arange(k), n_orders), masked.reshape(rank.size, k), np.full(rank.size, 1 / n_orders))


# Without those of other packages, which would have to be imported.
BUILTINS: dict[str, Masking] = {name: item for name, item in list(vars().items()) if hasattr(item, "within_words")}
BUILTIN_METRICS = list(BUILTINS)


def in_each_word(word: IntArray, rows_of: Callable[[int], MaskRows]) -> MaskRows:
    """Mask rows of a context from those of a single word, by its number of pieces."""
    parts = [MaskRows(np.zeros(0, dtype=np.int64), np.zeros((0, len(word)), dtype=bool), np.zeros(0))]
    _, starts, lengths = np.unique(word, return_index=True, return_counts=True)
    for start, length in zip(starts.tolist(), lengths.tolist()):
        rows = rows_of(length)
        masked = np.zeros((len(rows.masked), len(word)), dtype=bool)
        masked[:, start : start + length] = rows.masked
        parts.append(MaskRows(start + rows.target, masked, rows.weight))
    return MaskRows(*(np.concatenate(column) for column in zip(*(rows[:3] for rows in parts))))


# The words on which a metric is tried.
_TRIED, _LENGTHS = np.arange(60) // 3, [1, 3, 2, 4, 1, 2]


class Metric:
    """What is masked while each piece is scored: a function, what it says of itself, and what is found by trying it."""

    def __init__(self, function: Masking):
        self.function = function
        self.model_kind: str = getattr(function, "model_kind", "masked")
        self.within_words: bool | None = getattr(function, "within_words", None)  # None: it does not say
        self.in_the_mean: bool = getattr(function, "in_the_mean", False)

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return str(getattr(self.function, "__name__", None) or repr(self.function))

    def mask_rows(self, word: IntArray) -> MaskRows:
        """Its mask rows for a context. RAISES (ValueError): They are none."""
        rows = self.function(word)
        check_mask_rows(rows, len(word), self)
        return rows

    @lazy
    def n_added_masks(self) -> int:
        """How many masks a row may have behind the last piece."""
        return int(self.function(_TRIED).masked.shape[1]) - len(_TRIED)

    @lazy
    def masks(self) -> bool:
        """Whether it masks anything."""
        return bool(self.function(_TRIED).masked.any())

    @lazy
    def depends_on_words(self) -> bool:
        """Whether it matters which pieces are one word."""
        in_one, in_several = self.function(np.zeros(4, dtype=np.int64)), self.function(np.arange(4))
        return in_one.masked.shape != in_several.masked.shape or bool((in_one.masked != in_several.masked).any())

    @lazy
    def shows_what_follows(self) -> bool:
        """Whether the model sees any of the pieces that follow a piece while it is scored."""
        if self.model_kind == "causal":
            return False
        if self.in_the_mean:  # a single draw may mask everything
            return True
        rows, n = self.mask_rows(_TRIED), len(_TRIED)
        follows: BoolArray = np.arange(n) > rows.target[:, None]
        hidden: BoolArray = rows.masked[:, :n]
        if rows.removed is not None:
            hidden = hidden | rows.removed
        return not hidden[follows].all()

    @lazy
    def false_claim(self) -> str:
        """What is wrong if it says that it masks within words: what it masks in a word must depend on the number of the
        word's pieces alone, and hold the piece that is scored. "" if nothing is.
        """
        word = np.repeat(np.arange(len(_LENGTHS)), _LENGTHS)
        rows = self.mask_rows(word)
        alone = {length: self.function(np.zeros(length, dtype=np.int64)) for length in _LENGTHS}
        is_fit = rows.removed is None and all(of_word.masked.shape[1:] == (k,) for k, of_word in alone.items())
        if not is_fit or _asked(rows) != _asked(in_each_word(word, alone.__getitem__)):
            return "what it masks depends on other words as well, or its rows have other lengths than their contexts"
        if not rows.masked[np.arange(len(rows.target)), rows.target].all():
            return "it has a row that does not mask the piece that it scores"
        return ""

    def check_claim(self) -> None:
        """RAISES (ValueError): It says that it masks within words, and does not."""
        if self.false_claim:
            raise PLLError(
                f"The metric {self.name!r} says that it masks within words, but {self.false_claim}. Set its attribute "
                "`within_words` to False."
            )


def check_mask_rows(rows: MaskRows, n: int, metric: Metric) -> None:
    """RAISES (ValueError): These are no mask rows for a context of n pieces. The message names the metric."""
    name, (target, masked, weight, removed) = metric.name, rows
    n_rows, n_masked = (*np.shape(masked), 0, 0)[:2]
    columns = n if removed is None else max(n, n_masked)
    arrays = [np.asarray(array) for array in rows[: 3 if removed is None else 4]]
    # For each array, the kinds that it may have, and its shape.
    wanted = [("iu", (n_rows,)), ("b", (n_rows, columns)), ("f", (n_rows,)), ("b", (n_rows, n))]
    if any(array.dtype.kind not in kinds or array.shape != shape for array, (kinds, shape) in zip(arrays, wanted)):
        raise PLLError(
            f"The metric {name!r} must return the int array `target` (rows,), the bool array `masked` (rows, {n}), the "
            f"float array `weight` (rows,), and None or the bool array `removed` (rows, {n}). They are "
            f"{', '.join(f'{array.dtype}{array.shape}' for array in arrays)}."
        )
    if removed is not None and (
        (removed & masked[:, :n]).any() or removed[np.arange(len(target)), np.clip(target, 0, n - 1)].any()
    ):
        raise PLLError(f"The metric {name!r} has a row that masks a piece, or scores it, and removes it as well.")
    outside = target[(target < 0) | (target >= n)]
    if len(outside):
        raise PLLError(f"The metric {name!r} has a row for piece {outside[0]} of a context of {n}. Count from 0.")
    total = np.bincount(target, weights=weight, minlength=n)
    wrong = np.flatnonzero(~(np.abs(total - 1) < 1e-6))  # NaN is wrong, too
    if len(wrong) and not metric.in_the_mean:
        piece = int(wrong[0])
        problem = f"weights that sum to {total[piece]:g}" if (target == piece).any() else "no row"
        raise PLLError(
            f"The metric {name!r} has {problem} for piece {piece} of a context of {n}. Return at least one row for "
            "each piece, with weights that sum to 1."
        )


def _asked(rows: MaskRows) -> list[tuple[int, tuple[int, ...], float]]:
    """What each row scores and masks, and its weight, in an order of its own."""
    masked = [tuple(np.flatnonzero(row).tolist()) for row in rows.masked]
    return sorted(zip(rows.target.tolist(), masked, np.round(rows.weight, 9).tolist()))


def check_within_words(name: str, setting: str) -> None:
    """RAISES (ValueError): The metric declares that its rows cannot share a forward pass, as a setting asks."""
    if get_metric(name).within_words is False:
        raise PLLError(
            f"The metric {name!r} does not mask within words, so with `{setting}` its forward passes cannot be shared.",
            f"Leave out `{setting}`, or set `metrics` to some of these: {names_of(within_words=True)}.",
        )


def names_of(**attributes: Any) -> str:
    """The names of all metrics with some attributes, for messages."""
    every = {name: Metric(function) for name, function in pll_metrics.get_all().items()}
    return ", ".join(sorted(name for name, metric in every.items() if attributes.items() <= vars(metric).items()))


# By the function, and by what it says of itself, which may be corrected.
_known: dict[tuple[Any, ...], Metric] = {}


def get_metric(name: str) -> Metric:
    """The metric registered under a name: the same one each time, so that what is found of it is kept.

    RAISES (ValueError): There is none; the message lists the names. Or there are several, of which catalogue would take
        one without a word: entry points come before what is registered in Python.
    """
    own = [BUILTINS[name]] if name in BUILTINS else []
    loaded = [entry_point.load() for entry_point in _entry_points().select(name=name)]
    registered = [catalogue.REGISTRY[key] for key in [("spacy", "pll_metrics", name)] if key in catalogue.REGISTRY]
    functions: dict[int, Masking] = {id(metric): metric for metric in (*own, *loaded, *registered)}
    if not functions:
        known = sorted(pll_metrics.get_all())
        near = similar(name, known)
        if name == "surprisal":
            near = " Surprisal is minus the score under a metric: tables of words and of tokens have it as a column."
        raise PLLError(f"Unknown PLL metric {name!r}.{near}", f"Set `metrics` to a list of these: {', '.join(known)}.")
    if len(functions) > 1:
        places = " and ".join(f"{function.__module__}.{function.__qualname__}" for function in functions.values())
        raise PLLError(
            f"Several metrics have the name {name!r}: {places}.",
            f"Register yours under another name{', since this one is of spacy-pll itself' if own else ''}.",
        )
    metric = Metric(*functions.values())
    try:
        return _known.setdefault((metric.function, metric.model_kind, metric.within_words, metric.in_the_mean), metric)
    except TypeError:  # an object that is compared by value, and has no hash: it may change
        return metric


def registered_metrics() -> set[str]:
    """The names of all metrics. Those of other packages are not loaded."""
    in_python = (key[-1] for key in catalogue.REGISTRY if key[:-1] == ("spacy", "pll_metrics"))
    return {*BUILTINS, *_entry_points().names, *in_python}


@cache
def _entry_points() -> EntryPoints:
    return entry_points(group="spacy_pll_metrics")
