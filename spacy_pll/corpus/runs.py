"""Score a corpus. The scores go to a file, in parts so that an interrupted run can resume, or to a stream of lines."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from spacy.language import Language
from spacy.util import get_package_version
from thinc.api import get_torch_default_device

from ..analysis.normalised import Normaliser
from ..component import get_scorer
from ..contexts import TEXT_SPAN
from ..errors import InputError
from ..files import check_target, file_digest
from ..pipelines import identify_scorer
from ..tables.rows import TextRows, TokenRows, WordRows
from ..tables.words import WordTable
from .base_format import ScoredText
from .formats import find_format
from .inputs import START, Input, Mark, Reading
from .records import STANDARD_STREAM
from .resumable import ResumableOutput
from .scored_texts import Scoring

# A part ends with the batch with which it has one of these. Parts should be large enough that opening and closing them
# costs nothing, and small enough for the memory, and that little is scored a second time: with a batch, half a minute.
# It also ends when it has as many texts as all before it: the first is one batch, and they grow.
TEXTS_PER_PART, PIECES_PER_PART, SECONDS_PER_PART = 1024, 2**16, 20
# The packages whose versions the manifest records.
PACKAGES = ["spacy-pll", "spacy", "spacy-transformers", "transformers", "tokenizers", "torch"]
# What the results do not depend on, and what the manifest records otherwise.
NOT_IN_MANIFEST = ("path", "file_format", "pipeline", "n_process", "show_progress", "input", "scoring", "unigrams")
TableOf = Literal["texts", "tokens", "words"]
ROWS_OF: dict[TableOf, type[TextRows]] = {"texts": TextRows, "tokens": TokenRows, "words": WordRows}


@dataclass(frozen=True)
class Run:
    """What is read, how it is scored, and what is written."""

    input: Input
    scoring: Scoring = Scoring()
    table: TableOf = "texts"  # what has a row of its own
    words: WordTable = WordTable()  # the table of words
    normalise: Sequence[str] = ()  # methods of `analysis.normalised.normalise`, each with a column for each metric
    unigrams: str | None = None  # the table for them

    def make_pipeline(self) -> Language:
        """A pipeline whose docs have what the rows are made from."""
        settings: dict[str, Any] = {"targets": TEXT_SPAN} if self.input.has_sides else {}
        if ROWS_OF[self.table].keep_pieces or self.normalise:
            settings["keep_pieces"] = True
        return self.scoring.make_pipeline(**settings)

    def with_columns(self, nlp: Language) -> "Run":
        """The same where it is known which columns a table of words has."""
        return replace(self, words=self.words.known(str(nlp.lang))) if self.table == "words" else self

    def make_rows(self, nlp: Language) -> TextRows:
        rows: TextRows = ROWS_OF[self.table].of(get_scorer(nlp), self.input.column)
        rows.normaliser = Normaliser.of(nlp, self.normalise, self.unigrams)
        if isinstance(rows, WordRows):
            rows.table, rows.lang = self.words, str(nlp.lang)
            rows.has_sents = any("token.is_sent_start" in nlp.get_pipe_meta(name).assigns for name in nlp.pipe_names)
        return rows


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
    output_format = find_format(output_path, ROWS_OF[run.table])
    check_target(Path(output_path), run.input.path)
    parts = ResumableOutput(Path(output_path), resume, force)
    check_target(parts.folder, run.input.path, folder=True)
    nlp = run.make_pipeline()
    run = run.with_columns(nlp)
    with run.input.as_file() as source:
        errors = run.scoring.skip_errors, run.scoring.shared_pieces
        reading = Reading(source, run.make_rows(nlp), output_format, nlp, *errors)
        total, marks = reading.read_all(parts.ends())
        output, manifest = reading.make_output(run.input.path), make_manifest(run, nlp, total, reading.other_columns)
        first = parts.begin(manifest, {n: mark.fingerprint for n, mark in marks.items()})
        if first is None:
            return None
        written = Written(total.texts, first, parts.seconds)
        how = {"typed": output.typed, "skip_errors": run.scoring.skip_errors}
        records = islice(source.records(nlp.vocab, **how), first, None)
        # Closed even if writing fails: otherwise its worker processes would live for as long as the error is kept.
        with parts.kept(total.texts), closing(run.scoring.score(nlp, records, total, marks[first])) as texts:
            while part := _next_part(texts, parts.done):
                parts.write(output.encode(part), sum(map(len, part)), part[-1][-1].fingerprint)
            if (parts.done, parts.fingerprint) != (total.texts, total.fingerprint):
                what = "some of its texts are not the same as at first"
                if parts.done != total.texts:
                    what = f"at first it had {total.texts:,} texts, and {parts.done:,} were scored"
                raise InputError(
                    f"The input {run.input.path!r} has changed while it was scored: {what}. Change it back, or start "
                    "again with `force=True`."
                )
            parts.merge(output.merge)
        return written


def score_to_stream(run: Run) -> Iterator[bytes]:
    """Score a corpus and yield JSON lines as soon as texts are scored."""
    output_format = find_format(STANDARD_STREAM, ROWS_OF[run.table])
    nlp = run.make_pipeline()
    run = run.with_columns(nlp)
    errors = run.scoring.skip_errors, run.scoring.shared_pieces
    reading, total = Reading(run.input, run.make_rows(nlp), output_format, nlp, *errors), START
    if run.input.path != STANDARD_STREAM:  # which cannot be read twice
        total, _ = reading.read_all()
    output = reading.make_output(run.input.path)
    with closing(run.scoring.score(nlp, reading.checked(), total)) as texts:
        for text in texts:
            yield output.encode([[text]])


def make_manifest(run: Run, nlp: Language, total: Mark, fields: list[str]) -> dict[str, Any]:
    """What the results of a run depend on.

    total (Mark): Of all texts of the input.
    fields (List[str]): The other columns of the input.
    """
    settings = {**vars(run.input), **vars(run.scoring), **vars(run), "words": asdict(run.words)}
    return {
        "input": {"texts": total.texts, "fields": fields, "digest": total.fingerprint},
        "run": {name: value for name, value in settings.items() if name not in NOT_IN_MANIFEST},
        "unigrams": run.unigrams and file_digest(Path(run.unigrams)),
        "score_columns": [*get_scorer(nlp).names.metrics.values()],
        **identify_scorer(nlp, run.scoring.pipeline),
        **versions(),
    }


def versions() -> dict[str, Any]:
    """What the numbers depend on, besides the model, the settings and the texts."""
    packages = {package: get_package_version(package) for package in PACKAGES}
    return {"device": str(get_torch_default_device()), "versions": packages}


def _next_part(texts: Iterator[ScoredText], n_done: int) -> list[list[ScoredText]]:
    """The next texts, batch by batch, until there are enough of them, or of wordpieces, or some time has passed.

    A part has whole batches, so the scores do not depend on where a run was interrupted.

    n_done (int): The number of texts in the parts before.
    """
    enough = min(n_done, TEXTS_PER_PART)
    part, n_texts, n_pieces, end = list[list[ScoredText]](), 0, 0, time.monotonic() + SECONDS_PER_PART
    batch: list[ScoredText] = []
    for text in texts:
        batch.append(text)
        n_texts, n_pieces = n_texts + 1, n_pieces + text.pieces
        if text.ends_batch:
            part.append(batch)
            batch = []
            if n_texts >= enough or n_pieces >= PIECES_PER_PART or time.monotonic() >= end:
                break
    return part
