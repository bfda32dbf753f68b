"""`spacy-pll pairs PATH`: the accuracy on minimal pairs."""

from typing import Any

from ..corpus.records import FileOptions
from ..evaluation.minimal_pairs import PairSuite
from ..evaluation.pair_readers import read_pairs
from ..pipelines import PipelineSettings
from .comparison import Evaluation, evaluation_options
from .options import COLUMN_AND_VALUE, OF_TOKENS, described, file_options, options_from, pipeline_options


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
@file_options
@options_from("columns", read_pairs, "good", "bad", "sentence", "label", "item", "first", label=COLUMN_AND_VALUE)
@described()
def pairs_cli(
    path: str, settings: PipelineSettings, columns: dict[str, Any], *, files: FileOptions, evaluation: Evaluation
) -> None:
    """Measure the accuracy on minimal pairs.

    The accuracy is the share of pairs in which the better sentence has the higher score. Ties count as half.

    PATH is your own table, or a file as it is published (BLiMP, JBLiMP, TurBLiMP, MultiBLiMP, RuBLiMP, CrowS-Pairs,
    BLiMP-NL, CLiMP, CLAMS, Zorro), or a folder of such files. With several metrics or scorers, each is compared with
    the first one on the same pairs.

    $ spacy-pll pairs pairs.csv --by topic
    $ spacy-pll pairs blimp --model FOLDER --metrics word_l2r,original --output accuracy.json
    docs/evaluation.md

    path (str): A file of minimal pairs (.jsonl, .json, .csv, .tsv, .parquet or .txt), or a folder of such files.
    """
    about = {"path": path, **columns, **vars(files)}
    evaluation.measure(lambda: PairSuite(read_pairs(path, **columns, **vars(files))), settings, about)
