"""`pll ppl INPUT`: the pseudo-perplexity of a corpus."""

import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean, variance
from typing import Annotated, Any

import typer
from wasabi import table

from ..component import get_scorer
from ..corpus.formats import write_table
from ..corpus.readers import check_records, read_records, read_texts
from ..corpus.records import STANDARD_STREAM, warn_of_missing
from ..errors import InputError, no_column
from ..evaluation.perplexity import Perplexity, perplexity, window_perplexities
from ..files import check_output, write_json
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..settings import BATCH_SIZE
from ..tables.rows import check_columns
from ..visualize.text import Table, text_table
from . import options
from .options import INPUT_HELP, OF_TOKENS, argument_options, file_options, pipeline_options, setting
from .terminal import check_table, save, say

UNIT_TITLES = {
    "spacy": "spaCy's tokens",
    "tokenizer": "the tokenizer's own pre-tokens",
    "whitespace": "separated by white space",
    "piece": "wordpieces",
}


@pipeline_options(without=OF_TOKENS)
@file_options
@argument_options("bound", perplexity, "n_passes", "seed")
def ppl_cli(
    path: Annotated[str, typer.Argument(metavar="INPUT", help=f"{INPUT_HELP}.")],
    settings: PipelineSettings,
    column: options.Column = "text",
    *,
    how: dict[str, Any],
    windows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Instead: the pseudo-perplexity of every window of so many words, separated by white space, and its "
            "mean, maximum and variance for each text. --output is a table with a row for each window.",
        ),
    ] = None,
    by: Annotated[
        str | None, setting("With --windows: a column, such as the speaker, instead of each text by itself.")
    ] = None,
    bound: dict[str, Any],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write the results to FILE.json, or with --windows .csv.")
    ] = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Measure the pseudo-perplexity of a corpus.

    The result is given per wordpiece and per word (Salazar et al. 2020, section 2.3). --words says what counts as a
    word. The corpus is read as a stream, so it can have any size.

    The metric sentence_any_order alone gives an upper bound on the perplexity, with its standard error by the draw of
    the orders, in per cent.
    """
    if by is not None and windows is None:
        raise InputError("--by divides the windows of --windows. Give both.")
    if windows is None:
        check_output(output, (".json",), force)
    else:
        check_table(output, force)
    nlp = make_pipeline(settings)
    work: dict[str, Any] = {"batch_size": batch_size, "n_process": n_process, "show_progress": True}
    if windows is not None:
        every = list(enumerate(read_records(path, column, nlp.vocab, **how)))
        records = [(number, one) for number, one in every if not one.problem]
        warn_of_missing(len(every) - len(records), len(every), "They are left out")
        for _, record in records:
            check_columns(list(record.fields), ["doc", "window", "window_text", "pppl"], record.location)
            if by is not None and by not in record.fields:
                raise no_column(record.location, by, record.fields)
        found = window_perplexities(nlp, [str(one.text) for _, one in records], windows, **work)
        rows = [
            {"doc": number, **record.fields, "window": i, "window_text": text, "pppl": value}
            for (number, record), of_text in zip(records, found)
            for i, (text, value) in enumerate(of_text)
        ]
        if not rows:
            raise InputError(f"Nothing was scored. No text in {path!r} has a word.")
        say(windows_table(rows, by or "doc"))
        save(output, write_table, rows)
        return
    if path != STANDARD_STREAM:
        check_records(path, column, nlp.vocab, **how)
    texts = read_texts(path, column, nlp.vocab, **how)
    result = perplexity(nlp, texts, **bound, **work)
    if not result.pieces:
        raise InputError(f"Nothing was scored. None of the {result.texts} texts in {path!r} has a wordpiece.")
    say(summary_tables(result, get_scorer(nlp).settings.words))
    used = {"path": path, **describe_scorer(nlp, settings)}
    used |= bound if result.standard_error else {}
    save(output, write_json, {"settings": used, **result.to_dict()})


def windows_table(rows: list[dict[str, Any]], by: str) -> str:
    """The mean, the maximum and the variance (of the sample) of the perplexities of the windows of each group."""
    groups = defaultdict[str, list[float]](list)
    for row in rows:
        groups[str(row.get(by))] += [] if math.isnan(row["pppl"]) else [row["pppl"]]
    lines: Table = [(by, "windows", "mean", "maximum", "variance")]
    for name, values in groups.items():
        spread = f"{variance(values):,.1f}" if len(values) > 1 else ""
        lines.append((name, f"{len(values):,}", *(f"{f(values):,.1f}" if values else "" for f in (fmean, max)), spread))
    return text_table(lines)


def summary_tables(result: Perplexity, unit: str) -> str:
    """The counts, and the perplexities by metric."""
    counts = [
        ("texts", f"{result.texts:,}"),
        ("  without a piece", f"{result.empty_texts:,}"),
        ("  read in windows", f"{result.windowed_texts:,}"),
        (f"words ({UNIT_TITLES[unit]})", f"{result.words:,}"),
        ("  split into several pieces", f"{result.split_words:,} ({100 * result.split_share:.1f} %)"),
        ("wordpieces", f"{result.pieces:,}"),
        ("  unknown to the tokenizer", f"{result.unknown_pieces:,}"),
    ]
    rows: Table = [("pseudo-perplexity", "per piece", "per word", "per byte")]
    columns = (
        (result.per_piece, result.pieces, 1),
        (result.per_word, result.words, 1),
        (result.per_byte, result.bytes, 2),
    )
    for metric in result.log_likelihood:
        error = result.standard_error.get(metric)
        cells = (
            f"{values[metric]:,.{digits}f}" + (f" ± {100 * error / n:.1g} %" if error is not None else "")
            if values
            else ""
            for values, n, digits in columns
        )
        rows.append((metric, *cells))
    return table(counts, aligns=["l", "r"]) + text_table(rows)
