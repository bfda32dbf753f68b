"""Candidates in context: scores for cloze tests and multiple choice."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..component import get_scorer
from ..scoring.wordpieces import Wordpieces, get_wordpieces
from ..texts import plain_text


@dataclass(frozen=True)
class Continuation:
    """A candidate and its score. Scores are natural logarithms, under the primary metric."""

    text: str  # the candidate, as it was given
    span: Span  # its tokens in the doc that was scored; they have the component's attributes, the other tokens None
    score: float  # the sum over its wordpieces
    pieces: int
    token_scores: list[float]  # one per token of `span`
    probability: float  # exp(score), normalised so that the candidates' probabilities sum to 1

    @property
    def mean(self) -> float:
        """The mean score per wordpiece, for candidates of different lengths."""
        return self.score / self.pieces


def score_continuations(
    nlp: Language,
    prefix: str,
    candidates: Sequence[str],
    suffix: str = "",
    *,
    separator: str = " ",
    component: str | None = None,
) -> list[Continuation]:
    """Score candidates that stand between a prefix and a suffix, for cloze tests and multiple choice.

    The whole text is one context, whatever `get_spans` says. Only the candidate is scored, as with `targets`, and all
    its words are one unit, as with `units`. The model sees everything that the metric does not mask. A left-to-right
    model sees only what stands before each piece, so a suffix changes nothing.

    nlp (Language): A pipeline with a `pll` component. Its tokenizer makes the docs; its other components do not run.
    prefix (str): The text before the candidates; may be empty.
    candidates (Sequence[str]): The candidates, in any order.
    suffix (str): The text after them, as it is: begin it with a space if there should be one.
    separator (str): Put between prefix and candidate, unless one of them has white space there.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    RETURNS (list[Continuation]): One per candidate, in their order.
    RAISES (ValueError): There is no such component or no candidate, a candidate is blank, or the tokenizer makes one
        piece of the end of a candidate and the text beside it.
    """
    scorer = get_scorer(nlp, component)
    if isinstance(candidates, str) or not len(candidates):
        raise ValueError(f'`candidates` must be a list of texts, such as ["one", "two"]. It is {candidates!r}.')
    prefix, suffix = (plain_text(text, f"`{name}`") for name, text in (("prefix", prefix), ("suffix", suffix)))
    candidates = [plain_text(candidate, f"Candidate {number}") for number, candidate in enumerate(candidates, 1)]
    spans = [candidate_span(nlp, prefix, candidate, suffix, separator) for candidate in candidates]
    tokenizer = scorer.model.load().tokenizer
    for span in spans:
        pieces = get_wordpieces([span.doc[:]], tokenizer, scorer.settings.words)
        check_apart(span, pieces, tokenizer.id_to_token)
    results = scorer.predictor.predict_spans(spans, units=[[span] for span in spans])
    scorer.set_annotations([span.doc for span in spans], results)
    totals = [float(result.scores[0].sum()) for result in results]
    return [
        Continuation(
            text, span, total, int(result.pieces.sum()), result.scores[0, span.start : span.end].tolist(), probability
        )
        for text, span, total, result, probability in zip(candidates, spans, totals, results, softmax(totals))
    ]


def candidate_span(nlp: Language, prefix: str, candidate: str, suffix: str, separator: str) -> Span:
    """The candidate as a span of whole tokens, in a doc with the prefix before it and the suffix after it. A token that
    reaches over an end of the candidate is split there.

    RAISES (ValueError): The candidate is blank.
    """
    if not candidate.strip():
        raise ValueError(f"A candidate must be a text that is not blank. It is {candidate!r}.")
    if prefix and not prefix[-1].isspace() and not candidate[0].isspace():
        prefix += separator
    start = len(prefix) + len(candidate) - len(candidate.lstrip())
    end = start + len(candidate.strip())
    doc = nlp.make_doc(prefix + candidate + suffix)
    for position in (start, end):
        _split_at(doc, position)
    span = doc.char_span(start, end)
    assert span is not None  # tokens begin and end there now
    return span


def _split_at(doc: Doc, position: int) -> None:
    """Split the token that reaches over a character position, if there is one."""
    token = next((token for token in doc if token.idx < position < token.idx + len(token)), None)
    if token is None:
        return
    parts = [token.text[: position - token.idx], token.text[position - token.idx :]]
    with doc.retokenize() as retokenizer:
        retokenizer.split(token, parts, heads=[(token, 0), (token, 1)])


def check_apart(span: Span, pieces: Wordpieces, id_to_piece: Callable[[int], str | None]) -> None:
    """Check that the candidate has pieces of its own. Otherwise its score would include other text, or leave some out.

    RAISES (ValueError): A piece reaches over an end of the span, or no piece lies in it.
    """
    for position in (span.start_char, span.end_char):
        over = (pieces.start < position) & (position < pieces.end)
        if over.any():
            raise ValueError(
                f"The candidate {span.text!r} cannot be scored apart from the text around it: the tokenizer makes one "
                f"piece, {id_to_piece(int(pieces.ids[over.argmax()]))!r}, of both. Give whole words as candidates, or "
                "another model."
            )
    if not ((span.start <= pieces.token) & (pieces.token < span.end)).any():
        raise ValueError(f"The model's tokenizer drops the candidate {span.text!r}, so it has no score. Leave it out.")


def softmax(scores: Sequence[float]) -> list[float]:
    """Probabilities that sum to 1, proportional to exp of the scores."""
    highest = max(scores)
    weights = [math.exp(score - highest) for score in scores]
    return [weight / sum(weights) for weight in weights]
