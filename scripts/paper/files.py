"""Files that appear whole or not at all: written beside their place, then renamed."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spacy_pll.corpus.files import whole_file
from spacy_pll.language_model.checksums import file_digest as sha256

__all__ = ["read_json", "sha256", "whole_folder", "write_json", "write_whole"]


def write_whole(path: Path, content: bytes | str):
    """Write a file; a reader sees the old one or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(content.encode("utf8") if isinstance(content, str) else content)


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
