"""The columns that scoring adds to tables, and the values in them."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal

from spacy.tokens import Doc, Span

from ..attributes.names import Names
from ..errors import InputError
from ..settings import ScoringSettings

Level = Literal["texts", "tokens", "words"]


def columns(names: Names, settings: ScoringSettings, level: Level) -> dict[str, Any]:
    """The columns of scores, and of what the model expected, with the Python types of the values. Each may be None.

    settings (ScoringSettings): Those of the component. `alternatives` and `distribution` have columns.
    level (Literal["texts", "tokens", "words"]): What has a row. The values of words are sums over tokens.
    """
    scores = dict[str, Any].fromkeys(names.metrics.values(), float)
    if level == "texts":
        of_text = {names.top1: float, names.entropy: float} if settings.distribution else {}
        return {**scores, names.pieces: int, names.perplexity: float, **of_text}
    scores["surprisal"] = float
    if level == "words":
        return scores | ({"entropy": float} if settings.distribution else {})
    expected: dict[str, Any] = {"rank": int, "entropy": float} if settings.distribution else {}
    listed = {"alternatives": list[str], "alternative_log_probs": list[float]} if settings.alternatives else {}
    return {**scores, **expected, **listed}


def token_spans(tokens: Doc | Span) -> Iterator[Span]:
    """The tokens as spans: the score of a span is None where it has no wordpiece, that of a token 0.0."""
    for token in tokens:
        yield token.doc[token.i : token.i + 1]


def token_values(span: Span, names: Names, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a token in the columns of tokens; or the sums over a span, in those of words."""
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


def check_columns(fields: Collection[str], added: Collection[str], source: str, names: Names | None = None) -> None:
    """RAISES (InputError): Scoring would add a column that the input, the source, already has."""
    if clash := [name for name in added if name in fields]:
        named = names and (clash[0] == names.perplexity or clash[0].startswith(names.score))
        raise InputError(
            f"{source} already has a column {clash[0]!r}, which the scores would overwrite. Rename or remove it"
            + (", or give another `attr`." if named else ".")
        )
