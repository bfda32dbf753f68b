"""Scores in context: candidates that continue a text, for cloze tests and multiple choice."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spacy.tokens import Doc, Span

from ..scoring.wordpieces import Wordpieces


@dataclass(frozen=True)
class Continuation:
    """How well a candidate goes on from a prefix. Scores are natural logarithms, under the primary metric."""

    text: str  # the candidate, as it was given
    span: Span  # its tokens, in the doc that was read; they have the component's attributes, the other tokens have None
    score: float  # the sum over its wordpieces
    pieces: int
    token_scores: list[float]  # one a token of `span`
    probability: float  # exp(score), normalised such that the candidates' sum is 1

    @property
    def mean(self) -> float:
        """The mean score of a wordpiece, for candidates of unequal length."""
        return self.score / self.pieces


def place(make_doc: Callable[[str], Doc], prefix: str, candidate: str, suffix: str, separator: str) -> Span:
    """The candidate as a span of whole tokens, in a doc that has the prefix before it and the suffix after it.

    A token that reaches over an end of the candidate is split there.

    separator (str): Put between prefix and candidate, unless one of them has white space there or the prefix is empty.
    RAISES (ValueError): The candidate is blank.
    """
    if not isinstance(candidate, str) or not candidate.strip():
        raise ValueError(f"A candidate must be a text with more than white space in it. It is {candidate!r}.")
    if prefix and not prefix[-1].isspace() and not candidate[0].isspace():
        prefix += separator
    start = len(prefix) + len(candidate) - len(candidate.lstrip())
    end = start + len(candidate.strip())
    doc = make_doc(prefix + candidate + suffix)
    for position in (start, end):
        _cut(doc, position)
    return doc.char_span(start, end)


def _cut(doc: Doc, position: int):
    """Split the token that reaches over a character position, if one does."""
    token = next((token for token in doc if token.idx < position < token.idx + len(token)), None)
    if token is None:
        return
    parts = [token.text[: position - token.idx], token.text[position - token.idx :]]
    with doc.retokenize() as retokenizer:
        retokenizer.split(token, parts, heads=[(token, 0), (token, 1)])


def check_apart(span: Span, pieces: Wordpieces, vocabulary: Callable[[int], str]):
    """The candidate must be pieces of its own, or what is scored would be more than it, or less.

    vocabulary (Callable[[int], str]): From an id to its piece.
    RAISES (ValueError): A piece reaches over one of the span's ends, or none lies in it.
    """
    for position in (span.start_char, span.end_char):
        over = (pieces.start < position) & (position < pieces.end)
        if over.any():
            raise ValueError(
                f"The candidate {span.text!r} cannot be scored apart from the text around it: the tokenizer makes one "
                f"piece, {vocabulary(int(pieces.ids[over.argmax()]))!r}, of both. Give whole words as candidates, or "
                "another model."
            )
    if not ((span.start <= pieces.token) & (pieces.token < span.end)).any():
        raise ValueError(f"The model's tokenizer drops the candidate {span.text!r}, so it has no score. Leave it out.")


def normalised(scores: Sequence[float]) -> list[float]:
    """Probabilities that sum to 1 and stand to each other as exp of the scores do."""
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    return [weight / sum(weights) for weight in weights]
