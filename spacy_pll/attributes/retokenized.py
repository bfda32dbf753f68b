"""Tokens that are parts of a token that was scored and then split.

Merging or splitting tokens changes nothing in what is stored. The values of merged tokens can be combined. Those of
parts are known only from the record of wordpieces.
"""

from typing import Any

from spacy.tokens import Token

from .names import Names
from .records import is_record, piece_columns, piece_record
from .stored import key


def is_cut(first: Token, last: Token, name: str) -> bool:
    """Whether a run of tokens begins or ends inside a token that was scored and then split."""
    user_data = first.doc.user_data
    if not user_data:
        return False
    if key(name, first.idx) not in user_data and _is_later_part(first, name):
        return True
    if last.whitespace_ or last.i + 1 == len(last.doc) or key(name, last.idx + len(last)) in user_data:
        return False
    return _is_later_part(last.nbor(), name)


def _is_later_part(token: Token, name: str) -> bool:
    """Whether a token without an entry is a part, but not the first, of a token that was scored and then split.

    Such a part follows the part that has the entry of the whole, without white space between them. All other tokens of
    a scored doc have an entry; where they were not scored, it is None. Docs that `Doc.from_docs` joined may have tokens
    without entries that are no parts.
    """
    user_data = token.doc.user_data
    while token.i > 0:
        token = token.nbor(-1)
        if token.whitespace_ or token.is_space:
            return False
        if key(name, token.idx) in user_data:
            return user_data[key(name, token.idx)] is not None
    return False


def piece_values(token: Token, name: str) -> list[Any]:
    """The values of a token's pieces that make up a token attribute, from the record of wordpieces.

    A part of a word may have no piece. Then it is one value: 0, or an empty list.

    RAISES (ValueError): There is no such record.
    """
    # The component's `attr` is the name, or its beginning.
    for attr in [name, *(name[:i] for i, character in enumerate(name) if character == "_")]:
        if is_record(token.doc.user_data.get(key(f"{attr}_data"))):
            record = piece_record(token.doc, attr)
            column = piece_columns(record, Names(attr, list(record["scores"]))).get(name)
            if column:
                return [value for value, i in zip(column, record["token"]) if i == token.i] or [type(column[0])()]
    raise ValueError(
        f"{token.text!r} is a part of a token that was split after it was scored, so its _.{name} is not known. Put "
        "the component that splits tokens before `pll` in the pipeline, or score with keep_pieces=True. Values of the "
        "doc, and of spans that do not cut such a token, can be read."
    )
