"""`pll choices PATH`: the accuracy on choices of several options, with or without a context."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..evaluation.choice_readers import read_choices
from ..evaluation.choices import ChoiceScores, check_choices
from ..evaluation.labels import KINDS
from ..files import check_output, write_json
from ..pipelines import PipelineSettings
from . import options as common
from .comparison import Evaluation, evaluation_options
from .options import OF_TOKENS, file_options, one_of, pipeline_options, several
from .terminal import save


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
@file_options
def choices_cli(
    path: Annotated[
        str, typer.Argument(help="A file of choices (.jsonl, .csv, .tsv or .parquet), or a folder of such files.")
    ],
    settings: PipelineSettings,
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
    after: Annotated[
        str | None, common.setting("Column of what stands after the text. It is read, and not scored.")
    ] = None,
    separator: Annotated[str, common.SEPARATOR] = " ",
    reading: Annotated[
        str,
        typer.Option(
            help="How EWoK is read: two texts after the first context, or each text in two contexts.",
            **one_of("texts", "contexts"),
        ),
    ] = "texts",
    shared_pieces: Annotated[
        bool,
        typer.Option(
            "--shared-pieces",
            help="A wordpiece that context and text share belongs to the context, where it begins. Otherwise it is an "
            "error.",
        ),
    ] = False,
    predictions: Annotated[
        Path | None,
        typer.Option(help="Also write the chosen texts to FILE.json, as the BabyLM evaluation pipeline does."),
    ] = None,
    *,
    how: dict[str, Any],
    evaluation: Evaluation,
) -> None:
    """Measure the accuracy on choices, with or without a context.

    An option is a text after a context. Only the text is scored. The accuracy is the share of choices in which the
    right option has the highest score.

    PATH is your own table, or a file as it is published: BLiMP and its supplement, EWoK, COMPS, entity tracking, WUG;
    or a folder of such files. With several metrics or scorers, each is compared with the first one on the same choices.

    In WUG no option is right. There the result is Spearman's correlation with the preferences of people.
    """
    evaluation.check_outputs(path)
    check_output(predictions, (".json",), evaluation.force, path)
    read = read_choices(
        path,
        context,
        options,
        label,
        labels=labels,  # type: ignore[arg-type]  # one of them, which the option checks
        separator=separator,
        after=after,
        reading=reading,  # type: ignore[arg-type]  # the same
        **how,
    )
    check_choices(read)
    if evaluation.plot and read[0].preference is not None:
        raise InputError("--plot draws accuracies, and these choices have none. Leave it out.")
    about = {"path": path, "reading": reading, "shared_pieces": shared_pieces}
    found = evaluation.measure(evaluation.sampled(read), settings, about, ChoiceScores, shared_pieces)
    if predictions:
        save(predictions, write_json, found.predictions(next(iter(found.scores)), evaluation.by or None))
