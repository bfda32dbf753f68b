"""`spacy-pll unigrams CORPUS OUTPUT`: how often each wordpiece occurs."""

from pathlib import Path

from ..analysis.unigrams import Unigrams
from ..component import get_scorer
from ..corpus.readers import read_texts
from ..corpus.records import FileOptions, ReadOptions
from ..files import check_output, to_json, write_text
from ..pipelines import SETTINGS, PipelineSettings, make_pipeline
from .options import INPUT_HELP, described, file_options, pipeline_options
from .terminal import report, save

# The counts depend on the model's vocabulary alone, and on what loads it.
NOT_OF_TOKENIZERS = [name for name in SETTINGS if name not in ("model", "component", "revision", "causal", "code")]


@pipeline_options(without=NOT_OF_TOKENIZERS)
@file_options
@described(corpus={"help": f"{INPUT_HELP}."})
def unigrams_cli(
    corpus: str,
    output: Path,
    settings: PipelineSettings,
    column: str = "text",
    *,
    files: FileOptions,
    force: bool = False,
) -> None:
    """Count the wordpieces of a corpus, for normalised scores.

    SLOR and NormLP compare the score of a text with the frequencies of its wordpieces (`spacy-pll score --normalise`).
    The table is for the vocabulary of the model. Nothing is scored. The built-in model has a table.

    $ spacy-pll unigrams corpus.txt unigrams.json
    $ spacy-pll unigrams corpus.txt unigrams.json --model bert-base-cased
    docs/normalised-scores.md

    output (Path): The table to write: FILE.json.
    """
    check_output(output, (".json",), force)
    nlp = make_pipeline(settings)
    texts = read_texts(corpus, ReadOptions(column, nlp.vocab, files))
    unigrams = Unigrams.count(get_scorer(nlp).model.load().tokenizer, texts, show_progress=True)
    total, seen = sum(unigrams.counts), sum(count > 0 for count in unigrams.counts)
    report(f"Counted {total:,} wordpieces, {seen:,} of the {len(unigrams.pieces):,} in the vocabulary.")
    save(output, write_text, [to_json(unigrams.to_json()), "\n"])
