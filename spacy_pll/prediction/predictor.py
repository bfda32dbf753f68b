"""Docs in, records of their wordpieces out: what the component `pll` computes before it writes attributes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from spacy.tokens import Doc

from ..arrays import FloatArray
from ..attributes.record import Stored
from ..errors import PLLError
from ..language_model.protocol import LanguageModel, Loaded
from ..metrics import Metric
from ..scoring.windows import Context
from ..settings import ScoringSettings
from ..span_getters import SpanGetter
from ..texts import Text
from .adding_up import add_up
from .asking import Asking, PendingScores, WorkDone
from .batches import ends_of_batches
from .reading import DocReading
from .text_warnings import TextWarnings
from .tokenized import TokenizedDocs


@dataclass(frozen=True)
class PendingBatch:
    """Docs whose forward passes have been submitted."""

    tokenized: TokenizedDocs
    scores: PendingScores
    loaded: Loaded


class Predictor:
    """Scores docs without changing them. Its settings may be replaced at any time, but for the metrics.

    variants (Sequence[Metric]): Metrics in the place of the one that the settings name, such as other draws.
    RAISES (ValueError): The model cannot compute the metrics.
    """

    def __init__(
        self,
        model: LanguageModel,
        get_spans: SpanGetter,
        settings: ScoringSettings,
        variants: Sequence[Metric] = (),
    ):
        if not isinstance(model, LanguageModel):
            raise PLLError(
                "`model` must be a name, a folder, or a block with @architectures, such as spacy-pll.MaskedLM.v1. "
                f"It is {model!r:.100}."
            )
        self.get_spans, self.settings = get_spans, settings
        self._names = list(settings.metrics)
        self._variants = list(variants)
        self.counts = WorkDone()  # since it was made, or since this was set
        self.warnings = TextWarnings()
        self.model = model

    @property
    def metrics(self) -> list[Metric]:
        """Looked up when they are used: a pickled predictor has their names, and one registered anew is the new one.

        RAISES (ValueError): The settings have other metrics than when it was made: attributes are named after those.
        """
        if (names := list(self.settings.metrics)) != self._names:
            raise PLLError(
                f"The metrics of a component cannot be replaced: it was made with {self._names}, and has {names} now.",
                "Make another with these `metrics`.",
            )
        return self.asking.looked_up()

    @property
    def model(self) -> LanguageModel:
        return self._model

    @model.setter
    def model(self, model: LanguageModel) -> None:
        self._model, self._lookahead = model, model.check_metrics(self.settings.metrics)

    @property
    def asking(self) -> Asking:
        """What is asked of the model."""
        settings = self.settings
        how = settings.max_batch_tokens, settings.mask_spacing, settings.mask_margin
        return Asking(self._model, self._variants or settings.metrics, *how, self.counts)

    @property
    def reading(self) -> DocReading:
        """What is read for docs."""
        settings = self.settings
        how = settings.words, settings.targets, settings.units, settings.sample_words, settings.seed
        return DocReading(self.asking, self.get_spans, *how, self._lookahead, self.warnings)

    def prepare(self) -> Loaded:
        """Load the model, unless that is done. RAISES (ValueError): It cannot be used, or not with these settings."""
        return self.asking.prepare()

    def predict(self, docs: list[Doc]) -> list[Stored]:
        """Score docs without changing them."""
        return list(self.gather(self.submit(docs)))

    def log_probs(self, contexts: Sequence[Context], ids: Sequence[int]) -> FloatArray:
        """See `Asking.log_probs`."""
        return self.asking.log_probs(contexts, ids)

    def ends_of_batches(self, most: int, done: int = 0) -> Callable[[Text], bool]:
        """See `ends_of_batches`."""
        loaded = self.prepare()
        return ends_of_batches(partial(self.reading.estimate, loaded=loaded), loaded, most, done)

    def tokenize(self, docs: list[Doc]) -> TokenizedDocs:
        """What is read for each doc, and which of its tokens are scored: those in its targets, or all."""
        return self.reading.read(docs, self.prepare())

    def submit(self, docs: list[Doc]) -> PendingBatch:
        """Plan the forward passes for some docs and start them. A GPU may be working on them when this returns."""
        assert self.metrics  # which are the ones that it was made with
        loaded = self.prepare()
        tokenized = self.reading.read(docs, loaded)
        return PendingBatch(
            tokenized, self.asking.submit(tokenized.asked, loaded, self.settings.n_alternatives), loaded
        )

    def gather(self, pending: PendingBatch) -> Iterator[Stored]:
        """Wait for the log-probabilities, and make the record of each doc. RAISES (ValueError): One is not finite."""
        return add_up(pending.tokenized, pending.scores, self.settings, self.asking, pending.loaded)
