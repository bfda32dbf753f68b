"""`spacy-pll score INPUT OUTPUT`: score a corpus."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ..analysis.normalised import NORMALISATIONS, WITH_UNIGRAMS
from ..compression import format_of
from ..corpus.distribution import Distribution
from ..corpus.formats import ENDINGS
from ..corpus.inputs import Input
from ..corpus.records import STANDARD_STREAM, FileOptions
from ..corpus.runs import Run, score_to_file, score_to_stream
from ..corpus.scored_texts import Scoring
from ..errors import InputError
from ..pipelines import PipelineSettings
from ..stream.outcomes import ERROR
from ..stream.workers import Work
from ..tables.rows import Level
from ..tables.words import WordTable
from .errors import end_without_scores, warn_of_nothing
from .options import INPUT_HELP, described, file_options, options_as_in, options_from, pipeline_options, work_options
from .terminal import PICTURES, check_outputs, draw, duration, report, save, until_closed

FOR_WORDS = "For --table words. "


@pipeline_options(sample=True)
@options_from("words_table", WordTable, note=FOR_WORDS, make=WordTable)
@file_options
@options_as_in(
    *(Input, "file_format", "context_column", "after_column", "marked"), note=FOR_WORDS, file_format={"note": ""}
)
@work_options
@options_as_in(Scoring, "max_length", "shared_pieces", "skip_errors")
@described(
    input_path={"metavar": "INPUT", "help": f"{INPUT_HELP} or as --format says."},
    output_path={
        "metavar": "OUTPUT",
        "help": f"A file ({', '.join(ENDINGS)}), or - for JSON lines. The first three may be compressed, such as "
        "scores.jsonl.gz.",
    },
    normalise={
        "help": "Also write normalised scores, for texts of different lengths; not with other tables or .spacy output. "
        f"Names, separated by commas: {', '.join(NORMALISATIONS)}."
    },
    unigrams={
        "help": f"The table that `spacy-pll unigrams` wrote, for {' and '.join(WITH_UNIGRAMS)}. [default: that of the "
        "built-in model]"
    },
)
def score_cli(
    input_path: str,
    output_path: Path,
    *,
    settings: PipelineSettings,
    column: str = "text",
    files: FileOptions,
    file_format: str | None,
    context_column: str | None,
    after_column: str | None,
    marked: bool,
    separator: str = " ",
    normalise: Sequence[str] = (),
    unigrams: str | None = None,
    max_length: int | None,
    shared_pieces: bool,
    skip_errors: bool,
    tokens: bool = False,
    table: Level = "texts",
    words_table: WordTable,
    work: Work,
    plot: Path | None = None,
    resume: bool = False,
    force: bool = False,
) -> None:
    """Score the texts of a file or folder, and write the scores to a file.

    Scores are natural logarithms. In .txt files each line is a text. Other columns of .jsonl, .csv, .tsv and
    .parquet files are copied. Parquet keeps their types. It needs the extra `[parquet]`.

    Results are first written to part files in the folder OUTPUT.parts. To continue an interrupted run, run the same
    command with --resume.

    $ spacy-pll score texts.txt scores.csv
    $ spacy-pll score texts.txt words.csv --table words --metrics left_context --no-log-frequency
    docs/corpora.md

    tokens (bool): The same as --table tokens.
    table (str): Write a row for each text, token or word. With tokens, `surprisal` is minus the score under the primary
        metric, in nats. Except under sentence_l2r, left_context and causal, the model has seen the text on both sides.
        `words` is for studies of reading: also place, length, and, if the extra `[reading]` is installed, log frequency
        (natural logarithm, from wordfreq).
    plot (Optional[Path]): Also draw the distribution of the texts' pseudo-perplexities: FILE.png, .svg or .pdf.
    resume (bool): Continue an interrupted run.
    """
    if tokens and table == "words":
        raise InputError("--tokens and --table words write different rows. Leave out one of the two.")
    run = Run(
        Input(
            input_path,
            column,
            files,
            file_format=file_format,
            context_column=context_column,
            after_column=after_column,
            separator=separator,
            marked=marked,
        ),
        Scoring(
            settings,
            **work._asdict(),
            max_length=max_length,
            shared_pieces=shared_pieces,
            skip_errors=skip_errors,
        ),
        "tokens" if tokens else table,
        words_table,
        normalise,
        unigrams,
    )
    output = str(output_path)
    _check_options(run, output, resume)
    if plot and (run.table != "texts" or output == STANDARD_STREAM or format_of(output_path) == ".spacy"):
        raise InputError(
            "--plot draws what is in a table of texts. Write one, to a .jsonl, .csv, .tsv or .parquet file."
        )
    check_outputs(force, False, None, (plot, PICTURES))
    distribution = Distribution(bool(plot))
    if output == STANDARD_STREAM:
        n_texts = 0
        with until_closed():
            for block in score_to_stream(run, distribution):
                sys.stdout.buffer.write(block)
                sys.stdout.buffer.flush()
                n_texts += 1
        warn_of_nothing(input_path, n_texts)
    else:
        start = time.monotonic()
        written = score_to_file(run, output, resume, force, distribution)
        if written is None:
            report(f"{output_path} was complete. Nothing was scored{' or drawn' if plot else ''}.")
            return
        warn_of_nothing(input_path, written[0])
        report(f"Wrote {output_path}: {_summary(*written, time.monotonic() - start)}.")
        for line in distribution.lines():
            report(line)
        save(plot, draw, distribution.plot)
    if distribution.are_errors:
        end_without_scores(f"None of the texts could be scored. The column {ERROR!r} says why.")


def _summary(texts: int, before: int, seconds_before: float, seconds: float) -> str:
    """How many texts were scored, and how long it took: in this run, and in all."""
    now = f"{texts - before:,} text{'s' * (texts - before != 1)} in {duration(seconds)}"
    return f"{now}; with earlier runs, {texts:,} in {duration(seconds + seconds_before)}" if before else now


def _check_options(run: Run, output: str, resume: bool) -> None:
    """RAISES (InputError): Options do not go together."""
    is_spacy = format_of(Path(output)) == ".spacy"
    of_words = run.words != WordTable() or run.input.has_sides or run.input.separator != " "
    if run.table != "words" and of_words:
        raise InputError(
            "--word-unit, --lags, --regions, --log-frequency, --context-column, --after-column, --marked and "
            "--separator are for rows of words. Add --table words."
        )
    if run.input.has_sides and run.scoring.pipeline.spans == "sents":
        raise InputError("With --spans sents, the model does not read what stands beside a text. Leave out --spans.")
    if run.input.has_sides and run.scoring.pipeline.scoring.get("targets"):
        raise InputError("--targets has no effect where each text is scored beside what stands there. Leave it out.")
    if run.input.column in (run.input.context_column, run.input.after_column):
        raise InputError("--context-column or --after-column names the column of the texts. Name another one.")
    if run.input.marked and (run.input.context_column or run.input.after_column):
        raise InputError("--marked takes what stands around a text from its line. Leave out the columns of contexts.")
    if run.scoring.pipeline.scoring.get("alternatives") and run.table != "tokens" and not is_spacy:
        raise InputError("--alternatives writes columns of tokens. Add --table tokens, or write a .spacy file.")
    if run.normalise and (run.table != "texts" or is_spacy):
        raise InputError("--normalise writes columns of texts. Leave out --table and --tokens, or the ending .spacy.")
    if run.input.file_format and run.input.path != STANDARD_STREAM:
        raise InputError("--format is for standard input. The format of a file is the ending of its name.")
    if resume and STANDARD_STREAM in (run.input.path, output):
        raise InputError("--resume needs an INPUT that can be read again and an OUTPUT that is a file, not -.")
