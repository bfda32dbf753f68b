"""`pll render INPUT OUTPUT.html`: scored texts on a web page."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ..component import get_scorer
from ..corpus.readers import read_records
from ..corpus.records import STANDARD_STREAM
from ..files import check_output, write_text
from ..pipelines import PipelineSettings, make_pipeline
from ..settings import BATCH_SIZE
from ..visualize import VMIN, View, page_parts
from ..visualize.scale import check_vmin
from ..workers import score_docs
from .errors import shown_errors
from .options import INPUT_HELP, BatchSizeOption, ColumnOption, ForceOption, ProcessesOption, pipeline_options
from .progress import progress_bar
from .terminal import report_written


@pipeline_options(without=("keep_pieces",))
def render_cli(
    input: Annotated[str, typer.Argument(help=f"{INPUT_HELP}.")],
    output: Annotated[Path, typer.Argument(help="The page to write, an .html file.")],
    settings: PipelineSettings,
    column: ColumnOption = "text",
    vmin: Annotated[float, typer.Option(help="Scores at or below this get the darkest colour.")] = VMIN,
    batch_size: BatchSizeOption = BATCH_SIZE,
    n_process: ProcessesOption = 1,
    force: ForceOption = False,
) -> None:
    """Write a web page with the tokens of a corpus coloured by score.

    Texts can be searched and sorted. The page is one file that loads nothing else. So you can mail it and open it
    anywhere. With --alternatives or --distribution, the page shows what the model expected in the place of a token when
    you hover over it or focus it with the keyboard.
    """
    with shown_errors():
        if output.suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"OUTPUT is a web page, so its name must end in .html. It is {str(output)!r}.")
        check_output(output, (output.suffix,), force, input)
        check_vmin(vmin)
        n = None
        if input != STANDARD_STREAM:
            n = sum(1 for _ in read_records(input, column))  # unreadable input is found before the model is loaded
        nlp = make_pipeline(settings, keep_pieces=True)
        scorer = get_scorer(nlp)
        view = View(scorer.names, scorer.names.metrics, vmin, scorer.settings.n_alternatives is not None)
        title = "Standard input" if input == STANDARD_STREAM else Path(input).resolve().name
        about = f"Pseudo-log-likelihood ({', '.join(scorer.settings.metrics)}) under {scorer.model.describe().title}"
        texts = (record.text for record in read_records(input, column, nlp.vocab))
        with closing(score_docs(nlp, texts, batch_size, n_process)) as docs:
            write_text(output, page_parts(progress_bar(docs, n), view, title, about))
        report_written(output)
