"""Two versions of a text, aligned: where the difference between their scores comes from."""

import math
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..extensions import find_names, select_columns


@dataclass(frozen=True)
class Segment:
    """Tokens of the two versions that stand for each other."""

    kind: Literal["equal", "replace", "delete", "insert"]  # what was done to `a`, as difflib calls it
    a: Span  # empty where tokens were inserted
    b: Span  # empty where tokens were deleted
    difference: float  # the score of b's tokens minus that of a's, natural log


@dataclass(frozen=True)
class Comparison:
    """Two scored versions of a text, `a` and `b`, cut into segments that cover both."""

    a: Doc
    b: Doc
    attr: str  # the component's setting of that name
    attribute: str  # the name, after `._.`, of the score that is compared
    segments: list[Segment]

    @property
    def difference(self) -> float:
        """The score of `b` minus that of `a`: the sum over the segments."""
        return math.fsum(segment.difference for segment in self.segments)


def compare(nlp: Language, a: str | Doc, b: str | Doc, metric: str | None = None, *, attr: str = "pll") -> Comparison:
    """Score two versions of a text and show where the difference comes from.

    Tokens that are the same in both versions are aligned by difflib, one a segment; what lies
    between them is a segment as well. A word's score changes with its context, so that
    segments whose words are equal contribute, too.

    nlp (Language): A pipeline with a `pll` component.
    a, b (Union[str, Doc]): The two versions.
    metric (Optional[str]): One of the component's metrics; None is the primary one.
    attr (str): The component's setting of that name.
    RETURNS (Comparison): Its segments' differences sum to `b._.pll - a._.pll`.
    RAISES (ValueError): The pipeline gives no scores of that name.
    """
    doc_a, doc_b = nlp.pipe([a, b])
    names = find_names([doc_a, doc_b], attr)
    attribute = names.score if metric is None else select_columns(names, [metric])[metric]
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
    """A span's score; 0.0, the logarithm of an empty product, where nothing is scored."""
    return math.fsum(token._.get(attribute) or 0.0 for token in span)
