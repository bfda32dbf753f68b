"""Scores that depend less on the length of a text and on the frequency of its words (Lau, Clark & Lappin 2017).

They are made from the record of wordpieces, so docs and spans have them whose docs were scored with `keep_pieces`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..attributes.names import Names
from ..attributes.records import is_record, piece_record
from ..attributes.values import table_value
from ..component import get_scorer
from .unigrams import Unigrams, load_unigrams


class Parts(NamedTuple):
    """What a normalised score is made of."""

    log_p: float  # the score: the sum over the wordpieces, natural log
    log_p_u: float  # the same under the unigrams; NaN without a table
    pieces: int  # scored wordpieces
    words: int  # spaCy's tokens in which a scored wordpiece begins
    characters: int  # in scored wordpieces, so without white space


METHODS: dict[str, Callable[[Parts], float]] = {
    "mean_lp": lambda of: of.log_p / of.pieces,
    "pen_lp": lambda of: of.log_p / ((5 + of.pieces) / (5 + 1)) ** 0.8,
    "norm_lp": lambda of: -of.log_p / of.log_p_u,
    "slor": lambda of: (of.log_p - of.log_p_u) / of.pieces,
    "per_word": lambda of: of.log_p / of.words,
    "per_character": lambda of: of.log_p / max(1, of.characters),
}
WITH_UNIGRAMS = ("norm_lp", "slor")


def normalise(
    tokens: Doc | Span, method: str, unigrams: Unigrams | None = None, *, metric: str | None = None, attr: str = "pll"
) -> float | None:
    """A score that was normalised. Higher is better, as for the score itself.

    tokens (Union[Doc, Span]): Scored with `keep_pieces`.
    method (str): "mean_lp", "pen_lp", "norm_lp", "slor", "per_word" or "per_character".
    unigrams (Optional[Unigrams]): What `load_unigrams` gives, for "norm_lp" and "slor".
    metric (Optional[str]): One of the metrics that the doc was scored with. None is the first.
    attr (str): The component's setting of that name.
    RETURNS (Optional[float]): None where no wordpiece was scored.
    RAISES (ValueError): There is no such method or metric, no record of wordpieces, or no table of unigrams for them.
    """
    check_method(method, unigrams)
    record = piece_record(tokens.doc, attr)
    if not is_record(record):
        raise ValueError(
            f"The doc {tokens.doc.text[:50]!r} has no record of its wordpieces, _.{attr}_data. Score it with "
            "keep_pieces=True."
        )
    metric = metric or next(iter(record["scores"]))
    if metric not in record["scores"]:
        raise ValueError(f"There are no scores under {metric!r}, only under {', '.join(record['scores'])}.")
    first, last = (tokens.start, tokens.end) if isinstance(tokens, Span) else (0, len(tokens))
    kept = [i for i, token in enumerate(record["token"]) if first <= token < last]
    if not kept:
        return None
    log_p, ids, pieces, token, start, end = (
        [column[i] for i in kept]
        for column in (record["scores"][metric], *(record[name] for name in ("ids", "pieces", "token", "start", "end")))
    )
    # Pieces may share a character: each byte of an emoji can be one.
    characters = {i for piece in zip(start, end) for i in range(*piece)}
    log_p_u = unigrams.sum(ids, pieces) if unigrams else math.nan
    return METHODS[method](Parts(sum(log_p), log_p_u, len(kept), len(set(token)), len(characters)))


def check_method(method: str, unigrams: Unigrams | None) -> None:
    """RAISES (ValueError): There is no such method, or it needs a table of unigrams."""
    if method not in METHODS:
        raise ValueError(f"There is no way to normalise called {method!r}. Choose from {', '.join(METHODS)}.")
    if method in WITH_UNIGRAMS and unigrams is None:
        raise ValueError(f"{method!r} needs a table of unigrams. Give load_unigrams(nlp).")


def pmi(
    nlp: Language, spans: Iterable[Span], *, metric: str | None = None, component: str | None = None
) -> list[float | None]:
    """How much the context raises the scores of spans: the score in the doc minus the score of the span alone. The
    pointwise mutual information, for a score that is a log-probability. The setting `units` counts in both.

    nlp (Language): A pipeline with a `pll` component. It scores the spans alone; other components do not run.
    spans (Iterable[Span]): Of docs that the pipeline scored.
    metric (Optional[str]): One of the component's metrics. None is the first.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    RETURNS (list[Optional[float]]): Natural log. None where a span has no scored wordpiece.
    RAISES (ValueError): The pipeline has no such component, or the component no such metric.
    RAISES (TypeError): `spans` has something that is not a span.
    """
    scorer, spans = get_scorer(nlp, component), list(spans) if isinstance(spans, Iterable) else [spans]
    for span in spans:
        if not isinstance(span, Span):
            raise TypeError(f"`spans` must be spans, such as [doc[0:2]]. This is not one: {span!r:.100}.")
    metrics = list(scorer.settings.metrics)
    if metric not in (None, *metrics):
        raise ValueError(f"There are no scores under {metric!r}, only under {', '.join(metrics)}.")
    row = metrics.index(metric) if metric else 0
    attribute = scorer.names.metrics[metrics[row]]
    in_context = [table_value(span, attribute, scorer.names) for span in spans]
    copies = [span.as_doc()[:] for span in spans]
    units = [
        [copy[max(0, unit.start - span.start) : unit.end - span.start]
         for unit in span.doc.spans.get(scorer.settings.units, []) if unit.start < span.end and span.start < unit.end]
        for span, copy in zip(spans, copies)
    ]  # fmt: skip
    alone = scorer.predictor.predict_spans(copies, units)
    return [
        score - float(of_span.scores[row].sum()) if score is not None and of_span.pieces.any() else None
        for score, of_span in zip(in_context, alone, strict=True)
    ]


@dataclass(frozen=True)
class Normaliser:
    """The normalised scores of docs under each metric, as columns of a table.

    methods (Sequence[str]): As for `normalise`.
    """

    methods: Sequence[str]
    names: Names  # what the component calls its attributes
    unigrams: Unigrams | None

    @classmethod
    def of(cls, nlp: Language, methods: Sequence[str], path: str | None = None) -> "Normaliser":
        """For the docs that a pipeline scores.

        path (Optional[str]): The table of unigrams, as for `load_unigrams`. It is read if a method needs it.
        RAISES (ValueError): There is no such method, or the table is for another vocabulary.
        """
        scorer = get_scorer(nlp)
        unigrams = load_unigrams(nlp, path) if path or set(methods) & set(WITH_UNIGRAMS) else None
        for method in methods:
            check_method(method, unigrams)
        return cls(methods, scorer.names, unigrams)

    @property
    def columns(self) -> dict[str, tuple[str, str]]:
        """The metric and the method of each column, such as "pll_word_l2r_slor"."""
        metrics = self.names.metrics.items()
        return {f"{name}_{method}": (metric, method) for metric, name in metrics for method in self.methods}

    def __call__(self, doc: Doc) -> dict[str, float | None]:
        """The columns of a doc. All are None where no wordpiece was scored."""
        pieces, attr = self.names.pieces, self.names.score
        return {
            column: normalise(doc, method, self.unigrams, metric=metric, attr=attr) if doc._.get(pieces) else None
            for column, (metric, method) in self.columns.items()
        }


NOT_NORMALISED = Normaliser((), Names("pll", []), None)  # no columns
