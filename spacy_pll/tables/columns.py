"""The columns of tables of tokens."""

from collections.abc import Iterable, Mapping
from typing import Any

from spacy.tokens import Doc, Span, Token

from ..attributes.names import Names
from ..attributes.stored import stored_names
from ..attributes.values import table_value


def token_columns(names: Names, alternatives: bool, distribution: bool) -> dict[str, Any]:
    """What tables say of each token, by heading, with the Python types of the values. Each may be None.

    alternatives, distribution (bool): Whether the docs have what the component's settings of these names add.
    """
    columns = {**dict.fromkeys(names.metrics.values(), float), "surprisal": float}
    expected = {"rank": int, "entropy": float} if distribution else {}
    listed = {"alternatives": list[str], "alternative_log_probs": list[float]} if alternatives else {}
    return {**columns, **expected, **listed}


def stored_columns(docs: Iterable[Doc], names: Names) -> dict[str, Any]:
    """The columns for which these docs have values."""
    stored = stored_names(docs)
    return token_columns(names, names.alternatives in stored, names.rank in stored)


def token_values(token: Token | Span, names: Names, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a token in columns that `token_columns` gives; or the sums over a span, in those of floats."""
    values = {name: table_value(token, name, names) for name in names.metrics.values()}
    score = table_value(token, names.score, names)
    values["surprisal"] = None if score is None else 0.0 - score  # 0 without a minus
    if "rank" in columns:
        values["rank"] = token._.get(names.rank)
    if "entropy" in columns:
        values["entropy"] = table_value(token, names.entropy, names)
    if "alternatives" in columns:
        found = token._.get(names.alternatives)
        values["alternatives"] = found and [one.text for one in found]
        values["alternative_log_probs"] = found and [one.log_prob for one in found]
    return values
