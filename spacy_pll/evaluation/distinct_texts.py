"""The scores that evaluations start from: one record per distinct text."""

import math
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.names import Names
from ..component import get_scorer
from ..contexts import TEXT_SPAN, in_context
from ..pipelines import make_pipeline
from ..settings import BATCH_SIZE
from ..workers import score_docs


class TextSums(NamedTuple):
    """The scores of a whole text."""

    scores: tuple[float, ...]  # one per metric: natural log, summed over wordpieces; NaN without a wordpiece
    pieces: int  # number of scored wordpieces

    def per_piece(self) -> "TextSums":
        """The same with means over wordpieces instead of sums. A text without a wordpiece keeps its NaN."""
        return self._replace(scores=tuple(score / max(1, self.pieces) for score in self.scores))


def score_distinct(
    nlp: Language,
    names: Names,
    texts: Iterable[str],
    batch_size: int = BATCH_SIZE,
    show_progress: bool = False,
    n_process: int = 1,
) -> dict[str, TextSums]:
    """Score each distinct text once, and give the scores by text, in the order in which the texts first occur.

    texts (Iterable[str]): Similar texts should be neighbours: masked contexts that are equal within a batch run once.
    show_progress (bool): Show a progress bar.
    RAISES (ValueError): A text cannot be scored, or has words, and none of them was scored.
    """
    distinct = list(dict.fromkeys(texts))
    with closing(score_docs(nlp, distinct, batch_size, n_process, show_progress)) as docs:
        return dict(zip(distinct, (text_score(doc, names) for doc in docs), strict=True))


def score_in_contexts(
    nlp: Language,
    pairs: Iterable[tuple[str, str]],
    batch_size: int = BATCH_SIZE,
    show_progress: bool = False,
    n_process: int = 1,
    component: str | None = None,
) -> dict[tuple[str, str], TextSums]:
    """Score each distinct text after its context: the model reads both as one text, and the second part is scored.

    nlp (Language): A pipeline with a `pll` component, whose setting `targets` has no effect here.
    pairs (Iterable[Tuple[str, str]]): Contexts and texts. White space between the two belongs to either of them. Before
        a text without a context it is dropped.
    RETURNS (Dict[Tuple[str, str], TextSums]): By context and text.
    RAISES (ValueError): A text cannot be scored.
    """
    nlp = make_pipeline(nlp, component=component, targets=TEXT_SPAN)
    names, distinct = get_scorer(nlp).names, list(dict.fromkeys(pairs))
    parts = ((context, text) if context.strip() else ("", text.lstrip()) for context, text in distinct)
    contexts = [in_context(nlp, *both, separator="") for both in parts]
    with closing(score_docs(nlp, contexts, batch_size, n_process, show_progress)) as docs:
        return dict(zip(distinct, (_sums(doc, names) for doc in docs), strict=True))


def text_score(doc: Doc, names: Names) -> TextSums:
    """The scores of a doc that the pipeline has processed."""
    if doc._.get(names.pieces) is None and any(not token.is_space for token in doc):
        raise ValueError(
            f"Nothing was scored in the text {doc.text[:100]!r}. If the pipeline's `pll` component has the setting "
            "`targets`, or leaves out spans of the text, use one that scores whole texts."
        )
    return _sums(doc, names)


def _sums(doc: Doc, names: Names) -> TextSums:
    scores, pieces = [doc._.get(name) for name in names.metrics.values()], doc._.get(names.pieces) or 0
    return TextSums(tuple(scores) if pieces else (math.nan,) * len(scores), pieces)
