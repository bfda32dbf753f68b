"""Files that appear whole or not at all."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
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
    total = hashlib.sha256()
    for path in files:
        one = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(2**20):
                one.update(block)
        total.update(path.name.encode("utf8", "surrogateescape") + b"\0" + one.digest())
    return total.hexdigest()
