"""Lines of text from the bytes of a file."""

import codecs
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import IO, Any

from ..advice.encodings import WINDOWS, other_encoding
from ..advice.giving import advised_of_each
from ..errors import InputError
from ..files import to_json
from .records import ReadOptions, RowError

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # neither is valid UTF-8


def numbered_lines(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[tuple[int, str]]:
    """Numbered lines, including their newlines. Other line separators, such as U+2028, are part of the text.

    Where errors are skipped, a byte that is not valid stays in its line as a lone surrogate.
    """
    lines, encoding = _decoded(file, name, options), options.files.encoding
    if codecs.lookup(encoding).name not in WINDOWS:
        return lines
    return advised_of_each(lines, partial(other_encoding, name=name, encoding=encoding))


def _decoded(file: IO[bytes], name: str, options: ReadOptions) -> Iterator[tuple[int, str]]:
    number, guess, encoding = 0, "cp1252", options.files.encoding
    used = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    peek = getattr(file, "peek", None)
    if used == "utf-8-sig" and peek and peek(2)[:2] in UTF_16_MARKS:
        used = encoding = "utf-16"
    # A byte that is not valid becomes a lone surrogate, so the line is known that has it.
    lines = io.TextIOWrapper(file, used, "surrogateescape", newline="\n")
    try:
        for number, line in enumerate(_with_ends(lines), 1):
            if number == 1 and len(line) > 8 and line.count("\0") > 0.4 * len(line):
                guess = "utf-16le"
                raise UnicodeError("every other byte is 0")
            if not options.skip_errors:
                line.encode("utf8")
            yield number, line
    except UnicodeError as error:
        where, why = "line 1" if guess == "utf-16le" or not number else f"after line {number}", str(error)
        if isinstance(error, UnicodeEncodeError):
            where, why = f"line {number}", f"it has the byte 0x{ord(error.object[error.start]) & 0xFF:02x}"
        advice = "Give another `encoding`."
        if used == "utf-8-sig":
            advice = f"If it is {guess}, convert the file: iconv -f {guess} -t utf-8 FILE > NEW. Or give "
            advice += f"`encoding={guess!r}`."
        kind = RowError if isinstance(error, UnicodeEncodeError) else InputError
        raise kind(f"{name}, {where}: not valid {encoding.upper()} ({why}).", advice) from None
    finally:
        with suppress(ValueError):  # the file is closed
            lines.detach()  # it would close the file, which may be standard input


def _with_ends(lines: Iterable[str]) -> Iterator[str]:
    """Lines with their ends. Carriage returns alone end those of a file without any newline, as old Macs wrote it."""
    lines = iter(lines)
    first = next(lines, "")
    yield from [first] if first.endswith("\n") else re.findall(r"[^\r]*\r|[^\r]+", first)
    yield from lines


def invalid_byte(text: str, options: ReadOptions) -> str:
    """What is wrong with a line, if it has a byte that is not valid; else ""."""
    try:
        text.encode("utf8")
    except UnicodeEncodeError as error:
        return f"not valid {options.files.encoding.upper()} (it has the byte 0x{ord(text[error.start]) & 0xFF:02x})."
    return ""


def writable(value: Any) -> Any:
    """A value, or what can be written in UTF-8 of one with a lone surrogate: there, each is an escape."""
    try:
        to_json(value).encode("utf8")
    except UnicodeEncodeError:
        return _escaped(value)
    except (TypeError, ValueError, RecursionError):  # it is no value of JSON
        pass
    return value


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf8", "backslashreplace").decode()
    if isinstance(value, dict):
        by_name = {_escaped(name): _escaped(member) for name, member in value.items()}
        return type(value)(by_name) if len(by_name) == len(value) else json.dumps(value)  # no name is lost
    return [*map(_escaped, value)] if isinstance(value, list | tuple) else value


def writable_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The columns of a row, with what can be written of their names and values: see `writable`. Where two names would
    become one, they stay as they are.
    """
    written = {writable(name): writable(value) for name, value in fields.items()}
    return written if len(written) == len(fields) else fields
