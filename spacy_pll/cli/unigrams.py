"""`pll unigrams CORPUS OUTPUT`: how often each wordpiece occurs."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.tokens import Doc

from ..analysis.unigrams import Unigrams
from ..component import get_scorer
from ..corpus.readers import read_records
from ..files import check_output, to_json, write_text
from ..pipelines import SETTINGS, PipelineSettings, make_pipeline
from . import options
from .options import INPUT_HELP, pipeline_options
from .terminal import report, save

# The counts depend on the model's vocabulary alone.
OTHERS = [name for name in SETTINGS if name not in ("model", "component", "causal")]


@pipeline_options(without=OTHERS)
def unigrams_cli(
    corpus: Annotated[str, typer.Argument(help=f"{INPUT_HELP}.")],
    output: Annotated[Path, typer.Argument(help="The table to write: FILE.json.")],
    settings: PipelineSettings,
    column: options.Column = "text",
    force: options.Force = False,
) -> None:
    """Count the wordpieces of a corpus, for normalised scores.

    SLOR and NormLP compare the score of a text with the frequencies of its wordpieces (`pll score --normalise`). The
    table is for the vocabulary of the model. Nothing is scored. The built-in model has a table.
    """
    check_output(output, (".json",), force, corpus)
    nlp = make_pipeline(settings)
    records = read_records(corpus, column, nlp.vocab)
    texts = (record.text.text if isinstance(record.text, Doc) else record.text for record in records)
    unigrams = Unigrams.count(get_scorer(nlp).model.load().tokenizer, texts, show_progress=True)
    total, seen = sum(unigrams.counts), sum(count > 0 for count in unigrams.counts)
    report(f"Counted {total:,} wordpieces, {seen:,} of the {len(unigrams.pieces):,} in the vocabulary.")
    save(output, write_text, [to_json(unigrams.to_json()), "\n"])
