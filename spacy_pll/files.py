"""Files with results. A file appears only when it is complete. An existing file is replaced only on request."""

import errno
import hashlib
import json
import math
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from .errors import PLLError

MANIFEST = "manifest.json"  # behind the name of a table: what it depends on
OUTPUTS = "outputs"  # where it has the names of the files that a run writes, and what they alone depend on
# What is beside an output until it is complete, or stays there.
BESIDE = ("", ".unfinished", ".parts", f".{MANIFEST}", f".{MANIFEST}.unfinished")
FileIdentity = tuple[int, int, str]
REPLACE = "Add `force=True` to replace it, or give another name."


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


def check_output(output: Path | None, endings: tuple[str, ...], force: bool) -> None:
    """Check the file for results, if there is to be one, before the work begins.

    force (bool): Whether an existing file may be replaced.
    RAISES (ValueError): The name has another ending.
    RAISES (OSError): There is already a file or folder of that name, or no file can be written there.
    """
    if output is None:
        return
    if output.suffix not in endings:
        raise PLLError(f"The output must end in {' or '.join(endings)}. It is {str(output)!r}.")
    check_target(output)
    if output.exists() and not force:
        raise FileExistsError(f"{output} exists already. {REPLACE}")


def check_target(path: Path) -> None:
    """RAISES (OSError): The output is a folder, a link or a device, or no file can be written there."""
    if path.is_dir():
        raise IsADirectoryError(f"The output {str(path)!r} is a folder. Name a file.")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise OSError(f"The output {str(path)!r} is a link, a device or a pipe, and would be replaced. Name a file.")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OSError(
            f"The output {str(path)!r} cannot be written: {str(parent)!r} is no folder that you may write to."
        )


def outputs_of(output: Path) -> set[str]:
    """The files that an earlier run with this output writes, by their absolute names. Its manifest names them as seen
    from the folder of the output.
    """
    names = set[str]()
    for path in (output.with_name(f"{output.name}.parts") / MANIFEST, output.with_name(f"{output.name}.{MANIFEST}")):
        with suppress(OSError, ValueError):
            names.update(json.loads(path.read_text(encoding="utf8")).get(OUTPUTS, {}).get("files", []))
    return {os.path.abspath(output.parent / name) for name in names}


def check_apart(outputs: Iterable[Path], inputs: Iterable[str]) -> None:
    """Check, before anything is opened, that no input is lost, and that each output has a file of its own.

    outputs (Iterable[Path]): Files, or folders that files are written to. What is beside a file until it is complete
        counts, too.
    inputs (Iterable[str]): The files and folders that are read.
    RAISES (ValueError): An output is an input or another output, or one of the two lies in the other.
    """
    outputs, written = list(outputs), dict[FileIdentity, tuple[Path, Path]]()  # what is written, and for which output
    for output in outputs:
        for path in (Path(f"{output}{ending}") for ending in BESIDE):
            _, other = written.setdefault(_identity(path), (path, output))
            if other is not output:
                raise PLLError(
                    f"The outputs {str(other)!r} and {str(output)!r} would both write {str(path)!r}. Give another name."
                )
    folders = {_identity(folder): output for output in outputs for folder in _real(output).parents}
    for identity in folders.keys() & written.keys():
        path, output = written[identity][0], folders[identity]
        raise PLLError(f"The output {str(output)!r} lies in the output {str(path)!r}. Give another name.")
    replaced = {identity for identity, (path, _) in written.items() if path.is_file()}
    for name in filter(os.path.exists, inputs):
        real, identity = _real(name), _identity(name)
        files = real.rglob("*") if replaced and real.is_dir() else ()  # may be links to what will be replaced
        same = (
            identity
            if identity in written
            else next((inner_file for inner_file in map(_identity, files) if inner_file in replaced), None)
        )
        if same or identity in folders:
            path = written[same][0] if same else folders[identity]
            raise PLLError(f"The output {str(path)!r} is the input {name!r}, or lies in it. Give a name outside of it.")
        for path, output in (written[parent] for parent in map(_identity, real.parents) if parent in written):
            if path != output:  # where files are written to, there may be others
                raise PLLError(
                    f"The input {name!r} lies in the output {str(path)!r}, and would be lost. Give another name."
                )


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _identity(path: str | Path) -> FileIdentity:
    """What all spellings of a path have in common: the number of the file or folder that is there, and the names of
    what is not there yet.
    """
    real = _real(path)
    existing = next(path_above for path_above in (real, *real.parents) if path_above.exists())
    status, rest = existing.stat(), real.relative_to(existing).as_posix()
    if rest != "." and _ignores_case(existing):
        rest = unicodedata.normalize("NFC", rest).casefold()
    return status.st_dev, status.st_ino, rest


def _ignores_case(folder: Path) -> bool:
    """Whether a file has the same name in capital and small letters, as mostly on macOS and Windows."""
    name = next(
        (path_above for path_above in (folder, *folder.parents) if path_above.name.swapcase() != path_above.name), None
    )
    return name is not None and os.path.exists(twin := name.with_name(name.name.swapcase())) and name.samefile(twin)


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write the parts of a UTF-8 text file atomically, and make its folder if needed. A lone surrogate, which UTF-8
    does not have, becomes an escape, such as \\ud83d: in JSON, it is read as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        for part in parts:
            file.write(part.encode("utf8", "backslashreplace"))


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


def folder_digest(folder: Path, counts: Callable[[Path], bool] = lambda path: True) -> str:
    """SHA-256 over the names and contents of the files in a folder and its subfolders, also behind links to folders.
    Each folder is read once: where it is there again, its first place stands for its files.

    counts (Callable[[Path], bool]): Whether a file is one of them.
    """
    first, listed = dict[tuple[int, int], Path](), dict[Path, str]()  # by their places, as seen from the folder
    for top, inside, files in os.walk(folder, followlinks=True):
        inside.sort()
        path, status = Path(top), os.stat(top)
        inner = path.relative_to(folder)
        known = first.setdefault((status.st_dev, status.st_ino), inner)
        if known != inner:
            listed[inner] = known.as_posix()
            inside.clear()
            continue
        whole = {inner / name: path / name for name in files if (path / name).is_file() and counts(path / name)}
        listed |= {name: file_digest(file) for name, file in whole.items()}
    listing = "".join(f"{listed[inner]}  {inner.as_posix()}\n" for inner in sorted(listed))
    return hashlib.sha256(listing.encode("utf8", "surrogateescape")).hexdigest()
