"""Score texts so that one that fails takes no other with it: each gives a doc, or the error."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import ignore_error, raise_error
from spacy.vocab import Vocab

from .texts import Text, lone_surrogate

# Scored after a text has failed. If this fails as well, the fault is not the text's.
CANARY_TEXT = "A word."
ERROR = "error"  # the column that says why a row has no scores


class TextError(ValueError):
    """Why a text cannot be scored: the kind of the error, and its message."""


Outcome = Doc | TextError


def score_each(nlp: Language, texts: Sequence[Text]) -> Iterator[Outcome]:
    """Score texts in their order, as one batch.

    nlp (Language): It has another error handler while a text is scored, and its own while the caller has an outcome.
    YIELDS (Union[Doc, TextError]): The scored doc of each text, or why it cannot be scored.
    RAISES (Exception): The pipeline fails on a harmless text, too.
    """
    seen = set[int]()  # docs that have come

    def docs() -> Iterator[tuple[Doc, int]]:
        for number, text in enumerate(texts):
            try:
                if not isinstance(text, Doc):
                    doc = nlp.make_doc(text)
                else:  # spaCy keeps the number with the doc, so one that comes again is copied
                    doc = text.copy() if id(text) in seen else text
                    seen.add(id(text))
            except Exception:
                continue  # it is scored alone, as one that a component drops
            yield doc, number

    following = 0  # the first text without an outcome
    with _error_handler(nlp, ignore_error):  # what has no handler of its own takes that of this moment
        scored: Any = nlp.pipe(docs(), as_tuples=True, batch_size=max(1, len(texts)))
    with closing(scored):
        while pair := _next(nlp, scored):
            doc, number = pair
            yield from (_score_alone(nlp, text) for text in texts[following:number])
            yield doc
            following = number + 1
    # Some components give up all texts because of one. The others are scored by themselves.
    yield from (_score_alone(nlp, text) for text in texts[following:])


def unscored(text: Text) -> Doc:
    """A doc without scores. It has a vocabulary of its own, since what fails may be a very long text."""
    if isinstance(text, Doc):
        return Doc(Vocab(), [token.text for token in text], [bool(token.whitespace_) for token in text])
    return Doc(Vocab(), [text], [False]) if text else Doc(Vocab())


def _next(nlp: Language, scored: Iterator[tuple[Doc, int]]) -> tuple[Doc, int] | None:
    """The next of a pipeline's docs, or None if there is none, or if the pipeline fails."""
    with _error_handler(nlp, ignore_error):
        try:
            return next(scored, None)
        except Warning:  # a filter makes it an error, and no text is at fault
            raise
        except Exception:
            return None


def _score_alone(nlp: Language, text: Text) -> Outcome:
    """The scored doc, or the error. RAISES (Exception): The fault is not the text's."""
    with _error_handler(nlp, raise_error):
        try:
            return nlp(text)
        except Warning:
            raise
        except UnicodeEncodeError as error:
            outcome = TextError(f"The text {lone_surrogate(text if isinstance(text, str) else error.object)}")
        except Exception as error:
            outcome = TextError(f"{type(error).__name__}: {error}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a text that nobody gave
            nlp(CANARY_TEXT)
    return outcome


@contextmanager
def _error_handler(nlp: Language, handler: Callable[..., Any]) -> Iterator[None]:
    """Give a pipeline and its components another error handler for a while."""
    before = nlp.default_error_handler
    pipes: list[Any] = [pipe for _, pipe in nlp.pipeline if hasattr(pipe, "get_error_handler")]
    handlers = [pipe.get_error_handler() for pipe in pipes]
    nlp.set_error_handler(handler)
    try:
        yield
    finally:
        nlp.default_error_handler = before
        for pipe, earlier in zip(pipes, handlers):
            pipe.set_error_handler(earlier)
