"""Score a corpus. The scores go to a file, in parts so that an interrupted run can resume, or to a stream of lines."""

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from spacy.language import Language

from ..analysis.normalised import unigrams_for
from ..component import get_scorer
from ..compression import format_of
from ..errors import InputError
from ..files import check_apart, check_target, file_digest
from ..pipelines import describe_scorer, make_pipeline
from ..span_getters import TEXT_SPAN
from ..stream.parts import ResumableOutput
from ..tables.rows import Level, NormalisedRows, ScoredText, TextRows, TokenRows
from ..tables.words import WordRows, WordTable
from .columns import InputColumns
from .distribution import Distribution, text_outcomes, with_outcomes
from .formats import ENDINGS, FORMATS, Format, JsonLines, SpacyDocs
from .inputs import Input, checked_records, read_all
from .records import PARQUET, STANDARD_STREAM, Record
from .scored_texts import Scoring

# A part ends with the batch with which it has one of these. Parts should be large enough that opening and closing them
# costs nothing, and small enough for the memory, and that little is scored a second time: with a batch, half a minute.
# It also ends when it has as many texts as all before it: the first is one batch, and they grow.
TEXTS_PER_PART, PIECES_PER_PART, SECONDS_PER_PART = 1024, 2**16, 20
# What the results do not depend on, and what the manifest records otherwise.
NOT_IN_MANIFEST = (
    "path",
    "file_format",
    "pipeline",
    "n_process",
    "show_progress",
    "input",
    "files",
    "scoring",
    "unigrams",
)
ROWS_OF: dict[Level, type[TextRows]] = {"texts": TextRows, "tokens": TokenRows, "words": WordRows}


@dataclass(frozen=True)
class Run:
    """What is read, how it is scored, and what is written."""

    input: Input
    scoring: Scoring = Scoring()
    table: Level = "texts"  # what has a row of its own
    words: WordTable = WordTable()  # the table of words
    normalise: Sequence[str] = ()  # methods of `analysis.normalised.normalise`, each with a column for each metric
    unigrams: str | None = None  # the table for them

    def make_pipeline(self) -> Language:
        """A pipeline whose docs have what the rows are made from."""
        settings: dict[str, Any] = {"targets": TEXT_SPAN} if self.input.has_sides else {}
        if ROWS_OF[self.table].keep_pieces or self.normalise:
            settings["keep_pieces"] = True
        nlp = make_pipeline(self.scoring.pipeline, **settings)
        nlp.max_length = self.scoring.max_length or nlp.max_length
        return nlp

    def with_columns(self, nlp: Language) -> "Run":
        """The same where it is known which columns a table of words has."""
        return replace(self, words=self.words.known(str(nlp.lang))) if self.table == "words" else self

    def make_rows(self, nlp: Language) -> TextRows:
        scorer = get_scorer(nlp)
        shared = self.input.column, scorer.names, scorer.settings
        if self.table != "words":
            unigrams = unigrams_for(nlp, self.normalise, self.unigrams)
            is_plain = self.table == "tokens" or not self.normalise
            return ROWS_OF[self.table](*shared) if is_plain else NormalisedRows(*shared, self.normalise, unigrams)
        has_sents = any("token.is_sent_start" in nlp.get_pipe_meta(name).assigns for name in nlp.pipe_names)
        return WordRows(*shared, table=self.words, lang=str(nlp.lang), has_sents=has_sents)


def score_to_file(
    run: Run,
    output_path: str,
    resume: bool = False,
    force: bool = False,
    distribution: Distribution | None = None,
) -> tuple[int, int, int] | None:
    """Score a corpus and write a file with its manifest. Until it is complete, results are in OUTPUT.parts.

    distribution (Optional[Distribution]): Gets what became of all texts, also of texts that earlier runs have scored.
    RETURNS (Optional[tuple[int, int, int]]): How many texts the file has, how many of them were scored by earlier runs,
        and in how many seconds. None if it was complete before.
    RAISES (InputError): The input cannot be read, or has changed while it was scored, or the output cannot hold these
        rows.
    RAISES (OSError, ValueError): Writing would destroy something: see `check_target` and `check_apart`.
    RAISES (ResumeError): Results would be lost, or the run to resume differs from this one.
    """
    output_format = find_format(output_path, ROWS_OF[run.table])
    check_target(Path(output_path))
    check_apart([Path(output_path)], [run.input.path])
    parts = ResumableOutput(Path(output_path), resume, force)
    nlp = run.make_pipeline()
    run = run.with_columns(nlp)
    with run.input.as_file() as source:
        rows, columns, records = _records_and_columns(run, source, nlp, output_format)
        distribution = distribution or Distribution()
        distribution.expect(rows)
        fingerprints = read_all(records, parts.ends())
        total, skips = max(fingerprints), run.scoring.skip_errors
        output = output_format(rows, columns.types(), skips, columns.decimals.are_commas)
        fields = [name for name in columns.types() if name != source.column]
        first = parts.begin(make_manifest(run, nlp, total, fingerprints[total], fields), fingerprints)
        if first is None:
            return None
        written = total, first, parts.seconds
        records = source.records(nlp.vocab, typed=columns.typed, skip_errors=skips)
        records = islice(_with_same_columns(records, run.input.path, columns.types()), first, None)
        # Closed even if writing fails: otherwise its worker processes would live for as long as the error is kept.
        with parts.kept(total), closing(run.scoring.score(nlp, records, total, first)) as texts:
            while part := _next_part(texts, parts.done):
                contents = with_outcomes(text_outcomes(part, rows), output.encode(part))
                parts.write(contents, len(part), part[-1].fingerprint)
            if (parts.done, parts.fingerprint) != (total, fingerprints[total]):
                what = "some of its texts are not the same as at first"
                if parts.done != total:
                    what = f"at first it had {total:,} texts, and {parts.done:,} were scored"
                raise _changed(run.input.path, what)
            parts.merge(lambda blocks: output.merge(distribution.taken_from(blocks)))
        return written


def _with_same_columns(records: Iterable[Record], path: str, columns: Collection[str]) -> Iterator[Record]:
    """RAISES (InputError): A text has another column than those that were found when the input was read first."""
    for record in records:
        if new := [name for name in record.fields if name not in columns]:
            raise _changed(path, f"{record.location} has a column {new[0]!r}, which was not there at first")
        yield record


def _changed(path: str, what: str) -> InputError:
    return InputError(
        f"The input {path!r} has changed while it was scored: {what}. Change it back, or start again with `force=True`."
    )


def score_to_stream(run: Run, distribution: Distribution | None = None) -> Iterator[bytes]:
    """Score a corpus and yield JSON lines as soon as texts are scored.

    distribution (Optional[Distribution]): Gets whether some texts have scores. There may be any number of texts, so
        that what comes after the first score is not kept.
    """
    output_format = find_format(STANDARD_STREAM, ROWS_OF[run.table])
    nlp, total = run.make_pipeline(), None
    run = run.with_columns(nlp)
    rows, columns, records = _records_and_columns(run, run.input, nlp, output_format)
    if run.input.path != STANDARD_STREAM:  # which cannot be read twice
        total = max(read_all(records))
        *_, records = _records_and_columns(run, run.input, nlp, output_format)
    output = output_format(rows, columns.types(), run.scoring.skip_errors, columns.decimals.are_commas)
    with closing(run.scoring.score(nlp, records, total)) as texts:
        for text in texts:
            if distribution and not distribution.some_scored:
                distribution.add(text_outcomes([text], rows))
            yield output.encode([text])


def _records_and_columns(
    run: Run, source: Input, nlp: Language, output_format: type[Format]
) -> tuple[TextRows, InputColumns, Iterator[Record]]:
    """What will be written, the columns of the input, and its records, which are checked and noted when they come."""
    rows, columns = run.make_rows(nlp), output_format.input_columns(source.column)
    refused = run.scoring.skip_errors, run.scoring.shared_pieces, run.scoring.batch_size
    return rows, columns, checked_records(source, nlp, rows, columns, *refused)


def make_manifest(run: Run, nlp: Language, texts: int, fingerprint: str, fields: list[str]) -> dict[str, Any]:
    """What the results of a run depend on.

    texts, fingerprint, fields: How many texts there are, the fingerprint of all, and their other columns.
    """
    settings = {
        **vars(run.input.files),
        **vars(run.input),
        **vars(run.scoring),
        **vars(run),
        "words": asdict(run.words),
    }
    return {
        "input": {"texts": texts, "fields": fields, "digest": fingerprint},
        "run": {name: value for name, value in settings.items() if name not in NOT_IN_MANIFEST},
        "unigrams": run.unigrams and file_digest(Path(run.unigrams)),
        "score_columns": [*get_scorer(nlp).names.metrics.values()],
        **describe_scorer(nlp, run.scoring.pipeline),
    }


def _next_part(texts: Iterator[ScoredText], n_done: int) -> list[ScoredText]:
    """The next texts, until there are enough of them, or of wordpieces, or some time has passed.

    A part has whole batches, so the scores do not depend on where a run was interrupted.

    n_done (int): The number of texts in the parts before.
    """
    part, n_counted, n_pieces, end = list[ScoredText](), 0, 0, time.monotonic() + SECONDS_PER_PART
    for text in texts:
        part.append(text)
        if text.ends_batch:
            if len(part) >= min(n_done, TEXTS_PER_PART) or time.monotonic() >= end:
                break
            n_pieces += sum(scored.sums[2] for scored in part[n_counted:])
            n_counted = len(part)
            if n_pieces >= PIECES_PER_PART:
                break
    return part


def find_format(path: str, rows: type[TextRows]) -> type[Format]:
    """Find the format of an output file by its name. "-", standard output, is JSON lines.

    RAISES (InputError): There is no such format, or it cannot hold these rows.
    """
    ending = format_of(Path(path))
    if path == STANDARD_STREAM:
        return JsonLines
    if ending not in ENDINGS:
        raise InputError(f"The output must end in {', '.join(ENDINGS)}, or be - for JSON lines. It is {path!r}.")
    if ending == PARQUET:
        from .parquet_output import ParquetTable  # needs the extra `[parquet]`

        return ParquetTable
    if rows is not TextRows and FORMATS[ending] is SpacyDocs:
        raise InputError(
            "A .spacy file contains whole docs with all their tokens.",
            "Write the table of texts to it, or this one to .jsonl, .csv, .tsv or .parquet.",
        )
    return FORMATS[ending]
