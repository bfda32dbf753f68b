"""How close the scores with `mask_margin` and `mask_spacing` are to the exact ones, on some texts."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..component import PLLScorer
from ..pipelines import vary_scorer
from .agreement import Agreement, AgreementCounts, plot_agreements

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGINS = (0, 1, 2, 4)
AT_LEAST = 0.99
EXACT: dict[str, Any] = {"mask_margin": None, "mask_spacing": None}


@dataclass(frozen=True)
class MarginAgreement:
    """How close the scores with some margins and spacings are to the exact ones."""

    model: str
    texts: int
    at_least: float  # how large the correlation by word should be
    smallest: Mapping[str, int | None]  # for each setting that was tried: its smallest value that reaches `at_least`
    comparisons: Sequence[Agreement]  # of each margin and spacing with the exact scores, which come first

    def plot(self) -> "Figure":
        """Draw the scores of each comparison: see `plot_agreements`. RAISES (ImportError): There is no matplotlib."""
        return plot_agreements(self.comparisons)


def compare_margins(
    nlp: Language,
    texts: Iterable[str | Doc],
    margins: Sequence[int] = MARGINS,
    spacings: Sequence[int] = (),
    *,
    at_least: float = AT_LEAST,
    batch_size: int = 64,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = lambda texts: texts,
) -> MarginAgreement:
    """Score texts exactly, and with each margin and spacing, and compare the primary metric. One model serves all.

    nlp (Language): A pipeline with a `pll` component. It stays as it is, and its own margin or spacing is not used.
    margins, spacings (Sequence[int]): Values of `mask_margin` and `mask_spacing`.
    at_least (float): How large the correlation by word should be.
    batch_size, bootstrap, seed, progress: As for `agree`.
    RAISES (ValueError): A value is not valid, the model or the metric cannot be scored so, or no text was scored.
    """
    tried = {"mask_margin": sorted(set(margins)), "mask_spacing": sorted(set(spacings))}
    changes = [{setting: value} for setting, values in tried.items() for value in values]
    if not changes:
        raise ValueError("There is nothing to compare with the exact scores. Give `margins`, such as (0, 1, 2, 4).")
    exact, *others = [_Timed(vary_scorer(nlp, **{**EXACT, **change}, keep_pieces=True)) for change in [{}, *changes]]
    agreements = [AgreementCounts((exact.scorer, other.scorer)) for other in others]
    with nlp.select_pipes(disable=[exact.scorer.name]):
        for batch in minibatch(progress(texts), batch_size):
            docs = list(nlp.pipe(text.copy() if isinstance(text, Doc) else text for text in batch))
            expected = exact.score(docs)
            for other, agreement in zip(others, agreements):
                agreement.add(expected, other.score(docs))
    comparisons = [
        agreement.result(("exact", f"{setting} {value}"), (exact.seconds, other.seconds), bootstrap, seed)
        for other, agreement, change in zip(others, agreements, changes)
        for setting, value in change.items()
    ]
    smallest = {setting: _smallest(comparisons, setting, at_least) for setting, values in tried.items() if values}
    return MarginAgreement(exact.scorer.model.describe().title, comparisons[0].texts, at_least, smallest, comparisons)


class _Timed:
    """A scorer, and how long it took."""

    def __init__(self, scorer: PLLScorer):
        scorer.predictor.prepare()  # not timed
        self.scorer, self.seconds = scorer, 0.0

    def score(self, docs: list[Doc]) -> list[Doc]:
        copies = [doc.copy() for doc in docs]
        began = time.perf_counter()
        scored = list(self.scorer.pipe(copies, batch_size=len(copies)))
        self.seconds += time.perf_counter() - began
        return scored


def _smallest(comparisons: Sequence[Agreement], setting: str, at_least: float) -> int | None:
    """The smallest value of a setting with which the correlation by word is large enough."""
    r = {one.scorers[1].settings[setting]: one.word.r for one in comparisons}
    return min((value for value in r if value is not None and (r[value] or -1) >= at_least), default=None)
