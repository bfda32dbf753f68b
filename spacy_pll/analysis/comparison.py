"""Where the difference between the scores of two versions of a text comes from."""

import math
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..attributes.names import select_metrics
from ..attributes.registration import find_names
from ..component import get_scorer
from ..errors import PLLError
from ..settings import BATCH_SIZE, in_order
from ..stream.workers import score_docs


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
        """The score of `b` minus the score of `a`. It is the sum over the segments.

        A version without a wordpiece has no score and comes last: infinity if it is `a`, minus infinity if it is `b`.
        """
        has_score = [doc._.get(self.attribute) is not None for doc in (self.a, self.b)]
        if has_score[0] != has_score[1]:
            return math.inf if has_score[1] else -math.inf
        return math.fsum(segment.difference for segment in self.segments)

    def shared_scores(self, metric: str | None = None) -> tuple[float, float]:
        """The scores, in `a` and in `b`, of the tokens that both have: of the unmodified part, given the modified one.

        metric (Optional[str]): One of the component's metrics. None is the metric that is compared.
        RETURNS (tuple[float, float]): Natural log. Both are 0.0 if the versions have nothing in common.
        RAISES (ValueError): There are no scores of that name.
        """
        names = find_names((self.a, self.b), self.attr)
        attribute = self.attribute if metric is None else select_metrics(names, [metric])[metric]
        same = [segment for segment in self.segments if segment.kind == "equal"]
        a, b = (math.fsum(_sum_of(getattr(segment, side), attribute) for segment in same) for side in "ab")
        return a, b


def compare(nlp: Language, a: str | Doc, b: str | Doc, metric: str | None = None) -> Comparison:
    """Score two versions of a text and show where the difference comes from.

    difflib aligns the tokens that are the same in both versions. Each pair of such tokens is a segment, and the tokens
    between two such pairs are a segment. A word's score depends on its context, so segments with equal words contribute
    as well.

    nlp (Language): A pipeline with a `pll` component.
    a, b (Union[str, Doc]): The two versions.
    metric (Optional[str]): One of the component's metrics. None is the primary one.
    RETURNS (Comparison): The differences of its segments sum to `b._.pll - a._.pll`. A version without a wordpiece
        comes last.
    RAISES (ValueError): The pipeline has no `pll` component, or it has no such metric.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    comparison = spacy_pll.compare(nlp, "The keys are on the table.", "The keys is on the table.")
    comparison.difference  # -9.49
    for segment in comparison.segments[:3]:
        print(f"{segment.kind:8} {segment.a.text:5} {segment.b.text:5} {segment.difference:+.1f}")
    ```

    ```
    equal    The   The   -0.0
    equal    keys  keys  -5.1
    replace  are   is    -4.3
    ```
    """
    return next(compare_pairs(nlp, [(a, b)], metric))


def compare_pairs(
    nlp: Language,
    pairs: Iterable[tuple[str | Doc, str | Doc]],
    metric: str | None = None,
    *,
    batch_size: int = BATCH_SIZE,
) -> Iterator[Comparison]:
    """Compare the two versions of many texts, as `compare` does, at the speed of `nlp.pipe`.

    batch_size (int): The most pairs that are scored together.
    YIELDS (Comparison): One per pair, in their order.
    RAISES (ValueError): A pair is not two texts, or one of them cannot be scored; or see `compare`.

    ```python
    import spacy_pll

    pairs = [("The cats sleep.", "The cats sleeps."), ("A dog barks.", "A dog bark.")]
    for comparison in spacy_pll.compare_pairs(spacy_pll.make_pipeline(), pairs):
        print(f"{comparison.b} {comparison.difference:.2f}")
    ```

    ```
    The cats sleeps. -7.56
    A dog bark. -1.51
    ```
    """
    scorer = get_scorer(nlp)
    scorer.settings.check_whole("two versions are compared word by word")
    attribute = scorer.names.score if metric is None else select_metrics(scorer.names, [metric])[metric]
    with closing(score_docs(nlp, _texts_of_pairs(pairs), 2 * batch_size)) as docs:
        for a, b in zip(docs, docs):
            yield _compare_docs(a, b, scorer.attr, attribute)


def _texts_of_pairs(pairs: Iterable[tuple[str | Doc, str | Doc]]) -> Iterator[str | Doc]:
    for pair in pairs:
        two = pair if isinstance(pair, Doc) else in_order(pair)
        if not isinstance(two, list | tuple) or len(two) != 2:
            raise PLLError(f"Each pair must be two texts, such as (text_a, text_b). One is {pair!r:.100}.")
        yield from two


def _compare_docs(doc_a: Doc, doc_b: Doc, attr: str, attribute: str) -> Comparison:
    segments = []
    matcher = SequenceMatcher(None, [token.text for token in doc_a], [token.text for token in doc_b], autojunk=False)
    for kind, a_start, a_end, b_start, b_end in matcher.get_opcodes():
        pairs = [(doc_a[a_start:a_end], doc_b[b_start:b_end])]
        if kind == "equal":  # each token is a segment
            both = zip(range(a_start, a_end), range(b_start, b_end))
            pairs = [(doc_a[i : i + 1], doc_b[k : k + 1]) for i, k in both]
        segments += [Segment(kind, x, y, _sum_of(y, attribute) - _sum_of(x, attribute)) for x, y in pairs]
    return Comparison(doc_a, doc_b, attr, attribute, segments)


def _sum_of(span: Span, attribute: str) -> float:
    """The score of a span; 0.0 if none of its tokens is scored."""
    return math.fsum(token._.get(attribute) or 0.0 for token in span)
