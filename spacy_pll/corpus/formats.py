"""The formats of output files."""

import csv
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import srsly
from spacy.tokens import DocBin

from ..files import atomic_write, to_json, write_text
from ..stream.outcomes import ERROR
from ..tables.rows import ScoredText, TextRows
from .columns import InputColumns, json_bytes
from .decimals import have_commas
from .readers import FIELDS
from .records import PARQUET

WRITTEN_AS_JSON = (list, tuple, dict, bool)  # the values of cells


class Format(ABC):
    """From scored texts to the bytes of each part, and from parts to the whole file.

    columns (Collection[str]): Those of the input.
    has_errors (bool): Whether there is a column for the reason why a text has no scores.
    commas (bool): Whether numbers have a decimal comma. Then ; stands between the columns of a .csv file.
    """

    input_columns: Any = InputColumns  # from the column of the texts

    def __init__(self, rows: TextRows, columns: Collection[str], has_errors: bool = False, commas: bool = False):
        self.commas = commas
        self.rows, errors = rows, [ERROR] if has_errors else []
        first = [*rows.first, rows.column, *(name for name in columns if name != rows.column), *errors]
        self.header = [*first, *(name for name in rows.types if name not in first)]

    def rows_of(self, texts: Iterable[ScoredText]) -> Iterator[dict[str, Any]]:
        for text in texts:
            rows = [*self.rows(text)]
            yield from rows or ([self._row_of_error(text)] if text.fields.get(ERROR) else [])

    def _row_of_error(self, text: ScoredText) -> dict[str, Any]:
        """The row of a text that has no scores, and no token or word either."""
        known = {"doc": text.number, "pieces": [], self.rows.names.pieces: 0}
        own = {name: known.get(name) for name in self.rows.types}
        first = {name: own.pop(name) for name in self.rows.first}
        return {**first, self.rows.column: text.text, **text.fields, **own}

    @abstractmethod
    def encode(self, texts: Iterable[ScoredText]) -> bytes:
        """The contents of one part."""

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The contents of the whole file."""
        yield from parts


class JsonLines(Format):
    """One JSON object per line."""

    def encode(self, texts: Iterable[ScoredText]) -> bytes:
        return b"".join(json_bytes(row) + b"\n" for row in self.rows_of(texts))


class CsvTable(Format):
    """Comma-separated values with a header. Lists of wordpieces are joined with spaces; others are JSON."""

    delimiter = ","

    def rows_of(self, texts: Iterable[ScoredText]) -> Iterator[dict[str, Any]]:
        joined = [name for name, type_ in self.rows.types.items() if type_ == list[str]]
        for row in super().rows_of(texts):
            yield {**row, **{name: " ".join(row[name] or ()) for name in joined}} if joined else row

    def encode(self, texts: Iterable[ScoredText]) -> bytes:
        return to_csv(self.rows_of(texts), self.header, self.delimiter, self.commas).encode("utf8")

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        names = dict(zip(self.header, self.header))
        yield to_csv([names], self.header, self.delimiter, self.commas).encode("utf8")
        yield from parts


class TsvTable(CsvTable):
    """The same with tabs."""

    delimiter = "\t"


def to_csv(rows: Iterable[dict[str, Any]], columns: list[str], delimiter: str, commas: bool = False) -> str:
    """Rows of a table as every command writes them, one per line, without a header.

    commas (bool): Whether numbers have a decimal comma. Then ; stands between columns in place of a comma.
    """
    lines, mark, known = list[str](), _delimiter(delimiter, commas), {*columns}

    def cells(row: dict[str, Any]) -> list[Any]:
        if not known >= row.keys():  # they would be lost
            raise ValueError(f"There are no such columns: {row.keys() - known}.")
        return [_cell(dict.get(row, name), commas) for name in columns]

    # Python quotes a carriage return only if its own lines end in one, and does not read it back unquoted.
    writer = csv.writer(SimpleNamespace(write=lines.append), delimiter=mark, lineterminator="\r\n")
    writer.writerows(map(cells, rows))
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def _delimiter(delimiter: str, commas: bool) -> str:
    return ";" if commas and delimiter == "," else delimiter


def _cell(value: Any, commas: bool) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None  # as in JSON
        return repr(float(value)).replace(".", ",") if commas else value
    return to_json(value) if isinstance(value, WRITTEN_AS_JSON) else value


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows to a .csv, .tsv or .parquet file, and make its folder if needed. A row may lack columns.

    If the numbers of the input have a decimal comma, so have all numbers, and ; stands between the columns of .csv.
    """
    if path.suffix == PARQUET:
        from .parquet import table_of  # needs the extra `[parquet]`

        table = table_of(path, rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(table)
    else:
        columns = list({name: None for row in rows for name in row})
        delimiter, names = "\t" if path.suffix == ".tsv" else ",", dict(zip(columns, columns))
        write_text(path, [to_csv([names, *rows], columns, delimiter, have_commas(rows))])


class SpacyDocs(Format):
    """spaCy's own format. A file is one compressed block, so all docs are in memory when the parts are joined."""

    input_columns = partial(InputColumns, encode=srsly.msgpack_dumps)  # docs keep the values

    def encode(self, texts: Iterable[ScoredText]) -> bytes:
        docs = DocBin(store_user_data=True)
        for text in texts:
            if text.fields:
                text.doc.user_data[FIELDS] = text.fields
            docs.add(text.doc)
        return docs.to_bytes()

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        merged = DocBin(store_user_data=True)
        for part in parts:
            merged.merge(DocBin(store_user_data=True).from_bytes(part))
        yield merged.to_bytes()


FORMATS: dict[str, type[Format]] = {".jsonl": JsonLines, ".csv": CsvTable, ".tsv": TsvTable, ".spacy": SpacyDocs}
ENDINGS = (*FORMATS, PARQUET)
