"""Docs in, scores by token out: what the component `pll` computes before it writes attributes."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from spacy.tokens import Doc, Span

from .arrays import FloatArray, Groups, IntArray, begins
from .attributes.piece_record import PieceRecord, StoredAlternative
from .documentation import page
from .errors import PLLError
from .language_model.protocol import LanguageModel, Loaded, PendingPredictions
from .metrics import Metric, get_metric
from .scoring.passes import Batch, PassLimits, PlannedPasses
from .scoring.piece_texts import PieceTexts
from .scoring.plan import estimate_ids, plan_passes
from .scoring.sample import Draw, draw_words
from .scoring.scores import Distributions, Wanted, WeightedSums
from .scoring.windows import Context, Contexts, get_contexts
from .scoring.wordpieces import DocTexts, get_wordpieces, merge_spans
from .settings import ScoringSettings
from .span_getters import named_spans
from .text_warnings import TextWarnings, TokenizedDocs
from .texts import Text
from .user_warnings import warn_user

# On a GPU, the first batch has no more docs than `batch_size`, so that the GPU begins soon. The next may have as many
# as all before them and `batch_size` more, up to the second of these numbers, so that their passes are full. That is so
# where `batch_size` is at least the first, which spaCy gives if nothing is said; a smaller one is kept. With batches of
# 1,000, passes of sentences of BLiMP cost 8 to 17 % more under a model of BERT-base's size, and 23 to 49 % more with
# `mask_margin=0` (`test_blimp_rows.py`).
GPU_DOCS = 1000, 8000
T = TypeVar("T")


@dataclass
class WorkDone:
    """The work of a predictor."""

    passes: int = 0
    rows: int = 0  # of forward passes
    ids: int = 0  # that were read, without padding
    padding: int = 0
    targets: int = 0  # whose log-probabilities were computed

    def add(self, batch: Batch) -> Batch:
        """Count a forward pass that begins, and pass it on."""
        ids = batch.n_ids
        self.rows += batch.n_rows
        self.ids += ids
        self.padding += batch.size - ids
        self.targets += batch.n_targets
        self.passes += 1
        return batch


class DocScores(NamedTuple):
    """The scores of one doc, by token, as Python's numbers."""

    starts: list[int]  # the character with which each token begins
    scored: list[bool]  # where False, the attributes stay None
    pieces: list[int]  # scored wordpieces
    scores: list[list[float]]  # for each metric, natural log
    record: PieceRecord | None = None  # None without `keep_pieces`
    # What the model expected, under the primary metric: a value per token, by the attributes' names in `Names`.
    expected: Mapping[str, list[Any]] = MappingProxyType({})
    draws: Sequence[Draw | None] = ()  # with `sample_words`, how each token was drawn


@dataclass(frozen=True)
class ScoredPieces:
    """The pieces that were scored, or could have been drawn, in the order of docs and spans, each once."""

    place: IntArray  # int, shape (pieces,): index among all wordpieces
    token: IntArray  # int, shape (pieces,): index of the piece's token among the tokens of all docs
    word: IntArray  # int, shape (pieces,): the piece's word; each span has its own
    window: IntArray  # int, shape (pieces,): number of its window in its span, from 0
    scores: FloatArray  # float64, shape (metrics, pieces), natural log
    distributions: Distributions | None  # under the first metric; None if they were not asked for


# Forward passes that have been submitted, plan by plan: what the model says, and how that makes up scores.
Passes = list[tuple[WeightedSums, PendingPredictions]]


@dataclass(frozen=True)
class PendingBatch:
    """Docs whose forward passes have been submitted."""

    tokenized: TokenizedDocs
    passes: Passes


def batches_of(texts: Iterable[T], ends_batch: Callable[[T], bool]) -> Iterator[list[T]]:
    """Divide texts or docs, in their order. No more are taken than a batch has, so that long ones do not fill the
    memory.

    ends_batch (Callable): See `Predictor.ends_of_batches`.
    RAISES (Exception): Whatever the texts raise, once the batch before is given.
    """
    batch = list[T]()
    try:
        for text in texts:
            batch.append(text)
            if ends_batch(text):
                yield batch
                batch = []
    except Exception:  # of the text that comes next
        if batch:
            yield batch
        raise
    if batch:
        yield batch


class Predictor:
    """Scores docs without changing them. Its settings may be replaced at any time, but for the metrics.

    variants (Sequence[Metric]): Metrics in the place of the one that the settings name, such as other draws.
    RAISES (ValueError): The model cannot compute the metrics.
    """

    def __init__(
        self,
        model: LanguageModel,
        get_spans: Callable[[list[Doc]], list[list[Span]]],
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
        return self._variants or [get_metric(name) for name in self.settings.metrics]

    @property
    def model(self) -> LanguageModel:
        return self._model

    @model.setter
    def model(self, model: LanguageModel) -> None:
        self._model, self._lookahead = model, model.check_metrics(self.settings.metrics)
        metrics = self.metrics
        self._added = max(one.n_added_masks for one in metrics)  # masks for which a window leaves room
        self._masks = any(one.masks for one in metrics)
        self._of_words = [name for name, one in zip(self.settings.metrics, metrics) if one.looks_at_words]

    def prepare(self) -> Loaded:
        """Load the model, unless that is done. RAISES (ValueError): It cannot be used, or not with these settings."""
        return self.model.load(groups=self.settings.mask_margin is not None)

    def predict(self, docs: list[Doc]) -> list[DocScores]:
        """Score docs without changing them."""
        return list(self.gather(self.submit(docs)))

    def log_probs(self, contexts: Sequence[Context], ids: Sequence[int]) -> FloatArray:
        """The log-probabilities of some ids at the scored pieces, one context after the other, where the first metric
        first masks for them. float64, shape (ids, scored pieces).
        """
        together = Contexts.of(contexts)
        found = np.zeros((len(ids), len(together.word)))
        for sums, answers in self._run(together, self.prepare(), ids):
            sums.fill(found, *answers.result().wanted)
        return found[:, together.scored]

    def ends_of_batches(self, most: int, done: int = 0) -> Callable[[Text], bool]:
        """A function that says of one text after the other whether a batch ends with it. A batch has so many texts, or
        as many as a CPU reads in two or three seconds, if they are short enough. Where it ends depends on its own texts
        and on how many come before it, so a run may begin behind any batch.

        most (int): The most texts in a batch. For a GPU, they may become more (`GPU_DOCS`).
        done (int): How many texts come before the first one.
        """
        loaded, n_texts, n_ids = self.prepare(), 0, 0
        grows = loaded.on_gpu and most >= GPU_DOCS[0]

        def ends(text: Text) -> bool:
            nonlocal done, n_texts, n_ids
            n_texts, n_ids = n_texts + 1, n_ids + self._estimate(text, loaded)
            # Each batch may have as many as all before it, and `most` besides.
            if n_texts < (max(most, min(done + most, GPU_DOCS[1])) if grows else most) and n_ids < loaded.ids_at_once:
                return False
            done, n_texts, n_ids = done + n_texts, 0, 0
            return True

        return ends

    def _estimate(self, text: Text, loaded: Loaded) -> int:
        """About how many ids are read for a text, before it is tokenized: four bytes are taken to be a piece, and each
        token to be at least one.
        """
        pieces = scored = len((text.text if isinstance(text, Doc) else text).encode("utf8", "surrogatepass")) // 4 + 1
        settings, key = self.settings, self.settings.targets
        if isinstance(text, Doc):
            pieces = scored = max(len(text), pieces)  # a protein has a token for each letter
            if key is not None and key in text.spans:
                scored = pieces * min(len(text), sum(map(len, named_spans(text, key)))) // max(1, len(text))
        scored = math.ceil(scored * (settings.sample_words or 1))
        length = min(pieces + 2, loaded.max_length)
        return estimate_ids(scored, length, self._masks, settings.mask_spacing, settings.mask_margin)

    def tokenize(self, docs: list[Doc]) -> TokenizedDocs:
        """What is read for each doc, and which of its tokens are scored: those in its targets, or all."""
        spans_of, loaded = self._spans_of(docs), self.prepare()
        read = DocTexts.of(docs)
        targets, units = None, list[list[tuple[int, int]]]()
        if self.settings.targets is not None:
            targets = np.zeros(len(read.starts), dtype=bool)
            for first, doc in zip(read.tokens_of.starts.tolist(), docs):
                for span in self._named_spans(doc, "targets", self.settings.targets):
                    targets[first + span.start : first + span.end] = True
        if self.settings.units is not None:
            units = [merge_spans(self._named_spans(doc, "units", self.settings.units)) for doc in docs]
        spans, of_doc = [span for spans in spans_of for span in spans], Groups.of(spans_of)
        pieces = get_wordpieces(spans, loaded.tokenizer, self.settings.words, units, read, of_doc.owner)
        max_length = loaded.max_length - self._added
        contexts, scored = get_contexts(spans_of, pieces, read.tokens_of, targets, max_length, self._lookahead, units)
        pieces_of = Groups(np.diff(pieces.encoded.pieces_of.edges[of_doc.edges]))
        tokenized = TokenizedDocs(read, pieces_of, pieces, scored, contexts)
        self.warnings.of_left_out(tokenized, ~scored if targets is None else targets & ~scored)
        self.warnings.of_language(docs, self.model)
        self.warnings.of_split_words(docs, self.model, loaded)
        self.warnings.of_unknown(tokenized, self.model, loaded)
        self.warnings.of_special(tokenized, loaded)
        if not any(units):
            self.warnings.of_unspaced(tokenized, self.settings.words, self._of_words)
            self.warnings.of_long_words(tokenized, self._of_words, exact=self.settings.mask_margin is None)
        if (part := self.settings.sample_words) is not None:
            draws, kept = draw_words(read, pieces, contexts, part, self.settings.seed)
            tokenized = replace(tokenized, scored=scored & kept, draws=draws)
        return tokenized

    def submit(self, docs: list[Doc]) -> PendingBatch:
        """Plan the forward passes for some docs and start them. A GPU may be working on them when this returns."""
        tokenized = self.tokenize(docs)
        return PendingBatch(tokenized, self._run(tokenized.asked, self.prepare(), self.settings.n_alternatives))

    def gather(self, pending: PendingBatch) -> Iterator[DocScores]:
        """Wait for the log-probabilities, and sum them up by token. RAISES (ValueError): One is not finite."""
        batch, contexts = pending.tokenized, pending.tokenized.contexts
        scores, expected = self._wait(pending.passes, len(contexts.word))
        here = np.flatnonzero(contexts.scored)
        here = here[np.argsort(contexts.piece[here], kind="stable")]
        place = contexts.piece[here]
        pieces = ScoredPieces(
            place=place,
            token=batch.wordpieces.token[place],
            word=batch.wordpieces.word[place],
            window=contexts.window[contexts.context[here]],
            scores=scores[:, here],
            distributions=expected and expected.at(here),
        )
        self._check_finite(batch, pieces)
        return self._of_docs(batch, pieces)

    def _of_docs(self, batch: TokenizedDocs, pieces: ScoredPieces) -> Iterator[DocScores]:
        """One doc after the other: lists that live long are work for Python's garbage collector."""
        starts, n = batch.read.starts, len(batch.read.starts)
        scored, counts = batch.scored.tolist(), np.bincount(pieces.token, minlength=n).tolist()
        # Without a piece, `bincount` gives integers.
        sums = [np.bincount(pieces.token, row, n).astype(np.float64).tolist() for row in pieces.scores]
        edges = np.searchsorted(pieces.place, batch.pieces_of.edges).tolist()
        keeps = self.settings.keep_pieces or pieces.distributions is not None
        texts = PieceTexts(self.model.load().tokenizer) if keeps else None  # made once: that takes time
        for d, own in enumerate(batch.read.tokens_of):
            kept = self._of_pieces(batch, pieces, d, slice(edges[d], edges[d + 1]), texts) if texts is not None else {}
            of_metrics = [row[own] for row in sums]
            yield DocScores(starts[own], scored[own], counts[own], of_metrics, **kept, draws=batch.draws[own])

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

    def _named_spans(self, doc: Doc, setting: Literal["targets", "units"], key: str) -> list[Span]:
        """The spans of a doc that a setting names."""
        if key not in doc.spans:
            effect = "nothing in it is scored" if setting == "targets" else "it is scored by words"
            warn_user(
                f"A doc has no spans under `{setting}`, doc.spans[{key!r}], so {effect}. "
                f"It has spans under these keys: {', '.join(map(repr, doc.spans)) or 'none'}. A key is the name of a "
                f"group of spans, which a component such as span_ruler makes, and no word ({page('spacy.md')})."
            )
            return []
        return named_spans(doc, key)

    def plans(self, contexts: Contexts, loaded: Loaded, wanted: Wanted = None) -> Iterator[PlannedPasses]:
        """The forward passes for some contexts, in plans of bounded size."""
        settings, most = self.settings, self.settings.max_batch_tokens

        def bounded(limits: PassLimits) -> PassLimits:
            return limits._replace(max_tokens=most or limits.max_tokens)

        return plan_passes(
            contexts,
            self.metrics,
            loaded.mask_id,
            bounded(loaded.rows),
            loaded.groups and bounded(loaded.groups),
            settings.mask_spacing,
            settings.mask_margin,
            wanted,
            loaded.prompts,
        )

    def _run(self, contexts: Contexts, loaded: Loaded, wanted: Wanted) -> Passes:
        """Submit the forward passes for some contexts. Plans are large: each is gone before the next is made."""
        plans = self.plans(contexts, loaded, wanted)
        return [(sums, self.model.submit(map(self.counts.add, batches))) for batches, sums in plans]

    def _wait(self, passes: Passes, n_pieces: int) -> tuple[FloatArray, Distributions | None]:
        """The scores of the pieces of all contexts, and what was expected there, once the forward passes are done."""
        scores, n = np.zeros((len(self.metrics), n_pieces)), self.settings.n_alternatives
        expected = None if n is None else Distributions.empty(n, n_pieces)
        for sums, answers in passes:
            answer = answers.result()
            scores += sums.scores(answer.log_probs)  # each target is in one plan
            for into, values in zip(expected or (), answer.wanted):
                sums.fill(into, values)
        return scores, expected

    def _check_finite(self, batch: TokenizedDocs, pieces: ScoredPieces) -> None:
        """RAISES (ValueError): A score is not finite. The message shows its text."""
        finite = np.isfinite(pieces.scores).all(axis=0)
        if not finite.all():
            place = pieces.place[finite.argmin()]
            text = batch.read.texts[batch.pieces_of.owner[place]][:100]
            mask = "It has the mask of the model in it, which this model never predicts. Take it out."
            is_mask = batch.wordpieces.ids[place] == self.prepare().mask_id
            self.check_finite(pieces.scores, f", for the text {text!r}. Nothing was stored", mask if is_mask else "")

    def check_finite(self, scores: FloatArray, where: str = "", advice: str = "") -> None:
        """RAISES (ValueError): A score is not finite. where, advice (str): For the message."""
        if not np.isfinite(scores).all():
            raise PLLError(
                f"Under {self.model.describe().title}, some log-probabilities are not finite{where}.",
                advice or "Give `precision='float32'`, or another `model`.",
            )

    def _of_pieces(
        self, batch: TokenizedDocs, pieces: ScoredPieces, d: int, own: slice, texts: PieceTexts
    ) -> dict[str, Any]:
        """The record of a doc's pieces, and what the model expected, by token. own (slice): Its pieces."""
        settings, token = self.settings, pieces.token[own] - batch.read.tokens_of.starts[d]
        distributions = pieces.distributions and pieces.distributions.at(own)
        alternatives = name_alternatives(distributions, texts) if distributions else []
        found: dict[str, Any] = {}
        if settings.keep_pieces:
            drawn = batch.scored[pieces.token[own]].tolist()

            def of_drawn(values: Iterable[Any]) -> list[Any]:
                return [value if is_drawn else None for value, is_drawn in zip(values, drawn)]

            of_pieces = {name: getattr(batch.wordpieces, name)[pieces.place[own]] for name in ("ids", "start", "end")}
            of_pieces |= {"token": token, "word": np.cumsum(begins(pieces.word[own])) - 1, "window": pieces.window[own]}
            expected = ("rank", "entropy") if distributions and settings.distribution else ()
            found["record"] = PieceRecord(
                pieces=list(map(texts.tokenizer.id_to_token, of_pieces["ids"].tolist())),
                **{name: values.tolist() for name, values in of_pieces.items()},
                **{name: of_drawn(getattr(distributions, name).tolist()) for name in expected},
                scores={metric: of_drawn(row[own].tolist()) for metric, row in zip(settings.metrics, pieces.scores)},
                mask_spacing=settings.mask_spacing,
                mask_margin=settings.mask_margin,
                alternatives=of_drawn(alternatives) if settings.alternatives else None,
            )
        if distributions:
            found["expected"] = self._expected(token, distributions, alternatives, len(batch.read.docs[d]))
        return found

    def _expected(
        self, token: IntArray, of_pieces: Distributions, alternatives: list[list[StoredAlternative]], n_tokens: int
    ) -> dict[str, list[Any]]:
        """From pieces to tokens: the largest rank (None without a piece), sums, and the first piece's alternatives."""
        expected: dict[str, list[Any]] = {}
        if self.settings.distribution:
            rank = np.zeros(n_tokens, dtype=int)
            np.maximum.at(rank, token, of_pieces.rank)
            expected["rank"] = [largest or None for largest in rank.tolist()]
            expected["entropy"] = np.bincount(token, of_pieces.entropy, n_tokens).astype(np.float64).tolist()
            expected["first_choices"] = np.bincount(token[of_pieces.rank == 1], minlength=n_tokens).tolist()
        if self.settings.alternatives:
            expected["alternatives"] = [[] for _ in range(n_tokens)]
            for number, first in zip(*np.unique(token, return_index=True)):
                expected["alternatives"][number] = alternatives[first]
        return expected


def name_alternatives(distributions: Distributions, texts: PieceTexts) -> list[list[StoredAlternative]]:
    """The most probable pieces at each scored piece. Those whose probability is 0 are left out."""
    return [
        [(texts[i].text, p, texts[i].begins_word) for i, p in zip(ids, log_probs) if p > -math.inf]
        for ids, log_probs in zip(distributions.ids.T.tolist(), distributions.log_probs.T.tolist())
    ]
