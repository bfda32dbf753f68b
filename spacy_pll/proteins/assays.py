"""Many proteins: an assay is one of them with its variants, and is scored into a table of its own.

The mean over assays is ProteinGym's (Notin et al. 2023): that of proteins first, where several assays are of one.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language

from ..cells import label_of
from ..component import get_scorer
from ..corpus.decimals import have_commas
from ..corpus.formats import write_table
from ..corpus.records import DEFAULT_FILES, FileOptions, get_text
from ..errors import InputError, explained
from ..evaluation.intervals import Estimate
from ..evaluation.readers import rows_of
from ..files import check_target, write_json
from ..settings import with_known_values
from ..stream.known import KeptScores
from .readers import read_variants
from .residues import Others
from .variants import (
    Method,
    Variant,
    check_free,
    column_of,
    measured_effects,
    rank_correlation,
    variants,
    with_places,
)

SHEET = ("DMS_id", "target_seq", "DMS_filename")
# Columns of the sheet, by which means are taken of means.
GROUPED_BY = ("coarse_selection_type", "UniProt_ID")


class Assay(NamedTuple):
    """A sequence and its variants."""

    name: str  # that of its file of scores
    sequence: str
    variants: Sequence[Variant]
    fields: Mapping[str, Any] = {}  # other columns of the sheet


class AssayScore(NamedTuple):
    """How well the scores of an assay predict what was measured."""

    assay: Assay
    path: Path  # the table of scores
    correlation: Estimate | None = None  # Spearman's rho; None if nothing was measured, or one of the two is constant


def read_assays(path: str, folder: str, column: str = "mutant", **file_options: Any) -> Iterator[Assay]:
    """Read a reference sheet, in the form of ProteinGym's, and the assays that it names, one after the other.

    path (str): A table with the columns `DMS_id`, `target_seq` and `DMS_filename`.
    folder (str): Where the files of the assays are.
    column (str): The column of the substitutions in these files.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RAISES (InputError): A row cannot be read, or, before any assay is read, a file is not there.

    ``` title="sheet.csv"
    DMS_id,target_seq,DMS_filename
    A1,MKTAY,a1.csv
    ```

    ``` title="a1.csv"
    mutant,DMS_score
    K2R,0.3
    T3S,-0.2
    ```

    ```python
    import spacy_pll

    [assay] = spacy_pll.read_assays("sheet.csv", folder=".")
    assay.name, assay.variants[0].mutant  # 'A1', 'K2R'
    ```
    """
    sheet = list[tuple[str, Path, Assay]]()
    for _, where, row, _ in rows_of(path, "assays", FileOptions.of(file_options, "assays")):
        name, sequence, file = (get_text(row, where, key, None).strip() for key in SHEET)
        sheet.append((where, Path(folder, file), Assay(name, sequence, [], row)))
    _check_names((assay.name, where) for where, _, assay in sheet)
    for where, table, _ in sheet:
        if not table.is_file():
            raise InputError(f"{where}: there is no file {table.name!r} in {str(table.parent)!r}.")
    for _, table, assay in sheet:
        yield assay._replace(variants=read_variants(str(table), column, **file_options))


def divide_by_protein(items: Iterable[Variant], protein: str, sequences: str | Mapping[str, str]) -> list[Assay]:
    """The variants of each protein of a table that has those of many.

    protein (str): The column that says of which protein a variant is.
    sequences (Union[str, Mapping[str, str]]): The column of its sequence, or the sequences by protein.
    RAISES (InputError): There is no such column, a protein has no sequence, or two.
    """
    of_protein, known = defaultdict[str, list[Variant]](list), dict[str, str]()
    for where, item in with_places(items):
        row = dict(item.fields)
        name = get_text(row, where, protein, "`protein`").strip()
        if not isinstance(sequences, str) and name not in sequences:
            raise InputError(f"{where}: there is no sequence of {name!r}. There are: {', '.join(sequences):.200}.")
        own = get_text(row, where, sequences, "`sequences`").strip() if isinstance(sequences, str) else sequences[name]
        if known.setdefault(name, own) != own:
            raise InputError(f"{where}: {name!r} has another sequence here than before.", "Give them two names.")
        of_protein[name].append(item)
    _check_names((name, of_one[0].place or "") for name, of_one in of_protein.items())
    return [Assay(name, known[name], of_one) for name, of_one in of_protein.items()]


def _check_names(names: Iterable[tuple[str, str]]) -> None:
    """RAISES (InputError): A name cannot be that of a file, or occurs twice."""
    seen = set[str]()
    for name, where in names:
        if not name or name.startswith(".") or any(mark in name for mark in "/\\:\0"):
            raise InputError(f"{where}: {name!r} cannot be the name of a file of scores.", "Give it another name.")
        if name in seen:
            raise InputError(f"{where}: {name!r} occurs twice, and each has a file of scores.", "Give it another name.")
        seen.add(name)


def files_of(output: Path, assay: Assay) -> tuple[Path, Path]:
    """The table of the scores of an assay, and what they depend on."""
    return output / f"{assay.name}.csv", output / f"{assay.name}.json"


@with_known_values
def score_assays(
    nlp: Language,
    assays: Iterable[Assay],
    output: Path,
    *,
    measured: str | None = None,
    method: Method = "masked-marginals",
    force: bool = False,
    others: Others = "mask",
    offset: int = 1,
    u_as_t: bool = False,
    about: Mapping[str, Any] | None = None,
    show_progress: bool = False,
) -> Iterator[AssayScore]:
    """Score each assay into a table, `NAME.csv`. An assay whose table is there already is not scored again, and an
    assay in which an earlier run was stopped is continued.

    output (Path): The folder of the tables. Beside each is `NAME.json`, which says what its scores depend on.
    measured (Optional[str]): A column of measured effects, to compare with.
    method (Literal["masked-marginals", "wt-marginals", "pseudo-ppl"]), others (Literal["mask", "wt", "mut", "match"]),
        offset (int), u_as_t (bool), show_progress (bool): As for `variants`.
    force (bool): Score all assays again. A table stays until the new one is complete.
    about (Optional[Mapping[str, Any]]): What distinguishes the model from other models. None: its name.
    RAISES (FileExistsError): A table was made with another model, other settings, or other variants.
    RAISES (OSError): A table cannot be written.
    RAISES (ValueError): An assay lacks a column, or see `variants`.

    ``` title="sheet.csv"
    DMS_id,target_seq,DMS_filename
    A1,MKTAY,a1.csv
    ```

    ``` title="a1.csv"
    mutant,DMS_score
    K2R,0.3
    T3S,-0.2
    ```

    ```python
    from pathlib import Path
    import spacy_pll

    nlp = spacy_pll.make_pipeline("facebook/esm2_t12_35M_UR50D")
    assays = spacy_pll.read_assays("sheet.csv", folder=".")
    for found in spacy_pll.score_assays(nlp, assays, Path("scores"), measured="DMS_score"):
        print(found.assay.name, found.path.name)
    ```

    ```
    A1 A1.csv
    ```
    """
    scorer = get_scorer(nlp)
    settings = {**(about or {"model": scorer.model.describe().title}), "method": method, "others": others}
    settings |= {"offset": offset, "u_as_t": u_as_t, "mask_margin": scorer.settings.mask_margin}
    to_do = list[tuple[Assay, bool, dict[str, Any]]]()
    for assay in assays:  # what is wrong with one of them is said before any is scored
        content = repr([(variant.mutant, variant.fields) for variant in assay.variants]).encode("utf8", "surrogatepass")
        now = {**settings, "sequence": assay.sequence, "variants": sha256(content).hexdigest()}
        check_free(assay.variants, method)
        if measured is not None:
            measured_effects(assay.variants, measured)
        table, manifest = files_of(output, assay)
        check_target(table)
        # Beside a table that was being replaced when a run was stopped are the parts of the new one.
        is_done = table.exists() and not force and not table.with_name(f"{table.name}.parts").exists()
        to_do.append((assay, is_done, now))
        if is_done and (before := _read_manifest(manifest)) != now:
            changed = ", ".join(f"`{name}`" for name in now if before.get(name) != now[name])
            raise FileExistsError(
                f"{table} is there, with other {changed}. Name another folder, or add `force=True` to replace it."
            )
    for assay, is_done, now in to_do:
        table, manifest = files_of(output, assay)
        if not is_done:
            kept = KeptScores(table, resume=not force, force=force)
            kept.about = now
            with kept.until_done():
                scored = variants(
                    nlp,
                    assay.sequence,
                    assay.variants,
                    method=method,
                    others=others,
                    offset=offset,
                    u_as_t=u_as_t,
                    show_progress=show_progress,
                    kept=kept,
                )
                write_json(manifest, now)
                write_table(table, list(scored.rows()))
        yield AssayScore(assay, table, None if measured is None else _correlation(assay, table, measured, method))


def _correlation(assay: Assay, table: Path, measured: str, method: Method) -> Estimate | None:
    """Spearman's rho of the scores in a table with what was measured."""
    files = FileOptions(delimiter=";") if have_commas(variant.fields for variant in assay.variants) else DEFAULT_FILES
    scored = [Variant("", row, where) for _, where, row, _ in rows_of(str(table), "scores", files)]
    # What was measured is as it was read, unless someone has changed the order of the table.
    is_in_order = len(scored) == len(assay.variants) and all(
        variant.mutant in map(label_of, row.fields.values()) for variant, row in zip(assay.variants, scored)
    )
    effects = measured_effects(assay.variants if is_in_order else scored, measured)
    return rank_correlation(measured_effects(scored, column_of(method)), effects)


def _read_manifest(manifest: Path) -> dict[str, Any]:
    """What the scores of an assay depend on; nothing if the file is not there. RAISES (PLLError): It is damaged."""
    with explained(f"{manifest} is damaged", "Add `force=True` to score the assay again."):
        return json.loads(manifest.read_text("utf8")) if manifest.exists() else {}


def mean_correlation(scores: Sequence[AssayScore], levels: Sequence[str] = ()) -> float:
    """The mean of Spearman's rho; NaN if there is none.

    levels (Sequence[str]): Columns of the sheet. The mean is that of the means of the groups of the first one, each of
        which is that of the groups of the next.
    """
    scores = [score for score in scores if score.correlation]
    means = [score.correlation.value for score in scores if score.correlation]
    if levels:
        groups = defaultdict[str, list[AssayScore]](list)
        for score in scores:
            groups[label_of(score.assay.fields[levels[0]])].append(score)
        means = [mean_correlation(group, levels[1:]) for group in groups.values()]
    return float(np.mean(means)) if means else float("nan")
