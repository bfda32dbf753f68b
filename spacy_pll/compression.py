"""Compressed files: what is behind the ending of a name, and files that are opened through their compression."""

import bz2
import gzip
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from .errors import InputError
from .requirements import extra


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
