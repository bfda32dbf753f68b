"""`pll words INPUT OUTPUT`: a table with one word in each row, scored."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ..corpus.formats import write_table
from ..corpus.readers import ROW_READERS, format_of, read_rows
from ..errors import InputError
from ..pipelines import PipelineSettings, make_pipeline
from ..settings import BATCH_SIZE
from ..tables.word_rows import score_words
from . import options
from .options import file_options, pipeline_options, setting, several
from .terminal import check_table, save


@pipeline_options(without=("alternatives", "keep_pieces", "words", "targets", "units"))
@file_options
def words_cli(
    path: Annotated[str, typer.Argument(metavar="INPUT", help=f"A table ({', '.join(ROW_READERS)}).")],
    output: Annotated[Path, typer.Argument(help="The table to write: FILE.csv, FILE.tsv or FILE.parquet.")],
    settings: PipelineSettings,
    word: Annotated[str, typer.Option(help="The column of the words.")] = "word",
    by: Annotated[
        list[str], several("Columns that say which text a row belongs to. [default: all rows are one text]")
    ] = [],  # noqa: B006
    space_after: Annotated[
        str | None,
        setting(
            "A column that says whether a space follows: true or false, 1 or 0, or the white space itself. [default: "
            "one follows on each word]"
        ),
    ] = None,
    base: Annotated[
        float | None, setting("Of the logarithm in the column of surprisal: 2 for bits. [default: e, for nats]")
    ] = None,
    lags: Annotated[
        int, typer.Option(min=0, help="Also the values of so many words before, such as surprisal_lag1.")
    ] = 0,
    log_frequency: Annotated[
        bool | None,
        setting("The column `log_frequency` (needs the extra `[reading]`). [default: if the extra is installed]"),
    ] = None,
    *,
    how: dict[str, Any],
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Score a table that has one word in each row.

    The words of a text are joined, and each is scored in its whole text. The output has the same rows in the same
    order, with scores, numbers of wordpieces, surprisal, length and frequency. Rows without a word are kept.
    """
    check_table(output, force, path)
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a table with one word in each row.")
    if format_of(Path(path)) not in ROW_READERS:
        raise InputError(f"{path!r} is no file that ends in {', '.join(ROW_READERS)}.")
    rows = [row for _, row in read_rows(Path(path), **how)]
    found = score_words(
        rows,
        make_pipeline(settings),
        word=word,
        by=by,
        space_after=space_after,
        base=base,
        lags=lags,
        log_frequency=log_frequency,
        batch_size=batch_size,
        n_process=n_process,
        show_progress=True,
    )
    save(output, write_table, found)
