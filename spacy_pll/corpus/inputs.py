"""What a run reads: the texts, and what is known of all of them before the first is scored."""

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count, repeat
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc
from spacy.vocab import Vocab

from ..advice.giving import advised
from ..advice.texts import single_words
from ..cells import is_missing
from ..component import get_scorer
from ..errors import InputError
from ..prediction.batches import batches_of
from ..span_getters import TEXT_SPAN
from ..stream.contexts import PLACES_AT_ONCE, SHARED_ADVICE, between, read_places
from ..stream.outcomes import ERROR
from ..tables.rows import TextRows, check_columns
from ..tables.words import WordRows
from .columns import InputColumns
from .decoding import writable_fields
from .readers import read_records
from .records import DEFAULT_FILES, STANDARD_STREAM, FileOptions, Found, Nested, ReadOptions, Record, RowError, get_text


@dataclass(frozen=True)
class Input:
    """Texts with their other columns. What stands beside a text is for the table of words.

    path (str): A file, a folder, or "-" for standard input.
    column (str): That of the texts.
    files (FileOptions): How they are written.
    file_format (Optional[str]): The format of standard input. None: .txt.
    context_column (Optional[str]): A column with a context for each text. The model reads it before the text. It is not
        scored, and its words have no rows.
    after_column (Optional[str]): A column with a context after each text, which is read and not scored.
    separator (str): What is put between a context and a text, unless one of them has white space there.
    marked (bool): The text is between two asterisks, as in 'The *cats* sleep.', and the rest is its context.
    """

    path: str
    column: str = "text"
    files: FileOptions = DEFAULT_FILES
    file_format: str | None = None
    context_column: str | None = None
    after_column: str | None = None
    separator: str = " "
    marked: bool = False

    def records(
        self, vocab: Vocab, *, typed: bool = False, skip_errors: bool = False, found: Found = ReadOptions.found
    ) -> Iterator[Record]:
        """Read the texts with their contexts and fingerprints. A fingerprint is 16 hexadecimal digits of a SHA-256 over
        the texts and columns until there, so two readings that give the same texts and columns give the same ones.

        typed, skip_errors, found: See `ReadOptions`.
        RAISES (InputError): A line cannot be read.
        """
        total, options = sha256(), ReadOptions(self.column, vocab, self.files, typed, skip_errors, found)
        try:
            for record in read_records(self.path, options, self.file_format):
                # The strings of a doc have no order.
                text = record.text if isinstance(record.text, str) else repr(record.text.to_bytes(exclude=["strings"]))
                total.update(repr((text or record.in_place, record.fields)).encode("utf8", "surrogatepass"))
                record.fingerprint = total.copy().hexdigest()[:16]
                try:
                    self._add_sides(record)
                except InputError as error:
                    if not skip_errors:
                        raise RowError(error.problem, error.advice) from None
                    record.problem = error.problem.removeprefix(f"{record.location}: ")
                if skip_errors:  # behind what reads them, such as contexts: an escape is not what stands there
                    record.fields = writable_fields(record.fields)
                yield record
        except RowError as error:
            advice = f"{error.advice} To leave its scores out, give `skip_errors=True`."
            raise InputError(error.problem, advice.strip()) from None

    @property
    def has_sides(self) -> bool:
        """Whether something may stand beside a text."""
        return self.marked or bool(self.context_column or self.after_column)

    def _add_sides(self, record: Record) -> None:
        """Add to a record what is read before and after its text."""
        if not self.has_sides or record.problem:
            return
        if self.marked:
            parts = str(record.text).split("*")
            if len(parts) != 3 or not parts[1].strip():
                raise InputError(
                    f"{record.location}: in {str(record.text)!r:.100} no text, or more than one, stands between two "
                    "asterisks.",
                    "Write one as in 'The *cats* sleep.'",
                )
            record.text, record.sides = parts[1], (parts[0], parts[2])
            return
        before, after = (self._beside(record, column) for column in ("context_column", "after_column"))
        record.sides = between(before, record.text, after, self.separator)[1:]

    def _beside(self, record: Record, setting: str) -> str:
        if (column := getattr(self, setting)) is None:
            return ""
        row = Nested({self.column: record.text, **record.fields})
        # Parquet files give Arrow's scalars.
        names = {column, column.partition(".")[0]} & row.keys()
        try:
            row |= {name: row[name].as_py() for name in names if hasattr(row[name], "as_py")}
        except UnicodeDecodeError:
            raise InputError(f"{record.location}: {column!r} is not valid UTF-8.") from None
        # White space is a text.
        is_empty = column in row and type(row[column]) is not str and is_missing(row[column])
        return "" if is_empty else get_text(row, record.location, column, f"`{setting}`")

    @contextmanager
    def as_file(self) -> Iterator["Input"]:
        """The same input as a file: standard input is copied, so that it can be read twice."""
        if self.path != STANDARD_STREAM:
            yield self
            return
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"standard input{self.file_format or '.txt'}"
            with open(file, "wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            yield replace(self, path=str(file))


def checked_records(
    source: Input,
    nlp: Language,
    rows: TextRows,
    columns: InputColumns,
    skip_errors: bool,
    shared_pieces: bool,
    at_once: int = PLACES_AT_ONCE,
) -> Iterator[Record]:
    """The texts of an input, each as soon as it is known that it can be scored and written.

    columns (InputColumns): Gets those of the input.
    skip_errors (bool): Texts may be such that they cannot be scored.
    shared_pieces (bool): They may share a wordpiece with their context.
    at_once (int): How many may be read before the first is given, where texts have contexts.
    RAISES (InputError): A text cannot be read, or its row not be written, or it is too long; or a column would be
        overwritten.
    """
    needs_spans = _needs_spans(nlp, rows)
    added = [*rows.types, *([ERROR] if skip_errors else [])]
    check_columns([source.column], added, source.path, rows.names)
    records = source.records(nlp.vocab, typed=columns.typed, found=columns.declare, skip_errors=skip_errors)
    looks = source.has_sides and not (skip_errors or shared_pieces)
    for record, fault in with_faults(nlp, records, looks, at_once):
        if fault:
            raise InputError(f"{record.location}: the text {fault}", SHARED_ADVICE)
        check_columns(record.fields.keys() - columns.names.keys(), added, record.location, rows.names)
        columns.add(record)
        if needs_spans and isinstance(record.text, str):
            raise InputError(
                f"{record.location}: `{needs_spans}` names a group of spans. It is for .spacy input, or a saved "
                "pipeline that makes spans.",
                "Leave it out. To score some words of a text, choose their rows in a table of words, `table='words'`. "
                "If one text in each line is between asterisks, `marked=True` scores it alone.",
            )
        if not skip_errors and (problem := too_long(record.text, nlp)):
            more = f"`max_length={len(record.text)}`"
            raise InputError(
                f"{record.location}: {problem}.", f"Give {more}, or `skip_errors=True` to leave its scores out."
            )
        yield record
    check_columns(columns.declared, added, source.path, rows.names)  # those of tables without a text


def _needs_spans(nlp: Language, rows: TextRows) -> str:
    """A setting that names spans, if this pipeline makes none; else ""."""
    if nlp.path is not None:  # it was saved, and may make spans
        return ""
    settings = get_scorer(nlp).settings
    keys = {
        "regions": isinstance(rows, WordRows) and rows.table.regions,
        "targets": settings.targets != TEXT_SPAN and settings.targets,
        "units": settings.units,
    }
    return next((name for name, key in keys.items() if key), "")


def read_all(records: Iterable[Record], ends: Collection[int] = ()) -> dict[int, str]:
    """The fingerprints of the first texts, by how many they are: of so many as `ends` has, and last of all."""
    n, fingerprint, of_first = 0, "", {0: ""}
    for n, record in enumerate(advised(records, _single_words), 1):
        fingerprint = record.fingerprint
        if n in ends:
            of_first[n] = fingerprint
    return {**of_first, n: fingerprint}


def _single_words(records: Sequence[Record]) -> str | None:
    return single_words([(record.text, record.fields) for record in records])


def too_long(text: str | Doc, nlp: Language) -> str | None:
    """What is wrong if a text is longer than the pipeline reads."""
    if not isinstance(text, str) or len(text) <= nlp.max_length:
        return None
    return f"the text has {len(text):,} characters, and at most {nlp.max_length:,} are read"


def with_faults(
    nlp: Language, records: Iterable[Record], looks: bool, at_once: int
) -> Iterator[tuple[Record, str | None]]:
    """Each record, and what is wrong if its text shares a wordpiece with its context.

    looks (bool): If that matters.
    at_once (int): How many records may be taken before the first is given. One without a context waits for no other.
    """
    if not looks:
        yield from zip(records, repeat(None))
        return
    numbers = count(1)

    def is_last(record: Record) -> bool:
        return not any(record.sides or ()) or next(numbers) % min(at_once, PLACES_AT_ONCE) == 0

    for block in batches_of(records, is_last):
        beside = [not record.problem and record.sides or ("", "") for record in block]
        faults: list[str | None] = [None] * len(block)
        if any(map(any, beside)):
            places = [(record.text if any(sides) else "", *sides) for record, sides in zip(block, beside)]
            faults = [fault for _, fault in read_places(get_scorer(nlp).model.load(), places)[2]]
        yield from zip(block, faults, strict=True)
