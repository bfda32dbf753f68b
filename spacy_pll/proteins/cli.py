"""`spacy-pll variants [FILE]`: the variants of a protein."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..arrays import FloatArray
from ..cells import label_of
from ..cli.options import OF_TOKENS, described, file_options, options_as_in, options_from, pipeline_options
from ..cli.results import measurement_table
from ..cli.terminal import PICTURES, TABLES, check_outputs, check_parquet, draw, report, save, say
from ..corpus.formats import write_table
from ..corpus.records import FileOptions
from ..errors import PLLError
from ..evaluation.intervals import Estimate
from ..evaluation.measurements import MACRO, RHO, Measurement
from ..files import check_apart
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..stream.known import digest_of
from ..visualize.text import text_table
from .assays import (
    GROUPED_BY,
    Assay,
    AssayScore,
    divide_by_protein,
    files_of,
    mean_correlation,
    read_assays,
    score_assays,
)
from .readers import read_fasta, read_sequences, read_variants
from .variants import NO_PICTURE, Method, VariantScores, measured_effects, variants

# Settings that say what is read and masked in texts.
OF_TEXTS = ("causal", "leading_space", "metrics", "words", "spans", "targets", "units", "mask_spacing")
SHOWN = 5  # of the variants with the highest and the lowest scores


@pipeline_options(without=(*OF_TOKENS, *OF_TEXTS))
@file_options
@options_as_in(read_variants, "column")
@options_from("options_of_variants", variants, "method", "others", "offset", "u_as_t")
@described()
def variants_cli(
    settings: PipelineSettings,
    path: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A file of variants (.jsonl, .csv, .tsv or .parquet). Without it, all single substitutions.",
        ),
    ] = None,
    sequence: Annotated[str | None, typer.Option(help="The protein, in one-letter codes.")] = None,
    fasta: Annotated[
        str | None, typer.Option(help="A FASTA file with the protein; with --protein, with all of them.")
    ] = None,
    protein: Annotated[
        str | None,
        typer.Option(
            help="FILE has variants of many proteins: the column that says of which. Their sequences are in --fasta or "
            "--sequence-column. --output is a folder."
        ),
    ] = None,
    sequence_column: Annotated[
        str | None, typer.Option(help="With --protein: the column with the whole protein, in one-letter codes.")
    ] = None,
    assays: Annotated[
        str | None,
        typer.Option(
            help="FILE is a reference sheet, as ProteinGym has it (DMS_id, target_seq, DMS_filename), and this is the "
            "folder of its assays. --output is a folder. [default of --measured: DMS_score]"
        ),
    ] = None,
    *,
    files: FileOptions,
    options_of_variants: dict[str, Any],
    column: str,
    measured: Annotated[
        str | None, typer.Option(help="A column of measured effects, to compare with: Spearman's rho.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the scores to FILE.csv, FILE.tsv or FILE.parquet.")
    ] = None,
    plot: Path | None = None,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Score the variants of a protein.

    The score says how much more probable a variant is than the protein itself, in nats (Meier et al. 2021).
    masked-marginals masks its sites, wt-marginals masks nothing, so that one forward pass serves all variants, and
    pseudo-ppl compares the pseudo-log-likelihoods of both sequences.

    $ spacy-pll variants variants.csv --sequence MKTAYIAKQRQISFVK --model facebook/esm2_t6_8M_UR50D
    $ spacy-pll variants variants.csv --fasta protein.fasta --measured effect --output scores.csv
    docs/proteins.md
    """
    given = {"--sequence": sequence, "--fasta": fasta, "--sequence-column": sequence_column, "--assays": assays}
    allowed = {"--fasta", "--sequence-column"} if protein else {"--sequence", "--fasta", "--assays"}
    if sum(value is not None for value in given.values()) != 1 or not any(given[name] for name in allowed):
        raise PLLError(
            "Give the protein as --sequence or as --fasta. For many, name the column --protein, and give --fasta or "
            "--sequence-column; or give the folder --assays."
        )
    if settings.model is None:
        raise PLLError("There is no model.", "Give a `model` of proteins, such as facebook/esm2_t12_35M_UR50D.")
    if path is None and (measured or protein or assays):
        raise PLLError("--measured, --protein and --assays are about FILE. Give the file, too.")
    if path is not None and (protein or assays):
        if output is None or output.suffix in TABLES or plot:
            raise PLLError("Name a folder for the scores of many proteins as --output. --plot draws one protein.")
        if protein:
            sequences = sequence_column or read_sequences(str(fasta))
            many = divide_by_protein(read_variants(path, column, **vars(files)), protein, sequences)
        else:
            many, measured = list(read_assays(path, str(assays), column, **vars(files))), measured or "DMS_score"
        read = [str(Path(assays, label_of(assay.fields["DMS_filename"]))) for assay in many if assays]
        inputs = [path, fasta or "", settings.model, settings.code or "", *read]
        check_apart([file for assay in many for file in files_of(output, assay)], inputs)
        score_many(settings, many, output, measured, force=force, **options_of_variants)
        return
    kept = check_outputs(force, resume, output, (output, TABLES), (plot, PICTURES))
    items = None if path is None else read_variants(path, column, **vars(files))
    check_parquet(output, [item.fields for item in items or ()])
    # What can be wrong is said before anything is scored.
    effects = None if measured is None else measured_effects(items or (), measured)
    if plot and items and all(":" in item.mutant or item.mutant.isalpha() for item in items):
        raise PLLError(NO_PICTURE)
    of_protein = sequence if sequence is not None else read_fasta(str(fasta))
    nlp = make_pipeline(settings)
    kept.about = {**describe_scorer(nlp, settings), "run": options_of_variants}
    digest = digest_of((item.mutant, item.fields) for item in items or ())
    kept.about_outputs = {"column": column, **vars(files), "measured": measured, "variants": digest}
    with kept.until_done():
        scored = variants(nlp, of_protein, items, show_progress=True, kept=kept, **options_of_variants)
        say(summary(scored))
        if effects is not None:
            rho = scored.correlation(str(measured))
            say(rho_table([with_effects(rho, effects, str(measured), scored.method)]))
        save(output, write_table, list(scored.rows()))
        save(plot, draw, scored.plot)


def with_effects(rho: Estimate | None, effects: FloatArray, measured: str, method: str, **of_group: Any) -> Measurement:
    """Spearman's rho of scores with measured effects, NaN where there is none. It is not defined if one does not vary.

    of_group (Any): What a `Measurement` says of the group.
    """
    n = int(np.isfinite(effects).sum())
    return Measurement(method, f"{RHO} with {measured}", n, *(rho or (None,)), **of_group)


def score_many(
    settings: PipelineSettings, many: list[Assay], output: Path, measured: str | None, method: Method, **options: Any
) -> None:
    """Score many proteins, each into a table, say of each that it is done, and print a table of Spearman's rho."""
    nlp, scores = make_pipeline(settings), []
    scorer = describe_scorer(nlp, settings)
    about = {"model": scorer["weights"], "code": scorer["code"], "precision": settings.precision or "float32"}
    options |= {"measured": measured, "method": method, "about": about, "show_progress": True}
    for score in score_assays(nlp, many, output, **options):
        scores.append(score)
        report(f"{score.assay.name}: {len(score.assay.variants):,} variants.")
    if measured:
        say(rho_table(assay_measurements(scores, measured, method)))


def assay_measurements(scores: Sequence[AssayScore], measured: str, method: Method) -> list[Measurement]:
    """The mean of Spearman's rho over assays, the mean of means if the sheet has such groups, and rho of each assay."""
    of_assays = list[Measurement]()
    for score in scores:
        name, effects = score.assay.name, measured_effects(score.assay.variants, measured)
        about = {"level": "assay", "name": name, "group": {"assay": name}}
        of_assays.append(with_effects(score.correlation, effects, measured, method, **about))
    groups = [name for name in GROUPED_BY if all(name in score.assay.fields for score in scores)]
    means, n = {"assays": mean_correlation(scores)}, sum(of_assay.n for of_assay in of_assays)
    if groups:
        means[", each over ".join(groups)] = mean_correlation(scores, groups)
    defined = {name: None if math.isnan(mean) else mean for name, mean in means.items()}
    rho = of_assays[0].measure
    return [Measurement(method, rho, n, mean, level=MACRO, name=of) for of, mean in defined.items()] + of_assays


def rho_table(measured: Sequence[Measurement]) -> str:
    """Spearman's rho as a table, and why there is none."""
    note = "-: one of the two does not vary.\n" if any(measurement.value is None for measurement in measured) else ""
    return measurement_table(measured, "variants") + note


def summary(scored: VariantScores) -> str:
    """The highest and the lowest scores."""
    order = (-scored.scores).argsort(kind="stable").tolist()
    rows = [(f"{scored.variants[i].mutant:.60}", f"{scored.scores[i]:.3f}") for i in order]
    if len(rows) > 2 * SHOWN:
        rows[SHOWN:-SHOWN] = [("...", "")]
    return text_table([(f"variants ({len(order):,})", scored.method), *rows])
