"""`pll pairs PATH`: the accuracy on minimal pairs."""

from typing import Annotated

import typer

from ..evaluation.minimal_pairs import PairScores, choice_of
from ..evaluation.readers import BAD, GOOD, read_pairs
from ..pipelines import PipelineSettings
from . import options
from .accuracies import Evaluation, evaluation_options
from .options import OF_TOKENS, pipeline_options


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
def pairs_cli(
    path: Annotated[
        str, typer.Argument(help="A file of minimal pairs (.jsonl, .csv, .tsv or .parquet), or a folder of such files.")
    ],
    settings: PipelineSettings,
    good: Annotated[
        str | None,
        typer.Option(help=f"Column of the sentence that should score higher. [default: {' or '.join(GOOD)}]"),
    ] = None,
    bad: Annotated[
        str | None, typer.Option(help=f"Column of the other sentence. [default: {' or '.join(BAD)}]")
    ] = None,
    header: options.Header = [],  # noqa: B006
    *,
    evaluation: Evaluation,
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is a file of BLiMP, a folder of such files, or your own table with two columns of sentences. With several
    metrics or scorers, each is compared with the first one on the same pairs.
    """
    evaluation.check_outputs(path)
    pairs = evaluation.sampled(read_pairs(path, good, bad, header or None))
    evaluation.measure([choice_of(pair) for pair in pairs], settings, {"path": path}, PairScores, "pairs")
