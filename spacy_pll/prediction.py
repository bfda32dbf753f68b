"""Docs in, scores by token out: what the component `pll` computes before it writes attributes."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from spacy.tokens import Doc, Span

from .arrays import BoolArray, FloatArray, IntArray
from .attributes.piece_record import PieceRecord, StoredAlternative
from .language_model.protocol import LanguageModel, Loaded, PendingPredictions
from .metrics import Metric, get_metric, looks_at_words, n_added_masks
from .scoring.groups import GroupPlan
from .scoring.passes import Batch, RowPlan
from .scoring.piece_texts import PieceTexts
from .scoring.plan import estimate_ids, make_plans
from .scoring.scores import Distributions
from .scoring.windows import Context, get_contexts
from .scoring.wordpieces import Wordpieces, get_wordpieces, merge_spans, word_begins
from .settings import ScoringSettings
from .user_warnings import warn_user

# Pieces of the longest word that is taken for one.
LONGEST_WORD = 30


@dataclass
class WorkDone:
    """The work of a predictor."""

    rows: int = 0  # of forward passes
    ids: int = 0  # that were read, without padding
    padding: int = 0
    targets: int = 0  # whose log-probabilities were computed

    def add(self, batch: Batch) -> Batch:
        """Count a forward pass that begins, and pass it on."""
        self.rows += len(batch.ids)
        self.ids += batch.n_ids
        self.padding += batch.ids.size - batch.n_ids
        self.targets += len(batch.target)
        return batch


@dataclass(frozen=True)
class DocScores:
    """The scores of one doc, by token."""

    scored: BoolArray  # bool, shape (tokens,): where False, the attributes stay None
    pieces: IntArray  # int, shape (tokens,): scored wordpieces
    scores: FloatArray  # float64, shape (metrics, tokens), natural log
    record: PieceRecord | None  # None without `keep_pieces`
    # What the model expected, under the primary metric: a value per token, by the attributes' names in `Names`.
    expected: dict[str, list[Any]]


@dataclass(frozen=True)
class ScoredPieces:
    """The pieces of a doc that were scored, in the order of its spans. Each piece is there once."""

    ids: IntArray  # int32, shape (pieces,)
    start: IntArray  # int, shape (pieces,): where the piece begins in the doc's text
    end: IntArray  # int, shape (pieces,): where it ends
    token: IntArray  # int, shape (pieces,): index in the doc of the piece's token
    word: IntArray  # int, shape (pieces,): number of its word, from 0
    window: IntArray  # int, shape (pieces,): number of its window in its span, from 0
    scores: FloatArray  # float64, shape (metrics, pieces), natural log
    distributions: Distributions | None  # under the first metric; None if they were not asked for


@dataclass(frozen=True)
class TokenizedDoc:
    """One doc of a batch, with what is read for it."""

    doc: Doc
    wordpieces: list[Wordpieces]  # one per span
    scored: BoolArray  # bool, shape (tokens,)
    contexts: list[Context]


@dataclass(frozen=True)
class PendingBatch:
    """Docs whose forward passes have been submitted. The plans' contexts are those of all docs, in order."""

    docs: list[TokenizedDoc]
    passes: list[tuple[RowPlan | GroupPlan, PendingPredictions]]


class Predictor:
    """Scores docs without changing them. Its settings may be replaced at any time, but for the metrics.

    variants (Sequence[Metric]): Functions in the place of the metric that the settings name, such as other draws.
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
            raise ValueError(f"`model` must come from an architecture such as spacy-pll.MaskedLM.v1. It is {model!r}.")
        self.get_spans, self.settings = get_spans, settings
        self._variants = list(variants)
        self.counts = WorkDone()  # since it was made, or since this was set
        self.warned: set[str] = set()  # what has been warned of
        self.model = model

    @property
    def metrics(self) -> list[Metric]:
        """Looked up when they are used: a pickled predictor has their names, and one registered anew is the new one."""
        return self._variants or [get_metric(name) for name in self.settings.metrics]

    @property
    def model(self) -> LanguageModel:
        return self._model

    @model.setter
    def model(self, model: LanguageModel) -> None:
        self._model, self._lookahead = model, model.check_metrics(self.settings.metrics)
        self._added = max(map(n_added_masks, self.metrics))  # masks for which a window leaves room

    def prepare(self) -> Loaded:
        """Load the model, unless that is done. RAISES (ValueError): It cannot be used, or not with these settings."""
        return self.model.load(groups=self.settings.mask_margin is not None)

    def predict(self, docs: list[Doc]) -> list[DocScores]:
        """Score docs without changing them."""
        return self.gather(self.submit(self.tokenize(docs)))

    def predict_spans(self, spans: Sequence[Span], units: Sequence[list[Span]]) -> list[DocScores]:
        """Score one span of each doc, each doc read as one context, whatever `get_spans`, `targets` and `units` say.

        units (Sequence[list[Span]]): For each doc, the spans that are read as one word.
        """
        docs = [span.doc for span in spans]
        tokenized = self._tokenize_spans(docs, [[doc[:]] for doc in docs], [[span] for span in spans], units)
        return self.gather(self.submit(tokenized))

    def predict_contexts(self, contexts: Sequence[Context]) -> tuple[FloatArray, Distributions | None]:
        """The scores of the contexts' pieces, one context after the other, and what the model expected there. Both are
        0 at pieces that are not scored. float64, shape (metrics, pieces).
        """
        return self._wait(self._run(contexts, self.prepare()), sum(len(context.word) for context in contexts))

    def tokenize(self, docs: list[Doc]) -> list[TokenizedDoc]:
        """What is read for each doc."""
        targets, units = ([self._named_spans(doc, name) for doc in docs] for name in ("targets", "units"))
        return self._tokenize_spans(docs, self._spans_of(docs), targets, units)

    def batches(self, docs: Iterable[TokenizedDoc]) -> Iterator[list[TokenizedDoc]]:
        """Divide docs, in their order, into batches that a CPU reads in two or three seconds, if the docs are short."""
        most, batch, ids = self.prepare().ids_at_once, list[TokenizedDoc](), 0
        for doc in docs:
            batch.append(doc)
            ids += sum(self._estimate(int(one.scored.sum()), len(one)) for one in doc.contexts)
            if ids >= most:
                yield batch
                batch, ids = [], 0
        if batch:
            yield batch

    def estimate(self, text: str) -> int:
        """About how many ids are read for a text, before it is tokenized: four bytes are taken to be a piece."""
        pieces = len(text.encode("utf8", "surrogatepass")) // 4 + 1
        return self._estimate(pieces, min(pieces + 2, self.prepare().max_length))

    def _estimate(self, scored: int, length: int) -> int:
        settings = self.settings
        return estimate_ids(scored, length, self.prepare().mask_id, settings.mask_spacing, settings.mask_margin)

    def _tokenize_spans(
        self,
        docs: list[Doc],
        spans_of: list[list[Span]],
        targets_of: Sequence[list[Span] | None],
        units_of: Sequence[list[Span] | None],
    ) -> list[TokenizedDoc]:
        """The same, with each doc read in the given spans. Of its tokens those in the targets are scored, or all."""
        loaded, tokenized, in_words = self.prepare(), [], list[Wordpieces]()
        for doc, spans, targets, named in zip(docs, spans_of, targets_of, units_of, strict=True):
            units = merge_spans(named or [])
            wordpieces = [get_wordpieces(span, loaded.tokenizer, self.settings.words, units) for span in spans]
            wanted = None
            if targets is not None:
                wanted = np.isin(np.arange(len(doc)), [i for span in targets for i in range(span.start, span.end)])
            contexts, scored = get_contexts(
                spans, wordpieces, wanted, loaded.max_length - self._added, self._lookahead, units
            )
            if not spans:
                scored = np.zeros(len(doc), dtype=bool)
            self._warn_of_left_out(doc, ~scored if wanted is None else wanted & ~scored)
            tokenized.append(TokenizedDoc(doc, wordpieces, scored, contexts))
            in_words += wordpieces if not units else []
        self._warn_of_language(docs)
        self._warn_of_unknown(tokenized, loaded.unknown_id)
        self._warn_of_long_words(in_words)
        return tokenized

    def submit(self, docs: list[TokenizedDoc]) -> PendingBatch:
        """Plan the forward passes and start them. A GPU may still be working on them when this returns."""
        return PendingBatch(docs, self._run([context for doc in docs for context in doc.contexts], self.prepare()))

    def gather(self, pending: PendingBatch) -> list[DocScores]:
        """Wait for the log-probabilities, and sum them up by token."""
        ends = np.cumsum([0, *(len(context.word) for doc in pending.docs for context in doc.contexts)])
        scores, expected = self._wait(pending.passes, int(ends[-1]))
        texts = PieceTexts(self.model.load().tokenizer) if expected else None
        begin = iter(ends.tolist())
        return [self._collect(doc, scored_pieces(doc, begin, scores, expected), texts) for doc in pending.docs]

    def _spans_of(self, docs: list[Doc]) -> list[list[Span]]:
        """Each doc's spans that have a token."""
        spans = [[span for span in spans if len(span)] for spans in self.get_spans(docs)]
        if len(spans) != len(docs) or any(span.doc is not doc for doc, of_doc in zip(docs, spans) for span in of_doc):
            raise ValueError(
                f"`get_spans` must give one list of spans for each doc, in the order of the docs. For {len(docs)} docs "
                f"it gave {len(spans)} lists, or spans of other docs. Use one of this package's span getters, such "
                "as spacy-pll.sent_spans.v1."
            )
        return spans

    def _named_spans(self, doc: Doc, setting: Literal["targets", "units"]) -> list[Span] | None:
        """The spans of a doc that a setting names; None if the setting is null."""
        key = getattr(self.settings, setting)
        if key is None:
            return None
        if key not in doc.spans:
            effect = "nothing in it is scored" if setting == "targets" else "it is scored by words"
            warn_user(
                f"A doc has no spans under `{setting}`, doc.spans[{key!r}], so {effect}. "
                f"It has spans under these keys: {list(doc.spans)}."
            )
            return []
        return list(doc.spans[key])

    def _warn_of_left_out(self, doc: Doc, left_out: BoolArray) -> None:
        """Warn where tokens that should be scored lie in no span. Those of white space have no score to lose."""
        if len(tokens := [doc[i] for i in np.flatnonzero(left_out).tolist() if not doc[i].is_space]):
            self._warn_once(
                "left out",
                f"{len(tokens)} of {len(doc)} tokens of the text {doc.text[:50]!r} lie in no span of `get_spans`, such "
                f"as {tokens[0].text[:50]!r} at token {tokens[0].i}. They have no score, and the text's score is the "
                "sum of the others. This may be so in other texts, too. Use a span getter whose spans hold every "
                "token, such as spacy-pll.sent_spans.v1; to choose what is scored, set `targets`.",
            )

    def _warn_of_language(self, docs: list[Doc]) -> None:
        """Warn where the model was trained on other languages than the docs' one."""
        title, _, known = self.model.describe()
        others = {doc.lang_ for doc in docs} - {*known, "xx", ""}
        if known and others:
            language = sorted(others)[0]
            self._warn_once(
                "language",
                f"The language of the pipeline is {language!r}, and the card of {title} names "
                f"{', '.join(sorted(known))}. The scores of texts in other languages mean nothing. Give a "
                "`model` that was trained on this language, or on many, such as xlm-roberta-base.",
            )

    def _warn_of_unknown(self, pending: list[TokenizedDoc], unknown_id: int | None) -> None:
        """Warn where more than a tenth of the pieces of some docs are unknown to the tokenizer."""
        unknown = [(doc.doc, pieces, pieces.ids == unknown_id) for doc in pending for pieces in doc.wordpieces]
        n_unknown, n = (sum(count(row) for _, _, row in unknown) for count in (np.count_nonzero, len))
        if n_unknown > n / 10:
            doc, pieces, row = next(item for item in unknown if item[2].any())
            first = int(row.argmax())
            self._warn_once(
                "unknown",
                f"{n_unknown} of {n} wordpieces are unknown to the tokenizer of {self.model.describe().title}, such as "
                f"{doc.text[pieces.start[first] : pieces.end[first]][:50]!r}. Their scores say nothing about the text. "
                "Give a `model` that was trained on text like this.",
            )

    def _warn_of_long_words(self, wordpieces: list[Wordpieces]) -> None:
        """Warn where a text is one long word, as a protein is: metrics that mask within words would hide most of it."""
        for pieces in wordpieces:
            if len(pieces) > LONGEST_WORD and pieces.word[0] == pieces.word[-1] and "words" not in self.warned:
                if metrics := [name for name, rows in zip(self.settings.metrics, self.metrics) if looks_at_words(rows)]:
                    self._warn_once(
                        "words",
                        f"A text of {len(pieces)} wordpieces is one word, so under {metrics[0]} much of it is masked "
                        "while one of them is scored. If it has no words, as a protein, set `words` to 'piece'.",
                    )

    def _warn_once(self, kind: str, message: str) -> None:
        if kind not in self.warned:
            self.warned.add(kind)
            warn_user(message)

    def _run(self, contexts: Sequence[Context], loaded: Loaded) -> list[tuple[RowPlan | GroupPlan, PendingPredictions]]:
        """Submit the forward passes for some contexts."""
        settings = self.settings
        passes: list[tuple[RowPlan | GroupPlan, PendingPredictions]] = []
        for plan in make_plans(contexts, self.metrics, loaded.mask_id, settings.mask_spacing, settings.mask_margin):
            limits = loaded.limits(plan)
            limits = limits._replace(max_tokens=settings.max_batch_tokens or limits.max_tokens)
            batches = plan.batches(*limits, settings.n_alternatives)
            passes.append((plan, self.model.submit(map(self.counts.add, batches))))
            plan.release_inputs()
        return passes

    def _wait(
        self, passes: list[tuple[RowPlan | GroupPlan, PendingPredictions]], n_pieces: int
    ) -> tuple[FloatArray, Distributions | None]:
        """The scores of the pieces of all contexts, and what was expected there, once the forward passes are done."""
        scores, n = np.zeros((len(self.metrics), n_pieces)), self.settings.n_alternatives
        expected = None if n is None else Distributions.empty(n, n_pieces)
        for plan, answers in passes:
            answer = answers.result()
            scores += plan.scores(answer.log_probs)  # each target is in one plan
            if expected and answer.distributions:
                plan.fill_distributions(expected, answer.distributions)
        return scores, expected

    def _collect(self, pending: TokenizedDoc, pieces: ScoredPieces, texts: PieceTexts | None) -> DocScores:
        """Sum the scores of a doc's pieces by token. The texts are shared by the docs: each takes time to make."""
        doc = pending.doc
        if not np.isfinite(pieces.scores).all():
            raise ValueError(
                f"Under {self.model.describe().title}, some log-probabilities are not finite, for the text "
                f"{doc.text[:100]!r}. Nothing was stored. Try it without mixed_precision, or with another model."
            )
        distributions = pieces.distributions
        alternatives = name_alternatives(distributions, texts) if distributions and texts is not None else []
        sums = [np.bincount(pieces.token, row, len(doc)) for row in pieces.scores]
        return DocScores(
            pending.scored,
            np.bincount(pieces.token, minlength=len(doc)),
            np.array(sums, dtype=np.float64),
            self._piece_record(pieces, alternatives) if self.settings.keep_pieces else None,
            self._expected(pieces, distributions, alternatives, len(doc)) if distributions else {},
        )

    def _expected(
        self, pieces: ScoredPieces, of_pieces: Distributions, alternatives: list[list[StoredAlternative]], n_tokens: int
    ) -> dict[str, list[Any]]:
        """From pieces to tokens: the largest rank (None without a piece), sums, and the first piece's alternatives."""
        expected: dict[str, list[Any]] = {}
        if self.settings.distribution:
            rank = np.zeros(n_tokens, dtype=int)
            np.maximum.at(rank, pieces.token, of_pieces.rank)
            expected["rank"] = [largest or None for largest in rank.tolist()]
            expected["entropy"] = np.bincount(pieces.token, of_pieces.entropy, n_tokens).astype(np.float64).tolist()
            expected["first_choices"] = np.bincount(pieces.token[of_pieces.rank == 1], minlength=n_tokens).tolist()
        if self.settings.alternatives:
            expected["alternatives"] = [[] for _ in range(n_tokens)]
            for token, first in zip(*np.unique(pieces.token, return_index=True)):
                expected["alternatives"][token] = alternatives[first]
        return expected

    def _piece_record(self, pieces: ScoredPieces, alternatives: list[list[StoredAlternative]]) -> PieceRecord:
        settings, id_to_token = self.settings, self.model.load().tokenizer.id_to_token
        distributions = pieces.distributions if settings.distribution else None
        columns = {name: getattr(pieces, name).tolist() for name in ("ids", "start", "end", "token", "word", "window")}
        return PieceRecord(
            pieces=[id_to_token(i) for i in columns["ids"]],
            **columns,
            scores={metric: row.tolist() for metric, row in zip(settings.metrics, pieces.scores)},
            mask_spacing=settings.mask_spacing,
            mask_margin=settings.mask_margin,
            rank=distributions and distributions.rank.tolist(),
            entropy=distributions and distributions.entropy.tolist(),
            alternatives=alternatives if settings.alternatives else None,
        )


def scored_pieces(
    doc: TokenizedDoc, begin: Iterator[int], scores: FloatArray, distributions: Distributions | None
) -> ScoredPieces:
    """Take a doc's pieces out of those of all contexts. `begin` gives the number of each context's first piece."""
    places, windows = ([np.full(len(pieces), -1) for pieces in doc.wordpieces] for _ in range(2))
    for context, first in zip(doc.contexts, begin):
        in_context = np.flatnonzero(context.scored)
        in_span = context.offset + in_context
        places[context.span][in_span], windows[context.span][in_span] = first + in_context, context.window

    def column(of_spans: Iterable[IntArray]) -> IntArray:
        return np.concatenate([np.zeros(0, dtype=np.int64), *of_spans])  # a doc without spans has no arrays

    place = column(places)
    kept = place >= 0
    place = place[kept]
    columns = {
        name: column(getattr(pieces, name) for pieces in doc.wordpieces)[kept]
        for name in ("ids", "start", "end", "token")
    }
    # Each span has its own numbers of words.
    before = np.cumsum([0, *(pieces.word.max(initial=0) + 1 for pieces in doc.wordpieces)])
    word = column(pieces.word + n for pieces, n in zip(doc.wordpieces, before))[kept]
    return ScoredPieces(
        **columns,
        word=np.cumsum(word_begins(word)) - 1,
        window=column(windows)[kept],
        scores=scores[:, place],
        distributions=distributions and distributions.at(place),
    )


def name_alternatives(distributions: Distributions, texts: PieceTexts) -> list[list[StoredAlternative]]:
    """The most probable pieces at each scored piece. Those whose probability is 0 are left out."""
    return [
        [(texts[i].text, p, texts[i].begins_word) for i, p in zip(ids, log_probs) if p > -math.inf]
        for ids, log_probs in zip(distributions.ids.T.tolist(), distributions.log_probs.T.tolist())
    ]
