"""The wordpieces of each token, as recorded with `keep_pieces`."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from spacy.tokens import Doc, Span, Token

from ..attributes.names import Names
from ..attributes.piece_record import read_record


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
    record, text = read_record(whole, names.score), whole.text
    if record is None or max(record.token, default=-1) >= len(whole):
        return {}
    scores = record.columns(names)
    all_pieces = [
        Piece(piece or "", text[start:end], {attribute: values[i] for attribute, values in scores.items()})
        for i, (piece, start, end) in enumerate(zip(record.pieces, record.start, record.end))
    ]
    places = record.by_token()
    pieces = {token.i: [all_pieces[i] for i in places[token.i]] for token in whole}
    return pieces if all(_sums_fit(token, pieces[token.i], columns.values()) for token in whole) else {}


def _sums_fit(token: Token, pieces: list[Piece], attributes: Iterable[str]) -> bool:
    """Whether the token's scores are the sums of these pieces' scores."""
    return all(
        all(attribute in piece.scores for piece in pieces)
        and math.isclose(
            sum(piece.scores[attribute] for piece in pieces), token._.get(attribute) or 0.0, rel_tol=1e-6, abs_tol=1e-6
        )
        for attribute in attributes
    )
