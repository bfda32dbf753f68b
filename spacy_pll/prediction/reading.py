"""What a model reads for docs, and which of their tokens are scored."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import Groups
from ..documentation import page
from ..errors import PLLError
from ..language_model.protocol import Loaded
from ..scoring.kept_encodings import KeptEncodings
from ..scoring.plan import estimate_ids
from ..scoring.sample import draw_words
from ..scoring.windows import get_contexts
from ..scoring.wordpieces import DocTexts, Words, get_wordpieces, merge_spans
from ..span_getters import TEXT_SPAN, SpanGetter, named_spans
from ..texts import Text
from ..user_warnings import warn_user
from .asking import Asking, PendingScores
from .batches import EndsBatch, ends_of_batches
from .text_warnings import TextWarnings
from .tokenized import TokenizedDocs


@dataclass(frozen=True)
class PendingBatch:
    """Docs whose forward passes have been submitted."""

    tokenized: TokenizedDocs
    scores: PendingScores
    loaded: Loaded


@dataclass(frozen=True, eq=False)
class DocReading:
    """How docs are read.

    asking (Asking): What is asked about them: its metrics say for how many masks a window leaves room.
    get_spans (SpanGetter): Which spans are read as one context.
    words, targets, units, sample_words, seed: See `ScoringSettings`.
    lookahead (Optional[int]): How many of the pieces that follow a piece its score depends on. None: all of them.
    kept (Optional[KeptEncodings]): What the tokenizer has made of texts already.
    warnings (TextWarnings): What has been warned of.
    """

    asking: Asking
    get_spans: SpanGetter
    words: Words = "spacy"
    targets: str | None = None
    units: str | None = None
    sample_words: float | None = None
    seed: int = 0
    lookahead: int | None = None
    kept: KeptEncodings | None = None
    warnings: TextWarnings = field(default_factory=TextWarnings)

    def read(self, docs: list[Doc], loaded: Loaded, texts_of: list[str] | None = None) -> TokenizedDocs:
        """What is read for each doc, and which of its tokens are scored: those in its targets, or all.

        texts_of (Optional[List[str]]): See `DocTexts.of`.
        """
        spans_of, model = self._spans_of(docs), self.asking.model
        texts = DocTexts.of(docs, texts_of)
        targets, units, end_before = None, list[list[tuple[int, int]]](), np.zeros(len(texts.starts), dtype=np.int64)
        if self.targets is not None:
            targets = np.zeros(len(texts.starts), dtype=bool)
            for first, doc in zip(texts.tokens_of.starts.tolist(), docs):
                for span in _named_spans(doc, "targets", self.targets):
                    targets[first + span.start : first + span.end] = True
                    if 0 < span.start < span.end:
                        before = doc[span.start - 1]
                        end_before[first + span.start] = before.idx + len(before)
        if self.units is not None:
            units = [merge_spans(_named_spans(doc, "units", self.units)) for doc in docs]
        spans, of_doc = [span for spans in spans_of for span in spans], Groups.of(spans_of)
        encode = self.kept.of if self.kept else None
        pieces = get_wordpieces(spans, loaded.tokenizer, self.words, units, texts, of_doc.owner, encode)
        max_length = loaded.max_length - self.asking.n_added_masks
        contexts, scored = get_contexts(
            spans_of, pieces, texts.tokens_of, targets, max_length, self.lookahead, units, end_before
        )
        pieces_of = Groups(np.diff(pieces.encoded.pieces_of.edges[of_doc.edges]))
        tokenized = TokenizedDocs(texts, pieces_of, pieces, scored, contexts)
        self.warnings.of_left_out(docs, tokenized, ~scored if targets is None else targets & ~scored)
        self.warnings.of_language(docs, model)
        self.warnings.of_split_words(docs, model, loaded)
        self.warnings.of_unknown(tokenized, model, loaded)
        self.warnings.of_special(tokenized, loaded)
        if not any(units):
            self.warnings.of_unspaced(docs, tokenized, self.words, self.asking.of_words)
            self.warnings.of_long_words(tokenized, self.asking.of_words, exact=self.asking.mask_margin is None)
        if self.sample_words is not None:
            drawn = draw_words(texts, pieces, contexts, self.sample_words, self.seed)
            tokenized = replace(tokenized, scored=scored & drawn.is_drawn, drawn=drawn)
        return tokenized

    def submit(
        self, docs: list[Doc], n_alternatives: int | None = None, texts: list[str] | None = None
    ) -> PendingBatch:
        """Read docs, and start the forward passes for them. The model is loaded, unless that is done.

        n_alternatives (Optional[int]): See `Asking.submit`.
        texts (Optional[List[str]]): See `DocTexts.of`.
        """
        loaded = self.asking.prepare()
        tokenized = self.read(docs, loaded, texts)
        return PendingBatch(tokenized, self.asking.submit(tokenized.asked, loaded, n_alternatives), loaded)

    def ends_of_batches(self, loaded: Loaded, max_docs: int, n_before: int = 0) -> EndsBatch:
        """Says of one text after the other whether a batch ends with it: see `batches.ends_of_batches`."""
        return ends_of_batches(partial(self.estimate, loaded=loaded), loaded, max_docs, n_before)

    def estimate(self, text: Text, characters: str | None = None, *, loaded: Loaded) -> int:
        """About how many ids are read for a text, before it is tokenized: four bytes are taken to be a piece, and each
        token to be at least one. characters (Optional[str]): See `EndsBatch`.
        """
        if characters is None:
            characters = text.text if isinstance(text, Doc) else text
        pieces = scored = len(characters.encode("utf8", "surrogatepass")) // 4 + 1
        if isinstance(text, Doc):
            pieces = scored = max(len(text), pieces)  # a protein has a token for each letter
            if (key := self.targets) is not None and key in text.spans:
                scored = pieces * min(len(text), sum(map(len, named_spans(text, key)))) // max(1, len(text))
        scored = math.ceil(scored * (self.sample_words or 1))
        length = min(pieces + 2, loaded.max_length)
        return estimate_ids(scored, length, self.asking.masks, self.asking.mask_spacing, self.asking.mask_margin)

    def _spans_of(self, docs: list[Doc]) -> list[list[Span]]:
        """Each doc's spans that have a token."""
        spans = [list(filter(len, spans)) for spans in self.get_spans(docs)]
        if len(spans) != len(docs) or any(span.doc is not doc for doc, of_doc in zip(docs, spans) for span in of_doc):
            raise PLLError(
                f"`get_spans` must give one list of spans for each doc, in the order of the docs. For {len(docs)} docs "
                f"it gave {len(spans)} lists, or spans of other docs. Use one of this package's span getters, such "
                "as spacy-pll.sent_spans.v1."
            )
        return spans


def _named_spans(doc: Doc, setting: Literal["targets", "units"], key: str) -> list[Span]:
    """The spans of a doc that a setting names."""
    if key != TEXT_SPAN and key not in doc.spans:
        effect = "nothing in it is scored" if setting == "targets" else "it is scored by words"
        warn_user(
            f"A doc has no spans under `{setting}`, doc.spans[{key!r}], so {effect}. "
            f"It has spans under these keys: {', '.join(map(repr, doc.spans)) or 'none'}. A key is the name of a "
            f"group of spans, which a component such as span_ruler makes, and no word ({page('spacy.md')})."
        )
        return []
    return named_spans(doc, key)
