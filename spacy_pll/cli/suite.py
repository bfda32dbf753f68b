"""`spacy-pll suite PATH --reader NAME`: published test suites with measures of their own."""

from typing import Any

from ..corpus.records import DEFAULT_FILES, FileOptions
from ..evaluation.acceptability import read_acceptability
from ..evaluation.suite_readers import read_suite
from ..pipelines import PipelineSettings
from .comparison import Evaluation, evaluation_options
from .options import COLUMN_AND_VALUE, OF_TOKENS, described, file_options, options_from, pipeline_options


@pipeline_options(without=(*OF_TOKENS, "targets"))
@evaluation_options
@file_options
@options_from("acceptability", read_acceptability, "sentence", "label", "threshold", label=COLUMN_AND_VALUE)
@described(reader={"param_decls": ["--reader"]})
def suite_cli(
    path: str,
    settings: PipelineSettings,
    reader: str,
    acceptability: dict[str, Any],
    *,
    files: FileOptions,
    evaluation: Evaluation,
) -> None:
    """Score a published test suite: StereoSet, CrowS-Pairs, SyntaxGym, acceptability judgments.

    StereoSet has its language modelling score, its stereotype score and icat. SyntaxGym has the share of items for
    which a formula about surprisals of regions holds. Acceptability judgments have AUC and Matthews' correlation.
    CrowS-Pairs has the shares of pairs whose sent_more scores higher, also by AUL, with --metrics original,unmasked.
    Another package can add readers (entry point spacy_pll_readers).

    $ spacy-pll suite dev.json --reader stereoset --model bert-base-cased
    $ spacy-pll suite suites --reader syntaxgym --metrics sentence_l2r
    docs/test-sets.md

    path (str): The file of the suite, or a folder of such files.
    reader (str): Which test set it is: stereoset (its dev.json), syntaxgym (suites in JSON), acceptability (a table of
        sentences with labels, such as CoLA), crows_pairs (crows_pairs_anonymized.csv), or the name of a reader of
        another package.
    """
    # A reader need not take what is not given.
    given = {name: value for name, value in vars(files).items() if value != getattr(DEFAULT_FILES, name)}
    given |= {name: value for name, value in acceptability.items() if value is not None}
    evaluation.measure(lambda: read_suite(path, reader, **given), settings, {"path": path, "reader": reader, **given})
