"""`spacy-pll choices PATH`: the accuracy on choices of several options, with or without a context."""

from pathlib import Path
from typing import Any

from ..corpus.records import FileOptions
from ..evaluation.choice_readers import read_choices
from ..evaluation.choices import ChoiceSuite, choices
from ..pipelines import PipelineSettings
from .comparison import Evaluation, evaluation_options
from .options import OF_TOKENS, described, file_options, options_as_in, options_from, pipeline_options


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
@file_options
@options_from("columns", read_choices, "context", "options", "label", "labels", "after", "reading")
@options_as_in(choices, "shared_pieces")
@described()
def choices_cli(
    path: str,
    settings: PipelineSettings,
    columns: dict[str, Any],
    *,
    shared_pieces: bool,
    separator: str = " ",
    predictions: Path | None = None,
    files: FileOptions,
    evaluation: Evaluation,
) -> None:
    """Measure the accuracy on choices, with or without a context.

    An option is a text after a context. Only the text is scored. The accuracy is the share of choices in which the
    right option has the highest score.

    PATH is your own table, or a file as it is published: BLiMP and its supplement, EWoK, COMPS, entity tracking, WUG;
    or a folder of such files. With several metrics or scorers, each is compared with the first one on the same choices.

    In WUG no option is right. There the result is Spearman's correlation with the preferences of people.

    $ spacy-pll choices choices.jsonl
    $ spacy-pll choices choices.jsonl --context story --options right,wrong --model bert-base-cased
    docs/evaluation.md

    path (str): A file of choices (.jsonl, .csv, .tsv or .parquet), or a folder of such files.
    predictions (Optional[Path]): Also write what the first scorer chose to FILE.json, as BabyLM's evaluation pipeline
        does.
    """

    def read() -> ChoiceSuite:
        return ChoiceSuite(read_choices(path, separator=separator, **columns, **vars(files)), shared_pieces)

    about = {"path": path, **columns, "separator": separator, **vars(files), "shared_pieces": shared_pieces}
    evaluation.measure(read, settings, about, predictions)
