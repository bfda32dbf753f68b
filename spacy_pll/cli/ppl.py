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
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..settings import BATCH_SIZE
from ..visualize.text import text_table
from . import options
from .options import INPUT_HELP, OF_TOKENS, file_options, pipeline_options
from .terminal import save, say

UNIT_TITLES = {
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
    output: options.Output = None,
    force: options.Force = False,
    batch_size: options.BatchSize = BATCH_SIZE,
    n_process: options.Processes = 1,
) -> None:
    """Measure the pseudo-perplexity of a corpus.

    The result is given per wordpiece and per word (Salazar et al. 2020, section 2.3). --words says what counts as a
    word. The corpus is read as a stream, so it can have any size.
    """
    check_output(output, (".json",), force, path)
    nlp = make_pipeline(settings)
    texts = texts_of(read_records(path, column, nlp.vocab, **how))
    result = perplexity(nlp, texts, batch_size=batch_size, n_process=n_process, show_progress=True)
    if not result.pieces:
        raise InputError(f"Nothing was scored. None of the {result.texts} texts in {path!r} has a wordpiece.")
    say(summary_tables(result, get_scorer(nlp).settings.words))
    save(output, write_json, {"settings": {"path": path, **describe_scorer(nlp, settings)}, **result.to_dict()})


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
    per_word = {metric: f"{value:,.1f}" for metric, value in result.per_word.items()}
    rows = [(metric, f"{value:,.1f}", per_word.get(metric, "")) for metric, value in result.per_piece.items()]
    header = ("pseudo-perplexity", "per piece", "per word")
    return table(counts, aligns=["l", "r"]) + text_table([header, *rows])
