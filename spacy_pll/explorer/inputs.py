"""What is typed into the page, and what a file holds, as the package's functions take it."""

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
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


def file_table(records: Iterable[Record], attr: str) -> pd.DataFrame:
    """One row per text: its columns, and the scores that a .spacy file keeps.

    The entries of an object, such as `meta`, become columns. Lists are left out.
    """
    rows = []
    for text, fields in ((record.text, record.fields) for record in records):
        row: dict[str, Any] = {"text": text if isinstance(text, str) else text.text, **fields}
        if isinstance(text, Doc) and is_scored(text, attr):
            names = find_names([text], attr)
            columns = [*names.metrics.values(), names.pieces, names.perplexity]
            row.update({name: table_value(text, name, names) for name in columns})
        rows.append(row)
    table = pd.json_normalize(rows)
    return table.loc[:, [not any(isinstance(value, list) for value in table[name]) for name in table]]


def file_numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that texts can be sorted by: those with numbers only, also as texts, as in .csv files."""
    known = table.notna() & (table != "")
    numbers = {name: pd.to_numeric(table[name], errors="coerce") for name in table.columns.drop("text")}
    whole = [name for name, own in numbers.items() if known[name].any() and (own.notna() == known[name]).all()]
    return pd.DataFrame({name: numbers[name] for name in whole}, index=table.index)
