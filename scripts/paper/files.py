"""Files that appear whole or not at all: written beside their place, then renamed."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


def write_whole(path: Path, content: bytes | str):
    """Write a file; a reader sees the old one or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode("utf8") if isinstance(content, str) else content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def write_json(path: Path, content):
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path):
    return json.loads(path.read_text(encoding="utf8"))


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
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
