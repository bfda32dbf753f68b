"""The tables of the page: lists of rows, which are dictionaries."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from spacy.tokens import Doc, Token

from ..analysis.visualize.expected import name_alternatives, readable_alternatives
from ..attributes.columns import stored_columns, token_values
from ..attributes.records import pieces_by_token
from ..attributes.registration import find_names

if TYPE_CHECKING:
    from ..analysis.comparison import Comparison
    from ..analysis.continuations import Continuation

N_NAMED = 3  # alternatives that a row names


def token_rows(docs: Sequence[Doc], attr: str) -> list[dict[str, Any]]:
    """One row per token that is not white space, with its wordpieces, scores, rank, entropy and alternatives.

    docs (Sequence[Doc]): Scored with `keep_pieces`, `alternatives` and `distribution`, or without them.
    attr (str): The component's setting of that name.
    """
    names = find_names(docs, attr)
    columns = stored_columns(docs, names)
    left_out = ("surprisal", "alternatives", "alternative_log_probs")
    rows = []
    for number, doc in enumerate(docs, 1):
        groups, record = pieces_by_token(doc, names), doc._.get(names.data)
        for token in doc:
            if token.is_space:
                continue
            row: dict[str, Any] = {"text": number} if len(docs) > 1 else {}
            row["token"] = token.text
            if record is not None:
                row["wordpieces"] = " ".join(record["pieces"][i] for i in groups[token.i])
            row.update({k: v for k, v in token_values(token, names, columns).items() if k not in left_out})
            if "alternatives" in columns:
                row["expected"] = name_alternatives(token, names, N_NAMED)
            rows.append(row)
    return rows


def alternative_rows(token: Token, attr: str) -> list[dict[str, Any]]:
    """The alternatives to a token, best first: the text, its probability from 0 to 1, its log-probability."""
    return [
        {"alternative": text, "probability": p, "log-probability": math.log(p)}
        for text, p in readable_alternatives(token, find_names([token.doc], attr))
    ]


def segment_rows(comparison: "Comparison") -> list[dict[str, Any]]:
    """The segments of a comparison, and what each adds to the difference."""
    return [
        {"a": segment.a.text, "b": segment.b.text, "change": segment.kind, "b − a": segment.difference}
        for segment in comparison.segments
    ]


def say_difference(difference: float) -> str:
    """Which of two versions has the higher score, as Markdown. difference (float): That of b minus that of a."""
    if math.isinf(difference):
        return f"The **{'first' if difference > 0 else 'second'}** version has no wordpiece, so it has no score."
    if round(difference, 2) == 0:
        return "Both versions have the same score."
    higher = "second" if difference > 0 else "first"
    return f"The **{higher}** version has the higher score. Difference: **{abs(difference):.2f}** nats."


def candidate_rows(continuations: Iterable["Continuation"]) -> list[dict[str, Any]]:
    """Candidates, the most probable first."""
    ranked = sorted(continuations, key=lambda continuation: -continuation.probability)
    return [
        {
            "candidate": continuation.text,
            "probability": continuation.probability,
            "score": continuation.score,
            "per piece": continuation.mean,
            "pieces": continuation.pieces,
        }
        for continuation in ranked
    ]
