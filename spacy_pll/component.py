"""The pipeline component: docs in, attributes out."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from keyword import iskeyword
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints
from weakref import ref

from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import SimpleFrozenList, from_bytes, from_disk, registry, to_bytes, to_disk

from .attributes.names import Names
from .attributes.record import Stored
from .attributes.registration import assigned, install
from .attributes.stored import store
from .attributes.values import exp_or_inf
from .errors import PLLError
from .language_model import BUILTIN_NAMES
from .language_model.protocol import LanguageModel
from .metrics import registered_metrics
from .prediction.batches import batches_of, with_next_ahead
from .prediction.predictor import Predictor
from .prediction.reading import PendingBatch
from .settings import ScoringSettings, shows_settings
from .span_getters import SpanGetter
from .texts import lone_surrogate

logger = logging.getLogger(__name__)
T = TypeVar("T")

DEFAULT_CONFIG: dict[str, Any] = {
    "model": {"@architectures": "spacy-pll.MaskedLM.v1"},
    "get_spans": {"@span_getters": "spacy-pll.doc_spans.v1"},
    "attr": "pll",
    **asdict(ScoringSettings()),
    "metrics": [*ScoringSettings().metrics],  # configs have lists
}


# A key of `doc.spans` is checked by the settings alone, whose message says what it is.
TYPES = {name: object if of == str | None else of for name, of in get_type_hints(ScoringSettings).items()}


@Language.factory(
    "pll",
    assigns=assigned(Names("pll", DEFAULT_CONFIG["metrics"])),
    default_config=DEFAULT_CONFIG,
    default_score_weights={"pll_pppl": None, "pll_mean": None},
)
@shows_settings(TYPES)
def make_pll(
    nlp: Language,
    name: str,
    model: object,  # a LanguageModel; confection cannot validate a Protocol
    get_spans: SpanGetter,
    attr: str,
    **settings: Any,
) -> "PLLScorer":
    """Make a component that gives every token, span and doc its pseudo-log-likelihood.

    The settings are described at `ScoringSettings`; `get_spans` says which spans are read as one context. Where spans
    overlap, a token is scored in the span that gives it the most context on the side that has less, or before it if no
    metric shows the model what follows.

    model (object): A language model. Or a name on the Hugging Face hub, or a folder, for the block with that name; the
        config that is saved has the block.
    """
    block = None
    if model is None or isinstance(model, str):
        block = {**DEFAULT_CONFIG["model"], "name": None if model in BUILTIN_NAMES else model}
        resolved = registry.resolve({"model": block})
        model, block = resolved["model"], registry.fill({"model": block})["model"]
    predictor = Predictor(cast(LanguageModel, model), get_spans, ScoringSettings(**settings))
    scorer = PLLScorer(predictor, name, attr=attr)
    if block is not None:
        scorer.when_added = partial(_write_block, ref(nlp), name, block)
    for other_name, other in nlp.components:  # spaCy does the same, but only once the component is in the pipeline
        if isinstance(other, PLLScorer) and other_name != name:
            other.find_listeners(scorer)
    return scorer


def _write_block(nlp: Callable[[], Language | None], name: str, block: dict[str, Any]) -> None:
    """Write the block of a model into the config of a pipeline, which had the name alone."""
    if (pipeline := nlp()) is not None and name in pipeline._pipe_configs:
        pipeline._pipe_configs[name]["model"] = block


class PLLScorer(Pipe):
    """Pseudo-log-likelihood scores under a language model (Kauf & Ivanova 2023).

    predictor (Predictor): Computes the scores: a model, what it reads, and the `ScoringSettings`. The model is loaded
        on first use, on `initialize` or from disk.
    attr (str): The name of the attributes.
    RAISES (ValueError): `attr` is no name, or is taken, or ends with the name of a metric.

    ```python
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": ["word_l2r", "original"]})
    doc = nlp("The traveler lost the souvenir.")
    doc._.pll, doc[4]._.pll, doc[4]._.pll_original  # -28.69, -14.47, -2.48
    ```
    """

    def __init__(self, predictor: Predictor, name: str = "pll", *, attr: str = "pll"):
        if not attr.isidentifier() or iskeyword(attr):
            raise PLLError(f"`attr` must be a name that can stand after `doc._.`. It is {attr!r}.")
        if metric := next((name for name in registered_metrics() if attr.endswith(f"_{name}")), None):
            other = attr.removesuffix(f"_{metric}")
            raise PLLError(
                f"`attr` is {attr!r}, as the scores under {metric} are called if `attr` is {other!r}. Give another "
                f"name, such as `attr='{metric}_{other}'`."
            )
        self._predictor = predictor
        self.name = name
        self.attr = attr
        self.names = Names(attr, list(self.settings.metrics))
        install(self.names)

    @property
    def predictor(self) -> Predictor:
        """Computes the scores. It stays the same: a component with another model or other settings is another one."""
        return self._predictor

    @property
    def settings(self) -> ScoringSettings:
        """What is scored, and how."""
        return self.predictor.settings

    @property
    def model(self) -> LanguageModel:
        """The language model. It may be shared with other components."""
        return self.predictor.model

    def predict(self, docs: list[Doc]) -> list[Stored]:
        """Score docs without changing them."""
        return self.predictor.predict(docs)

    # spaCy's protocol `ListenedToComponent`: whenever a pipeline changes, each component that has these is shown those
    # behind it. It is the only notice of a component that was taken from another pipeline.
    listeners: Sequence[object] = ()
    listening_components: Sequence[str] = ()
    when_added: Callable[[], None] | None = None  # what is done once the pipeline has the component, and its config

    @property
    def listener_map(self) -> dict[str, Sequence[object]]:
        return {}

    @listener_map.setter
    def listener_map(self, value: object) -> None:
        """spaCy does so whenever the pipeline changes."""
        if self.when_added:
            self.when_added()
            self.when_added = None

    def add_listener(self, *names: object) -> None:
        """There are no listeners."""

    def remove_listener(self, *names: object) -> bool:
        return False

    def find_listeners(self, component: object) -> None:
        """RAISES (ValueError): A component behind this one writes the same attributes."""
        if isinstance(component, PLLScorer) and (shared := {*self.names.all} & {*component.names.all}):
            name, attr = component.name, component.attr
            raise PLLError(
                f"The component {self.name!r} already writes the attribute _.{min(shared)}. If {name!r} came from "
                f"another pipeline, take it out of this one first: nlp.remove_pipe({name!r}). Give its attributes "
                f'another name where it is made: nlp.add_pipe("pll", name={name!r}, config={{"attr": "{attr}_2"}}), '
                f'or, where that is loaded, spacy.load(folder, config={{"components.{name}.attr": "{attr}_2"}}).'
            )

    def __call__(self, doc: Doc, *, error_handler: Callable[..., Any] | None = None) -> Doc:
        """Score one doc.

        error_handler (Optional[Callable]): What an error is handed to, as spaCy does. Then the doc has no scores. None:
            errors pass, and spaCy hands them to the error handler that is set.
        """
        try:
            self.set_annotations([doc], self.predict([doc]))
        except Exception as error:
            if error_handler is None:
                raise
            error_handler(self.name, self, [doc], error)
        return doc

    def pipe(
        self,
        stream: Iterable[Doc],
        *,
        batch_size: int = 128,
        ends_batch: Callable[[Doc], bool] | None = None,
        error_handler: Callable[..., Any] | None = None,
    ) -> Iterator[Doc]:
        """Score a stream of docs. Identical masked contexts in a batch run once.

        batch_size (int): The largest number of docs in a batch. A batch also ends when it has two or three seconds of
            work for a CPU. On a GPU, if `batch_size` is 1,000 (spaCy's default) or more, batches after the first one
            have up to 8,000 docs. The size of a forward pass depends on `max_batch_tokens`, not on `batch_size`.
        ends_batch (Optional[Callable[[Doc], bool]]): Instead of these rules: a function that says of each doc whether a
            batch ends with it.
        error_handler (Optional[Callable]): Instead of the one that is set, which other threads have, too.
        YIELDS (Doc): The docs, in order, as soon as their batch is scored. A doc that fails goes to the error handler
            and is not yielded, as in spaCy's own components. The other docs are yielded.
        RAISES (Exception): An error of the stream, after all docs before it were yielded.
        """
        predictor = self.predictor
        loaded = predictor.prepare()  # if that fails, it is not the fault of a doc
        ends, texts = predictor.reading.ends_of_batches(loaded, batch_size), list[str]()  # of the docs of a batch

        def ends_now(doc: Doc) -> bool:
            texts.append(doc.text)
            return ends_batch(doc) if ends_batch else ends(doc, texts[-1])

        def submitted() -> Iterator[tuple[list[Doc], PendingBatch | None]]:
            for docs in batches_of(self._counted(stream), ends_now):
                texts_of = texts[:]
                texts.clear()
                yield docs, self._attempt(docs, partial(predictor.submit, docs, texts_of))

        for docs, pending in with_next_ahead(submitted(), loaded.on_gpu):
            docs.reverse()
            yield from self._annotate(predictor, docs, pending, error_handler or self.get_error_handler())

    def _counted(self, stream: Iterable[Doc]) -> Iterator[Doc]:
        """RAISES (PLLError): spaCy cannot make a doc of a text. Its own message does not say of which."""
        number = 0
        try:
            for number, doc in enumerate(stream, 1):  # noqa: B007
                yield doc
        except UnicodeEncodeError as error:
            problem = lone_surrogate(error.object)
            raise PLLError(f"Text {number + 1:,} of those that reach the component {self.name!r} {problem}") from error

    def _attempt(self, docs: list[Doc], function: Callable[[], T]) -> T | None:
        try:
            return function()
        except Warning:  # a filter makes it an error, and no doc is at fault
            raise
        except Exception:  # scoring the halves will show which of the docs it was
            logger.debug("A batch of %d docs failed. It is scored again in parts.", len(docs), exc_info=True)
            return None

    def _annotate(
        self, predictor: Predictor, docs: list[Doc], pending: PendingBatch | None, handler: Callable[..., Any]
    ) -> Iterator[Doc]:
        """The docs with their scores. If the batch fails, its halves are scored, down to the docs that fail: those are
        left out.

        docs (List[Doc]): The last one first. Each is taken out before it is given: what the caller drops is gone then,
            and not only with its batch, so Python's garbage collector has less to look through.
        """
        records = None if pending is None else self._attempt(docs, partial(predictor.gather, pending))
        if records is not None:
            annotate = partial(_annotate_last, docs, self.names, records)
            while docs and (doc := self._attempt(docs, annotate)) is not None:
                yield doc
        if len(docs) > 1:
            middle = len(docs) - len(docs) // 2
            halves = [docs[:middle], docs[middle:]]
            docs.clear()
            while halves:
                half = halves.pop()
                is_one = len(half) == 1
                again = None if is_one else self._attempt(half, partial(predictor.submit, half[::-1]))
                yield from self._annotate(predictor, half, again, handler)
        elif docs:
            doc = docs.pop()
            try:
                self.set_annotations([doc], predictor.predict([doc]))
            except Warning:
                raise
            except Exception as error:
                handler(self.name, self, [doc], error)
            else:
                yield doc

    def set_annotations(self, docs: list[Doc], scores: Iterable[Stored]) -> None:
        """Write scores to the docs' attributes."""
        for doc, record in zip(docs, scores):
            store(doc, self.names, record)

    def score(self, examples: Iterable[Example], **kwargs: Any) -> dict[str, Any]:
        """The mean PLL and the pseudo-perplexity of the predicted docs, for `nlp.evaluate`.

        RETURNS (dict[str, Optional[float]]): Under "pll_mean" the mean PLL of a doc, and under "pll_pppl" the
            pseudo-perplexity of all docs together; the same for each metric, such as "pll_original_mean". None if
            nothing was scored. `attr` takes the place of "pll".
        """
        docs = [example.predicted for example in examples]
        pieces = sum(doc._.get(self.names.all_pieces) or 0 for doc in docs)
        figures: dict[str, Any] = {}
        for name in [self.names.score, *self.names.metrics.values()]:
            scores = [score for doc in docs if (score := doc._.get(self.names.estimates[name][0])) is not None]
            figures[f"{name}_mean"] = sum(scores) / len(scores) if scores else None
            figures[f"{name}_pppl"] = exp_or_inf(-sum(scores) / pieces) if pieces else None
        return figures

    def initialize(self, get_examples: Callable[..., Any] | None = None, *, nlp: Language | None = None) -> None:
        """Load the language model, so that the first doc does not have to wait for it."""
        self.predictor.prepare()

    def to_bytes(self, *, exclude: Iterable[str] = SimpleFrozenList()) -> bytes:
        """Serialize the language model. exclude (Iterable[str]): "model" leaves it out."""
        return to_bytes({"model": self.model.to_bytes}, exclude)

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = SimpleFrozenList()) -> "PLLScorer":
        """Load what `to_bytes` returned."""
        from_bytes(bytes_data, {"model": self.model.from_bytes}, exclude)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> None:
        """Write the language model to the folder `model`, as a plain Hugging Face folder."""
        to_disk(path, {"model": self.model.to_disk}, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = SimpleFrozenList()) -> "PLLScorer":
        """Load what `to_disk` wrote. If the model was left out, the one that the config names is kept."""
        from_disk(path, {"model": self.model.from_disk}, exclude)
        return self


def _annotate_last(docs: list[Doc], names: Names, records: Iterator[Stored]) -> Doc:
    """Write the next record to the last of some docs, and take that out."""
    store(docs[-1], names, next(records))
    return docs.pop()


def get_scorer(nlp: Language, component: str | None = None) -> PLLScorer:
    """Find the `pll` component of a pipeline by its name, or the first one if no name is given.

    RAISES (ValueError): There is none.
    RAISES (TypeError): `nlp` is not a pipeline.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline(metrics=["word_l2r", "original"])
    spacy_pll.get_scorer(nlp).settings.metrics[0]  # 'word_l2r'
    ```
    """
    if not isinstance(nlp, Language):
        raise TypeError(f'`nlp` must be a pipeline, such as spacy.blank("en"). It is {nlp!r:.100}.')
    for name, scorer in (*nlp.pipeline, *nlp.components):  # those that are disabled come last
        if isinstance(scorer, PLLScorer) and component in (None, name):
            return scorer
    kind = "`pll` component" if component is None else f"`pll` component {component!r}"
    raise PLLError(f'The pipeline has no {kind}, only {nlp.pipe_names}. Add one: nlp.add_pipe("pll").')
