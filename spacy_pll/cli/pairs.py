"""`pll pairs PATH`: the accuracy on minimal pairs."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..evaluation.items import sample_items
from ..evaluation.minimal_pairs import PairScores, SentenceScores, minimal_pairs
from ..evaluation.pair_readers import read_pairs
from ..pipelines import PipelineSettings
from ..settings import BATCH_SIZE
from . import accuracies, options
from .options import OF_TOKENS, file_options, one_of, pipeline_options, setting, several
from .terminal import draw, save, shows_progress


@pipeline_options(without=OF_TOKENS)
@file_options
def pairs_cli(
    path: Annotated[
        str,
        typer.Argument(
            help="A file of minimal pairs (.jsonl, .json, .csv, .tsv, .parquet or .txt), or a folder of such files."
        ),
    ],
    settings: PipelineSettings,
    scorers: accuracies.Scorers = [],  # noqa: B006
    revisions: accuracies.Revisions = [],  # noqa: B006
    good: Annotated[
        str | None,
        setting("Column of the sentence that should score higher. [default: a name that is known, such as good]"),
    ] = None,
    bad: Annotated[str | None, setting("Column of the other sentence. [default: a known name, such as bad]")] = None,
    sentence: Annotated[
        str | None, setting("Column of the sentences, if each has a row of its own, in place of --good and --bad.")
    ] = None,
    label: Annotated[
        str | None,
        setting(
            "With --sentence: the column that says which sentences are good, and what it has there, if it is not 1, "
            "True, Grammatical or the like.",
            metavar="COLUMN[=VALUE]",
        ),
    ] = None,
    item: Annotated[
        list[str],
        several(
            "With --sentence: columns that the two sentences of a pair, and no others, share. [default: they "
            "are neighbours]"
        ),
    ] = [],  # noqa: B006
    first: Annotated[
        str | None,
        setting(
            "Which of two neighbours comes first, if no column says which is good. [default: in .txt files the bad "
            "one, as in Zorro]",
            **one_of("good", "bad"),
        ),
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

    PATH is your own table, or a file as it is published (BLiMP, JBLiMP, TurBLiMP, MultiBLiMP, RuBLiMP, CrowS-Pairs,
    BLiMP-NL, CLiMP, CLAMS, Zorro), or a folder of such files. With several metrics or scorers, each is compared with
    the first one on the same pairs.
    """
    accuracies.check_outputs(output, items, plot, force, path)
    how |= {"sentence": sentence, "label": label, "item": item, "first": first}
    pairs = read_pairs(path, good, bad, **how)
    if sample:
        pairs = sample_items(pairs, sample, by or None)
    accuracies.check_groups(pairs, by)
    loaded = accuracies.load_scorers(scorers, revisions, settings)
    if items:  # the table with other numbers, so that columns that clash are found before anything is scored
        numbers = SentenceScores(*np.ones((4, len(pairs))))
        list(PairScores(pairs, dict.fromkeys(loaded.labels, numbers), columns=loaded.labels).rows())
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
