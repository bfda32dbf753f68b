"""`pll pairs PATH`: the accuracy on minimal pairs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..evaluation.items import sample_items
from ..evaluation.minimal_pairs import minimal_pairs
from ..evaluation.readers import BAD, GOOD, read_pairs
from ..pipelines import PipelineSettings
from ..settings import BATCH_SIZE
from . import accuracies, options
from .options import OF_TOKENS, file_options, pipeline_options
from .terminal import draw, save, shows_progress


@pipeline_options(without=OF_TOKENS)
@file_options
def pairs_cli(
    path: Annotated[
        str, typer.Argument(help="A file of minimal pairs (.jsonl, .csv, .tsv or .parquet), or a folder of such files.")
    ],
    settings: PipelineSettings,
    scorers: accuracies.Scorers = [],  # noqa: B006
    revisions: accuracies.Revisions = [],  # noqa: B006
    good: Annotated[
        str | None,
        typer.Option(help=f"Column of the sentence that should score higher. [default: {' or '.join(GOOD)}]"),
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help=f"Column of the other sentence. [default: {' or '.join(BAD)}]")
    ] = None,
    *,
    how: dict[str, Any],
    by: accuracies.By = [],  # noqa: B006
    per_piece: accuracies.PerPiece = False,
    ties: accuracies.TiesOption = "share",
    sample: accuracies.Sample = None,
    output: accuracies.Results = None,
    items: Annotated[
        Path | None,
        typer.Option(
            help="Also write a table with one row per pair to FILE.csv, FILE.tsv or FILE.parquet: its columns, and its "
            "scores."
        ),
    ] = None,
    plot: options.Plot = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is a file of BLiMP, a folder of such files, or your own table with two columns of sentences. With several
    metrics or scorers, each is compared with the first one on the same pairs.
    """
    accuracies.check_outputs(output, items, plot, force, path)
    pairs = read_pairs(path, good, bad, **how)
    if sample:
        pairs = sample_items(pairs, sample, by or None)
    loaded = accuracies.load_scorers(scorers, revisions, settings)
    found = minimal_pairs(
        loaded.compared,
        pairs,
        per_piece=per_piece,
        ties=ties,  # type: ignore[arg-type]  # one of the two, which the option checks
        batch_size=batch_size,
        n_process=n_process,
        show_progress=shows_progress(),
    )
    about = {"path": path, "per_piece": per_piece, "ties": ties, "sample": sample}
    accuracies.report(found, by, loaded, about, output, items, "pairs")
    save(plot, draw, found.plot_curves if revisions else found.plot, by or None)
