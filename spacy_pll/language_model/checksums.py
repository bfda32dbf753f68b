"""Checksums for saved folders. Without them, a file of weights that was altered would load without an error."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

# In the format of the command `sha256sum`, so that `sha256sum -c` checks it too.
NAME = "SHA256SUMS"


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of each file in a folder, without subfolders, to the file SHA256SUMS in it."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != NAME)
    lines = [f"{file_digest(path)}  {path.name}\n" for path in files]
    (folder / NAME).write_text("".join(lines), encoding="utf8")


def check_checksums(folder: Path) -> None:
    """Compare the files of a folder with its SHA256SUMS, if it has one. Files that are not listed are ignored.

    RAISES (OSError): A file is missing or was altered; the message names it.
    """
    sums = folder / NAME
    if not sums.is_file():
        return
    for line in sums.read_text(encoding="utf8").splitlines():
        digest, _, name = line.partition("  ")
        path = folder / Path(name).name
        if not path.is_file():
            raise OSError(f"The file {path} is missing, which {NAME} beside it lists. Get the folder again.")
        if file_digest(path) != digest:
            raise OSError(
                f"The file {path} is not as it was saved: its SHA-256 differs from the one in {NAME} beside it. Get "
                f"the folder again; or, if you changed the file on purpose, delete {sums}."
            )


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
