"""The pipeline component: docs in, attributes out."""

import warnings
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span
from spacy.util import SimpleFrozenList, from_bytes, from_disk, minibatch, registry, to_bytes, to_disk

from .analysis.continuations import Continuation, check_apart, normalised, place
from .extensions import Names, install
from .metrics import check_mask_spacing, get_metric
from .scoring.plan import Batch, Plan, make_plans
from .scoring.wordpieces import WORDS, Context, Wordpieces, Words, get_contexts, get_wordpieces

if TYPE_CHECKING:
    from .language_model.base import Answers, LanguageModel

DEFAULT_CONFIG = {
    "model": {"@architectures": "spacy-pll.MaskedLM.v1"},
    "get_spans": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    "metrics": ["word_l2r"],
    "words": "spacy",
    "targets": None,
    "attr": "pll",
    "keep_pieces": False,
    "max_batch_tokens": None,
    "mask_spacing": None,
}


class DocScores(NamedTuple):
    """What is known of a doc after scoring: one entry a token, and the record of its wordpieces."""

    scored: np.ndarray  # bool, shape (tokens,): False where the attributes stay None
    pieces: np.ndarray  # int, shape (tokens,)
    scores: np.ndarray  # float64, shape (metrics, tokens), natural log
    data: dict | None  # the value of `_.pll_data`, where it is kept


class Begun(NamedTuple):
    """Docs whose forward passes have been started."""

    per_doc: list[tuple[Doc, list[Wordpieces], np.ndarray]]  # with what is scored, bool, shape (tokens,)
    contexts: list[Context]
    owners: list[int]  # for each context, the index of its doc
    passes: list[tuple[Plan, "Answers"]]


@Language.factory("pll", assigns=["doc._.pll", "span._.pll", "token._.pll"], default_config=DEFAULT_CONFIG)
def make_pll(
    nlp: Language,
    name: str,
    model: object,
    get_spans: Callable[[list[Doc]], list[list[Span]]],
    metrics: list[str],
    words: Words,
    targets: str | None,
    attr: str,
    keep_pieces: bool,
    max_batch_tokens: int | None,
    mask_spacing: int | None,
) -> "PLLScorer":
    """Make a component that gives every token, span and doc its pseudo-log-likelihood.

    The settings are described at `PLLScorer`.
    """
    names = Names(attr, metrics)
    for other_name, other in nlp.components:
        shared = set(names.all) & set(other.names.all) if isinstance(other, PLLScorer) and other_name != name else set()
        if shared:
            raise ValueError(
                f"The component {other_name!r} already writes the attribute _.{sorted(shared)[0]}. Give one of the two "
                f'another name: nlp.add_pipe("pll", name={name!r}, config={{"attr": "{attr}_2"}}), or, where they are '
                f'loaded, spacy.load(folder, config={{"components.{name}.attr": "{attr}_2"}}).'
            )
    return PLLScorer(
        model,
        name,
        get_spans=get_spans,
        metrics=metrics,
        words=words,
        targets=targets,
        attr=attr,
        keep_pieces=keep_pieces,
        max_batch_tokens=max_batch_tokens,
        mask_spacing=mask_spacing,
        make_doc=_DocMaker(nlp),
    )


class _DocMaker:
    """`nlp.make_doc`, but without a hold on the pipeline: a component that holds the pipeline that it stands in would
    keep the model's memory until the garbage collector finds the cycle. It is not pickled or copied: what comes out
    is None.
    """

    def __init__(self, nlp: Language):
        self._nlp, self._tokenizer = weakref.ref(nlp), nlp.tokenizer

    def __call__(self, text: str) -> Doc:
        nlp = self._nlp()
        return self._tokenizer(text) if nlp is None else nlp.make_doc(text)

    def __reduce__(self):
        return type(None), ()


class PLLScorer(Pipe):
    """Pseudo-log-likelihood scores under a language model (Kauf & Ivanova 2023).

    model (LanguageModel): What an architecture such as `spacy-pll.MaskedLM.v1` returns.
        It is loaded on first use, on `initialize` or from disk.
    name (str): The name of the component in the pipeline.
    get_spans (Callable[[list[Doc]], list[list[Span]]]): Which spans are read as one
        context, a span getter of spacy-transformers. Where they overlap, a token is
        scored in the span that gives it the most context on its poorer side.
    metrics (list[str]): Names in `registry.pll_metrics`; the first is the primary one.
    words (str): What counts as a word: "spacy", "tokenizer" or "whitespace".
    targets (Optional[str]): Key into `doc.spans`: score the tokens in those spans only.
    attr (str): The name of the attributes.
    keep_pieces (bool): Also keep the wordpiece record `doc._.pll_data`.
    max_batch_tokens (Optional[int]): Wordpieces in one forward pass, padding included.
        None: what suits the device.
    mask_spacing (Optional[int]): Mask several words of a context in the same forward pass
        where their masked pieces are at least so many pieces apart: about `mask_spacing`
        passes a context whatever its length, for nearly the same scores. For metrics that
        mask within words. None: every word by itself, the exact scores.
    make_doc (Optional[Callable[[str], Doc]]): From a text to its doc, for `score_continuations`.
    RAISES (ValueError): A setting has a value that is not among the legal ones.
    """

    def __init__(
        self,
        model: "LanguageModel",
        name: str = "pll",
        *,
        get_spans: Callable[[list[Doc]], list[list[Span]]],
        metrics: list[str],
        words: Words = "spacy",
        targets: str | None = None,
        attr: str = "pll",
        keep_pieces: bool = False,
        max_batch_tokens: int | None = None,
        mask_spacing: int | None = None,
        make_doc: Callable[[str], Doc] | None = None,
    ):
        if not metrics or len(set(metrics)) < len(metrics):
            raise ValueError(f"`metrics` must name at least one metric, and each only once. It is {metrics!r}.")
        if words not in WORDS:
            raise ValueError(f"Unknown unit of words {words!r}. Set `words` to one of these: {', '.join(WORDS)}.")
        if not attr.isidentifier():
            raise ValueError(f"`attr` must be a name that can stand after `doc._.`. It is {attr!r}.")
        if max_batch_tokens is not None and max_batch_tokens < 1:
            raise ValueError(f"`max_batch_tokens` must be 1 or more, or null. It is {max_batch_tokens}.")
        if mask_spacing is not None and mask_spacing < 1:
            raise ValueError(
                f"`mask_spacing` must be 1 or more pieces, or null for exact scores. It is {mask_spacing}. The "
                "wider the spacing, the closer are the scores to exact ones (docs/metrics.md)."
            )
        if not hasattr(model, "log_probabilities"):
            raise ValueError(f"`model` must come from an architecture such as spacy-pll.MaskedLM.v1. It is {model!r}.")
        self.model = model
        self.name = name
        self.get_spans = get_spans
        self.metrics = list(metrics)
        self.words = words
        self.targets = targets
        self.attr = attr
        self.keep_pieces = keep_pieces
        self.max_batch_tokens = max_batch_tokens
        self.mask_spacing = mask_spacing
        self.make_doc = make_doc
        self.counts = Counter()  # forward rows, ids in them, padding, questions: what the work has been so far
        for metric in metrics:
            model.check_serves(metric, get_metric(metric))
            if mask_spacing is not None:
                check_mask_spacing(metric)
        self.names = Names(attr, self.metrics)
        self._stale_names = {f"{attr}_{metric}" for metric in registry.pll_metrics.get_all()} - {*self.names.all}
        install(self.names)

    def __call__(self, doc: Doc) -> Doc:
        """Score one doc. Errors pass: spaCy hands them to the error handler."""
        self.set_annotations([doc], self.predict([doc]))
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Score a stream of docs; equal masked contexts of a batch of docs are computed once.

        stream (Iterable[Doc]): The docs.
        batch_size (int): How many docs to buffer; the forward passes are cut by
            `max_batch_tokens`, not by this.
        YIELDS (Doc): The docs, in order. A doc that fails goes to the error handler
            and, as in spaCy's own components, is not yielded; its neighbours are.
        """
        self.model.load()  # if that fails it is no doc's fault
        begun = deque()
        for docs in minibatch(stream, batch_size):
            begun.append((docs, self._try_to_begin(docs)))
            # While a GPU works on these docs, those before are finished and those behind begun.
            if len(begun) > self.model.look_ahead:
                yield from self._annotated(*begun.popleft())
        while begun:
            yield from self._annotated(*begun.popleft())

    def _try_to_begin(self, docs: list[Doc]) -> "Begun | None":
        try:
            return self._begin(docs)
        except Exception:  # whose fault it is shows when they are scored one by one
            return None

    def _annotated(self, docs: list[Doc], begun: "Begun | None") -> Iterator[Doc]:
        """The docs with their scores; where that fails, one by one, without those that fail."""
        if begun is not None:
            try:
                self.set_annotations(docs, self._finish(begun))
            except Exception:
                pass  # as above
            else:
                yield from docs
                return
        error_handler = self.get_error_handler()
        for doc in docs:
            try:
                self(doc)
            except Exception as error:
                error_handler(self.name, self, [doc], error)
            else:
                yield doc

    def predict(self, docs: list[Doc]) -> list[DocScores]:
        """Score docs without changing them."""
        return self._finish(self._begin(docs))

    def score_continuations(
        self,
        prefix: str,
        candidates: Sequence[str],
        suffix: str = "",
        *,
        separator: str = " ",
        make_doc: Callable[[str], Doc] | None = None,
    ) -> list[Continuation]:
        """Score candidates that stand between a prefix and a suffix, for cloze tests and multiple choice.

        The whole text is one context, whatever `get_spans` says, and only the candidate is scored: as with
        `targets`. Each of its pieces is asked for with all else in sight that the metric does not hide; a
        left-to-right model sees what stands before the piece alone, so that a suffix changes nothing.

        prefix (str): What stands before the candidates; may be empty.
        candidates (Sequence[str]): Texts, in any order.
        suffix (str): What stands after them, as it is: begin it with a space if there should be one.
        separator (str): What stands between prefix and candidate, where neither has white space there.
        make_doc (Optional[Callable[[str], Doc]]): From a text to its doc; None: as the pipeline does that the
            component was added to.
        RETURNS (list[Continuation]): One a candidate, in their order.
        RAISES (ValueError): There is no candidate, one is blank, or the tokenizer makes one piece of its end
            and what stands beside it.
        """
        if isinstance(candidates, str) or not len(candidates):
            raise ValueError(f'`candidates` must be a list of texts, such as ["one", "two"]. It is {candidates!r}.')
        make_doc = make_doc or self.make_doc
        if make_doc is None:
            raise ValueError(
                "This component was copied or made apart from a pipeline, so nothing says how a text is tokenized. "
                "Give make_doc=nlp.make_doc, where nlp is a pipeline."
            )
        spans = [place(make_doc, prefix, candidate, suffix, separator) for candidate in candidates]
        self.model.load()
        docs, wanted = [span.doc for span in spans], []
        for span in spans:
            pieces = get_wordpieces(span.doc[:], self.model.tokenizer, self.words)
            check_apart(span, pieces, self.model.tokenizer.id_to_token)
            wanted.append(np.isin(np.arange(len(span.doc)), np.arange(span.start, span.end)))
        results = self._finish(self._begin_in(docs, [[doc[:]] for doc in docs], wanted))
        self.set_annotations(docs, results)
        totals = [float(result.scores[0].sum()) for result in results]
        return [
            Continuation(
                text,
                span,
                total,
                int(result.pieces.sum()),
                result.scores[0, span.start : span.end].tolist(),
                probability,
            )
            for text, span, total, result, probability in zip(candidates, spans, totals, results, normalised(totals))
        ]

    def _begin(self, docs: list[Doc]) -> "Begun":
        """Plan the forward passes and run them; a GPU may still be at work on them when this returns."""
        return self._begin_in(docs, self._spans_of(docs), [self._wanted(doc) for doc in docs])

    def _begin_in(self, docs: list[Doc], spans_of: list[list[Span]], wanted_of: list[np.ndarray | None]) -> "Begun":
        """The same, with each doc read in its spans; of its tokens the wanted ones, bool, shape (tokens,), or all."""
        self.model.load()
        tokenizer, max_length = self.model.tokenizer, self.model.max_length
        contexts, owners, per_doc = [], [], []
        for doc, spans, wanted in zip(docs, spans_of, wanted_of):
            pieces = [get_wordpieces(span, tokenizer, self.words) for span in spans]
            mine, scored = get_contexts(spans, pieces, wanted, max_length)
            scored = scored if spans else np.zeros(len(doc), dtype=bool)
            owners += [len(per_doc)] * len(mine)
            contexts += mine
            per_doc.append((doc, pieces, scored))
        return Begun(per_doc, contexts, owners, self._run(contexts))

    def _finish(self, begun: "Begun") -> list[DocScores]:
        """Wait for the answers, and put them together."""
        results = [[] for _ in begun.per_doc]
        for owner, context, scores in zip(begun.owners, begun.contexts, self._scores(begun), strict=True):
            results[owner].append((context, scores))
        return [self._collect(*parts, mine) for parts, mine in zip(begun.per_doc, results)]

    def _spans_of(self, docs: list[Doc]) -> list[list[Span]]:
        """Each doc's spans that have a token."""
        spans = [[span for span in spans if len(span)] for spans in self.get_spans(docs)]
        if len(spans) != len(docs) or any(span.doc is not doc for doc, own in zip(docs, spans) for span in own):
            raise ValueError(
                f"`get_spans` must give one list of spans for each doc, in the order of the docs. For {len(docs)} docs "
                f"it gave {len(spans)} lists, or spans of other docs. Use one of spacy-transformers' span getters, "
                "such as spacy-transformers.sent_spans.v1."
            )
        return spans

    def _wanted(self, doc: Doc) -> np.ndarray | None:
        if self.targets is None:
            return None
        wanted = np.zeros(len(doc), dtype=bool)
        if self.targets not in doc.spans:
            warnings.warn(
                f"A doc has no spans under `targets`, doc.spans[{self.targets!r}], so nothing of it is scored. "
                f"It has spans under these keys: {list(doc.spans)}.",
                stacklevel=2,
            )
            return wanted
        for span in doc.spans[self.targets]:
            wanted[span.start : span.end] = True
        return wanted

    def _run(self, contexts: list[Context]) -> list[tuple[Plan, "Answers"]]:
        """The forward passes that answer for some contexts."""
        metrics = [get_metric(name) for name in self.metrics]
        max_tokens = self.max_batch_tokens or self.model.max_batch_tokens
        out = []
        for plan in make_plans(contexts, metrics, self.model.mask_id, self.mask_spacing):
            batches = plan.batches(max_tokens, self.model.max_batch_targets, self.model.pad_id, self.model.pads)
            out.append((plan, self.model.answers(map(self._counted, batches))))
            plan.forget_rows()
        return out

    def _counted(self, batch: Batch) -> Batch:
        self.counts["rows"] += len(batch.ids)
        self.counts["ids"] += int(batch.lengths.sum())
        self.counts["padding"] += int(batch.ids.size - batch.lengths.sum())
        self.counts["questions"] += len(batch.question)
        return batch

    def _scores(self, begun: "Begun") -> list[np.ndarray]:
        """The scores (metrics, pieces) of each context."""
        out = [np.zeros((len(self.metrics), len(context.word))) for context in begun.contexts]
        for plan, answers in begun.passes:
            for total, scores in zip(out, plan.scores(answers.wait())):
                total += scores  # the plans answer different questions
        return out

    def _collect(self, doc: Doc, wordpieces: list[Wordpieces], covered: np.ndarray, results: list) -> DocScores:
        """From the contexts' pieces to the doc's tokens.

        results (list[tuple[Context, array]]): The doc's contexts, each with its scores (metrics, pieces).
        """
        scores = [np.zeros((len(self.metrics), len(pieces))) for pieces in wordpieces]
        scored = [np.zeros(len(pieces), dtype=bool) for pieces in wordpieces]
        for context, values in results:
            mine = context.offset + np.flatnonzero(context.scored)
            scores[context.span][:, mine] = values[:, context.scored]
            scored[context.span][mine] = True
        scores = [values[:, kept] for values, kept in zip(scores, scored)]
        tokens = [pieces.token[kept] for pieces, kept in zip(wordpieces, scored)]
        # A doc without spans still has arrays, empty ones.
        values = np.concatenate([np.zeros((len(self.metrics), 0)), *scores], axis=1)
        token = np.concatenate([np.zeros(0, dtype=np.int64), *tokens])
        if not np.isfinite(values).all():
            raise ValueError(
                f"The model {self.model.title} gives log-probabilities that are not finite, for the text "
                f"{doc.text[:100]!r}. Nothing was stored. Try it without mixed_precision, or with another model."
            )
        per_token = [np.bincount(token, weights=row, minlength=len(doc)) for row in values]
        return DocScores(
            covered,
            np.bincount(token, minlength=len(doc)),
            np.array(per_token, dtype=np.float64).reshape(len(self.metrics), len(doc)),
            self._piece_record(wordpieces, scored, values) if self.keep_pieces else None,
        )

    def _piece_record(self, wordpieces: list[Wordpieces], scored: list[np.ndarray], values: np.ndarray) -> dict:
        """The value of `_.pll_data`: parallel lists, one entry a scored piece."""

        def column(name: str) -> list:
            return [x for pieces, kept in zip(wordpieces, scored) for x in getattr(pieces, name)[kept].tolist()]

        ids = column("ids")
        return {
            "pieces": [self.model.tokenizer.id_to_token(i) for i in ids],
            "ids": ids,
            "start": column("start"),
            "end": column("end"),
            "token": column("token"),
            "mask_spacing": self.mask_spacing,
            "scores": {metric: row.tolist() for metric, row in zip(self.metrics, values)},
        }

    def set_annotations(self, docs: list[Doc], scores: list[DocScores]):
        """Write scores to the docs' attributes, as Python floats and ints."""
        for doc, doc_scores in zip(docs, scores):
            primary = doc_scores.scores[0]
            columns = {self.names.score: primary, self.names.pieces: doc_scores.pieces}
            columns.update(zip(self.names.metrics.values(), doc_scores.scores))
            for name, values in columns.items():
                for token, value, is_scored in zip(doc, values.tolist(), doc_scores.scored.tolist()):
                    token._.set(name, value if is_scored else None)
            # What an earlier scoring left, under metrics that are not asked for now, would not belong to these scores.
            for key in [key for key in doc.user_data if _attribute(key) in self._stale_names]:
                del doc.user_data[key]
            if doc_scores.data is not None or doc._.get(self.names.data) is not None:
                doc._.set(self.names.data, doc_scores.data)

    def initialize(self, get_examples: Callable | None = None, *, nlp: Language | None = None):
        """Load the language model, so that the first doc does not have to wait for it."""
        self.model.load()

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """Serialize the language model. exclude (Iterable[str]): "model" leaves it out."""
        return to_bytes({"model": self.model.to_bytes}, exclude)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "PLLScorer":
        """Load what `to_bytes` gave."""
        from_bytes(bytes_data, {"model": self.model.from_bytes}, exclude)
        return self

    def to_disk(self, path, *, exclude: Iterable[str] = SimpleFrozenList()):
        """Write the language model to the folder `model`, as a plain Hugging Face one.

        exclude (Iterable[str]): "model" leaves it out; `from_disk` then keeps the one that the config names.
        """
        to_disk(path, {"model": self.model.to_disk}, exclude)

    def from_disk(self, path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "PLLScorer":
        """Load what `to_disk` wrote. Where the model was left out, the one that the config names is kept."""
        from_disk(path, {"model": self.model.from_disk}, exclude)
        return self


def _attribute(key) -> str | None:
    """The name of the attribute that an entry of `Doc.user_data` belongs to, if it does to one."""
    return key[1] if isinstance(key, tuple) and len(key) == 4 and key[0] == "._." else None
