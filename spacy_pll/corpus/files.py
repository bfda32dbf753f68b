"""Files with results. A file appears only when it is complete. An existing file is replaced only on request."""

import csv
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Write to a temporary file in the same folder. When all of it is on the disk, it replaces `path`.

    path (str | Path): The file to write. An existing file is replaced.
    YIELDS (IO[bytes]): The temporary file. If writing fails, it is removed, and `path` does not change.
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
    """Write to a temporary folder. It replaces `path` if there was no error. Otherwise it is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        yield unfinished
        unfinished.chmod(0o755)
        if path.exists():
            shutil.rmtree(path)
        unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _sync_folder(folder: Path):
    """Also write the new file name to the disk, on systems that can do this."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def check_output(output: Path | None, endings: tuple[str, ...], force: bool) -> list[Path]:
    """The files to write for an option `--output`, checked before the work begins.

    output (Optional[Path]): The value of the option.
    endings (tuple[str]): The formats that can be written. If the name has no ending, one file of each is written.
    force (bool): Whether existing files may be replaced.
    RAISES (ValueError): The name has another ending.
    RAISES (FileExistsError, IsADirectoryError): There is already a file or folder of that name.
    """
    if output is None:
        return []
    if output.suffix and output.suffix not in endings:
        without = ", or have no ending to write all of them" if len(endings) > 1 else ""
        raise ValueError(f"The output must end in {' or '.join(endings)}{without}. It is {str(output)!r}.")
    paths = [output] if output.suffix else [output.with_suffix(ending) for ending in endings]
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"The output {str(path)!r} is a folder. Name a file.")
        if path.exists() and not force:
            raise FileExistsError(f"{path} exists already. Add --force to replace it, or give another name.")
    return paths


def write_text(path: Path, parts: Iterable[str]):
    """Write a UTF-8 text file atomically, and make its folder if needed.

    parts (Iterable[str]): The parts of the text, in order.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        for part in parts:
            file.write(part.encode("utf8"))


def write_json(path: Path, value: Any):
    """Write JSON, indented. Infinity and NaN, which JSON does not have, become null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    write_text(path, [text, "\n"])


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write_csv(path: Path, rows: list[dict]):
    """Write a table with a header. All rows have the same keys as the first row."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, [text.getvalue()])
