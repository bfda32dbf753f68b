"""Files that results go to: none is overwritten unasked, each appears whole or not at all."""

import csv
import io
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from .files import atomic_write

ForceOption = Annotated[bool, typer.Option("--force", help="Replace the output if it is there already.")]


def check_output(output: Path | None, endings: tuple[str, ...], force: bool) -> list[Path]:
    """The files to write for an option `--output`, checked before the work begins.

    endings (tuple[str]): The formats there are. A name without ending stands for a file of each.
    RAISES (ValueError): The ending is another one.
    RAISES (FileExistsError, IsADirectoryError): A file, or a folder, is there already.
    """
    if output is None:
        return []
    if output.suffix and output.suffix not in endings:
        without = ", or no ending for all of them" if len(endings) > 1 else ""
        raise ValueError(f"The output {str(output)!r} ends in {output.suffix!r}. Give {' or '.join(endings)}{without}.")
    paths = [output] if output.suffix else [output.with_suffix(ending) for ending in endings]
    for path in paths:
        if path.is_dir():
            raise IsADirectoryError(f"The output {str(path)!r} is a folder. Name a file.")
        if path.exists() and not force:
            raise FileExistsError(f"{path} is there already. Add --force to replace it, or give another name.")
    return paths


def write_whole(path: Path, lines: Iterable[str]):
    """Write a text file such that, whatever happens, there is either the whole of it or what was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        for line in lines:
            file.write(line.encode("utf8"))


def json_text(value) -> str:
    """JSON, indented. An infinite number, which JSON lacks, becomes null."""
    return json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def csv_text(rows: list[dict]) -> str:
    """A table with a header; all rows have the keys of the first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
