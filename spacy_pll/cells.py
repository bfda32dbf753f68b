"""What a cell of a table says: nothing, a label, or a number. All commands ask here, so that they read it alike.

A label is an id, or what a group is named by. Texts, what stands beside them, and columns that are copied are none, and
keep their white space.
"""

import re
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

NA = frozenset(("NA", "N/A", "#N/A", "NaN", "<NA>"))  # as R, pandas and spreadsheets write what is missing
# In a column of numbers, in small letters. Elsewhere, None and null may be words.
NO_NUMBER = {name.lower() for name in NA} | {"none", "null"}
OF_PANDAS = ("NAType", "NaTType")  # the types of values that pandas has for what is missing
# A number with a decimal comma. Three digits behind one may be thousands, unless nothing but 0 stands before it.
COMMA = re.compile(r"[-+]?(?:0,\d+|\d+,(?:\d\d?|\d{4,}))")
WHOLE = re.compile(r"([-+]?\d{1,15})(?:\.0*)?")


class Missing(str):
    """A cell of a .csv or .tsv file that stands for a value that is not there, such as NA."""


def is_missing(value: Any) -> bool:
    """Whether a cell has no value: it is `Missing`, None or NaN, or empty, also but for white space."""
    if isinstance(value, str):
        return isinstance(value, Missing) or not value.strip()
    is_nan = isinstance(value, Number) and value != value
    return value is None or is_nan or type(value).__name__ in OF_PANDAS


def label_of(value: Any) -> str:
    """The label in a cell, without white space at its ends; "" where it is missing. Cells with the same label belong
    together. A whole number is the same in all formats: 1.0 of a Parquet file is 1.
    """
    if is_missing(value):
        return ""
    is_whole = isinstance(value, float | np.floating) and value.is_integer()
    return str(int(value) if is_whole else value).strip()


def name_of(value: Any) -> str:
    """What a group of this label is called: its label, or what stands in place of one, such as NA."""
    return label_of(value) or str(value).strip() or "''"


def whole_number(value: Any) -> int | None:
    """The whole number in a cell, such as 2, "2" or "2.0"; None if there is none."""
    match = WHOLE.fullmatch(str(value).strip())
    return int(match[1]) if match else None


def numbers_in(column: Sequence[Any]) -> list[float | None]:
    """The numbers of a column: NaN where one is missing, None where there is something else.

    A comma is a decimal mark if that of one cell can be nothing else, and no cell has a point.
    """
    texts = [label_of(value) for value in column]
    if any(map(COMMA.fullmatch, texts)) and not any("." in text for text in texts):
        return [_number(text.replace(",", ".")) for text in texts]
    return list(map(_number, column))


def number_in(value: Any) -> float | None:
    """The number in a cell: see `numbers_in`."""
    return numbers_in([value])[0]


def _number(value: Any) -> float | None:
    text = label_of(value).lower()
    if not text or text in NO_NUMBER:
        return float("nan")
    try:
        return float(value) if "_" not in text else None  # which only Python has in numbers
    except (TypeError, ValueError, OverflowError):
        return None
