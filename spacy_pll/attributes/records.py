"""The record of wordpieces, `_.pll_data`."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, TypeGuard

from spacy.tokens import Doc

from .names import Names
from .stored import key, keys


def is_record(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether this is a record of wordpieces. People may set the attribute by hand, or have one of that name."""
    return isinstance(value, dict) and {"token", "start", "scores"} <= value.keys()


def piece_record(doc: Doc, attr: str) -> Any:
    """The value of `_.pll_data`, with the indices of the tokens that the doc has now."""
    names = Names(attr, [])
    record = doc.user_data.get(key(names.data))
    scored = sorted(start for _, name, start, _ in keys(doc) if name == names.pieces)
    starts = [token.idx for token in doc]
    if not is_record(record) or scored == starts or not starts or len(scored) <= max(record["token"], default=0):
        return record
    # A piece may begin in the white space before its token.
    places = [max(start, scored[token]) for start, token in zip(record["start"], record["token"])]
    return {**record, "token": [bisect_right(starts, place) - 1 for place in places]}


def set_piece_record(doc: Doc, value: Any, attr: str) -> None:
    """Set `_.pll_data`."""
    doc.user_data[key(Names(attr, []).data)] = value


def piece_columns(record: Mapping[str, Any], names: Names) -> dict[str, list[Any]]:
    """The values of the record `_.pll_data`, by the names of the token attributes that are made from them."""
    columns = {names.score: next(iter(record["scores"].values())), names.pieces: [1] * len(record["token"])}
    columns |= {names.metrics[m]: values for m, values in record["scores"].items() if m in names.metrics}
    if "rank" in record:
        columns |= {names.rank: record["rank"], names.entropy: record["entropy"]}
        columns[names.first_choices] = [int(rank == 1) for rank in record["rank"]]
    if "alternatives" in record:
        columns[names.alternatives] = record["alternatives"]
    return columns


def pieces_by_token(doc: Doc, names: Names) -> dict[int, list[int]]:
    """For each token, by its index in the doc: the indices of its wordpieces in the record's lists, in their order.
    Empty where there is no record.
    """
    record = doc._.get(names.data)
    if record is None:
        return {}
    groups: dict[int, list[int]] = {token.i: [] for token in doc}
    for index, token in enumerate(record["token"]):
        groups.setdefault(token, []).append(index)
    return groups
