"""The wordpieces of each token, as recorded with `keep_pieces`."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from spacy.tokens import Doc, Span, Token

from ..attributes.names import Names
from ..attributes.records import piece_columns, pieces_by_token


class Piece(NamedTuple):
    """One wordpiece of a token."""

    text: str  # as the model's vocabulary spells it
    source: str  # the characters of the doc that it covers
    scores: dict[str, float]  # by attribute name


def get_pieces(doc: Doc | Span, names: Names, columns: dict[str, str]) -> dict[int, list[Piece]]:
    """The wordpieces of each token of the whole doc, by the token's index, with their scores under these attributes.

    Empty where the doc was scored without `keep_pieces`, or where the record is not that of these scores.
    """
    whole = doc.doc
    groups = pieces_by_token(whole, names)
    if not groups:
        return {}
    record, text = whole._.get(names.data), whole.text
    scores = piece_columns(record, names)

    def piece(i: int) -> Piece:
        source = text[record["start"][i] : record["end"][i]]
        return Piece(record["pieces"][i], source, {attribute: values[i] for attribute, values in scores.items()})

    pieces = {token: [piece(i) for i in indices] for token, indices in groups.items()}
    fits = len(pieces) == len(whole) and all(_sums_fit(token, pieces[token.i], columns.values()) for token in whole)
    return pieces if fits else {}


def _sums_fit(token: Token, pieces: list[Piece], attributes: Iterable[str]) -> bool:
    """Whether the token's scores are the sums of these pieces' scores."""
    return all(
        all(attribute in piece.scores for piece in pieces)
        and math.isclose(
            sum(piece.scores[attribute] for piece in pieces), token._.get(attribute) or 0.0, rel_tol=1e-6, abs_tol=1e-6
        )
        for attribute in attributes
    )
