"""`spacy-pll words INPUT OUTPUT`: a table with one word in each row, scored."""

import shlex
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..component import get_scorer
from ..compression import format_of
from ..corpus.formats import write_table
from ..corpus.readers import ROW_READERS, check_format, read_rows
from ..corpus.records import FileOptions
from ..documentation import page
from ..errors import InputError
from ..evaluation.word_means import WordGroups
from ..files import file_digest
from ..pipelines import PipelineSettings, describe_scorer, make_pipeline
from ..stream.workers import Work
from ..tables.word_rows import is_after_words_before, score_words, surprisal_in, surprisal_with_unit, texts_of_rows
from ..tables.words import WordTable
from .errors import warn_of_nothing
from .options import described, file_options, options_from, pipeline_options, work_options
from .results import measurement_table
from .terminal import PICTURES, TABLES, check_outputs, check_parquet, draw, report, save, say


@pipeline_options(without=("alternatives", "keep_pieces", "words", "targets", "units"))
@options_from("of_words", score_words, "word", "by", "space_after", "base", "lags", "log_frequency")
@work_options
@file_options
@described(path={"metavar": "INPUT", "help": f"A table ({', '.join(ROW_READERS)})."})
def words_cli(
    path: str,
    output: Path,
    settings: PipelineSettings,
    of_words: dict[str, Any],
    files: FileOptions,
    *,
    means: Sequence[str] = (),
    item: Sequence[str] = (),
    plot: Path | None = None,
    resume: bool = False,
    force: bool = False,
    work: Work,
) -> None:
    """Score a table that has one word in each row.

    The words of a text are joined, and each is scored in its whole text. The output has the same rows in the same
    order, with scores, numbers of wordpieces, surprisal, length and frequency. Rows without a word are kept.

    OUTPUT.manifest.json records the model, the settings, and the checksum of the input.

    $ spacy-pll words stimuli.csv scored.csv --by item --metrics left_context
    $ spacy-pll words stimuli.csv scored.csv --by item --means region,condition
    docs/reading.md

    output (Path): The table to write: FILE.csv, FILE.tsv or FILE.parquet.
    means (Sequence[str]): Columns: the place, such as the region, and conditions. The mean surprisal of each group is
        printed.
    item (Sequence[str]): With --means: columns that say which item a word belongs to. [default: each text is one]
    """
    kept = check_outputs(force, resume, output, (output, TABLES), (plot, PICTURES))
    if not means and (item or plot):
        raise InputError("--item and --plot are about means. Name their columns with --means.")
    if not Path(path).is_file():
        raise InputError(f"There is no file {path!r}. Give a table with one word in each row.")
    try:
        check_format(Path(path), ROW_READERS)
    except InputError as error:
        if format_of(Path(path)) == ".txt":
            command = shlex.join(["spacy-pll", "score", path, str(output), "--table", "words"])
            raise InputError(error.problem, f"{error.advice} For running text, type: {command}") from None
        raise
    rows = [row for _, row in read_rows(Path(path), files)]
    check_parquet(output, rows)
    texts = texts_of_rows(rows, of_words["word"], of_words.get("by", ()))
    groups = WordGroups(rows, texts, means, item) if means else None
    nlp = make_pipeline(settings)
    metric = get_scorer(nlp).settings.metrics[0]
    source = {"rows": len(rows), "texts": len(texts), "digest": file_digest(Path(path))}
    known = WordTable("spacy", log_frequency=of_words.get("log_frequency")).known(str(nlp.lang)).log_frequency
    of_words = {**of_words, "log_frequency": known}
    used = {
        **of_words,
        "batch_size": work.batch_size,
        **vars(files),
        "wordfreq": version("wordfreq") if known else None,
    }
    # Each row is a word, whatever the setting of the pipeline is.
    kept.about = {"input": source, "run": used, **describe_scorer(nlp, settings), "words": "rows"}
    kept.about_outputs = {"means": means, "item": item} if means else {}
    with kept.until_done():
        scored_rows = score_words(rows, nlp, kept=kept, **work._asdict(), **of_words)
        write_table(output, scored_rows)
        if groups:
            name = surprisal_in(of_words.get("base"))
            found_means = groups.means(
                [row[name] for row in scored_rows], metric, surprisal_with_unit(of_words.get("base"))
            )
            say(measurement_table(found_means, "items"))
            save(plot, draw, groups.plot, found_means, surprisal_with_unit(of_words.get("base"), metric))
    warn_of_nothing(path, len(rows))
    report(f"Wrote {output}: {_summary([*map(len, texts)])}.")
    if "metrics" not in settings.scoring:
        report(_about_surprisal(metric))


def _about_surprisal(metric: str) -> str:
    """Of which metric the surprisal is, if none was given, and whether it is what research on reading means."""
    if is_after_words_before(metric):
        return f"The surprisal of a word is under {metric}: after the words before it."
    return (
        f"The surprisal of a word is under {metric}: the model also sees the words after it. In research on reading, "
        f"surprisal is after the words before it: give --metrics left_context or sentence_l2r ({page('reading.md')})."
    )


def _summary(lengths: Sequence[int]) -> str:
    """How many texts there are, and of how many words, from which one sees whether the rows were joined rightly."""
    shortest, longest = min(lengths, default=0), max(lengths, default=0)
    words = f"{shortest:,}" if shortest == longest else f"{shortest:,} to {longest:,}"
    return f"{len(lengths):,} text{'s' * (len(lengths) != 1)} of {words} word{'s' * (longest != 1)}"
