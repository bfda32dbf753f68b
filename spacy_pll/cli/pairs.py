"""`pll pairs PATH`: the accuracy on minimal pairs."""

from typing import Annotated, Any

import typer

from ..evaluation.minimal_pairs import PairScores, choice_of
from ..evaluation.pair_readers import read_pairs
from ..pipelines import PipelineSettings
from .comparison import Evaluation, evaluation_options
from .options import OF_TOKENS, file_options, one_of, pipeline_options, setting, several


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
@file_options
def pairs_cli(
    path: Annotated[
        str,
        typer.Argument(
            help="A file of minimal pairs (.jsonl, .json, .csv, .tsv, .parquet or .txt), or a folder of such files."
        ),
    ],
    settings: PipelineSettings,
    good: Annotated[
        str | None,
        setting("Column of the sentence that should score higher. [default: a name that is known, such as good]"),
    ] = None,
    bad: Annotated[str | None, setting("Column of the other sentence. [default: a known name, such as bad]")] = None,
    sentence: Annotated[
        str | None, setting("Column of the sentences, if each has a row of its own, in place of --good and --bad.")
    ] = None,
    label: Annotated[
        str | None,
        setting(
            "With --sentence: the column that says which sentences are good, and what it has there, if it is not 1, "
            "True, Grammatical or the like.",
            metavar="COLUMN[=VALUE]",
        ),
    ] = None,
    item: Annotated[
        list[str],
        several(
            "With --sentence: columns that the two sentences of a pair, and no others, share. [default: they "
            "are neighbours]"
        ),
    ] = [],  # noqa: B006
    first: Annotated[
        str | None,
        setting(
            "Which of two neighbours comes first, if no column says which is good. [default: in .txt files the bad "
            "one, as in Zorro]",
            **one_of("good", "bad"),
        ),
    ] = None,
    *,
    how: dict[str, Any],
    evaluation: Evaluation,
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is your own table, or a file as it is published (BLiMP, JBLiMP, TurBLiMP, MultiBLiMP, RuBLiMP, CrowS-Pairs,
    BLiMP-NL, CLiMP, CLAMS, Zorro), or a folder of such files. With several metrics or scorers, each is compared with
    the first one on the same pairs.
    """
    evaluation.check_outputs(path)
    how |= {"sentence": sentence, "label": label, "item": item, "first": first}
    pairs = evaluation.sampled(read_pairs(path, good, bad, **how))
    evaluation.measure([choice_of(pair) for pair in pairs], settings, {"path": path}, PairScores)
