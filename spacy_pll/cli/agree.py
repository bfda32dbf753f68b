"""`pll agree SCORER_A SCORER_B CORPUS`: how well two scorers agree."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from ..corpus.files import check_output, write_json, write_text
from ..corpus.readers import STANDARD_STREAM, list_files, read_records
from ..evaluation.agreement import compare_scorers
from ..evaluation.agreement_page import agreement_page, agreement_tables
from ..pipelines import make_pipeline, parse_settings
from .errors import shown_errors
from .options import BatchSizeOption, ColumnOption, ForceOption
from .progress import progress_bar
from .terminal import say


def agree_cli(
    scorer_a: Annotated[
        str,
        typer.Argument(
            help="A hub name or folder of a model, a spaCy pipeline, or builtin. Settings can follow after commas: "
            "builtin,mask_margin=1 or bert-base-cased,precision=bfloat16.",
            show_default=False,
        ),
    ],
    scorer_b: Annotated[str, typer.Argument(help="The other scorer.", show_default=False)],
    corpus: Annotated[str, typer.Argument(help="The texts: a file or folder, as for `pll score`.", show_default=False)],
    column: ColumnOption = "text",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many texts, from the beginning.", show_default=False)
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer. Not used for spaCy pipelines.")] = "en",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")] = -1,
    bootstrap: Annotated[int, typer.Option(min=100, help="Bootstrap samples for the 95 % intervals.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Also write the results to FILE.json, or as a page to FILE.html. "
            "A name without an ending writes both.",
            show_default=False,
        ),
    ] = None,
    force: ForceOption = False,
    batch_size: BatchSizeOption = 64,
):
    """Compare the scores of two scorers on the same texts.

    The scorers are any two pipelines: an exact one and an approximate one, two models, or two precisions.

    The results are the correlation r and the differences by wordpiece (if both have the same wordpieces), word and
    text, the mean scores by decile, the tokens that differ most, and the time that each scorer took.
    """
    with shown_errors():
        files = check_output(output, (".json", ".html"), force, corpus)
        if corpus != STANDARD_STREAM:
            list_files(corpus)  # fails before a model is loaded
        settings = [
            parse_settings(scorer, lang=lang, gpu_id=gpu_id, keep_pieces=True) for scorer in (scorer_a, scorer_b)
        ]
        first, second = map(make_pipeline, settings)

        def texts() -> Iterator:
            for record in islice(read_records(corpus, column, first.vocab), limit):
                yield record.text

        result = compare_scorers(
            first,
            second,
            texts(),
            labels=(scorer_a, scorer_b),
            batch_size=batch_size,
            bootstrap=bootstrap,
            seed=seed,
            progress=progress_bar,
        )
        say(agreement_tables(result))
        for file in files:
            if file.suffix == ".json":
                write_json(file, {"corpus": corpus, "bootstrap": bootstrap, "seed": seed, **result})
            else:
                write_text(file, [agreement_page(result)])
