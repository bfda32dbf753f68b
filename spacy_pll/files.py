"""Files with results. A file appears only when it is complete. An existing file is replaced only on request."""

import csv
import errno
import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any


class OutputError(OSError):
    """An output cannot be written, because the disk is full."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file in the same folder. When all of it is on the disk, it replaces `path`.

    If writing fails, it is removed, and `path` does not change.

    RAISES (OutputError): The disk is full.
    """
    path = Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException as error:
        unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            what = f"{path} cannot be written: {error.strerror}"
            raise OutputError(f"{what}. Free some space, or name another place, and try again.") from error
        raise  # other errors stay as they are: they may be of what is being written
    if os.name == "posix":  # there, the new name can be written to the disk, too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def check_output(output: Path | None, endings: tuple[str, ...], force: bool, *inputs: str | None) -> None:
    """Check the file for results, if there is to be one, before the work begins.

    force (bool): Whether an existing file may be replaced.
    inputs (Optional[str]): What is read: see `check_target`.
    RAISES (ValueError): The name has another ending, or is that of an input.
    RAISES (OSError): There is already a file or folder of that name, or no file can be written there.
    """
    if output is None:
        return
    if output.suffix not in endings:
        raise ValueError(f"The output must end in {' or '.join(endings)}. It is {str(output)!r}.")
    check_target(output, *inputs)
    if output.exists() and not force:
        raise FileExistsError(f"{output} exists already. Add `force=True` to replace it, or give another name.")


def check_target(path: Path, *inputs: str | None, folder: bool = False) -> None:
    """Check, before anything is opened, that an output can be written and that no input is lost by it.

    inputs (Optional[str]): The files and folders that are read. None and "-", standard input, are left out.
    RAISES (ValueError): The output is an input, or one lies in the other.
    RAISES (OSError): The output is a folder, a link or a device, or cannot be made.
    """
    if path.is_dir() and not folder:
        raise IsADirectoryError(f"The output {str(path)!r} is a folder. Name a file.")
    if path.is_symlink() or (path.exists() and not path.is_file() and not folder):
        raise OSError(f"The output {str(path)!r} is a link, a device or a pipe, and would be replaced. Name a file.")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OSError(
            f"The output {str(path)!r} cannot be written: {str(parent)!r} is no folder that you may write to."
        )
    for name in inputs:
        if name is None or name == "-":
            continue
        if _is_within(path, Path(name)):
            raise ValueError(
                f"The output {str(path)!r} is the input {name!r}, or lies in it. Give a name outside of it."
            )
        if _is_within(Path(name), path):
            raise ValueError(
                f"The input {name!r} lies in the output {str(path)!r}, and would be lost. Give another name."
            )


def _is_within(path: Path, other: Path) -> bool:
    """Whether a path is another one, however it is spelled or linked, or lies in it."""
    real = path.resolve()
    return other.exists() and any(one.exists() and one.samefile(other) for one in (real, *real.parents))


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write the parts of a UTF-8 text file atomically, and make its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        for part in parts:
            file.write(part.encode("utf8"))


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON: see `to_json`."""
    write_text(path, [to_json(value, indent=2), "\n"])


def to_json(value: Any, indent: int | None = None) -> str:
    """JSON as every command writes it. Infinity and NaN, which JSON does not have, become null."""
    try:
        return json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_csv(rows: Iterable[dict[str, Any]], columns: list[str], delimiter: str) -> str:
    """Rows of a table as every command writes them, one per line, without a header."""
    lines: list[str] = []
    # Python quotes a carriage return only if its own lines end in one, and does not read it back unquoted.
    writer = csv.DictWriter(SimpleNamespace(write=lines.append), columns, delimiter=delimiter, lineterminator="\r\n")
    writer.writerows(rows)
    return "".join(line.removesuffix("\r\n") + "\n" for line in lines)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal digits."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(2**20):
            total.update(block)
    return total.hexdigest()


def files_digest(files: Iterable[Path]) -> str:
    """SHA-256 over the names and contents of some files, in their order."""
    listing = "".join(f"{file_digest(path)}  {path.name}\n" for path in files)
    return hashlib.sha256(listing.encode("utf8", "surrogateescape")).hexdigest()
