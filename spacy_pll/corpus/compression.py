"""Compressed files: the ending of the name says how."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import IO, Any


def _open_gzip(file: IO[bytes], mode: str) -> IO[bytes]:
    """Without the name and the time of writing, so that the same contents give the same bytes."""
    return gzip.GzipFile("", mode, fileobj=file, mtime=0)  # type: ignore[return-value]  # it has what is used


COMPRESSED: dict[str, Callable[..., Any]] = {".gz": _open_gzip, ".bz2": bz2.open, ".xz": lzma.open}
# What reading damaged or incomplete data raises.
DAMAGED = (EOFError, OSError, lzma.LZMAError, zlib.error)


def through_compression(file: IO[bytes], path: Path, mode: str) -> AbstractContextManager[IO[bytes]]:
    """An open file, or what compresses or decompresses it.

    path (Path): Its name. Without one of the endings in `COMPRESSED`, the file is read or written as it is.
    mode (str): "rb" or "wb".
    """
    opened = COMPRESSED.get(path.suffix.lower())
    return opened(file, mode) if opened else nullcontext(file)
