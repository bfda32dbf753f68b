"""Texts from files: .txt, .jsonl, .csv, .tsv (also compressed), .spacy, .parquet, a folder, or standard input."""

import codecs
import csv
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from .compression import COMPRESSED, DAMAGED, through_compression

STANDARD_STREAM = "-"
PARQUET = ".parquet"
TEXT_FORMATS = (".txt", ".jsonl", ".csv", ".tsv")  # these may be compressed
FIELDS = "fields"  # the key in `doc.user_data` under which a .spacy file keeps the other columns of a text


class InputError(ValueError):
    """The input cannot be read. The message says where, what is wrong, and what to do."""


class Record(NamedTuple):
    """One text of the input."""

    location: str  # "corpus.jsonl, line 12": for messages
    text: str | Doc
    fields: dict  # the other columns, or keys, in their order


def read_records(
    path: str,
    column: str = "text",
    vocab: Vocab | None = None,
    file_format: str | None = None,
    typed: bool = False,
    encoding: str = "utf-8",
    delimiter: str | None = None,
) -> Iterator[Record]:
    """Read texts one by one. Only .spacy files are read into memory as a whole, one file at a time.

    path (str): A file, a folder (its files are read in the order of their names, and each record gets the field
        `file`), or "-" for standard input.
    column (str): The column, or key, that holds the text.
    vocab (Optional[Vocab]): For the docs of .spacy files.
    file_format (Optional[str]): Such as ".jsonl". None uses the ending of the name, or .txt for standard input.
    typed (bool): Whether the fields from Parquet files are Arrow's scalars, which keep their types. Otherwise they are
        values that JSON has.
    encoding (str): Of .txt, .jsonl, .csv and .tsv files.
    delimiter (Optional[str]): Between the columns of .csv and .tsv files. None is the comma, or the tab.
    YIELDS (Record): In the order of the input.
    RAISES (InputError): A line cannot be read; the message gives its number.
    """
    how: dict[str, Any] = {"typed": typed, "encoding": encoding, "delimiter": delimiter}
    if path == STANDARD_STREAM:
        reader = _reader(file_format or ".txt", "standard input", **how)
        yield from reader(sys.stdin.buffer, "standard input", column, vocab)
    elif Path(path).is_dir():
        for file in list_files(path):
            for record in read_records(str(file), column, vocab, **how):
                # A field `file` that the record already has is kept.
                yield record._replace(fields={"file": str(file.relative_to(path)), **record.fields})
    elif Path(path).is_file():
        reader = _reader(file_format or format_of(Path(path)), path, **how)
        with open_file(Path(path)) as stream:
            yield from reader(stream, str(path), column, vocab)
    else:
        raise InputError(f"There is no file or folder {path!r}. Give one, or - for standard input.")


def list_files(path: str) -> list[Path]:
    """The files that `read_records` reads: the path itself, or the files of a folder and its subfolders.

    RAISES (InputError): The folder contains no file of a known format.
    """
    if not Path(path).is_dir():
        return [Path(path)]
    files = sorted(file for file in Path(path).rglob("*") if format_of(file) in READERS and file.is_file())
    if not files:
        raise InputError(f"The folder {path!r} contains no file that ends in {', '.join(READERS)}.")
    return files


def format_of(path: Path) -> str:
    """The ending that says how a file is read. For a.txt and for a.txt.gz it is ".txt"."""
    ending, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if ending in COMPRESSED and inner in TEXT_FORMATS else ending


@contextmanager
def open_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading. If it is compressed, its contents are decompressed.

    RAISES (InputError): In the context, if the compressed data are damaged.
    """
    damaged = DAMAGED if path.suffix.lower() in COMPRESSED else ()
    with path.open("rb") as file:
        try:
            with through_compression(file, path, "rb") as contents:
                yield contents
        except damaged as error:
            message = f"{path}: the compressed file is damaged or incomplete ({error}). Get it again."
            raise InputError(message) from None


def _reader(file_format: str, path: str, typed: bool, encoding: str, delimiter: str | None) -> Callable:
    if file_format not in READERS:
        known = ", ".join(READERS)
        raise InputError(f"{path}: the format {file_format!r} cannot be read. The known formats are: {known}.")
    settings: dict[str, object] = {}
    if file_format == PARQUET:
        settings = {"typed": typed}
    elif file_format in TEXT_FORMATS:
        settings = {"encoding": encoding}
    if delimiter and file_format in (".csv", ".tsv"):
        settings["delimiter"] = delimiter
    return partial(READERS[file_format], **settings)


def _decoded(file: IO[bytes], name: str, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Numbered lines, including their newlines. Other line separators, such as U+2028, are part of the text."""
    if codecs.lookup(encoding).name != "utf-8":
        yield from _decoded_from(file, name, encoding)
        return
    for number, line in enumerate(file, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf8")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{name}, line {number}: not valid UTF-8 (byte {error.start + 1} of the line is "
                f"0x{error.object[error.start]:02x}). Convert the file, for example with: iconv -f latin1 -t utf8. "
                "Or read it with `pll score --encoding latin-1`."
            ) from None


def _decoded_from(file: IO[bytes], name: str, encoding: str) -> Iterator[tuple[int, str]]:
    """The same in another encoding, in which a newline may have several bytes."""
    number = 0
    try:
        for number, line in enumerate(io.TextIOWrapper(file, encoding, newline="\n"), 1):
            yield number, line
    except UnicodeError as error:
        raise InputError(
            f"{name}, after line {number}: not valid {encoding} ({error}). Give another --encoding."
        ) from None


def _read_txt(file: IO[bytes], name: str, column: str, vocab, encoding: str = "utf-8") -> Iterator[Record]:
    for number, line in _decoded(file, name, encoding):
        yield Record(f"{name}, line {number}", line.rstrip("\r\n"), {})


def _read_jsonl(file: IO[bytes], name: str, column: str, vocab, encoding: str = "utf-8") -> Iterator[Record]:
    for location, row in read_json_rows(file, name, encoding):
        yield _from_row(row, location, column)


def read_json_rows(file: IO[bytes], name: str, encoding: str = "utf-8") -> Iterator[tuple[str, dict]]:
    """The objects of a JSON-lines file, each with its location. Blank lines are skipped."""
    for number, line in _decoded(file, name, encoding):
        if not line.strip():
            continue
        location = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{location}: not valid JSON ({error}). Each line must be one JSON object.") from None
        if not isinstance(row, dict):
            raise InputError(
                f"{location}: this is a JSON {type(row).__name__}. Each line must be one JSON object, {{...}}."
            )
        yield location, row


def _read_table(
    file: IO[bytes], name: str, column: str, vocab, encoding: str = "utf-8", delimiter: str = ","
) -> Iterator[Record]:
    for location, row in read_csv_rows(file, name, delimiter, encoding):
        yield _from_row(row, location, column)


def read_csv_rows(file: IO[bytes], name: str, delimiter: str, encoding: str = "utf-8") -> Iterator[tuple[str, dict]]:
    """The rows of a table with a header, each with its location. Blank lines are skipped."""
    csv.field_size_limit(2**31 - 1)  # a text may be long
    rows = csv.reader((line for _, line in _decoded(file, name, encoding)), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        if len(set(header)) < len(header):
            raise InputError(f"{name}, line 1: two columns have the same name: {header}.")
        for row in rows:
            if not row:
                continue
            location = f"{name}, line {rows.line_num}"
            if len(row) != len(header):
                raise InputError(f"{location}: the row has {len(row)} fields, but the header has {len(header)}.")
            yield location, dict(zip(header, row))
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: {error}.") from None


def _from_row(row: dict, location: str, column: str) -> Record:
    text = get_text(row, location, column)
    del row[column]
    return Record(location, text, row)


def get_text(row: dict, location: str, column: str, option: str | None = "--column") -> str:
    """The text in a column of a row.

    option (Optional[str]): The option that names another column, for messages. None for a key with a fixed name.
    RAISES (InputError): There is no such column, or no text in it.
    """
    if column not in row:
        names = ", ".join(map(repr, row)) or "none"
        if option is None:
            raise InputError(f"{location}: there is no key {column!r}. The keys are: {names}. Add it.")
        raise InputError(
            f"{location}: there is no column {column!r}. The columns are: {names}. "
            f"Name the column to read with {option}."
        )
    text = row[column]
    if not isinstance(text, str):
        raise InputError(f"{location}: {column!r} must be text. It is {text!r:.100}.")
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise InputError(f"{location}: {column!r} has a lone surrogate, {error.object[error.start]!r}.") from None
    return text


def read_rows(path: Path) -> Iterator[tuple[str, dict]]:
    """The rows of a .jsonl, .csv, .tsv or .parquet file with all their columns, each with its location."""
    with path.open("rb") as file:
        if path.suffix.lower() == ".jsonl":
            yield from read_json_rows(file, str(path))
        elif path.suffix.lower() == PARQUET:
            from .parquet import reader  # needs the extra `[parquet]`

            yield from reader.read_rows(file, str(path))
        else:
            yield from read_csv_rows(file, str(path), "\t" if path.suffix.lower() == ".tsv" else ",")


def _read_spacy(file: IO[bytes], name: str, column: str, vocab: Vocab | None) -> Iterator[Record]:
    try:
        docs = DocBin().from_bytes(file.read())
    except Exception as error:  # zlib, msgpack or key errors, depending on the damage
        raise InputError(f"{name}: this file is damaged, or was not written by DocBin.to_disk ({error}).") from None
    for number, doc in enumerate(docs.get_docs(vocab or Vocab()), 1):
        yield Record(f"{name}, doc {number}", doc, dict(doc.user_data.get(FIELDS) or {}))


def _read_parquet(file: IO[bytes], name: str, column: str, vocab, typed: bool = False) -> Iterator[Record]:
    from .parquet import reader  # needs the extra `[parquet]`

    yield from reader.read_records(file, name, column, typed)


READERS: dict[str, Callable] = {
    ".txt": _read_txt,
    ".jsonl": _read_jsonl,
    ".csv": _read_table,
    ".tsv": partial(_read_table, delimiter="\t"),
    ".spacy": _read_spacy,
    PARQUET: _read_parquet,
}
