"""Texts from files: .txt, .jsonl, .csv, .tsv (also compressed), .spacy, .parquet, a folder, or standard input."""

import codecs
import csv
import io
import json
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
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


class How(NamedTuple):
    """How files are read."""

    column: str = "text"
    vocab: Vocab | None = None  # for the docs of .spacy files
    typed: bool = False  # the fields from Parquet files are Arrow's scalars, and not values that JSON has
    encoding: str = "utf-8"
    delimiter: str | None = None  # None is the comma, or the tab
    header: Sequence[str] | None = None  # the columns of .csv and .tsv files that have no header


class Record(NamedTuple):
    """One text of the input."""

    location: str  # "corpus.jsonl, line 12": for messages
    text: str | Doc
    fields: dict[str, Any]  # the other columns, or keys, in their order


def read_records(
    path: str, column: str = "text", vocab: Vocab | None = None, file_format: str | None = None, **how: Any
) -> Iterator[Record]:
    """Read texts one by one. Only .spacy files are read into memory as a whole, one file at a time.

    path (str): A file, a folder (its files are read in the order of their names, and each record gets the field
        `file`), or "-" for standard input.
    file_format (Optional[str]): Such as ".jsonl". None uses the ending of the name, or .txt for standard input.
    column, vocab, how: See `How`.
    YIELDS (Record): In the order of the input.
    RAISES (InputError): A line cannot be read; the message gives its number.
    """
    if path == STANDARD_STREAM:
        reader, name = READERS[file_format or ".txt"], "standard input"
        yield from reader(sys.stdin.buffer, name, How(column, vocab, **how))
    elif Path(path).is_dir():
        for file in list_files(path):
            for record in read_records(str(file), column, vocab, **how):
                # A field `file` that the record already has is kept.
                yield record._replace(fields={"file": str(file.relative_to(path)), **record.fields})
    else:
        [file] = list_files(path)
        ending = file_format or format_of(file)
        if ending not in READERS:
            known = ", ".join(READERS)
            raise InputError(f"{path}: the format {ending!r} cannot be read. The known formats are: {known}.")
        with open_file(file) as stream:
            yield from READERS[ending](stream, path, How(column, vocab, **how))


def list_files(path: str, formats: Collection[str] | None = None) -> list[Path]:
    """The files that `read_records` reads: the path itself, or the files of a folder and its subfolders.

    Hidden files are not read. Files of other formats are named in a warning.

    formats (Optional[Collection[str]]): The formats to read. None is all that there are.
    RAISES (InputError): There is no such file; or the folder contains no file of these formats, or one whose name is
        not UTF-8.
    """
    root, formats = Path(path), formats or READERS
    if not root.is_dir():
        if not root.exists():
            raise InputError(f"There is no file or folder {path!r}. Give one, or - for standard input.")
        if not root.is_file():
            raise InputError(f"{path!r} is a pipe or a device. Give - instead, and read it as standard input: < {path}")
        _check_name(root)
        return [root]
    found = sorted(file for file in root.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(root)))
    files = [file for file in found if format_of(file) in formats]
    if not files:
        raise InputError(f"The folder {path!r} contains no file that ends in {', '.join(formats)}.")
    for file in files:
        _check_name(file)
    if others := [repr(str(file.relative_to(root))) for file in found if format_of(file) not in formats]:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        count = "1 file" if len(others) == 1 else f"{len(others)} files"
        warnings.warn(f"{count} of other formats in {path!r} will not be read: {named}.", stacklevel=1)
    return files


def _is_hidden(path: Path) -> bool:
    """Whether a file, or a folder that it is in, is hidden, such as .ipynb_checkpoints and the ._a.txt of macOS."""
    return any(part.startswith(".") for part in path.parts)


def _check_name(file: Path) -> None:
    """RAISES (InputError): The name is not UTF-8, so no output could hold it."""
    try:
        str(file).encode("utf8")
    except UnicodeEncodeError:
        raise InputError(f"The name of the file {str(file)!r} is not UTF-8. Rename it.") from None


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


def _decoded(file: IO[bytes], name: str, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Numbered lines, including their newlines. Other line separators, such as U+2028, are part of the text."""
    if codecs.lookup(encoding).name != "utf-8":
        yield from _decoded_from(file, name, encoding)
        return
    for number, line in enumerate(file, 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf8")
        except UnicodeDecodeError as error:
            guess = "utf-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin1"
            raise InputError(
                f"{name}, line {number}: not valid UTF-8 (byte {error.start + 1} of the line is "
                f"0x{error.object[error.start]:02x}). If it is {guess}, convert the file: iconv -f {guess} -t utf-8 "
                f"FILE > NEW. Or read it with `pll score --encoding {guess}`."
            ) from None
        if number == 1 and len(text) > 8 and text.count("\0") > 0.4 * len(text):  # UTF-16 without its mark
            raise InputError(
                f"{name}, line 1: every other byte is 0, as in UTF-16. Convert the file: iconv -f utf-16le -t utf-8 "
                "FILE > NEW. Or read it with `pll score --encoding utf-16-le`."
            )
        yield number, text


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


def _read_txt(file: IO[bytes], name: str, how: How) -> Iterator[Record]:
    for number, line in _decoded(file, name, how.encoding):
        yield Record(f"{name}, line {number}", line.rstrip("\r\n"), {})


def _read_jsonl(file: IO[bytes], name: str, how: How) -> Iterator[Record]:
    for location, row in read_json_rows(file, name, how.encoding):
        yield _from_row(row, location, how.column)


def read_json_rows(file: IO[bytes], name: str, encoding: str = "utf-8") -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON-lines file, each with its location. Blank lines are skipped."""
    for number, line in _decoded(file, name, encoding):
        if not line.strip():
            continue
        location = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{location}: not valid JSON ({error}). Each line must be one JSON object.") from None
        except RecursionError:
            raise InputError(f"{location}: too many lists or objects are within each other. Flatten them.") from None
        if not isinstance(row, dict):
            raise InputError(
                f"{location}: this is a JSON {type(row).__name__}. Each line must be one JSON object, {{...}}."
            )
        yield location, row


def _read_table(file: IO[bytes], name: str, how: How, delimiter: str = ",") -> Iterator[Record]:
    for location, row in read_csv_rows(file, name, how.delimiter or delimiter, how.encoding, how.column, how.header):
        yield _from_row(row, location, how.column)


def read_csv_rows(
    file: IO[bytes],
    name: str,
    delimiter: str,
    encoding: str = "utf-8",
    column: str | None = None,
    header: Sequence[str] | None = None,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a table, each with its location. Blank lines are skipped.

    column (Optional[str]): A column that the header must have, even if there is no row.
    header (Optional[Sequence[str]]): The names of the columns. None is the first line.
    """
    csv.field_size_limit(2**31 - 1)  # a text may be long
    rows = csv.reader((line for _, line in _decoded(file, name, encoding)), delimiter=delimiter, strict=True)
    try:
        given = header
        header = next(rows, []) if given is None else list(given)
        if len(set(header)) < len(header):
            raise InputError(f"{name}, line 1: two columns have the same name: {header}.")
        if header and column is not None:
            get_text(dict.fromkeys(header, ""), f"{name}, line 1", column)
        for row in rows:
            if not row:
                continue
            location = f"{name}, line {rows.line_num}"
            if row == given and rows.line_num == 1:
                raise InputError(f"{location}: the file has a header with the names in --columns. Leave out --columns.")
            if len(row) != len(header):
                named = "the header has" if given is None else "--columns names"
                raise InputError(f"{location}: the row has {len(row)} fields, but {named} {len(header)}.")
            yield location, dict(zip(header, row))
    except csv.Error as error:
        raise InputError(f"{name}, line {rows.line_num}: {error}.") from None


def _from_row(row: dict[str, Any], location: str, column: str) -> Record:
    text = get_text(row, location, column)
    del row[column]
    return Record(location, text, row)


def get_text(row: dict[str, Any], location: str, column: str, option: str | None = "--column") -> str:
    """The text in a column of a row.

    option (Optional[str]): The option that names another column, for messages. None for a key with a fixed name.
    RAISES (InputError): There is no such column, or no text in it.
    """
    if column not in row:
        names = ", ".join(map(repr, row)) or "none"
        if option is None:
            raise InputError(f"{location}: there is no key {column!r}. The keys are: {names}. Add it.")
        advice = f"Name the column to read with {option}."
        if len(row) == 1 and (found := {";", "\t"} & set(*row)):
            advice = f"If {min(found)!r} stands between columns, give `pll score` --delimiter, or write commas."
        raise InputError(f"{location}: there is no column {column!r}. The columns are: {names}. {advice}")
    text = row[column]
    if not isinstance(text, str):
        raise InputError(f"{location}: {column!r} must be text. It is {text!r:.100}.")
    check_utf8(text, location, column)
    return text


def check_utf8(text: str, location: str, column: str) -> None:
    """RAISES (InputError): The text has a lone surrogate, so it cannot be encoded."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        raise InputError(f"{location}: {column!r} has a lone surrogate, {error.object[error.start]!r}.") from None


def read_rows(path: Path, header: Sequence[str] | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a .jsonl, .csv, .tsv or .parquet file with all their columns, each with its location.

    header (Optional[Sequence[str]]): The columns of .csv and .tsv files that have no header.
    """
    with open_file(path) as file:
        if format_of(path) == ".jsonl":
            yield from read_json_rows(file, str(path))
        elif format_of(path) == PARQUET:
            from . import parquet  # needs the extra `[parquet]`

            yield from parquet.read_rows(file, str(path))
        else:
            yield from read_csv_rows(file, str(path), "\t" if format_of(path) == ".tsv" else ",", header=header)


def table_columns(path: Path, encoding: str = "utf-8", delimiter: str | None = None) -> list[str]:
    """The columns of a .csv or .tsv file, which it has also without a row. Of other files none."""
    if format_of(path) not in (".csv", ".tsv"):
        return []
    delimiter = delimiter or ("\t" if format_of(path) == ".tsv" else ",")
    with open_file(path) as file:
        return next(csv.reader((line for _, line in _decoded(file, str(path), encoding)), delimiter=delimiter), [])


def _read_spacy(file: IO[bytes], name: str, how: How) -> Iterator[Record]:
    try:
        docs = DocBin().from_bytes(file.read())
    except Exception as error:  # zlib, msgpack or key errors, depending on the damage
        raise InputError(f"{name}: this file is damaged, or was not written by DocBin.to_disk ({error}).") from None
    for number, doc in enumerate(docs.get_docs(how.vocab or Vocab()), 1):
        fields = doc.user_data.get(FIELDS) or {}
        if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
            raise InputError(
                f"{name}, doc {number}: doc.user_data[{FIELDS!r}] must be a dict of the other columns, by name. It is "
                f"{fields!r:.100}. Rename or remove it."
            )
        yield Record(f"{name}, doc {number}", doc, dict(fields))


def _read_parquet(file: IO[bytes], name: str, how: How) -> Iterator[Record]:
    from . import parquet  # needs the extra `[parquet]`

    yield from parquet.read_records(file, name, how.column, how.typed)


Reader = Callable[[IO[bytes], str, How], Iterator[Record]]
READERS: dict[str, Reader] = {
    ".txt": _read_txt,
    ".jsonl": _read_jsonl,
    ".csv": _read_table,
    ".tsv": partial(_read_table, delimiter="\t"),
    ".spacy": _read_spacy,
    PARQUET: _read_parquet,
}
