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
from .options import described_options, fields_of, file_options, options_in_place, pipeline_options
from .terminal import check_table, save

OF_WORDS = described_options(score_words, ["word", "by", "space_after", "base", "lags", "log_frequency"])


@pipeline_options(without=("alternatives", "keep_pieces", "words", "targets", "units"))
@options_in_place("of_words", *fields_of(score_words), OF_WORDS, dict)
@file_options
def words_cli(
    path: Annotated[str, typer.Argument(metavar="INPUT", help=f"A table ({', '.join(ROW_READERS)}).")],
    output: Annotated[Path, typer.Argument(help="The table to write: FILE.csv, FILE.tsv or FILE.parquet.")],
    settings: PipelineSettings,
    of_words: dict[str, Any],
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
    of_words |= {"batch_size": batch_size, "n_process": n_process, "show_progress": True}
    found = score_words(rows, make_pipeline(settings), **of_words)
    save(output, write_table, found)
