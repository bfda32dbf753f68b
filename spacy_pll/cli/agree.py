"""`pll agree SCORER_A SCORER_B CORPUS`: how well two scorers agree, or `pll agree SCORER CORPUS --margins 0,1,2,4`: how
close the scores with margins are to the exact ones."""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from ..analysis.agreement import Agreement, MarginAgreement
from ..analysis.visualize.agreement import agreement_page, agreement_tables
from ..analysis.visualize.margins import margin_tables, margins_page
from ..corpus.files import check_output, write_json, write_text
from ..corpus.readers import STANDARD_STREAM, list_files, read_records
from ..evaluation.agreement import agree
from ..evaluation.margins import AT_LEAST, compare_margins
from ..pipelines import FROM_TEXT, make_pipeline, parse_settings
from .errors import shown_errors
from .options import BatchSizeOption, ColumnOption, ForceOption, GpuOption, parse_numbers
from .progress import progress_bar
from .terminal import say


def agree_cli(
    scorers: Annotated[
        list[str],
        typer.Argument(
            metavar="SCORER_A [SCORER_B]",
            help="A hub name or folder of a model, a spaCy pipeline, or builtin. Settings can follow after commas: "
            "builtin,mask_margin=1 or bert-base-cased,precision=bfloat16. With --margins or --spacings, give one. "
            f"The settings are: {', '.join(FROM_TEXT)}.",
            show_default=False,
        ),
    ],
    corpus: Annotated[str, typer.Argument(help="The texts: a file or folder, as for `pll score`.", show_default=False)],
    margins: Annotated[
        str | None,
        typer.Option(
            metavar="0,1,2,4",
            help="Compare the exact scores of one scorer with those that --mask-margin gives, for each of these "
            "margins, and say which is the smallest that is close enough.",
            show_default=False,
        ),
    ] = None,
    spacings: Annotated[
        str | None,
        typer.Option(
            metavar="8,16",
            help="The same for --mask-spacing. Both can be given.",
            show_default=False,
        ),
    ] = None,
    at_least: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="What is close enough: the correlation with the exact scores, by word. With --margins or --spacings. "
            f"[default: {AT_LEAST}]",
            show_default=False,
        ),
    ] = None,
    column: ColumnOption = "text",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many texts, from the beginning.", show_default=False)
    ] = None,
    lang: Annotated[str, typer.Option(help="Language of spaCy's tokenizer. Not used for spaCy pipelines.")] = "en",
    gpu_id: GpuOption = -1,
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
) -> None:
    """Compare the scores of two scorers on the same texts, or choose a margin.

    The scorers are any two pipelines: an exact one and an approximate one, two models, or two precisions. The results
    are the correlation r and the differences by wordpiece (if both have the same wordpieces), word and text, the mean
    scores by decile, the tokens that differ most, and the time that each scorer took.

    With --margins, the exact scores of one scorer are compared with those of each margin: the time, r by wordpiece,
    word and text, and the mean absolute difference by word. So you can choose the margin that your texts need.
    """
    with shown_errors():
        tried = parse_numbers("--margins", margins), parse_numbers("--spacings", spacings)
        _check_number(scorers, any(tried), at_least)
        files = check_output(output, (".json", ".html"), force, corpus)
        if corpus != STANDARD_STREAM:
            list_files(corpus)  # fails before a model is loaded
        settings = [parse_settings(scorer, lang=lang, gpu_id=gpu_id) for scorer in scorers]
        nlps = [make_pipeline(one) for one in settings]

        def texts() -> Iterator[Any]:
            for record in islice(read_records(corpus, column, nlps[0].vocab), limit):
                yield record.text

        more: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
        shared = {**more, "batch_size": batch_size, "progress": progress_bar}
        result: Agreement | MarginAgreement
        if any(tried):
            goal = AT_LEAST if at_least is None else at_least
            result = compare_margins(nlps[0], texts(), *tried, at_least=goal, **shared)
            table, page = margin_tables(result), margins_page(result)
        else:
            result = agree(nlps[0], nlps[1], texts(), labels=(scorers[0], scorers[1]), **shared)
            table, page = agreement_tables(result), agreement_page(result)
        say(table)
        for file in files:
            if file.suffix == ".json":
                write_json(file, {"corpus": corpus, **more, **asdict(result)})
            else:
                write_text(file, [page])


def _check_number(scorers: list[str], tried: bool, at_least: float | None) -> None:
    """RAISES (ValueError): There are too few or too many scorers, or an option has no use."""
    if tried and len(scorers) != 1:
        raise ValueError(
            f"--margins and --spacings compare one scorer with its own exact scores, and {len(scorers)} were given: "
            f"{', '.join(scorers)}. Give one of them, and then the corpus."
        )
    if not tried and len(scorers) != 2:
        raise ValueError(
            f"Two scorers are compared, and {len(scorers)} came before the corpus: {', '.join(scorers)}. Give "
            "SCORER_A SCORER_B CORPUS, or one scorer with --margins 0,1,2,4."
        )
    if not tried and at_least is not None:
        raise ValueError(f"--at-least {at_least} is for choosing a margin. Add --margins 0,1,2,4, or leave it out.")
