"""Where the difference between the scores of two versions of a text comes from."""

import math
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..attributes.names import Names, select_metrics
from ..attributes.registration import find_names


@dataclass(frozen=True)
class Segment:
    """A stretch of one version and the stretch of the other version that it is aligned with."""

    kind: Literal["equal", "replace", "delete", "insert"]  # what turns `a` into `b`, in difflib's terms
    a: Span  # empty where tokens were inserted
    b: Span  # empty where tokens were deleted
    difference: float  # the score of the tokens of b minus that of the tokens of a, natural log


@dataclass(frozen=True)
class Comparison:
    """Two scored versions of a text, and the segments that both are divided into."""

    a: Doc
    b: Doc
    attr: str  # the component's setting of that name
    attribute: str  # the attribute (after `._.`) with the score that is compared
    segments: list[Segment]

    @property
    def difference(self) -> float:
        """The score of `b` minus that of `a`: the sum over the segments.

        A version without a wordpiece has no score and comes last: infinity if it is `a`, minus infinity if it is `b`.
        """
        pieces = Names(self.attr, []).pieces
        has_score = [bool(doc._.get(pieces)) for doc in (self.a, self.b)]
        if has_score[0] != has_score[1]:
            return math.inf if has_score[1] else -math.inf
        return math.fsum(segment.difference for segment in self.segments)


def compare(nlp: Language, a: str | Doc, b: str | Doc, metric: str | None = None, *, attr: str = "pll") -> Comparison:
    """Score two versions of a text and show where the difference comes from.

    difflib aligns the tokens that are the same in both versions. Each pair of these is a segment, and so is whatever is
    between two of them. A word's score depends on its context, so segments with equal words contribute as well.

    nlp (Language): A pipeline with a `pll` component.
    a, b (Union[str, Doc]): The two versions.
    metric (Optional[str]): One of the component's metrics. None is the primary one.
    attr (str): The component's setting of that name.
    RETURNS (Comparison): The differences of its segments sum to `b._.pll - a._.pll`. A version without a wordpiece
        comes last.
    RAISES (ValueError): The pipeline gives no scores of that name.
    """
    doc_a, doc_b = nlp.pipe([a, b])
    names = find_names([doc_a, doc_b], attr)
    attribute = names.score if metric is None else select_metrics(names, [metric])[metric]
    segments = []
    matcher = SequenceMatcher(None, [token.text for token in doc_a], [token.text for token in doc_b], autojunk=False)
    for kind, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        if kind == "equal":
            pairs = [(doc_a[a_start + i : a_start + i + 1], doc_b[b_start + i : b_start + i + 1])
                     for i in range(a_end - a_start)]  # fmt: skip
        else:
            pairs = [(doc_a[a_start:a_end], doc_b[b_start:b_end])]
        segments += [Segment(kind, x, y, _sum(y, attribute) - _sum(x, attribute)) for x, y in pairs]
    return Comparison(doc_a, doc_b, attr, attribute, segments)


def _sum(span: Span, attribute: str) -> float:
    """The score of a span; 0.0 if none of its tokens is scored."""
    return math.fsum(token._.get(attribute) or 0.0 for token in span)
