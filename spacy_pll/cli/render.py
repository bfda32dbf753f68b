"""`pll render INPUT OUTPUT.html`: scored texts on one page."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from spacy.language import Language
from tqdm import tqdm

from ..visualize import VMIN, View, page_parts
from . import app
from .errors import shown_errors
from .pipelines import (
    BatchSizeOption,
    GpuOption,
    LangOption,
    MetricsOption,
    ModelOption,
    PrecisionOption,
    SpansOption,
    WordsOption,
    get_scorer,
    make_pipeline,
    split_names,
)
from .texts import STANDARD_STREAM, list_files, read_records


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
    lang: LangOption = "en",
    column: Annotated[str, typer.Option(help="The column, or key, that holds the text.")] = "text",
    vmin: Annotated[float, typer.Option(help="The score from which on, downward, the last colour is used.")] = VMIN,
    gpu_id: GpuOption = -1,
    batch_size: BatchSizeOption = 128,
    precision: PrecisionOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUTPUT where there is one.")] = False,
):
    """Write one page of texts with their tokens coloured by score, to search and to sort.

    The page is a single file that loads nothing: it can be mailed, and opened anywhere.
    """
    with shown_errors():
        check_output(output, force)
        if input != STANDARD_STREAM:
            list_files(input)  # before a model is loaded in vain
        nlp = make_pipeline(model, split_names(metrics), words, spans, lang, precision, keep_pieces=True, gpu_id=gpu_id)
        scorer = get_scorer(nlp)
        view = View(scorer.names, scorer.names.columns, vmin)
        title = "Standard input" if input == STANDARD_STREAM else Path(input).resolve().name
        about = f"Pseudo-log-likelihood ({', '.join(scorer.metrics)}) under the model {scorer.model.title}"
        docs = tqdm(_scored(nlp, input, column, batch_size), unit=" texts", disable=None)
        write_whole(output, page_parts(docs, view, title, about))


def _scored(nlp: Language, input: str, column: str, batch_size: int):
    records = read_records(input, column, nlp.vocab)
    return nlp.pipe((record.text for record in records), batch_size=batch_size)


def check_output(path: Path, force: bool):
    """Before any work is done: can this file be written?

    RAISES (ValueError, OSError): It cannot; the message says why.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"OUTPUT is a page, so its name must end in .html. It is {str(path)!r}.")
    if path.is_dir():
        raise IsADirectoryError(f"OUTPUT is a folder: {path}. Name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} into. Make it first.")
    if path.exists() and not force:
        raise FileExistsError(f"There is a file {path} already. Add --force to replace it, or name another.")


def write_whole(path: Path, parts: Iterable[str]):
    """Write a file that appears whole or not at all: under another name first, which goes away if anything fails."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(unfinished, "w", encoding="utf8", newline="\n") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
