"""Texts from files: .txt, .jsonl, .json, .csv, .tsv (also compressed), .spacy, .parquet, folders, standard input."""

import json
import sys
import warnings
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from spacy.tokens import Doc, DocBin
from spacy.vocab import Vocab

from ..advice.giving import advised
from ..advice.lines import HEAD, table_in_corpus
from ..cells import NA, Missing
from ..compression import format_of, open_file
from ..errors import InputError, no_column
from .decoding import invalid_byte, numbered_lines, writable
from .delimited import Fault, check_width, read_cells
from .records import (
    DEFAULT_FILES,
    DEFAULT_READING,
    PARQUET,
    STANDARD_STREAM,
    FileOptions,
    Found,
    Nested,
    ReadOptions,
    Record,
    Row,
    RowError,
    Unreadable,
    get_text,
    warn_of_missing,
)

OF_WORD_PROCESSORS = (".docx", ".doc", ".odt", ".rtf", ".pages")
SHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")
FIELDS = "fields"  # the key in `doc.user_data` under which a .spacy file keeps the other columns of a text


def read_records(path: str, options: ReadOptions = DEFAULT_READING, file_format: str | None = None) -> Iterator[Record]:
    """Read texts one by one. Only .spacy files are read into memory as a whole, one file at a time.

    path (str): A file, a folder (its files are read in the order of their names, and each record gets the field
        `file`), or "-" for standard input.
    file_format (Optional[str]): Such as ".jsonl". None uses the ending of the name, or .txt for standard input.
    YIELDS (Record): In the order of the input.
    RAISES (InputError): A line cannot be read; the message gives its number.
    """
    if path == STANDARD_STREAM:
        yield from READERS[file_format or ".txt"](sys.stdin.buffer, "standard input", options)
        return
    is_folder = Path(path).is_dir()
    for file in list_files(path):
        ending = file_format or format_of(file)
        check_format(file, READERS, ending)
        with open_file(file) as stream:
            for record in READERS[ending](stream, str(file) if is_folder else path, options):
                if is_folder:  # a field `file` that the record already has is kept
                    record.fields = Nested({"file": str(file.relative_to(path)), **record.fields})
                yield record


def read_texts(path: str, options: ReadOptions, fields: list[dict[str, Any]] | None = None) -> Iterator[str | Doc]:
    """The texts alone: see `read_records`. Those that are missing are left out, and counted in a warning.

    fields (Optional[list[dict[str, Any]]]): The other columns of each text are appended to this list just before the
        text is given.
    """
    missing = total = 0
    for record in read_records(path, options):
        total, missing = total + 1, missing + bool(record.problem)
        if not record.problem:
            if fields is not None:
                fields.append(record.fields)
            yield record.text
    warn_of_missing(missing, total, "They are left out")


def check_records(path: str, options: ReadOptions) -> None:
    """Read all once, so that what cannot be read is found before the work. Warnings come when it is read again.

    RAISES (InputError): As `read_records`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        deque(read_records(path, options), maxlen=0)


def list_files(path: str, formats: Collection[str] | None = None, beside: Sequence[str] = (".json",)) -> list[Path]:
    """The files that `read_records` reads: the path itself, or the files of a folder and its subfolders.

    Hidden files are not read. Files of other formats, and links to folders, are named in a warning.

    formats (Optional[Collection[str]]): The formats to read. None is all that there are.
    beside (Sequence[str]): Those of them that describe others, as manifests do, where a folder has others.
    RAISES (InputError): There is no such file, or the folder contains no file of these formats.
    """
    root, formats = Path(path), formats or READERS
    if not root.exists():
        raise InputError(f"There is no file or folder {path!r}. Give one, or - for standard input.")
    if not root.is_dir() and not root.is_file():
        raise InputError(f"{path!r} is a pipe or a device. Give - instead, and read it as standard input: < {path}")
    entries = files = [root]
    if root.is_dir():
        # Hidden are also files of hidden folders, such as .ipynb_checkpoints, and the ._a.txt of macOS.
        names = sorted(file.relative_to(root) for file in root.rglob("*") if file.is_file() or file.is_symlink())
        entries = [root / name for name in names if not any(name_part.startswith(".") for name_part in name.parts)]
        files = [file for file in entries if format_of(file) in formats and not file.is_dir()]
        for ending in beside:
            files = [file for file in files if format_of(file) != ending] or files
        if not files:
            raise InputError(f"The folder {path!r} contains no file that ends in {', '.join(formats)}.")
    for name in map(str, files):
        if name.encode("utf8", "replace").decode("utf8") != name:
            raise InputError(f"The name of the file {name!r} is not UTF-8. Rename it.")  # no output could hold it
    others = [f"{str(file.relative_to(root))!r}{' (a link)' * file.is_dir()}" for file in entries if file not in files]
    if others:
        named = ", ".join(others[:3]) + (", ..." if len(others) > 3 else "")
        count = "1 file" if len(others) == 1 else f"{len(others)} files"
        warnings.warn(f"{count} of other formats in {path!r} will not be read: {named}.", stacklevel=1)
    return files


def check_format(path: Path, known: Collection[str], ending: str | None = None) -> None:
    """RAISES (InputError): Files that end so, as the name of the file or as given, are not read."""
    ending = format_of(path) if ending is None else ending
    if ending in known:
        return
    advice = f"The known formats are: {', '.join(known)}."
    if ending in OF_WORD_PROCESSORS:
        advice = "It is the file of a word processor. Save it there as plain text (UTF-8), and give the .txt file."
    if ending in SHEETS:
        advice = "It is the file of a spreadsheet program. Save the sheet there as CSV UTF-8, and give the .csv file."
    raise InputError(f"{path}: the format {ending!r} cannot be read.", advice)


def _read_txt(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Record]:
    numbered = numbered_lines(file, name, options)
    texts = advised((line.rstrip("\r\n") for _, line in numbered), partial(table_in_corpus, name=name), HEAD)
    for number, text in enumerate(texts, 1):
        location = f"{name}, line {number}"
        problem = invalid_byte(text, options) if options.skip_errors else ""
        yield Record(location, writable(text) if problem else text, {}, problem=problem)


def _read_txt_rows(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    """The lines that are not blank, each as a row with the column `text`."""
    for number, line in numbered_lines(file, name, options):
        if line.strip():
            yield f"{name}, line {number}", {"text": line.rstrip("\r\n")}


def _in_place_of_row(error: InputError, location: str, value: Any, options: ReadOptions) -> Row:
    """What is read where a row cannot be. RAISES (InputError): Errors are not skipped."""
    if not options.skip_errors:
        raise RowError(error.problem, error.advice) from None
    assert options.column is not None
    return location, {options.column: Unreadable(value, error.problem.removeprefix(f"{location}: "))}


def read_json_lines(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    """The objects of a JSON-lines file. Blank lines are skipped."""
    yield from _objects(numbered_lines(file, name, options), name, options)


def _objects(lines: Iterable[tuple[int, str]], name: str, options: ReadOptions) -> Iterator[Row]:
    for number, line in lines:
        if line.strip():
            location = f"{name}, line {number}"
            try:
                if problem := invalid_byte(line, options):
                    raise InputError(f"{location}: {problem}")
                row = location, _object(_parsed_json(line, location, "Each line must be one JSON object"), location)
            except InputError as error:
                row = _in_place_of_row(error, location, line.strip(), options)
            yield row


def read_json(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[Row]:
    """The objects of a list, which is read into memory as a whole, or of JSON lines. The list may be in an object, as
    in {"data": [...]}.
    """
    lines = ((number, line) for number, line in numbered_lines(file, name, options) if line.strip())
    first = [*islice(lines, 2)]
    first_line, second_line = ([line.strip() for _, line in first] + ["", ""])[:2]
    # Also if the first line is damaged: in JSON of several lines, an object begins behind one of these marks alone.
    are_lines = first_line[:1] == second_line[:1] == "{" and first_line[-1] not in "[,:"
    with suppress(ValueError, RecursionError):
        value = json.loads(first_line or "{}")
        are_lines |= isinstance(value, dict) and (bool(second_line) or not _list_in(value, options.column))
    if are_lines:
        yield from _objects(chain(first, lines), name, options)
        return
    text = "".join(line for _, line in chain(first, lines))
    value = _parsed_json(text, name, "It must be a list of JSON objects")
    if isinstance(value, dict):
        value = _list_in(value, options.column) or value
    if not isinstance(value, list):
        kind, shown = type(value).__name__, repr(value)
        if isinstance(value, dict):
            kind, shown = "object", ", ".join(map(repr, value))
        raise InputError(
            f"{name}: this is a JSON {kind} ({shown:.100}).",
            "Make a list of objects of it, [{...}, {...}], one for each text, or one object in each line.",
        )
    for number, item in enumerate(value, 1):
        location = f"{name}, item {number}"
        try:
            row = location, _object(item, location)
        except InputError as error:
            row = _in_place_of_row(error, location, item, options)
        yield row


def _list_in(value: dict[str, Any], column: str | None) -> list[Any] | None:
    """The only list of objects in an object that is no text itself."""
    lists = [member for member in value.values() if isinstance(member, list) and member and isinstance(member[0], dict)]
    return lists[0] if len(lists) == 1 and column not in value else None


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


def _with_distinct_keys(pairs: list[tuple[str, Any]]) -> Nested:
    """RAISES (InputError): An object has a key twice. Python would keep the last value without a word."""
    by_key = Nested()
    for key, value in pairs:
        if key in by_key.keys():
            raise InputError(f"the key {key!r:.100} is there twice in one object. Rename one, or remove it.")
        by_key[key] = value
    return by_key


def _read_table_rows(file: IO[bytes], name: str, options: ReadOptions, delimiter: str = ",") -> Iterator[Row]:
    """The rows of a table. Blank lines are skipped. The header must have the column of texts, even without any row.

    delimiter (str): What stands between columns, if nothing else is given or found.
    """
    lines = (line for _, line in numbered_lines(file, name, options))
    rows, given = read_cells(lines, name, options, delimiter), options.files.header
    _, header = next(rows, (1, [])) if given is None else (1, list(given))
    if isinstance(header, Fault):
        raise header.error
    if options.skip_errors:
        header = [*map(writable, header)]
    if header[-2:] == ["", ""]:  # columns that spreadsheets leave there
        while header and not header[-1]:
            header.pop()
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
        try:
            if isinstance(cells, Fault):
                raise cells.error
            if len(header) > 1 and [cells[0].lstrip("\ufeff"), *cells[1:]] == header:
                joined = f"{location}: these are the names of the columns again, as where files were joined."
                raise InputError(joined, "Keep the first header alone.")
            if not any(cells[len(header) :]):
                cells = cells[: len(header)]
            check_width(cells, header, location, given is not None)
            if problem := invalid_byte("".join(cells), options):
                raise InputError(f"{location}: {problem}")
        except InputError as error:
            yield _in_place_of_row(error, location, [*cells], options)
            continue
        if not options.files.na_as_text:
            cells = [Missing(cell) if cell.strip() in NA else cell for cell in cells]
        yield location, dict(zip(header, cells))


def read_rows(path: Path, files: FileOptions = DEFAULT_FILES, found: Found = ReadOptions.found) -> Iterator[Row]:
    """The rows of a .jsonl, .json, .csv, .tsv or .parquet file with all their columns, or the lines of a .txt file.

    found: See `ReadOptions`.
    """
    with open_file(path) as file:
        ending = format_of(path)
        read = _read_txt_rows if ending == ".txt" else ROW_READERS.get(ending, _read_table_rows)
        yield from read(file, str(path), ReadOptions(None, files=files, found=found))


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
    column, unlike, is_there = options.column, None, False
    assert column is not None
    for location, row in read_rows(file, name, options):
        text, problem, in_place, value = "", "", "", row.get(column)
        is_row = column in row and not isinstance(value, Unreadable)
        is_there |= is_row
        try:
            text = get_text(row, location, column)
            row.pop(column, None)
        except InputError as error:
            if not isinstance(value, Missing) and not options.skip_errors:
                raise RowError(error.problem, error.advice) if is_there else error from None
            problem = error.problem.removeprefix(f"{location}: ")
            if isinstance(value, Missing):
                in_place = str(row.pop(column))
            else:  # which is written as it is
                row[column] = writable(value.value if isinstance(value, Unreadable) else value)
                unlike = unlike or (None if is_row else error)
        yield Record(location, text, row, problem=problem, in_place=in_place)
    if unlike and not is_there:  # another column, or another format
        raise unlike


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
