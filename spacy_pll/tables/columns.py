"""What tables say of each token: the columns, and the values in them."""

from collections.abc import Iterator, Mapping
from typing import Any

from spacy.tokens import Doc, Span

from ..attributes.names import Names


def token_columns(names: Names, alternatives: bool, distribution: bool) -> dict[str, Any]:
    """The columns, with the Python types of the values. Each may be None.

    alternatives, distribution (bool): Whether the docs have what the component's settings of these names add.
    """
    columns = {**dict.fromkeys(names.metrics.values(), float), "surprisal": float}
    expected = {"rank": int, "entropy": float} if distribution else {}
    listed = {"alternatives": list[str], "alternative_log_probs": list[float]} if alternatives else {}
    return {**columns, **expected, **listed}


def token_spans(tokens: Doc | Span) -> Iterator[Span]:
    """The tokens as spans: the score of a span is None where it has no wordpiece, that of a token 0.0."""
    for token in tokens:
        yield token.doc[token.i : token.i + 1]


def token_values(span: Span, names: Names, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a token in columns that `token_columns` gives; or the sums over a span, in those of floats."""
    values = {name: span._.get(name) for name in names.metrics.values()}
    score = span._.get(names.score)
    values["surprisal"] = None if score is None else 0.0 - score  # 0 without a minus
    if "rank" in columns:
        values["rank"] = span[0]._.get(names.rank)
    if "entropy" in columns:
        values["entropy"] = span._.get(names.entropy)
    if "alternatives" in columns:
        alternatives = span[0]._.get(names.alternatives)
        values["alternatives"] = alternatives and [one.text for one in alternatives]
        values["alternative_log_probs"] = alternatives and [one.log_prob for one in alternatives]
    return values
