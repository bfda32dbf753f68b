"""Score texts so that one that fails takes no other with it: each gives a doc, or the error."""

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from typing import Any, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..component import PLLScorer, get_scorer
from ..errors import PLLError
from ..texts import Text, lone_surrogate
from ..user_warnings import no_warnings
from .error_handlers import handled, with_default

# Scored after a text has failed. If this fails as well, the fault is not the text's.
CANARY_TEXT = "A word."
ERROR = "error"  # the column that says why a row has no scores


class TextError(PLLError):
    """Why a text cannot be scored: the kind of the error, and its message."""


Outcome = Doc | TextError


class _Taken(NamedTuple):
    """A text that the pipeline has taken, and that has no outcome yet."""

    text: Text
    doc: Doc
    ends_batch: bool
    is_whole: bool  # False: spaCy cannot make a doc of the text, and an empty one stands in for it


class _Source:
    """Where a pipeline takes its docs, and what becomes of them.

    nlp, batch_size, done: See `score_each`.
    """

    def __init__(self, nlp: Language, texts: Iterable[Text], batch_size: int, done: int):
        self.nlp, self.texts, self.batch_size, self.done = nlp, iter(texts), batch_size, done
        self.taken = dict[int, _Taken]()  # by the id of the doc, in their order
        self.failed = set[int]()  # the ids of docs that a component could not process
        self.fault: Exception | None = None  # of the text that should come next
        self.at_end = False
        self.gave_up = False  # whether docs may be missing that no component has left out

    def pipe(self) -> Generator[Doc, None, None]:
        """What the pipeline makes of the next texts."""
        predictor = get_scorer(self.nlp).predictor
        loaded, reading = predictor.prepare(), predictor.reading
        ends, others = (reading.ends_of_batches(loaded, self.batch_size, self.done) for _ in range(2))

        def docs() -> Iterator[Doc]:
            while (doc := self.take(ends)) is not None:
                yield doc

        def ends_batch(doc: Doc) -> bool:
            return self.taken[id(doc)].ends_batch if id(doc) in self.taken else others(doc)

        pipeline = self.nlp.pipeline  # which spaCy makes anew whenever it is asked
        self.others = [(name, pipe) for name, pipe in pipeline if not isinstance(pipe, PLLScorer)]
        component_cfg = {
            name: {"ends_batch": ends_batch, "error_handler": partial(self.handle, pipe.get_error_handler())}
            for name, pipe in pipeline
            if isinstance(pipe, PLLScorer)
        }
        nlp: Any = with_default(self.nlp, self.handle)
        return nlp.pipe(docs(), batch_size=self.batch_size, component_cfg=component_cfg)

    def take(self, ends: Callable[[Text], bool]) -> Doc | None:
        """Take the next text. RETURNS: Its doc; None if there is no text."""
        try:
            text = next(self.texts)
        except Exception as error:  # StopIteration, or what is wrong with it
            self.fault, self.at_end = None if isinstance(error, StopIteration) else error, True
            return None
        ends_batch, is_whole = ends(text if isinstance(text, Text) else ""), True
        try:
            if isinstance(text, Doc):
                doc = text.copy() if id(text) in self.taken else text  # each outcome is a doc of its own
            else:
                doc = self.nlp.make_doc(text)
        except Exception:
            doc, is_whole = empty_doc(self.nlp), False
        self.taken[id(doc)] = _Taken(text, doc, ends_batch, is_whole)
        return doc

    def next_of(self, scored: Iterator[Doc]) -> Doc | None:
        """The pipeline's next doc, or None if it gives no more."""
        try:
            with handled(self.others, self.handle) if self.others else nullcontext():
                for doc in scored:
                    if id(doc) in self.taken:
                        return doc
                    self.gave_up = True  # a component gives other docs than it gets
        except Warning:  # a filter makes it an error, and no text is at fault
            raise
        except Exception:  # some components give up all texts because of one
            self.gave_up = True
        return None

    def handle(self, own: Callable[..., Any], name: str, pipe: Any, docs: list[Doc], error: Exception) -> None:
        """Note the docs that a component could not process.

        own (Callable): Its error handler, which has the docs of others: those of a pipeline that makes the texts.
        """
        self.failed.update(id(doc) for doc in docs if id(doc) in self.taken)
        if others := [doc for doc in docs if id(doc) not in self.taken]:
            own(name, pipe, others, error)

    def pop(self) -> _Taken:
        """The first of the texts without an outcome. It gets one now."""
        taken = self.taken.pop(next(iter(self.taken)))
        self.done += 1
        return taken._replace(ends_batch=True) if self.at_end and not self.taken else taken

    def without_doc(self, taken: _Taken) -> Outcome:
        """The outcome of a text for which the pipeline gives no doc."""
        failed = id(taken.doc) in self.failed or not taken.is_whole
        self.failed.discard(id(taken.doc))
        if failed or self.gave_up:
            return _score_alone(self.nlp, taken.text)
        return TextError("A component of the pipeline leaves it out")


def score_each(
    nlp: Language, texts: Iterable[Text], batch_size: int, done: int = 0
) -> Generator[tuple[Outcome, bool], None, None]:
    """Score texts in their order, through one `nlp.pipe`, so that a GPU has the next batch ahead.

    nlp (Language): Its components may have another error handler while a text is scored, in this thread alone.
    batch_size, done (int): See `Predictor.ends_of_batches`.
    YIELDS (Tuple[Union[Doc, TextError], bool]): The scored doc of each text, or why it cannot be scored; and whether a
        batch ends with it.
    RAISES (Exception): The pipeline fails on a harmless text, too; or what the texts raise, behind all before it.
    """
    source = _Source(nlp, texts, batch_size, done)
    while not source.at_end:
        source.gave_up = False
        with closing(source.pipe()) as scored:
            while (doc := source.next_of(scored)) is not None:
                while (taken := source.pop()).doc is not doc:
                    yield source.without_doc(taken), taken.ends_batch
                yield doc if taken.is_whole else source.without_doc(taken), taken.ends_batch
        source.gave_up |= not source.at_end
        if not (source.taken or source.at_end):  # from a pipeline that takes nothing
            source.take(lambda text: True)
        # What the pipeline has taken is scored text by text, and the pipeline begins anew behind it.
        while source.taken:
            taken = source.pop()
            yield source.without_doc(taken), taken.ends_batch or not source.taken
    if source.fault:
        raise source.fault


def empty_doc(nlp: Language) -> Doc:
    """A doc that no component has to read."""
    doc, settings = nlp.make_doc(""), get_scorer(nlp).settings
    doc.spans.update({key: [] for key in (settings.targets, settings.units) if key})  # which it need not lack
    return doc


def unscored(text: Text) -> Doc:
    """A doc without scores. It has a vocabulary of its own, since what fails may be a very long text."""
    if isinstance(text, Doc):
        return Doc(Vocab(), [token.text for token in text], [bool(token.whitespace_) for token in text])
    return Doc(Vocab(), [text], [False]) if text else Doc(Vocab())


def _score_alone(nlp: Language, text: Text) -> Outcome:
    """The scored doc, or the error. RAISES (Exception): The fault is not the text's."""
    try:
        return _score_or_raise(nlp, text)
    except Warning:
        raise
    except UnicodeEncodeError as error:
        outcome = TextError(f"The text {lone_surrogate(text if isinstance(text, str) else error.object)}")
    except Exception as error:
        outcome = TextError(f"{type(error).__name__}: {error}")
    with no_warnings():  # of a text that nobody gave
        _score_or_raise(nlp, CANARY_TEXT)
    return outcome


def _score_or_raise(nlp: Language, text: Text) -> Doc:
    """The scored doc. RAISES (Exception): What a component raises first, whatever error handler there is."""
    errors = list[Exception]()
    component_cfg = {
        name: {"error_handler": lambda *about: errors.append(about[3])}
        for name, pipe in nlp.pipeline
        if isinstance(pipe, PLLScorer)
    }

    def handle(own: Callable[..., Any], name: str, pipe: Any, docs: list[Doc], error: Exception) -> None:
        raise error

    with handled(nlp.pipeline, handle):
        try:
            doc = with_default(nlp, handle)(text, component_cfg=component_cfg)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return doc
