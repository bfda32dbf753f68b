"""Score texts so that one that fails takes no other with it: each gives a doc, or the error."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import ignore_error, raise_error
from spacy.vocab import Vocab

# Scored after a text has failed. If this fails as well, the fault is not the text's.
CANARY_TEXT = "A word."
ERROR = "error"  # the column that says why a row has no scores


class TextError(ValueError):
    """Why a text cannot be scored: the kind of the error, and its message."""


Text = str | Doc
Outcome = Doc | TextError


def check_texts(texts: object) -> None:
    """RAISES (ValueError): It is one text, which would be read letter by letter, or token by token."""
    if isinstance(texts, str | Doc):
        raise ValueError(f"`texts` must be a list of texts. It is one text: {str(texts)!r:.50}. Write [text].")


def score_each(nlp: Language, texts: Iterable[Text], batch_size: int) -> Iterator[Outcome]:
    """Score texts in their order.

    nlp (Language): Until all are scored, it has another error handler.
    batch_size (int): Texts per batch. Those that fail count, so that the other batches stay as they are.
    YIELDS (Union[Doc, TextError]): The scored doc of each text, or why it cannot be scored.
    RAISES (Exception): The pipeline fails on a harmless text, too; or the next text cannot be read.
    """
    source = _Source(nlp, texts)
    with _error_handler(nlp, ignore_error):
        while not source.ended:
            before = source.n_read
            for doc, number in _until_it_fails(nlp.pipe(source.docs(), as_tuples=True, batch_size=batch_size)):
                while source.waiting[0][0] < number:  # a component has dropped them
                    yield _score_alone(nlp, source.waiting.popleft()[1])
                text = source.waiting.popleft()[1]
                yield _score_alone(nlp, text) if number in source.unmade else doc
            # Some components give up all texts because of one. The others of its batch are scored by themselves.
            source.read(-source.n_read % batch_size or (batch_size if source.n_read == before else 0))
            while source.waiting:
                yield _score_alone(nlp, source.waiting.popleft()[1])
    if source.error:
        raise source.error


def unscored(text: Text) -> Doc:
    """A doc without scores. It has a vocabulary of its own, since what fails may be a very long text."""
    if isinstance(text, Doc):
        return Doc(Vocab(), [token.text for token in text], [bool(token.whitespace_) for token in text])
    return Doc(Vocab(), [text], [False]) if text else Doc(Vocab())


class _Source:
    """Texts, as a pipeline reads them.

    nlp (Language): Makes docs from them.
    """

    def __init__(self, nlp: Language, texts: Iterable[Text]):
        self.nlp, self.texts = nlp, iter(texts)
        self.waiting: deque[tuple[int, Text]] = deque()  # those that are being scored, with their numbers
        self.unmade: set[int] = set()  # those from which no doc can be made
        self.n_read = 0
        self.ended = False
        self.error: Exception | None = None  # why the next text cannot be read

    def read(self, n: int) -> bool:
        """Read the next texts. RETURNS (bool): Whether there were so many."""
        wanted = self.n_read + n
        try:
            for text in islice(self.texts, n):
                self.waiting.append((self.n_read, text))
                self.n_read += 1
        except Exception as error:
            self.error = error
        self.ended = self.ended or self.n_read < wanted
        return not self.ended

    def docs(self) -> Iterator[tuple[Doc, int]]:
        """The docs of the next texts, with their numbers."""
        while self.read(1):
            number, text = self.waiting[-1]
            try:
                doc = text if isinstance(text, Doc) else self.nlp.make_doc(text)
            except Exception:
                self.unmade.add(number)
                doc = Doc(self.nlp.vocab)  # takes its place in the batch
            yield doc, number


def _until_it_fails(docs: Iterator[Any]) -> Iterator[Any]:
    try:
        yield from docs
    except Exception:
        return


def _score_alone(nlp: Language, text: Text) -> Outcome:
    """The scored doc, or the error. RAISES (Exception): The fault is not the text's."""
    with _error_handler(nlp, raise_error):
        try:
            return nlp(text)
        except Exception as error:
            outcome = TextError(f"{type(error).__name__}: {error}")
        nlp(CANARY_TEXT)
    return outcome


@contextmanager
def _error_handler(nlp: Language, handler: Callable[..., Any]) -> Iterator[None]:
    """Give a pipeline and its components another error handler for a while."""
    before = nlp.default_error_handler
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "get_error_handler")]
    own = [pipe.get_error_handler() for pipe in pipes]
    nlp.set_error_handler(handler)
    try:
        yield
    finally:
        nlp.default_error_handler = before
        for pipe, earlier in zip(pipes, own):
            pipe.set_error_handler(earlier)
