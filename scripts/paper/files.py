"""Text and JSON files, written atomically."""

import json
from pathlib import Path

from spacy_pll.files import atomic_folder, atomic_write
from spacy_pll.language_model.checksums import file_digest as sha256

__all__ = ["read_json", "sha256", "atomic_folder", "write_json", "write_whole"]


def write_whole(path: Path, content: bytes | str):
    """Write a file and the folders above it. A reader sees the old content or the new, never a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content.encode("utf8") if isinstance(content, str) else content)


def write_json(path: Path, content):
    write_whole(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path):
    return json.loads(path.read_text(encoding="utf8"))
