"""The columns of tables of tokens."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from spacy.tokens import Doc, Token

from .names import Names
from .stored import stored_names
from .values import table_value


class TokenColumn(NamedTuple):
    """A column of a table of tokens."""

    type: Any  # the Python type of its values, each of which may be None
    value: Callable[[Token], Any]


def token_columns(names: Names, alternatives: bool, distribution: bool) -> dict[str, TokenColumn]:
    """What tables say of each token, by heading: scores, surprisal, and what the model expected.

    names (Names): What the component calls its attributes.
    alternatives, distribution (bool): Whether the docs have what the component's settings of these names add.
    """

    def in_nats(name: str) -> TokenColumn:
        return TokenColumn(float, lambda token: table_value(token, name, names))

    def surprisal(token: Token) -> float | None:
        score = table_value(token, names.score, names)
        return None if score is None else 0.0 - score  # 0 without a minus

    def listed(index: int) -> Callable[[Token], Any]:
        def values(token: Token) -> Any:
            found = token._.get(names.alternatives)
            return found and [alternative[index] for alternative in found]

        return values

    columns = {name: in_nats(name) for name in names.metrics.values()} | {"surprisal": TokenColumn(float, surprisal)}
    if distribution:
        columns["rank"] = TokenColumn(int, lambda token: token._.get(names.rank))
        columns["entropy"] = in_nats(names.entropy)
    if alternatives:
        columns["alternatives"] = TokenColumn(list[str], listed(0))
        columns["alternative_log_probs"] = TokenColumn(list[float], listed(1))
    return columns


def stored_columns(docs: Iterable[Doc], names: Names) -> dict[str, TokenColumn]:
    """The columns for which these docs have values."""
    stored = stored_names(docs)
    return token_columns(names, names.alternatives in stored, names.rank in stored)
