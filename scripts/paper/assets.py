"""Check the data sets in the folder of assets; copy them from a local folder where one is named.

    python -m scripts.paper.assets assets [--local FOLDER] [--if-there]

`python -m spacy project assets` downloads the data sets. On machines without a network, FOLDER holds them, laid out
like `assets`, or has them in its subfolder `data`. Each file must have the SHA-256 sum in assets.sha256 (the format of
`sha256sum`). If a file differs or is missing, the command ends with an error that names it.
"""

import argparse
from pathlib import Path

from spacy_pll.evaluation.readers import TABLE_ENDINGS

from .errors import PLLError, shown_errors
from .files import sha256, write_whole
from .published_texts import BLIMP_PATH, data_sets_folder

SUMS = Path(__file__).parent / "assets.sha256"


def read_sums(path: Path = SUMS) -> dict[str, str]:
    """The SHA-256 sum of each file, by its path below the folder of assets."""
    lines = path.read_text().splitlines()
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines)}


def check(path: Path, digest: str):
    """RAISES (ValueError): The file is missing, or its content differs from the published one."""
    if not path.is_file():
        raise PLLError(
            f"The asset {path} is missing. Download it with `python -m spacy project assets`, or name a folder that "
            "holds it: --vars.data FOLDER."
        )
    found = sha256(path)
    if found != digest:
        raise PLLError(
            f"The asset {path} is not the published file: its SHA-256 is {found}, where {digest} is expected. "
            "Remove it and download it again with `python -m spacy project assets`."
        )


def gather(assets: Path, local: Path | None, sums: dict[str, str]):
    """Check every asset. First copy those that are not in place from `local`; only checked files are copied.

    RAISES (ValueError): A file is missing, or its content differs; the message names it.
    """
    for name, digest in sums.items():
        target = assets / name
        if local and (local / name).is_file() and not (target.is_file() and sha256(target) == digest):
            check(local / name, digest)
            write_whole(target, (local / name).read_bytes())
        check(target, digest)
    _refuse_others(assets / BLIMP_PATH, {assets / name for name in sums})


def _refuse_others(folder: Path, known: set[Path]):
    """BLiMP is read from all tables in its folder, so any other table would be scored as a paradigm of BLiMP."""
    for path in folder.rglob("*"):
        if path.suffix.lower() in TABLE_ENDINGS and path not in known:
            raise PLLError(f"{path} is no file of BLiMP, but would be read as one. Move it elsewhere.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("assets", type=Path)
    parser.add_argument("--local", default="", help="Copy the files from this folder")
    parser.add_argument("--if-there", action="store_true", help="If a file is missing, check nothing. No error")
    args = parser.parse_args()
    local = data_sets_folder(args.local) if args.local and Path(args.local).is_dir() else None
    if args.local and not local:
        print(f"There is no folder {args.local}: the files of `python -m spacy project assets` are used.")
    with shown_errors():
        sums = read_sums()
        missing = [
            name for name in sums if not any((folder / name).is_file() for folder in (args.assets, local) if folder)
        ]
        if missing and args.if_there:
            print(f"{args.assets} is not checked: {missing[0]} is missing.")
            return
        gather(args.assets, local, sums)
        print(f"{len(sums)} files in {args.assets}, all as published.")


if __name__ == "__main__":
    main()
