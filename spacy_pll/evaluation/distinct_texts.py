"""The scores that evaluations start from: one record per distinct text in its context."""

import math
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.names import Names
from ..component import get_scorer
from ..span_getters import TEXT_SPAN, named_spans
from ..stream.contexts import Placed, placed
from ..stream.workers import AS_USUAL, Work, score_batches
from .kept_scores import KeptScores


class TextSums(NamedTuple):
    """The scores of a whole text."""

    scores: tuple[float, ...]  # one per metric: natural log, summed over wordpieces; NaN without a wordpiece
    pieces: int  # number of scored wordpieces

    def per_piece(self) -> "TextSums":
        """The same with means over wordpieces instead of sums. A text without a wordpiece keeps its NaN."""
        return self._replace(scores=tuple(score / max(1, self.pieces) for score in self.scores))


def score_places(
    nlp: Language,
    places: Iterable[Placed],
    work: Work = AS_USUAL,
    component: str | None = None,
    kept: KeptScores | None = None,
    n_kept: int = 0,
) -> dict[Placed, TextSums]:
    """Score each distinct text in its place: the model reads what stands before and after it, and the text is scored.

    nlp, places, work, component: See `score_placed`.
    kept (Optional[KeptScores]): Gets the scores of each batch, and has those of the first texts, behind so many others.
    RETURNS (Dict[Tuple[str, str, str], TextSums]): By text in its place, in the order in which they first occur.
    RAISES (ValueError): A text cannot be scored, or has words, and none of them was scored.
    """
    distinct, scorer = list(dict.fromkeys(places)), get_scorer(nlp, component)
    kept = kept or KeptScores()
    found = {one: TextSums(tuple(sums), n) for one, (sums, n) in zip(distinct, kept.found[n_kept:])}
    missing = distinct[len(found) :]
    of_batch = list[TextSums]()
    nlp, docs = placed(nlp, missing, component)
    with closing(score_batches(nlp, docs, work, len(missing), len(found))) as scored:
        for one, (doc, ends_batch) in zip(missing, scored):
            found[one] = text_sums(doc, scorer.names)
            of_batch.append(found[one])
            if ends_batch:
                kept.add(of_batch)
                of_batch = []
    return found


def score_in_contexts(
    nlp: Language, pairs: Iterable[tuple[str, str]], work: Work = AS_USUAL, component: str | None = None
) -> dict[tuple[str, str], TextSums]:
    """The same for texts with nothing after them: pairs of a context, which may be empty, and a text. (It is here for
    code that was written for it.)
    """
    distinct = list(dict.fromkeys(pairs))
    found = score_places(nlp, [(text, context, "") for context, text in distinct], work, component)
    return {(context, text): found[text, context, ""] for context, text in distinct}


def text_sums(doc: Doc, names: Names) -> TextSums:
    """The scores of a doc that `score_placed` gave."""
    (text,), pieces = named_spans(doc, TEXT_SPAN), doc._.get(names.pieces)
    if pieces is None and any(not token.is_space for token in text):
        raise ValueError(
            f"Nothing was scored in the text {text.text[:100]!r}. If the pipeline's `pll` component leaves out spans "
            "of the text, use one that scores whole texts."
        )
    scores = [doc._.get(name) for name in names.metrics.values()]
    return TextSums(tuple(scores) if pieces else (math.nan,) * len(scores), pieces or 0)
