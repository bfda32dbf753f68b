"""Texts from files: .txt, .jsonl, .json, .csv, .tsv (also compressed), .spacy, .parquet, folders, standard input."""

import bz2
import codecs
import gzip
import io
import json
import lzma
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..errors import InputError, no_column
from ..requirements import extra
from .delimited import read_cells
from .records import NA, PARQUET, STANDARD_STREAM, Missing, ReadOptions, Record, Row, get_text, or_skip, warn_of_missing


def _open_zstandard(file: IO[bytes], mode: str) -> Any:
    with extra("parquet", ".zst files need pyarrow"):
        import pyarrow as pa
    if mode == "wb":
        return pa.CompressedOutputStream(open(os.dup(file.fileno()), "wb"), "zstd")  # which closes the duplicate alone
    return io.BufferedReader(pa.CompressedInputStream(file, "zstd"))


COMPRESSED: dict[str, Callable[[IO[bytes], str], Any]] = {
    # Without the name and the time of writing, so that the same contents give the same bytes.
    ".gz": lambda file, mode: gzip.GzipFile("", mode, fileobj=file, mtime=0),
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": _open_zstandard,
}
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error)  # what reading damaged or incomplete data raises
TEXT_FORMATS = (".txt", ".jsonl", ".json", ".csv", ".tsv")  # these may be compressed
UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # neither is valid UTF-8
# What stands in Windows' encodings where others have control characters, such as quotation marks and dashes.
CONTROL_CHARACTER = re.compile(r"[\x80-\x9f]")
WINDOWS = {
    "iso8859-1": "cp1252", "iso8859-15": "cp1252", "iso8859-2": "cp1250", "iso8859-5": "cp1251", "iso8859-7": "cp1253",
    "iso8859-9": "cp1254", "iso8859-8": "cp1255", "iso8859-6": "cp1256", "iso8859-13": "cp1257",
}  # fmt: skip
FIELDS = "fields"  # the key in `doc.user_data` under which a .spacy file keeps the other columns of a text
AS_DOCUMENTED = ReadOptions()


def read_records(
    path: str, column: str = "text", vocab: Vocab | None = None, file_format: str | None = None, **options: Any
) -> Iterator[Record]:
    """Read texts one by one. Only .spacy files are read into memory as a whole, one file at a time.

    path (str): A file, a folder (its files are read in the order of their names, and each record gets the field
        `file`), or "-" for standard input.
    file_format (Optional[str]): Such as ".jsonl". None uses the ending of the name, or .txt for standard input.
    column, vocab, options: See `ReadOptions`.
    YIELDS (Record): In the order of the input.
    RAISES (InputError): A line cannot be read; the message gives its number.
    """
    how = ReadOptions(column, vocab, **options)
    if path == STANDARD_STREAM:
        yield from READERS[file_format or ".txt"](sys.stdin.buffer, "standard input", how)
        return
    is_folder = Path(path).is_dir()
    for file in list_files(path):
        ending = file_format or format_of(file)
        if ending not in READERS:
            known = ", ".join(READERS)
            raise InputError(f"{path}: the format {ending!r} cannot be read. The known formats are: {known}.")
        with open_file(file) as stream:
            for record in READERS[ending](stream, str(file) if is_folder else path, how):
                if is_folder:  # a field `file` that the record already has is kept
                    record = record._replace(fields={"file": str(file.relative_to(path)), **record.fields})
                yield record


def read_texts(path: str, column: str, vocab: Vocab, **options: Any) -> Iterator[str | Doc]:
    """The texts alone: see `read_records`. Those that are missing are left out, and counted in a warning."""
    missing = total = 0
    for record in read_records(path, column, vocab, **options):
        total, missing = total + 1, missing + bool(record.problem)
        if not record.problem:
            yield record.text
    warn_of_missing(missing, total, "They are left out")


def list_files(path: str, formats: Collection[str] | None = None, beside: Sequence[str] = (".json",)) -> list[Path]:
    """The files that `read_records` reads: the path itself, or the files of a folder and its subfolders.

    Hidden files are not read. Files of other formats are named in a warning.

    formats (Optional[Collection[str]]): The formats to read. None is all that there are.
    beside (Sequence[str]): Those of them that describe others, as manifests do, where a folder has others.
    RAISES (InputError): There is no such file, or the folder contains no file of these formats.
    """
    root, formats = Path(path), formats or READERS
    if not root.exists():
        raise InputError(f"There is no file or folder {path!r}. Give one, or - for standard input.")
    if not root.is_dir() and not root.is_file():
        raise InputError(f"{path!r} is a pipe or a device. Give - instead, and read it as standard input: < {path}")
    found = files = [root]
    if root.is_dir():
        # Hidden are also files of hidden folders, such as .ipynb_checkpoints, and the ._a.txt of macOS.
        names = sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file())
        found = [root / name for name in names if not any(part.startswith(".") for part in name.parts)]
        files = [file for file in found if format_of(file) in formats]
        for ending in beside:
            files = [file for file in files if format_of(file) != ending] or files
        if not files:
            raise InputError(f"The folder {path!r} contains no file that ends in {', '.join(formats)}.")
    for name in map(str, files):
        if name.encode("utf8", "replace").decode("utf8") != name:
            raise InputError(f"The name of the file {name!r} is not UTF-8. Rename it.")  # no output could hold it
    if others := [repr(str(file.relative_to(root))) for file in found if file not in files]:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        count = "1 file" if len(others) == 1 else f"{len(others)} files"
        warnings.warn(f"{count} of other formats in {path!r} will not be read: {named}.", stacklevel=1)
    return files


def format_of(path: Path) -> str:
    """The ending that says how a file is read. For a.txt and for a.txt.gz it is ".txt"."""
    ending, inner = path.suffix.lower(), Path(path.stem).suffix.lower()
    return inner if ending in COMPRESSED and inner in TEXT_FORMATS else ending


def through_compression(file: IO[bytes], path: Path, mode: str) -> AbstractContextManager[IO[bytes]]:
    """An open file, or what compresses ("wb") or decompresses it ("rb") if the ending of its name says so."""
    opened = COMPRESSED.get(path.suffix.lower())
    return opened(file, mode) if opened else nullcontext(file)


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


def _decoded(file: IO[bytes], name: str, encoding: str) -> Iterator[tuple[int, str]]:
    """Numbered lines, including their newlines. Other line separators, such as U+2028, are part of the text."""
    number, guess, is_warned = 0, "cp1252", False
    used = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    peek = getattr(file, "peek", None)
    if used == "utf-8-sig" and peek and peek(2)[:2] in UTF_16_MARKS:
        used = encoding = "utf-16"
    # A byte that is not valid becomes a lone surrogate, so the line is known that has it.
    lines = io.TextIOWrapper(file, used, "surrogateescape", newline="\n")
    try:
        for number, line in enumerate(lines, 1):
            if number == 1 and len(line) > 8 and line.count("\0") > 0.4 * len(line):
                guess = "utf-16le"
                raise UnicodeError("every other byte is 0")
            line.encode("utf8")
            if not is_warned and (found := CONTROL_CHARACTER.search(line)):
                is_warned = _warn_of_encoding(f"{name}, line {number}", line, found[0], encoding)
            yield number, line
    except UnicodeError as error:
        where, why = "line 1" if guess == "utf-16le" or not number else f"after line {number}", str(error)
        if isinstance(error, UnicodeEncodeError):
            where, why = f"line {number}", f"it has the byte 0x{ord(error.object[error.start]) & 0xFF:02x}"
        advice = "Give another `encoding`."
        if used == "utf-8-sig":
            advice = f"If it is {guess}, convert the file: iconv -f {guess} -t utf-8 FILE > NEW. Or give "
            advice += f"`encoding={guess!r}`."
        raise InputError(f"{name}, {where}: not valid {encoding.upper()} ({why}).", advice) from None
    finally:
        with suppress(ValueError):  # the file is closed
            lines.detach()  # it would close the file, which may be standard input


def _warn_of_encoding(location: str, line: str, character: str, encoding: str) -> bool:
    """Warn if a line with a control character is in the encoding of Windows that is most like the given one, or in
    UTF-8, and say whether it is.
    """
    used = codecs.lookup(encoding).name
    for other in ("utf-8", WINDOWS[used]) if used in WINDOWS else ():
        with suppress(UnicodeError):
            meant = line.encode(used).decode(other).strip()
            warnings.warn(
                f"{location}: in {encoding}, U+{ord(character):04X} is a control character, which no model reads. In "
                f"{other}, the line is {meant!r:.100}. If that is right, give `encoding={other!r}`.",
                stacklevel=1,
            )
            return True
    return False


def _read_txt(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Record]:
    for number, line in _decoded(file, name, options.encoding):
        yield Record(f"{name}, line {number}", line.rstrip("\r\n"), {})


def _read_txt_rows(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    """The lines that are not blank, each as a row with the column `text`."""
    for record in _read_txt(file, name, options):
        if str(record.text).strip():
            yield record.location, {"text": record.text}


def read_json_lines(file: IO[bytes], name: str, options: ReadOptions = AS_DOCUMENTED) -> Iterator[Row]:
    """The objects of a JSON-lines file. Blank lines are skipped."""
    yield from _objects(_decoded(file, name, options.encoding), name)


def _objects(lines: Iterable[tuple[int, str]], name: str) -> Iterator[Row]:
    for number, line in lines:
        if line.strip():
            location = f"{name}, line {number}"
            yield location, _object(_parsed_json(line, location, "Each line must be one JSON object"), location)


def read_json(file: IO[bytes], name: str, options: ReadOptions = AS_DOCUMENTED) -> Iterator[Row]:
    """The objects of a list, which is read into memory as a whole, or of JSON lines."""
    lines = _decoded(file, name, options.encoding)
    number, first = next(((number, line) for number, line in lines if line.strip()), (1, ""))
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(first or "{}"), dict):
            yield from _objects(chain([(number, first)], lines), name)
            return
    value = _parsed_json(first + "".join(line for _, line in lines), name, "It must be a list of JSON objects")
    if not isinstance(value, list):
        keys = ", ".join(map(repr, value))[:100] if isinstance(value, dict) else repr(value)[:100]
        raise InputError(
            f"{name}: this is a JSON {type(value).__name__} ({keys}).",
            "Make a list of objects of it, [{...}, {...}], one for each text, or one object in each line.",
        )
    for number, item in enumerate(value, 1):
        yield f"{name}, item {number}", _object(item, f"{name}, item {number}")


def _parsed_json(text: str, location: str, rule: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_with_distinct_keys)
    except InputError as error:
        raise InputError(f"{location}: {error}") from None
    except ValueError as error:
        raise InputError(f"{location}: not valid JSON ({error}). {rule}.") from None
    except RecursionError:
        raise InputError(f"{location}: too many lists or objects are within each other. Flatten them.") from None


def _object(value: Any, location: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise InputError(f"{location}: this is a JSON {kind}. Each line must be one JSON object, {{...}}.")
    return value


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """RAISES (InputError): An object has a key twice. Python would keep the last value without a word."""
    found = dict[str, Any]()
    for key, value in pairs:
        if key in found:
            raise InputError(f"the key {key!r:.100} is there twice in one object. Rename one, or remove it.")
        found[key] = value
    return found


def _read_table_rows(file: IO[bytes], name: str, options: ReadOptions, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table. Blank lines are skipped. The header must have the column of texts, even without any row.

    delimiter (str): What stands between columns, if nothing else is given or found.
    """
    lines = (line for _, line in _decoded(file, name, options.encoding))
    rows, given = read_cells(lines, name, options, delimiter), options.header
    _, header = next(rows, (1, [])) if given is None else (1, list(given))
    if len(set(header)) < len(header):
        raise InputError(f"{name}, line 1: two columns have the same name: {header}.")
    if given and options.column is not None and options.column not in header:
        raise no_column(
            name,
            options.column,
            given,
            "They are those of `header`, which says that the file has no header. Name the column of the texts with "
            "`column`. If line 1 of the file has the names, leave out `header`.",
        )
    if header and options.column is not None:
        get_text(dict.fromkeys(header, ""), f"{name}, line 1", options.column)
    options.found(name, dict.fromkeys(header))
    for number, cells in rows:
        location = f"{name}, line {number}"
        if cells == header and number == 1:
            raise InputError(f"{location}: the file has a header, with the names in `header`.", "Leave it out.")
        if len(cells) != len(header):
            named = "the header has" if given is None else "`header` names"
            raise InputError(f"{location}: the row has {len(cells)} fields, but {named} {len(header)}.")
        if not options.na_as_text and not NA.isdisjoint(cells):
            cells = [Missing(cell) if cell in NA else cell for cell in cells]
        yield location, dict(zip(header, cells))


def read_rows(path: Path, **how: Any) -> Iterator[Row]:
    """The rows of a .jsonl, .json, .csv, .tsv or .parquet file with all their columns, or the lines of a .txt file.

    how (Any): See `FileOptions`.
    """
    with open_file(path) as file:
        ending = format_of(path)
        read = _read_txt_rows if ending == ".txt" else ROW_READERS.get(ending, _read_table_rows)
        yield from read(file, str(path), ReadOptions(None, **how))


def _read_spacy(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Record]:
    try:
        docs = DocBin().from_bytes(file.read())
    except Exception as error:  # zlib, msgpack or key errors, depending on the damage
        raise InputError(f"{name}: this file is damaged, or was not written by DocBin.to_disk ({error}).") from None
    for number, doc in enumerate(docs.get_docs(options.vocab or Vocab()), 1):
        fields = doc.user_data.get(FIELDS) or {}
        if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
            raise InputError(
                f"{name}, doc {number}: doc.user_data[{FIELDS!r}] must be a dict of the other columns, by name. It is "
                f"{fields!r:.100}. Rename or remove it."
            )
        yield Record(f"{name}, doc {number}", doc, dict(fields))


def _read_parquet_rows(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    from . import parquet  # needs the extra `[parquet]`

    yield from parquet.read_table(file, name, options)


def _read_texts(
    read_rows: Callable[..., Iterator[Row]], file: IO[bytes], name: str, options: ReadOptions
) -> Iterator[Record]:
    """The texts in a column of a table."""
    assert options.column is not None
    for location, row in read_rows(file, name, options):
        text, problem, in_place = "", "", ""
        try:
            text = get_text(row, location, options.column)
        except InputError as error:
            found = row.get(options.column)
            if not isinstance(found, Missing) and (not options.skip_errors or options.column not in row):
                raise or_skip(error) if options.skip_errors is False and options.column in row else error from None
            problem = error.problem.removeprefix(f"{location}: ")
            in_place = str(found) if isinstance(found, Missing) else ""
        del row[options.column]
        yield Record(location, text, row, problem=problem, in_place=in_place)


ROW_READERS: dict[str, Callable[[IO[bytes], str, ReadOptions], Iterator[Row]]] = {
    ".jsonl": read_json_lines,
    ".json": read_json,
    ".csv": _read_table_rows,
    ".tsv": partial(_read_table_rows, delimiter="\t"),
    PARQUET: _read_parquet_rows,
}
READERS: dict[str, Callable[[IO[bytes], str, ReadOptions], Iterator[Record]]] = {
    ".txt": _read_txt,
    **{ending: partial(_read_texts, rows) for ending, rows in ROW_READERS.items()},
    ".spacy": _read_spacy,
}
