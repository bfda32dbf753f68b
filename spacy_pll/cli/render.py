"""`pll render INPUT OUTPUT.html`: scored texts on one page."""

from pathlib import Path
from typing import Annotated

import typer
from spacy.language import Language

from ..analysis.visualize import VMIN, View, page_parts
from ..corpus.outputs import ForceOption, check_output, write_whole
from ..corpus.readers import STANDARD_STREAM, list_files, read_records
from ..pipelines import (
    BatchSizeOption,
    GpuOption,
    LangOption,
    MaskSpacingOption,
    MetricsOption,
    ModelOption,
    PrecisionOption,
    SpansOption,
    WordsOption,
    get_scorer,
    make_pipeline,
    split_names,
)
from . import app
from .errors import shown_errors
from .progress import progress_bar


@app.command("render", no_args_is_help=True)
def render_cli(
    input: Annotated[
        str,
        typer.Argument(
            help="Texts: .txt (one a line), .jsonl, .csv, .tsv, .spacy, a folder of these, or - for standard input.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Argument(help="The page to write, an .html file.", show_default=False)],
    model: ModelOption = None,
    metrics: MetricsOption = None,
    words: WordsOption = None,
    spans: SpansOption = None,
    mask_spacing: MaskSpacingOption = None,
    lang: LangOption = "en",
    column: Annotated[str, typer.Option(help="The column, or key, that holds the text.")] = "text",
    vmin: Annotated[float, typer.Option(help="The score from which on, downward, the last colour is used.")] = VMIN,
    gpu_id: GpuOption = -1,
    batch_size: BatchSizeOption = 128,
    precision: PrecisionOption = None,
    force: ForceOption = False,
):
    """Write one page of texts with their tokens coloured by score, to search and to sort.

    The page is a single file that loads nothing: it can be mailed, and opened anywhere.
    """
    with shown_errors():
        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"OUTPUT is a page, so its name must end in .html. It is {str(output)!r}.")
        check_output(output, (output.suffix,), force)
        if input != STANDARD_STREAM:
            list_files(input)  # before a model is loaded in vain
        nlp = make_pipeline(
            model,
            split_names(metrics),
            words,
            spans,
            lang,
            precision,
            keep_pieces=True,
            gpu_id=gpu_id,
            mask_spacing=mask_spacing,
        )
        scorer = get_scorer(nlp)
        view = View(scorer.names, scorer.names.columns, vmin)
        title = "Standard input" if input == STANDARD_STREAM else Path(input).resolve().name
        about = f"Pseudo-log-likelihood ({', '.join(scorer.metrics)}) under the model {scorer.model.title}"
        docs = progress_bar(_scored(nlp, input, column, batch_size))
        write_whole(output, page_parts(docs, view, title, about))


def _scored(nlp: Language, input: str, column: str, batch_size: int):
    records = read_records(input, column, nlp.vocab)
    return nlp.pipe((record.text for record in records), batch_size=batch_size)
