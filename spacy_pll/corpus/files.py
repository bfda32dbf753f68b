"""Files that appear whole or not at all."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..language_model.checksums import file_digest


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Write a file beside its place and, when all of it is on the disk, move it there.

    path (str | Path): Where it is to stand. What stood there before is replaced.
    YIELDS (IO[bytes]): To write to. If writing fails, nothing of it remains.
    """
    path = Path(path)
    unfinished = path.with_name(path.name + ".unfinished")
    try:
        with open(unfinished, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into; it takes the place of `path` when all went well, and is gone otherwise."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield beside
        beside.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        beside.rename(path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _sync_folder(folder: Path):
    """Put the new name on the disk as well, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def digest(files: list[Path]) -> str:
    """SHA-256 over the names and contents of some files, in their order."""
    listing = "".join(f"{file_digest(path)}  {path.name}\n" for path in files)
    return hashlib.sha256(listing.encode("utf8", "surrogateescape")).hexdigest()
