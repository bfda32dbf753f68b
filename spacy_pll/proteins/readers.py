"""The files of proteins: tables of variants, and sequences."""

from pathlib import Path
from typing import Any

from ..corpus.records import FileOptions, get_text
from ..errors import InputError
from ..evaluation.readers import of_folders, rows_of
from .variants import Variant


@of_folders
def read_variants(path: str, column: str = "mutant", **file_options: Any) -> list[Variant]:
    """Read variants of a protein from a table.

    column (str): The column with the substitutions, such as A24G, or A24G:K30R for several; with pseudo-ppl also with
        whole sequences.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RAISES (InputError): A row cannot be read; the message gives the line.

    ``` title="variants.csv"
    mutant,effect
    K2R,0.3
    T3S:Y5F,-0.2
    ```

    ```python
    import spacy_pll

    spacy_pll.read_variants("variants.csv")[1].mutant  # 'T3S:Y5F'
    ```
    """
    read = [
        Variant(get_text(row, where, column).strip(), {**of_file, **row}, where)
        for _, where, row, of_file in rows_of(path, "variants", FileOptions.of(file_options, "variants"))
    ]
    if not read:
        raise InputError(f"There is no variant in {path!r}.")
    return read


def read_fasta(path: str) -> str:
    """Read the only sequence of a FASTA file. RAISES (InputError): There are several, or see `read_sequences`.

    ``` title="protein.fasta"
    >my protein
    MKTAY
    IAKQR
    ```

    ```python
    import spacy_pll

    spacy_pll.read_fasta("protein.fasta")  # 'MKTAYIAKQR'
    ```
    """
    (first, *others) = read_sequences(path).items()
    if others:
        raise InputError(f"{path} has a second sequence, {others[0][0]!r:.60}.", "Give a file with one.")
    return first[1]


def read_sequences(path: str) -> dict[str, str]:
    """Read a FASTA file. RETURNS: The sequences by name, which is what stands between > and white space.

    RAISES (InputError): There is none, two have one name, or there is something else in it than capital letters; the
        message gives the line.
    """
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a FASTA file.")
    sequences, name = dict[str, str](), ""
    lines = Path(path).read_text("utf-8-sig", errors="replace").split("\n")
    for where, line in ((f"{path}, line {number}", line.rstrip()) for number, line in enumerate(lines, 1)):
        if line.startswith(">"):
            name = (line[1:].split() or [""])[0]
            if name in sequences:
                raise InputError(f"{where}: a second sequence with the name {name!r:.60}.", "Rename it.")
            sequences[name] = ""
        elif line and not sequences:
            raise InputError(f"{where}: a FASTA file begins with '>' and a name. It is {line!r:.60}.")
        elif wrong := next((letter for letter in line if not "A" <= letter <= "Z"), None):
            advice = "Write capital letters alone, without white space, gaps or a stop."
            raise InputError(f"{where}: {wrong!r} is no residue.", advice)
        elif line:
            sequences[name] += line
    if not sequences or not all(sequences.values()):
        which = next((f" {name!r}" for name in sequences if not sequences[name]), "")
        raise InputError(
            f"There is no sequence{which} in {path!r}.", "A FASTA file has '>' and a name, and lines of residues."
        )
    return sequences
