"""`pll choices PATH`: the accuracy on choices of several options, with or without a context."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus.formats import write_table
from ..errors import InputError
from ..evaluation.choice_readers import read_choices
from ..evaluation.choices import ChoiceScores, choices
from ..evaluation.items import sample_items
from ..evaluation.labels import KINDS
from ..evaluation.preferences import Correlation
from ..files import check_output, write_json
from ..pipelines import PipelineSettings
from ..settings import BATCH_SIZE
from . import accuracies
from . import options as common
from .options import OF_TOKENS, file_options, one_of, pipeline_options, several
from .terminal import draw, save, say, shows_progress

TITLE = "Spearman's rho (95 % interval)"


def show(one: Correlation) -> str:
    """A correlation with its interval."""
    return "-" if one.rho is None else f"{one.rho:.3f} ({one.low:.3f} to {one.high:.3f})"


@pipeline_options(without=(*OF_TOKENS, "targets"))
@file_options
def choices_cli(
    path: Annotated[
        str, typer.Argument(help="A file of choices (.jsonl, .csv, .tsv or .parquet), or a folder of such files.")
    ],
    settings: PipelineSettings,
    scorers: accuracies.Scorers = [],  # noqa: B006
    revisions: accuracies.Revisions = [],  # noqa: B006
    context: Annotated[
        list[str],
        several("Column of the context, or of a list; or the columns of several. [default: context, if it is there]"),
    ] = [],  # noqa: B006
    options: Annotated[
        list[str],
        several("Columns of the texts to choose from, or one column of a list. [default: options]"),
    ] = [],  # noqa: B006
    label: Annotated[
        str | None,
        typer.Option(
            help="Column that says which option is right: its text, its column, its number from 0, or its letter. "
            "[default: label]"
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="How all labels of a file are read, if they can be read in two ways, or count from 1. [default: as "
            "all can be read]",
            **one_of(*KINDS),
        ),
    ] = None,
    separator: Annotated[str, common.SEPARATOR] = " ",
    reading: Annotated[
        str,
        typer.Option(
            help="How EWoK is read: two texts after the first context, or each text in two contexts.",
            **one_of("texts", "contexts"),
        ),
    ] = "texts",
    *,
    how: dict[str, Any],
    by: accuracies.By = [],  # noqa: B006
    per_piece: accuracies.PerPiece = False,
    ties: accuracies.TiesOption = "share",
    sample: accuracies.Sample = None,
    output: accuracies.Results = None,
    items: Annotated[
        Path | None,
        typer.Option(help="Also write a table with one row per option to FILE.csv, FILE.tsv or FILE.parquet."),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Also write the chosen texts to FILE.json, as the BabyLM evaluation pipeline does."),
    ] = None,
    plot: common.Plot = None,
    force: common.Force = False,
    batch_size: common.BatchSize = BATCH_SIZE,
    n_process: common.Processes = 1,
) -> None:
    """Measure the accuracy on choices, with or without a context.

    An option is a text after a context. Only the text is scored. The accuracy is the share of choices in which the
    right option has the highest score.

    PATH is your own table, or a file as it is published: BLiMP and its supplement, EWoK, COMPS, entity tracking, WUG;
    or a folder of such files. With several metrics or scorers, each is compared with the first one on the same choices.

    In WUG no option is right. There the result is Spearman's correlation with the preferences of people.
    """
    accuracies.check_outputs(output, items, plot, force, path)
    check_output(predictions, (".json",), force, path)
    read = read_choices(
        path,
        context,
        options,
        label,
        labels=labels,  # type: ignore[arg-type]  # one of them, which the option checks
        separator=separator,
        reading=reading,  # type: ignore[arg-type]  # the same
        **how,
    )
    if plot and read[0].preference is not None:
        raise InputError("--plot draws accuracies, and these choices have none. Leave it out.")
    if sample:
        read = sample_items(read, sample, by or None)
    accuracies.check_groups(read, by)
    loaded = accuracies.load_scorers(scorers, revisions, settings)
    if items:  # the table with other numbers, so that columns that clash are found before anything is scored
        ones = dict.fromkeys(loaded.labels, [[1] * len(choice.options) for choice in read])
        list(ChoiceScores(read, ones, ones, columns=loaded.labels).rows())
    found = choices(
        loaded.compared,
        read,
        per_piece=per_piece,
        ties=ties,  # type: ignore[arg-type]  # one of the two, which the option checks
        batch_size=batch_size,
        n_process=n_process,
        show_progress=shows_progress(),
    )
    about = {"path": path, "reading": reading, "per_piece": per_piece, "ties": ties, "sample": sample}
    if found.has_preferences:
        correlations = found.correlations(by or None)
        say(accuracies.group_table(TITLE, "choices", correlations, lambda one: one.choices, show))
        accuracies.write_results([one._asdict() for one in correlations], by, loaded, about, output)
        save(items, write_table, list(found.rows()))
    else:
        accuracies.report(found, by, loaded, about, output, items, "choices")
        save(plot, draw, found.plot_curves if revisions else found.plot, by or None)
    if predictions:
        save(predictions, write_json, found.predictions(next(iter(found.scores)), by or None))
