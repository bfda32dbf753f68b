"""The scores that evaluations start from: one record per distinct text in its context."""

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.names import Names
from ..component import get_scorer
from ..contexts import TEXT_SPAN, score_placed
from ..settings import BATCH_SIZE
from ..workers import batches_of


class TextSums(NamedTuple):
    """The scores of a whole text."""

    scores: tuple[float, ...]  # one per metric: natural log, summed over wordpieces; NaN without a wordpiece
    pieces: int  # number of scored wordpieces

    def per_piece(self) -> "TextSums":
        """The same with means over wordpieces instead of sums. A text without a wordpiece keeps its NaN."""
        return self._replace(scores=tuple(score / max(1, self.pieces) for score in self.scores))


def score_in_contexts(
    nlp: Language,
    pairs: Iterable[tuple[str, str]],
    batch_size: int = BATCH_SIZE,
    show_progress: bool = False,
    n_process: int = 1,
    component: str | None = None,
    known: Mapping[tuple[str, str], TextSums] = {},
    keep: Callable[[dict[tuple[str, str], TextSums]], object] = id,
) -> dict[tuple[str, str], TextSums]:
    """Score each distinct text after its context: the model reads both as one text, and the second part is scored.

    nlp (Language): A pipeline with a `pll` component, whose setting `targets` has no effect here.
    pairs (Iterable[Tuple[str, str]]): Contexts, which may be empty, and texts. A wordpiece belongs to where it begins.
    known (Mapping[Tuple[str, str], TextSums]): Those of the first texts, which are not scored again.
    keep (Callable): Gets the scores of each batch.
    RETURNS (Dict[Tuple[str, str], TextSums]): By context and text, in the order in which they first occur.
    RAISES (ValueError): A text cannot be scored, or has words, and none of them was scored.
    """
    distinct, scorer = list(dict.fromkeys(pairs)), get_scorer(nlp, component)
    found, missing = dict(known), [pair for pair in distinct if pair not in known]
    places = [(text, context, "") for context, text in missing]
    docs, following = score_placed(nlp, places, batch_size, show_progress, n_process, component), iter(missing)
    for batch in batches_of(scorer.predictor, map("".join, missing), batch_size):  # as they are scored
        sums = {pair: text_sums(doc, scorer.names) for pair, doc in zip(islice(following, len(batch)), docs)}
        found |= sums
        keep(sums)
    docs.close()
    return {pair: found[pair] for pair in distinct}


def text_sums(doc: Doc, names: Names) -> TextSums:
    """The scores of a doc that `score_placed` gave."""
    (text,), pieces = doc.spans[TEXT_SPAN], doc._.get(names.pieces)
    if pieces is None and any(not token.is_space for token in text):
        raise ValueError(
            f"Nothing was scored in the text {text.text[:100]!r}. If the pipeline's `pll` component leaves out spans "
            "of the text, use one that scores whole texts."
        )
    scores = [doc._.get(name) for name in names.metrics.values()]
    return TextSums(tuple(scores) if pieces else (math.nan,) * len(scores), pieces or 0)
