"""Text and JSON files, and folders, written atomically."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy_pll.files import atomic_write, file_digest, files_digest

__all__ = ["atomic_folder", "files_digest", "read_json", "sha256", "write_json", "write_whole"]

sha256 = file_digest


def write_whole(path: Path, content: bytes | str):
    """Write a file and the folders above it. A reader sees the old content or the new, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content.encode("utf8") if isinstance(content, str) else content)


def write_json(path: Path, content):
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path):
    return json.loads(path.read_text(encoding="utf8"))


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
