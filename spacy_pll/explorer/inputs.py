"""What is typed into the page, and what a file holds, as the package's functions take it."""

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..attributes.registration import find_names
from ..attributes.values import table_value
from ..corpus.readers import InputError, Record, read_records

SLOT = re.compile(r"_{2,}")


def split_lines(text: str) -> list[str]:
    """The lines that are not blank, without the white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def split_at_slot(sentence: str) -> tuple[str, str]:
    """The text before and after the slot, which is two or more underscores.

    RAISES (ValueError): There is no slot, or more than one.
    """
    parts = SLOT.split(sentence)
    if len(parts) != 2:
        raise ValueError(
            f"The sentence must have one slot, written ___. It has {len(parts) - 1}: {sentence!r}. "
            'Write it like this: "The keys to the cabinet ___ on the table."'
        )
    return parts[0], parts[1]


def read_upload(name: str, contents: bytes, column: str, vocab: Vocab) -> list[Record]:
    """The texts of a file that was opened in the page.

    name (str): Its name; the ending is the format.
    RAISES (InputError): The file cannot be read; the message gives the line.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, Path(name).name)
        path.write_bytes(contents)
        try:
            return list(read_records(str(path), column, vocab))
        except InputError as error:
            message = str(error).replace(str(path), path.name).replace("--column", "the field “Column of the texts”")
            raise InputError(message) from None


def is_scored(doc: Doc, attr: str) -> bool:
    """Whether a doc of a file has scores of its own."""
    try:
        find_names([doc], attr)
    except ValueError:
        return False
    return len(doc) > 0


def file_rows(records: Iterable[Record], attr: str) -> list[dict[str, Any]]:
    """One row per text: its columns, and the scores that a .spacy file keeps.

    Numbers in .csv files become numbers. The entries of an object, such as `meta`, become columns. Lists are left out.
    """
    rows = []
    for text, fields in ((record.text, record.fields) for record in records):
        row: dict[str, Any] = {"text": text if isinstance(text, str) else text.text}
        for key, value in fields.items():
            if isinstance(value, dict):
                row.update({f"{key}.{name}": as_number(v) for name, v in value.items() if not isinstance(v, list)})
            elif not isinstance(value, list):
                row[key] = as_number(value)
        if isinstance(text, Doc) and is_scored(text, attr):
            names = find_names([text], attr)
            columns = [*names.metrics.values(), names.pieces, names.perplexity]
            row.update({name: table_value(text, name, names) for name in columns})
        rows.append(row)
    return rows


def as_number(value: Any) -> Any:
    """The number that a text is, or the value itself; None for an empty text."""
    if not isinstance(value, str):
        return value
    try:
        return float(value) if value else None
    except ValueError:
        return value


def number_columns(rows: Iterable[dict[str, Any]]) -> list[str]:
    """The columns that texts can be sorted by: those with numbers only."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in names}
    return [name for name, own in values.items() if own and all(isinstance(value, int | float) for value in own)]


def sorted_order(rows: list[dict[str, Any]], column: str | None, lowest_first: bool) -> list[int]:
    """The positions of the rows, sorted by a column; rows without a number come last. None: as in the file."""
    if column is None:
        return list(range(len(rows)))
    # NaN, which equals nothing, is no number.
    known = [i for i, row in enumerate(rows) if (value := row.get(column)) is not None and value == value]
    known.sort(key=lambda i: rows[i][column], reverse=not lowest_first)
    return [*known, *sorted({*range(len(rows))} - {*known})]
