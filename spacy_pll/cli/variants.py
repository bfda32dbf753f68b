"""`pll variants [FILE]`: the variants of a protein."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus.formats import write_table
from ..errors import PLLError
from ..evaluation.readers import read_fasta, read_variants
from ..evaluation.variants import METHODS, NO_PICTURE, OTHERS, VariantScores, measured_effects, variants
from ..pipelines import PipelineSettings, make_pipeline
from ..visualize.text import Table, text_table
from . import options
from .options import OF_TOKENS, file_options, one_of, pipeline_options
from .terminal import check_picture, check_table, draw, save, say

# Settings that say what is read and masked in texts.
OF_TEXTS = ("causal", "metrics", "words", "spans", "targets", "units", "mask_spacing")
SHOWN = 5  # of the variants with the highest and the lowest scores


@pipeline_options(without=(*OF_TOKENS, *OF_TEXTS))
@file_options
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
    fasta: Annotated[str | None, typer.Option(help="A FASTA file with the protein.")] = None,
    column: Annotated[
        str, typer.Option(help="The column with the substitutions, such as A24G, or A24G:K30R for several.")
    ] = "mutant",
    *,
    how: dict[str, Any],
    offset: Annotated[int, typer.Option(help="The number of the first residue of the sequence.")] = 1,
    method: Annotated[str, typer.Option(help="How variants are scored.", **one_of(*METHODS))] = METHODS[0],
    others: Annotated[
        str,
        typer.Option(
            help="With masked-marginals, what is seen at the other sites of a variant: masks, the residues of the "
            "protein, those of the variant, or, for each residue, those of its own sequence.",
            **one_of(*OTHERS),
        ),
    ] = OTHERS[0],
    measured: Annotated[
        str | None, typer.Option(help="A column of measured effects, to compare with: Spearman's rho.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Also write the scores to FILE.csv, FILE.tsv or FILE.parquet."),
    ] = None,
    plot: options.Plot = None,
    force: options.Force = False,
) -> None:
    """Score the variants of a protein.

    The score says how much more probable a variant is than the protein itself, in nats (Meier et al. 2021).
    masked-marginals masks its sites, wt-marginals masks nothing, so that one forward pass serves all variants, and
    pseudo-ppl compares the pseudo-log-likelihoods of both sequences.
    """
    if (sequence is None) == (fasta is None):
        raise ValueError("Give the protein as --sequence or as --fasta.")
    if settings.model is None:
        raise PLLError("There is no model.", "Give a `model` of proteins, such as facebook/esm2_t12_35M_UR50D.")
    check_table(output, force, path, fasta)
    check_picture(plot, force, path, fasta)
    if measured is not None and path is None:
        raise ValueError("--measured names a column of FILE. Give the file, too.")
    protein = sequence if fasta is None else read_fasta(fasta)
    assert protein is not None  # one of the two is given
    items = None if path is None else read_variants(path, column, **how)
    if items is not None:  # what can be wrong is said before anything is scored
        if measured is not None:
            measured_effects(items, measured)
        if plot and all(":" in item.mutant for item in items):
            raise ValueError(NO_PICTURE)
    found = variants(
        make_pipeline(settings),
        protein,
        items,
        method=method,  # type: ignore[arg-type]  # one of them, which the option checks
        others=others,  # type: ignore[arg-type]  # the same
        offset=offset,
        show_progress=True,
    )
    say(summary(found))
    if measured is not None:
        rho = found.correlation(measured)
        shown = rho and f"{rho.value:.3f} (95 % interval {rho.low:.3f} to {rho.high:.3f})"
        some = f"{found.n_measured(measured):,} of {len(found.variants):,} variants"
        say(f"Spearman's rho with {measured} ({some}): {shown or 'none, since one of the two does not vary'}.")
    save(output, write_table, list(found.rows()))
    save(plot, draw, found.plot)


def summary(found: VariantScores) -> str:
    """The highest and the lowest scores."""
    order = (-found.scores).argsort(kind="stable").tolist()
    ends = [order] if len(order) <= 2 * SHOWN else [order[:SHOWN], order[-SHOWN:]]
    rows: Table = [(f"variants ({len(order):,})", found.method)]
    for number, some in enumerate(ends):
        rows += [("...", "")] * (number > 0)
        rows += [(found.variants[i].mutant, f"{found.scores[i]:.3f}") for i in some]
    return text_table(rows)
