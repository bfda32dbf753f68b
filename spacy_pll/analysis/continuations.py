"""Candidates in context: scores for cloze tests and multiple choice."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from spacy.language import Language
from spacy.tokens import Span

from ..component import get_scorer
from ..errors import PLLError
from ..pipelines import make_pipeline
from ..settings import BATCH_SIZE
from ..span_getters import TEXT_SPAN, named_spans
from ..stream.contexts import Placed, check_places, doc_in_context, separated
from ..stream.workers import score_docs
from ..texts import check_texts, plain_text


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
    shared_pieces: bool = False,
) -> list[Continuation]:
    """Score candidates that stand between a prefix and a suffix, for cloze tests and multiple choice.

    The whole text is one context, whatever `get_spans` says. Only the candidate is scored, as with `targets`, and all
    its words are one unit, as with `units`. The model sees everything that the metric does not mask. A left-to-right
    model sees only what stands before each piece, so a suffix changes nothing.

    nlp (Language): A pipeline with a `pll` component. Its tokenizer makes the docs; its other components do not run.
    prefix (str): The text before the candidates; may be empty.
    candidates (Sequence[str]): The candidates, in any order. White space at their ends is not scored.
    suffix (str): The text after them, as it is: begin it with a space if there should be one.
    separator (str): Put between prefix and candidate, unless one of them has white space there.
    shared_pieces (bool): Score also candidates that share a wordpiece with the text beside them: it belongs to the side
        where it begins.
    RETURNS (list[Continuation]): One per candidate, in their order.
    RAISES (ValueError): There is no `pll` component or no candidate, a candidate is blank or has no wordpiece, or the
        tokenizer makes one piece of an end of a candidate and the text beside it.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    candidates = ["table", "kitchen table", "idea"]
    for found in spacy_pll.score_continuations(nlp, "They sat down at the", candidates, " and ate."):
        print(f"{found.text:13} {found.score:7.2f} {found.probability:6.1%}")
    ```

    ```
    table           -0.43  99.8%
    kitchen table   -6.50   0.2%
    idea           -11.17   0.0%
    ```
    """
    varied = make_pipeline(nlp, spans="doc", targets=TEXT_SPAN, units=TEXT_SPAN)
    scorer = get_scorer(varied)
    check_texts(candidates, "candidates")
    candidates = [*candidates]
    if not candidates:
        raise PLLError(f'`candidates` must be a list of texts, such as ["one", "two"]. It is {candidates!r}.')
    prefix, suffix = (plain_text(text, f"`{name}`") for name, text in (("prefix", prefix), ("suffix", suffix)))
    candidates = [plain_text(candidate, f"Candidate {number}") for number, candidate in enumerate(candidates, 1)]
    places = [_place_of(candidate, prefix, suffix, separator) for candidate in candidates]
    check_places(scorer, places, shared_pieces)
    varied.select_pipes(enable=[scorer.name])
    docs = list(score_docs(varied, [doc_in_context(nlp, *in_context) for in_context in places], BATCH_SIZE))
    scores, pieces = ([doc._.get(name) for doc in docs] for name in (scorer.names.score, scorer.names.pieces))
    probabilities = np.exp(np.subtract(scores, np.logaddexp.reduce(scores))).tolist()
    spans = [named_spans(doc, TEXT_SPAN)[0] for doc in docs]
    of_tokens = [[token._.get(scorer.names.score) for token in span] for span in spans]
    return list(map(Continuation, candidates, spans, scores, pieces, of_tokens, probabilities))


def _place_of(candidate: str, prefix: str, suffix: str, separator: str) -> Placed:
    """The candidate without the white space at its ends, and what stands before and after it."""
    if not candidate.strip():
        raise PLLError(f"A candidate must be a text that is not blank. It is {candidate!r}.")
    text = candidate.strip()
    first = candidate.index(text)
    before = separated(prefix, candidate, separator) + candidate[:first]
    return text, before, candidate[first + len(text) :] + suffix
