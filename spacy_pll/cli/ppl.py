"""`pll ppl INPUT`: the pseudo-perplexity of a corpus."""

from typing import Annotated, Any

import typer
from wasabi import table

from ..component import get_scorer
from ..corpus.readers import read_records
from ..corpus.records import texts_of
from ..errors import InputError
from ..evaluation.perplexity import Perplexity, perplexity
from ..files import check_output, write_json
from ..language_model import BUILTIN_NAME
from ..pipelines import PipelineSettings, make_pipeline
from ..settings import BATCH_SIZE
from ..visualize.text import text_table
from . import options
from .options import INPUT_HELP, OF_TOKENS, file_options, pipeline_options, setting
from .terminal import save, say

UNITS = {
    "spacy": "spaCy's tokens",
    "tokenizer": "the tokenizer's own pre-tokens",
    "whitespace": "separated by white space",
    "piece": "wordpieces",
}


@pipeline_options(without=OF_TOKENS)
@file_options
def ppl_cli(
    path: Annotated[str, typer.Argument(metavar="INPUT", help=f"{INPUT_HELP}.")],
    settings: PipelineSettings,
    column: options.Column = "text",
    *,
    how: dict[str, Any],
    n_passes: Annotated[
        int | None,
        setting("Of the metric sentence_any_order: so many forward passes for each text. [default: 16 orders]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the metric sentence_any_order: another one draws other orders.")] = 0,
    output: options.Output = None,
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
    check_output(output, (".json",), force, path)
    nlp = make_pipeline(settings)
    texts = texts_of(read_records(path, column, nlp.vocab, **how))
    given: dict[str, Any] = {"n_passes": n_passes, "seed": seed, "n_process": n_process}
    result = perplexity(nlp, texts, **given, batch_size=batch_size, show_progress=True)
    if not result.pieces:
        raise InputError(f"Nothing was scored. None of the {result.texts} texts in {path!r} has a wordpiece.")
    scorer = get_scorer(nlp)
    say(summary_tables(result, scorer.settings.words))
    used = {"path": path, "model": settings.model or BUILTIN_NAME, **scorer.settings.record}
    used |= {"n_passes": n_passes, "seed": seed} if result.standard_error else {}
    save(output, write_json, {"settings": used, **result.to_dict()})


def summary_tables(result: Perplexity, unit: str) -> str:
    """The counts, and the perplexities by metric."""
    counts = [
        ("texts", f"{result.texts:,}"),
        ("  without a piece", f"{result.empty_texts:,}"),
        ("  read in windows", f"{result.windowed_texts:,}"),
        (f"words ({UNITS[unit]})", f"{result.words:,}"),
        ("  split into several pieces", f"{result.split_words:,} ({100 * result.split_share:.1f} %)"),
        ("wordpieces", f"{result.pieces:,}"),
        ("  unknown to the tokenizer", f"{result.unknown_pieces:,}"),
    ]
    columns = {"per piece": result.per_piece, "per word": result.per_word, "per byte": result.per_byte}
    rows = []
    for metric in result.log_likelihood:
        cells = [
            f"{values[metric]:,.{digits}f}" if values else "" for values, digits in zip(columns.values(), (1, 1, 2))
        ]
        if (error := result.standard_error.get(metric)) is not None:
            parts = zip(cells, (result.pieces, result.words, result.bytes))
            cells = [f"{cell} ± {100 * error / n:.1g} %" if cell else "" for cell, n in parts]
        rows.append((metric, *cells))
    header = ("pseudo-perplexity", *columns)
    return table(counts, aligns=["l", "r"]) + text_table([header, *rows])
