"""Docs in, records of their wordpieces out: what the component `pll` computes before it writes attributes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from spacy.tokens import Doc

from ..attributes.record import Stored
from ..errors import PLLError
from ..language_model.protocol import LanguageModel, Loaded
from ..scoring.kept_encodings import KeptEncodings
from ..settings import ScoringSettings
from ..span_getters import SpanGetter
from .adding_up import add_up
from .asking import Asking, WorkDone
from .batches import EndsBatch
from .reading import DocReading, PendingBatch
from .tokenized import TokenizedDocs


@dataclass(frozen=True, eq=False)
class Predictor:
    """Scores docs without changing them. It cannot be changed: for another model or other settings, make another.

    model (LanguageModel): Gives the probabilities. It is loaded on first use.
    get_spans (SpanGetter): Which spans are read as one context.
    settings (ScoringSettings): What is scored, and how.
    kept (Optional[KeptEncodings]): What the tokenizer has made of texts already.
    RAISES (ValueError): The model cannot compute the metrics.
    """

    model: LanguageModel
    get_spans: SpanGetter
    settings: ScoringSettings
    kept: KeptEncodings | None = field(default=None, repr=False)
    asking: Asking = field(init=False, repr=False)  # what the model is asked
    reading: DocReading = field(init=False, repr=False)  # what it reads

    def __post_init__(self) -> None:
        if not isinstance(self.model, LanguageModel):
            raise PLLError(
                "`model` must be a name, a folder, or a block with @architectures, such as spacy-pll.MaskedLM.v1. "
                f"It is {self.model!r:.100}."
            )
        settings, lookahead = self.settings, self.model.check_metrics(self.settings.metrics)
        limits = settings.max_batch_tokens, settings.mask_spacing, settings.mask_margin
        asking = Asking(self.model, settings.metrics, *limits)
        named = settings.words, settings.targets, settings.units, settings.sample_words, settings.seed
        reading = DocReading(asking, self.get_spans, *named, lookahead, self.kept)
        vars(self).update(asking=asking, reading=reading)

    @property
    def counts(self) -> WorkDone:
        """The work that was done since it was made, or since this was cleared."""
        return self.asking.counts

    def prepare(self) -> Loaded:
        """Load the model, unless that is done. RAISES (ValueError): It cannot be used, or not with these settings."""
        return self.asking.prepare()

    def ends_of_batches(self, max_docs: int, n_before: int = 0) -> EndsBatch:
        """See `DocReading.ends_of_batches`."""
        return self.reading.ends_of_batches(self.prepare(), max_docs, n_before)

    def tokenize(self, docs: list[Doc]) -> TokenizedDocs:
        """See `DocReading.read`."""
        return self.reading.read(docs, self.prepare())

    def submit(self, docs: list[Doc], texts: list[str] | None = None) -> PendingBatch:
        """Plan the forward passes for some docs and start them. A GPU may be working on them when this returns.

        texts (Optional[List[str]]): See `DocTexts.of`.
        """
        return self.reading.submit(docs, self.settings.n_alternatives, texts)

    def gather(self, pending: PendingBatch) -> Iterator[Stored]:
        """Wait for the log-probabilities, and make the record of each doc. RAISES (ValueError): One is not finite."""
        return add_up(pending.tokenized, pending.scores, self.settings, self.asking, pending.loaded)

    def predict(self, docs: list[Doc]) -> list[Stored]:
        """Score docs without changing them."""
        return list(self.gather(self.submit(docs)))
