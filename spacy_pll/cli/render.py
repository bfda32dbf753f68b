"""`spacy-pll render INPUT OUTPUT.html`: scored texts on a web page."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from ..component import get_scorer
from ..corpus.readers import check_records, read_texts
from ..corpus.records import STANDARD_STREAM, FileOptions, ReadOptions
from ..errors import PLLError
from ..files import check_output, write_text
from ..pipelines import PipelineSettings, make_pipeline
from ..stream.workers import Work, score_docs
from ..texts import Text
from ..visualize.html import VMIN, View, check_vmin, page_parts
from ..visualize.text import approximation
from .errors import warn_of_nothing
from .options import INPUT_HELP, described, file_options, pipeline_options, work_options
from .terminal import save


@pipeline_options(without=("keep_pieces",))
@file_options
@work_options
@described(input={"help": f"{INPUT_HELP}."})
def render_cli(
    input: str,
    output: Path,
    settings: PipelineSettings,
    column: str = "text",
    *,
    files: FileOptions,
    vmin: float = VMIN,
    work: Work,
    force: bool = False,
) -> None:
    """Write a web page with the tokens of a corpus coloured by score.

    Texts can be searched, with their other columns and the names of a folder's files, and sorted. The page is one file
    that loads nothing else. So you can mail it and open it anywhere. With --alternatives or --distribution, the page
    shows what the model expected in the place of a token when you hover over it or focus it with the keyboard.

    $ spacy-pll render texts.txt page.html
    $ spacy-pll render texts.txt page.html --metrics word_l2r,original --alternatives 5
    docs/corpora.md#pages-spacy-pll-render

    output (Path): The page to write, an .html file.
    vmin (float): Scores at or below this get the darkest colour.
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise PLLError(f"OUTPUT is a web page, so its name must end in .html. It is {str(output)!r}.")
    check_output(output, (output.suffix,), force)
    check_vmin(vmin)
    if input != STANDARD_STREAM:
        check_records(input, ReadOptions(column, files=files))  # before the model is loaded
    nlp = make_pipeline(settings, keep_pieces=True)
    scorer = get_scorer(nlp)
    expected, approximate = scorer.settings.n_alternatives is not None, approximation([scorer.settings])
    view = View(scorer.names, scorer.names.metrics, vmin, expected, approximate)
    title = "Standard input" if input == STANDARD_STREAM else Path(input).resolve().name
    about = f"Pseudo-log-likelihood ({', '.join(scorer.settings.metrics)}) under {scorer.model.describe().title}"
    fields: list[dict[str, Any]] = []
    texts: Iterable[Text] = read_texts(input, ReadOptions(column, nlp.vocab, files), fields)
    if input != STANDARD_STREAM:
        texts = list(texts)  # so that the bar knows how much there is
    with closing(score_docs(nlp, texts, *work)) as docs:
        save(output, write_text, page_parts(docs, view, title, about, fields))
    warn_of_nothing(input, len(fields))
