"""Where docs store records: under one key of `user_data`, which spaCy moves with the characters."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from spacy.tokens import Doc, Span

from ..arrays import IntArray
from ..errors import PLLError
from .joined import Claim, join_records, piece_checks, text_crc
from .names import Names
from .record import STORED_AS_IS, PieceRecord, Stored


def key_of(doc: Doc, data: str) -> Any:
    """The key of the record of a whole doc. That of a doc without tokens has no characters, which spaCy could not find
    when it reads JSON.

    data (str): The attribute of records, such as "pll_data".
    """
    if not len(doc):
        return ("._.", data, None, None)
    last = doc[-1]
    return ("._.", data, 0, last.idx + len(last))


def is_attribute(key: Any) -> bool:
    """Whether a key of `user_data` is an attribute: with its name, and where its characters begin and end."""
    return isinstance(key, tuple) and len(key) == 4 and key[0] == "._."


# Of each doc, by the attribute of records: a key, what is stored there, and the record of the doc once it is read.
_found: WeakKeyDictionary[Doc, dict[str, tuple[Any, Stored, PieceRecord | None]]] = WeakKeyDictionary()


def store(doc: Doc, names: Names, record: Stored) -> None:
    """Store a record, and take away what an earlier scoring left."""
    user_data: dict[Any, Any] = doc.user_data
    if user_data:
        replaced = {*names.all}
        user_data = {key: of for key, of in user_data.items() if not (is_attribute(key) and key[1] in replaced)}
    key = key_of(doc, names.data)
    doc.user_data = {**user_data, key: record}  # a caller may have given one dict to several docs
    _found.setdefault(doc, {})[names.data] = key, record, None  # it is the doc's own


def stored_records(doc: Doc, data: str) -> dict[Any, Stored]:
    """The records of a doc, by their keys. A doc that was joined has several."""
    items = doc.user_data.items() if doc.user_data else ()
    own = {key: of for key, of in items if is_attribute(key) and key[1] == data}
    return {key: of for key, of in own.items() if isinstance(of, dict) and "gaps" in of}


def stored_metrics(docs: Iterable[Doc], attr: str) -> list[str]:
    """The metrics that docs have scores under, the first one first."""
    records = (record for doc in docs for record in stored_records(doc, f"{attr}_data").values())
    return list(dict.fromkeys(metric for record in records for metric in record["scores"]))


def stored_scores(docs: Iterable[Doc]) -> list[str]:
    """The attributes with scores that docs have, of any component, also under metrics that are not registered."""
    docs = list(docs)
    records = ((key, of) for doc in docs for key, of in doc.user_data.items() if is_attribute(key))
    attrs = (key[1].removesuffix("_data") for key, of in records if isinstance(of, dict) and "gaps" in of)
    return [f"{attr}_{metric}" for attr in dict.fromkeys(attrs) for metric in stored_metrics(docs, attr)]


def stored_fields(docs: Iterable[Doc], attr: str) -> set[str]:
    """What else the records of docs have, such as "rank"."""
    return {name for doc in docs for record in stored_records(doc, f"{attr}_data").values() for name in record}


def record_of(doc: Doc, data: str) -> PieceRecord | None:
    """The record of a doc; of one that was joined or cut, made from those that lie over it. None if nothing was scored.

    data (str): The attribute of records, such as "pll_data".
    RAISES (PLLError): Version 1 scored the doc.
    """
    of_doc = _found.get(doc)
    if of_doc is not None and data in of_doc:
        key, stored, record = of_doc[data]
        if doc.user_data.get(key) is stored:
            if record is None:
                record = PieceRecord.of(stored)
                of_doc[data] = key, stored, record
            return record
    records = stored_records(doc, data)
    if not records:
        _check_version(doc, data)
        return None
    text, whole = doc.text, records.get(key_of(doc, data))
    if whole is not None and whole["crc"] == text_crc(text):
        record = PieceRecord.of(whole)
    else:
        record = join_records(text, [Claim.of(begin, end, of) for (*_, begin, end), of in records.items()])
    _found.setdefault(doc, {})[data] = (*next(iter(records.items())), record)
    return record


def _check_version(doc: Doc, data: str) -> None:
    pieces = f"{data.removesuffix('_data')}_pieces"  # of each token
    if any(is_attribute(key) and key[1] == pieces and key[2] is not None for key in doc.user_data):
        raise PLLError(
            f"The doc {doc.text[:50]!r} was scored by version 1 of spacy-pll, which stored scores in another way.",
            "Score it again: nlp(doc).",
        )


def read_record(doc: Doc, attr: str, whole: bool = False) -> PieceRecord | None:
    """The record of a doc, with the indices of the tokens that the doc has now; None if there is none.

    whole (bool): With the pieces that were not drawn.
    RAISES (PLLError): It is not known which pieces some characters have.
    """
    record = record_of(doc, f"{attr}_data")
    if record is None:
        return None
    record.between(0, len(doc.text))
    record = record if whole else record.of_drawn()
    starts = np.fromiter((token.idx for token in doc), np.int64, len(doc))
    token = np.searchsorted(starts, record.offset, side="right") - 1
    return replace(record, token=np.maximum(token, 0).tolist())


def record_value(tokens: Doc | Span, attr: str) -> dict[str, Any] | None:
    """The value of `_.pll_data`: the record as plain lists; of a span, that of its tokens."""
    record = read_record(tokens.doc, attr, whole=True)
    if record is None:
        return None
    if isinstance(tokens, Span):
        own = record.between(tokens.start_char, tokens.end_char)
        record = record.map_lists(lambda of: of[own])
    return record.to_dict()


def set_record(tokens: Doc | Span, value: Any, attr: str) -> None:
    """Set `_.pll_data` to what it was before, as `Doc.from_json` does: to a record as docs store it, or as people read
    it.

    RAISES (PLLError): It is something else.
    """
    user_data: dict[Any, Any] = tokens.doc.user_data
    doc, given = tokens.doc, value if isinstance(value, dict) else {}
    if {"gaps", "crc", "checks", "scores"} <= given.keys():
        data = f"{attr}_data"
        key = ("._.", data, tokens.start_char, tokens.end_char) if isinstance(tokens, Span) else key_of(doc, data)
        user_data[key] = given
    elif {"offset", "scores", "scored"} <= given.keys() and isinstance(tokens, Doc):
        kept = {name: of for name, of in given.items() if name in STORED_AS_IS}
        user_data[key_of(doc, f"{attr}_data")] = kept | describe_text(doc.text, np.array(given["offset"], np.int64))
    else:
        raise PLLError(
            f"_.{attr}_data cannot be set to {value!r:.100}, but only to what _.{attr}_data of a scored doc was."
        )
    _found.pop(doc, None)


def describe_text(text: str, offset: IntArray) -> Stored:
    """What a record stores of a text and of where its pieces begin. offset (int array, shape (pieces,))"""
    checks = piece_checks(text, offset, np.append(offset, len(text))[1:])
    return {
        "crc": text_crc(text),
        "gaps": tuple(np.diff(offset, prepend=0).tolist()),
        "checks": checks.tobytes().decode("ascii"),
    }
