"""`pll suite PATH --reader NAME`: published test suites with measures of their own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus.formats import write_table
from ..corpus.records import FileOptions
from ..evaluation.acceptability import read_acceptability
from ..evaluation.suites import Measure, check_rows, read_suite, score_suite
from ..files import check_output, write_json
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..settings import BATCH_SIZE
from ..visualize.text import text_table
from . import options
from .comparison import PerPiece, with_interval
from .options import COLUMN_AND_VALUE, OF_TOKENS, argument_options, file_options, pipeline_options
from .terminal import check_table, save, say


@pipeline_options(without=(*OF_TOKENS, "targets"))
@file_options
@argument_options("acceptability", read_acceptability, "sentence", "label", "threshold", label=COLUMN_AND_VALUE)
def suite_cli(
    path: Annotated[str, typer.Argument(help="The file of the suite, or a folder of such files.")],
    settings: PipelineSettings,
    reader: Annotated[
        str,
        typer.Option(
            help="What the file is: stereoset (its dev.json), syntaxgym (suites in JSON), acceptability (a table of "
            "sentences with labels, such as CoLA), or the name of a reader of another package."
        ),
    ],
    acceptability: dict[str, Any],
    *,
    how: dict[str, Any],
    per_piece: PerPiece = False,
    output: options.Output = None,
    items: Annotated[
        Path | None,
        typer.Option(help="Also write the score of each sentence or region to FILE.csv, FILE.tsv or FILE.parquet."),
    ] = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Score a published test suite: StereoSet, SyntaxGym, acceptability judgments.

    StereoSet has its language modelling score, its stereotype score and icat. SyntaxGym has the share of items for
    which a formula about surprisals of regions holds. Acceptability judgments have AUC and Matthews' correlation.
    Another package can add readers (entry point spacy_pll_readers).
    """
    check_output(output, (".json",), force)
    check_table(items, force)
    # A reader need not take what is not given.
    how = {name: value for name, value in how.items() if value != getattr(FileOptions(), name)}
    how |= {name: value for name, value in acceptability.items() if value is not None}
    suite = read_suite(path, reader, **how)
    if items:
        check_rows(suite)
    nlp = make_pipeline(settings)
    found = score_suite(nlp, suite, per_piece=per_piece, batch_size=batch_size, n_process=n_process, show_progress=True)
    measures = found.measures()
    say(measure_table(measures))
    about = {"path": path, "reader": reader, "per_piece": per_piece, **describe_scorer(nlp, settings)}
    save(output, write_json, {"settings": about, "results": [one._asdict() for one in measures]})
    if items:
        save(items, write_table, list(found.rows()))


def measure_table(measures: list[Measure]) -> str:
    """A row for each measure of each group, a column for each metric."""
    scorers = list(dict.fromkeys(one.scorer for one in measures))
    by_scorer = [[one for one in measures if one.scorer == scorer] for scorer in scorers]
    rows = [
        (one.group, one.measure, one.n, *(with_interval(*same[3:6]) for same in (one, *others)))
        for one, *others in zip(*by_scorer)
    ]
    return text_table([("group", "measure (95 % interval)", "items", *scorers), *rows])
