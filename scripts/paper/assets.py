"""Check the data sets in the folder of assets, and take them from a local folder where one is named.

    python -m scripts.paper.assets assets [--local FOLDER]

`python -m spacy project assets` downloads them; FOLDER, laid out in the same way, is for machines
without a network. Either way each file must have the SHA-256 sum that stands in assets.sha256
(the format of `sha256sum`). A file that differs, or is not there, ends the command with its name.
"""

import argparse
from pathlib import Path

from spacy_pll.cli.errors import shown_errors

from .files import sha256, write_whole

SUMS = Path(__file__).parent / "assets.sha256"


def read_sums(path: Path = SUMS) -> dict[str, str]:
    """Path below the folder of assets -> SHA-256."""
    lines = path.read_text().splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def check(path: Path, digest: str):
    """RAISES (ValueError): The file is missing or has another content."""
    if not path.is_file():
        raise ValueError(
            f"The asset {path} is missing. Download it with `python -m spacy project assets`, or name a folder that "
            "holds it: --vars.data FOLDER."
        )
    found = sha256(path)
    if found != digest:
        raise ValueError(
            f"The asset {path} is not the published file: its SHA-256 is {found}, where {digest} is expected. "
            "Remove it and get it anew with `python -m spacy project assets`."
        )


def gather(assets: Path, local: Path | None, sums: dict[str, str]):
    """Check every asset; first take those from `local` that are not in place. Only what was checked is taken.

    RAISES (ValueError): A file is missing or has another content; the message names it.
    """
    for name, digest in sums.items():
        target = assets / name
        if local and (local / name).is_file() and not (target.is_file() and sha256(target) == digest):
            check(local / name, digest)
            write_whole(target, (local / name).read_bytes())
        check(target, digest)
    _refuse_others(assets / "blimp", {Path(name).name for name in sums})


def _refuse_others(folder: Path, known: set[str]):
    """BLiMP is read as all the .jsonl files of a folder: a stray one would be scored as a paradigm of it."""
    for path in folder.glob("*.jsonl"):
        if path.name not in known:
            raise ValueError(f"{path} is no file of BLiMP, and would be taken for one. Move it elsewhere.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assets", type=Path)
    parser.add_argument("--local", default="", help="A folder to take the files from, instead of the network")
    args = parser.parse_args()
    local = Path(args.local) if args.local and Path(args.local).is_dir() else None
    if args.local and not local:
        print(f"There is no folder {args.local}: what `python -m spacy project assets` downloads is used.")
    with shown_errors():
        sums = read_sums()
        gather(args.assets, local, sums)
        print(f"{len(sums)} files in {args.assets}, all as published.")


if __name__ == "__main__":
    main()
