"""A name that other people's code has: what it did is in `stream.known`."""

from collections.abc import Iterable

from spacy.language import Language

from ..stream.known import TextSums, score_places
from ..stream.workers import AS_USUAL, Work


def score_in_contexts(
    nlp: Language, pairs: Iterable[tuple[str, str]], work: Work = AS_USUAL
) -> dict[tuple[str, str], TextSums]:
    """The scores of texts with nothing after them. pairs: A context, which may be empty, and a text."""
    found = score_places(nlp, [(text, context, "") for context, text in pairs], work)
    return {(context, str(text)): sums for (text, context, _), sums in found.items()}
