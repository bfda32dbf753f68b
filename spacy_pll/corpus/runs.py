"""Score a corpus. The scores go to a file, in parts so that an interrupted run can resume, or to a stream of lines."""

import shutil
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import get_package_version
from spacy.vocab import Vocab
from thinc.api import get_torch_default_device

from ..analysis.normalised import Normaliser
from ..component import get_scorer
from ..files import check_target
from ..language_model.checksums import file_digest, files_digest
from ..outcomes import ERROR, TextError, unscored
from ..pipelines import PipelineSettings, describe_model, make_pipeline
from ..progress import with_progress
from ..settings import BATCH_SIZE
from ..tables.words import WordTable, log_frequencies
from ..workers import batches_of, score_batches
from .formats import Format, find_format
from .readers import PARQUET, STANDARD_STREAM, list_files, read_records, table_columns
from .records import InputError, Record, get_text, with_fingerprints
from .resumable import ResumableOutput
from .rows import TEXT_SPAN, ProdigyRows, ScoredText, TextRows, TokenRows, WordRows, check_columns

# A part ends with the batch with which it has one of these. Parts should be large enough that opening and closing them
# costs nothing, and small enough for the memory, and that little is scored a second time: with a batch, half a minute.
TEXTS_PER_PART, PIECES_PER_PART, SECONDS_PER_PART = 1024, 2**16, 20
# The packages whose versions the manifest records.
PACKAGES = ["spacy-pll", "spacy", "spacy-transformers", "transformers", "tokenizers", "torch"]
# What the results do not depend on, and what the manifest records otherwise.
NOT_IN_MANIFEST = ("input_path", "pipeline", "file_format", "n_process", "show_progress", "unigrams")
Table = Literal["texts", "tokens", "words", "prodigy"]
ROWS: dict[Table, type[TextRows]] = {
    "texts": TextRows,
    "tokens": TokenRows,
    "words": WordRows,
    "prodigy": ProdigyRows,
}


@dataclass(frozen=True)
class Run:
    """What is scored, with which pipeline, and what is written."""

    input_path: str  # a file, a folder, or "-" for standard input
    pipeline: PipelineSettings = PipelineSettings()  # `keep_pieces` is set as the rows need it
    table: Table = "texts"  # what has a row of its own
    column: str = "text"
    file_format: str | None = None  # of standard input, such as ".jsonl"; None is .txt
    encoding: str = "utf-8"
    delimiter: str | None = None
    batch_size: int = BATCH_SIZE
    n_process: int = 1
    show_progress: bool | None = False  # None: if standard error is a terminal
    max_length: int | None = None  # characters of the longest text; None is what the pipeline has
    skip_errors: bool = False  # a text that cannot be scored gets a row without scores, and `error` says why
    normalise: Sequence[str] = ()  # methods of `analysis.normalised.normalise`, each with a column for each metric
    unigrams: str | None = None  # the table for them
    header: Sequence[str] | None = None  # the columns of tables that have no header
    words: WordTable = WordTable()  # the table of words
    context_column: str | None = None  # with the table of words: each text is read after its context

    def read(self, path: str, vocab: Vocab, typed: bool = False) -> Iterator[Record]:
        """Read the input, or a copy of it: see `read_records`."""
        how = {name: getattr(self, name) for name in ("column", "file_format", "encoding", "delimiter", "header")}
        return with_fingerprints(read_records(path, vocab=vocab, typed=typed, **how))

    def make_rows(self, nlp: Language) -> TextRows:
        rows: TextRows = ROWS[self.table].of(get_scorer(nlp), self.column)
        rows.normaliser = Normaliser.of(nlp, self.normalise, self.unigrams)
        if isinstance(rows, WordRows):
            rows.table, rows.lang = self.words, str(nlp.lang)
            if self.words.log_frequency:
                log_frequencies(rows.lang)  # an error about it should come now
        return rows

    def make_pipeline(self) -> Language:
        changes: dict[str, Any] = {"targets": TEXT_SPAN} if self.context_column else {}
        if ROWS[self.table].keep_pieces or self.normalise:
            changes["keep_pieces"] = True
        nlp = make_pipeline(self.pipeline, **changes)
        nlp.max_length = self.max_length or nlp.max_length
        return nlp

    def checked(
        self, records: Iterable[Record], rows: TextRows, output: type[Format], nlp: Language
    ) -> Iterator[Record]:
        """RAISES (InputError): The row of a text could not be written, or a text is too long."""
        for record in records:
            output.check(record)
            if isinstance(rows, ProdigyRows):
                rows.check(record)
            self.context_of(record)
            if self.words.regions and isinstance(record.text, str) and nlp.path is None:
                raise InputError(
                    f"{record.location}: --regions is for .spacy input, or for a saved pipeline that makes spans. "
                    "Leave it out."
                )
            if not self.skip_errors and (problem := too_long(record.text, nlp)):
                raise InputError(f"{record.location}: {problem}, or --skip-errors to leave its scores out.")
            yield record

    def context_of(self, record: Record) -> str:
        """RAISES (InputError): There should be a context, and it is no text."""
        if self.context_column is None:
            return ""
        # Parquet files give Arrow's scalars.
        row = {self.column: record.text, **record.fields}
        row = {name: value.as_py() if hasattr(value, "as_py") else value for name, value in row.items()}
        return get_text(row, record.location, self.context_column, "--context-column")

    def in_context(self, nlp: Language, record: Record) -> str | Doc:
        """What the pipeline gets for a record: its text or, with contexts, a doc of context and text."""
        if self.context_column is None:
            return record.text
        context, text = self.context_of(record), record.text
        try:
            docs = [nlp.make_doc(part) if isinstance(part, str) else part for part in (context, text)]
        except Exception:  # the pipeline fails in the same way, and its error belongs to this text
            return f"{context} {text}"
        doc = Doc.from_docs(docs, exclude=["user_data"])  # type: ignore[call-arg]  # not in spaCy's stub
        doc.spans[TEXT_SPAN] = [text_span := doc[len(docs[0]) :]]
        if text_span and not docs[1].has_annotation("SENT_START"):
            text_span[0].is_sent_start = None  # spaCy takes the text for a sentence
        return doc

    def score(self, nlp: Language, records: Iterable[Record], first: int = 0) -> Generator[ScoredText, None, None]:
        """Score records in their order. With `skip_errors`, each gets a field `error`.

        first (int): The number of the first record.
        RAISES (InputError): A text cannot be scored.
        RAISES (ChildProcessError): A worker process was killed.
        """
        pieces, failed = get_scorer(nlp).names.pieces, 0
        waiting: deque[Record] = deque()  # those that are being scored
        ends: deque[int] = deque()  # and the numbers of the texts behind the batches that they are in

        def texts() -> Iterator[str | Doc]:
            for record in records:
                waiting.append(record)
                yield self.in_context(nlp, record)

        def batches() -> Iterator[list[str | Doc]]:
            end = first
            for batch in batches_of(get_scorer(nlp).predictor, texts(), self.batch_size):
                end += len(batch)
                ends.append(end)
                yield batch

        with closing(score_batches(nlp, batches(), self.n_process)) as outcomes:
            for number, outcome in enumerate(outcomes, first):
                record = waiting.popleft()
                error = None
                if isinstance(outcome, TextError):
                    if not self.skip_errors:
                        raise InputError(
                            f"{record.location}: this text cannot be scored. {outcome}. Add --skip-errors to go on."
                        )
                    error = too_long(record.text, nlp) or str(outcome)
                    outcome, failed = unscored(record.text), failed + 1
                fields = {**record.fields, ERROR: error} if self.skip_errors else record.fields
                is_last = number + 1 == ends[0]
                if is_last:
                    ends.popleft()
                yield ScoredText(number, outcome, fields, outcome._.get(pieces) or 0, record.fingerprint, is_last)
        if failed:
            warnings.warn(
                f"{failed:,} of {number + 1 - first:,} texts could not be scored. Their rows have no scores. The "
                f"column {ERROR!r} says why.",
                stacklevel=2,
            )

    def watched(
        self, scored: Iterable[ScoredText], nlp: Language, work: int, n_texts: int, done: int = 0
    ) -> Generator[ScoredText, None, None]:
        """Show the progress, if that is wanted. work (int): That of the texts that are not done."""
        predictor = get_scorer(nlp).predictor
        return with_progress(
            scored, predictor, lambda one: predictor.estimate(one.doc.text), work, n_texts, done, self.show_progress
        )


def too_long(text: str | Doc, nlp: Language) -> str | None:
    """What is wrong if a text is longer than the pipeline reads."""
    if not isinstance(text, str) or len(text) <= nlp.max_length:
        return None
    at_most = f"at most {nlp.max_length:,} are read"
    return f"the text has {len(text):,} characters, and {at_most}. Give --max-length {len(text)}"


class Mark(NamedTuple):
    """What is known of the first texts of an input."""

    fingerprint: str
    work: int  # about how many ids are read for them


class InputSummary(NamedTuple):
    """What a first reading of the input finds."""

    texts: int  # 0 if it is read only once
    fields: list[str]  # the other columns
    digest: str
    fingerprint: str = ""  # of all records
    work: int = 0  # about how many ids are read for them
    marks: Mapping[int, Mark] = {}  # what is known of so many of them
    schema: Any = None  # pyarrow.Schema: the types of all columns, if the output is Parquet


class Written(NamedTuple):
    """What a file has."""

    texts: int
    before: int  # texts that were scored by earlier runs
    seconds_before: int  # which took them so long


def score_to_file(run: Run, output_path: str, resume: bool = False, force: bool = False) -> Written | None:
    """Score a corpus and write a file with its manifest. Until it is complete, results are in OUTPUT.parts.

    RETURNS (Optional[Written]): What the file has. None if it was complete before.
    RAISES (InputError): The input cannot be read, or has changed while it was scored, or the output cannot hold these
        rows.
    RAISES (OSError, ValueError): Writing would destroy something: see `check_target`.
    RAISES (ResumeError): Results would be lost, or the run to resume differs from this one.
    """
    output_format = find_format(output_path, ROWS[run.table])
    check_target(Path(output_path), run.input_path)
    parts = ResumableOutput(Path(output_path), resume, force)
    check_target(parts.folder, run.input_path, folder=True)
    nlp = run.make_pipeline()
    with _standard_input_as_file(run) as path:
        typed = Path(output_path).suffix.lower() == PARQUET
        rows = run.make_rows(nlp)
        summary = summarize_input(run, path, nlp, rows, output_format, typed, parts.ends())
        output = _make_format(output_format, run, rows, summary)
        fingerprints = {n: mark.fingerprint for n, mark in summary.marks.items()}
        first = parts.begin(make_manifest(run, nlp, summary), fingerprints)
        if first is None:
            return None
        written = Written(summary.texts, first, parts.seconds)
        records = islice(run.read(path, nlp.vocab, typed), first, None)
        work = summary.work - (summary.marks[first].work if first else 0)
        # Closed even if writing fails: otherwise its worker processes would live for as long as the error is kept.
        with (
            parts.kept(summary.texts),
            closing(run.score(nlp, records, first)) as scored,
            closing(run.watched(scored, nlp, work, summary.texts, first)) as texts,
        ):
            while part := _next_part(texts):
                parts.write(output.encode(part), sum(map(len, part)), part[-1][-1].fingerprint)
            if (parts.done, parts.fingerprint) != (summary.texts, summary.fingerprint):
                what = "some of its texts are not the same as at first"
                if parts.done != summary.texts:
                    what = f"at first it had {summary.texts:,} texts, and {parts.done:,} were scored"
                raise InputError(
                    f"The input {run.input_path!r} has changed while it was scored: {what}. Change it back, or start "
                    "again with --force."
                )
            parts.merge(output.merge)
        return written


def score_to_stream(run: Run) -> Iterator[bytes]:
    """Score a corpus and yield JSON lines as soon as texts are scored."""
    output_format = find_format(STANDARD_STREAM, ROWS[run.table])
    nlp = run.make_pipeline()
    rows = run.make_rows(nlp)
    if run.input_path == STANDARD_STREAM:  # cannot be read twice
        summary = InputSummary(0, [], "")
    else:
        summary = summarize_input(run, run.input_path, nlp, rows, output_format)
    output = _make_format(output_format, run, rows, summary)
    records = run.checked(run.read(run.input_path, nlp.vocab), rows, output_format, nlp)
    with (
        closing(run.score(nlp, records)) as scored,
        closing(run.watched(scored, nlp, summary.work, summary.texts)) as texts,
    ):
        for text in texts:
            yield output.encode([[text]])


def summarize_input(
    run: Run,
    path: str,
    nlp: Language,
    rows: TextRows,
    output_format: type[Format],
    typed: bool = False,
    ends: Collection[int] = (),
) -> InputSummary:
    """Read all of the input once before scoring, to find early what cannot be read, or not be written.

    typed (bool): Whether to find the types of the columns, too.
    ends (Collection[int]): Numbers of texts after which a mark is wanted.
    RAISES (InputError): The input cannot be read, or a column has no type. The message gives the file and line.
    """
    files = list_files(path)
    columns: Any = None
    if typed:
        from .parquet import InputColumns  # needs the extra `[parquet]`

        columns = InputColumns(run.column, files)
    estimate = get_scorer(nlp).predictor.estimate
    n, fingerprint, work, marks, fields = 0, "", 0, {}, {}
    for record in run.checked(run.read(path, nlp.vocab, typed), rows, output_format, nlp):
        n, fingerprint = n + 1, record.fingerprint
        work += estimate(record.text if isinstance(record.text, str) else record.text.text)
        if n in ends:
            marks[n] = Mark(fingerprint, work)
        fields.update(dict.fromkeys(record.fields))
        if columns:
            columns.add(record)
    for file in files:  # a table without a row keeps its columns
        names = [] if run.header else table_columns(file, run.encoding, run.delimiter)
        fields.update(dict.fromkeys(name for name in names if name != run.column))
    schema = columns and columns.schema(list(fields))
    return InputSummary(n, list(fields), files_digest(files), fingerprint, work, marks, schema)


def make_manifest(run: Run, nlp: Language, summary: InputSummary) -> dict[str, Any]:
    """What the results of a run depend on."""
    scorer = get_scorer(nlp)
    settings = {**vars(run), "words": asdict(run.words)}
    return {
        "input": {"texts": summary.texts, "fields": summary.fields, "digest": summary.digest},
        "run": {name: value for name, value in settings.items() if name not in NOT_IN_MANIFEST},
        "unigrams": run.unigrams and file_digest(Path(run.unigrams)),
        "model": describe_model(run.pipeline.model, scorer.model.describe().commit),
        "lang": nlp.lang,
        "pipeline": nlp.config["components"],
        "score_columns": [*scorer.names.metrics.values()],
        "device": str(get_torch_default_device()),
        "versions": {package: get_package_version(package) for package in PACKAGES},
    }


def _next_part(texts: Iterator[ScoredText]) -> list[list[ScoredText]]:
    """The next texts, batch by batch, until there are enough of them, or of wordpieces, or some time has passed.

    A part has whole batches, so the scores do not depend on where a run was interrupted.
    """
    part, n_texts, n_pieces, end = list[list[ScoredText]](), 0, 0, time.monotonic() + SECONDS_PER_PART
    batch: list[ScoredText] = []
    for text in texts:
        batch.append(text)
        n_texts, n_pieces = n_texts + 1, n_pieces + text.pieces
        if text.ends_batch:
            part.append(batch)
            batch = []
            if n_texts >= TEXTS_PER_PART or n_pieces >= PIECES_PER_PART or time.monotonic() >= end:
                break
    return part


def _make_format(output_format: type[Format], run: Run, rows: TextRows, summary: InputSummary) -> Format:
    # A Parquet file names its columns, even if it has no row.
    fields = summary.fields if summary.schema is None else summary.schema.names
    errors = [ERROR] if run.skip_errors else []
    named = [] if run.table == "prodigy" else [run.column]  # the text of a task is always called "text"
    check_columns([*named, *fields], [*rows.types, *errors], run.input_path, rows.names)
    fields = [*fields, *errors]
    make: Any = output_format  # a Parquet file has a schema, too
    return make(rows, fields) if summary.schema is None else make(rows, fields, summary.schema)


@contextmanager
def _standard_input_as_file(run: Run) -> Iterator[str]:
    """The path of the input. Standard input is copied to a temporary file, so that it can be read twice."""
    if run.input_path != STANDARD_STREAM:
        yield run.input_path
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"standard input{run.file_format or '.txt'}"
        with open(file, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield str(file)
