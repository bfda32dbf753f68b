"""What a run scores: records in, scored texts out."""

import warnings
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

from spacy.language import Language
from spacy.tokens import Doc

from ..attributes.values import sums_of_doc
from ..component import get_scorer
from ..errors import InputError
from ..pipelines import PipelineSettings
from ..progress import Forecast, with_progress
from ..settings import BATCH_SIZE, at_least
from ..stream.contexts import doc_in_context
from ..stream.outcomes import ERROR, TextError, empty_doc, unscored
from ..stream.workers import Work, score_outcomes
from ..tables.rows import ScoredText
from .inputs import too_long, with_faults
from .records import Record, warn_of_missing


@dataclass(frozen=True)
class Scoring:
    """With which pipeline texts are scored, and what becomes of those that cannot be.

    max_length (Optional[int]): Characters of the longest text. None: 1,000,000, or what a saved pipeline has.
    shared_pieces (bool): A wordpiece that context and text share belongs to the context. Otherwise it is an error.
    skip_errors (bool): If a text cannot be scored, write a row without scores, and go on. The column `error` says why.
    """

    pipeline: PipelineSettings = PipelineSettings()
    batch_size: int = BATCH_SIZE
    n_process: int = 1
    max_length: int | None = at_least(1)
    shared_pieces: bool = False
    skip_errors: bool = False
    show_progress: bool = False

    def score(
        self, nlp: Language, records: Iterable[Record], total: int | None = None, done: int = 0
    ) -> Generator[ScoredText, None, None]:
        """Score records in their order, and show the progress, if that is wanted.

        total (Optional[int]): How many texts there are, if that is known.
        done (int): How many of them come before the records.
        RAISES (InputError): A text cannot be scored, and `skip_errors` is not set.
        RAISES (ChildProcessError): A worker process was killed.
        """
        names, failed, missing, number = get_scorer(nlp).names, 0, 0, done
        waiting = deque[Record]()  # those that are being scored

        def texts() -> Iterator[str | Doc]:
            looks = self.skip_errors and not self.shared_pieces
            for record, fault in with_faults(nlp, records, looks, self.batch_size):
                if fault:
                    record.problem = f"The text {fault}"
                waiting.append(record)
                yield _readable(nlp, record)

        outcomes = score_outcomes(nlp, texts(), Work(self.batch_size, self.n_process), done)
        watched = with_progress(outcomes, total, done, self.show_progress)
        forecast = Forecast(total, done, self.show_progress)
        with closing(outcomes), closing(watched):
            for number, (outcome, ends_batch) in enumerate(watched, done + 1):
                record, error = waiting.popleft(), None
                if record.problem:
                    outcome, error = unscored(record.text or record.in_place), record.problem
                    failed, missing = failed + (not record.in_place), missing + bool(record.in_place)
                if isinstance(outcome, TextError):
                    if not self.skip_errors:
                        raise InputError(
                            f"{record.location}: this text cannot be scored. {outcome}.",
                            "Add `skip_errors=True` to go on.",
                        )
                    error = too_long(record.text, nlp) or str(outcome)
                    outcome, failed = unscored(record.text), failed + 1
                fields = {**record.fields, ERROR: error} if self.skip_errors else record.fields
                text = record.text if error is None and record.sides is None else outcome
                sums = sums_of_doc(outcome, names)
                forecast.add(sums[2], ends_batch)
                yield ScoredText(number - 1, outcome, fields, sums, str(text), record.fingerprint, ends_batch)
        warn_of_missing(missing, number - done, "Their rows have no scores")
        if failed:
            warnings.warn(
                f"{failed:,} of {number - done:,} texts could not be scored. Their rows have no scores. The "
                f"column {ERROR!r} says why.",
                stacklevel=2,
            )


def _readable(nlp: Language, record: Record) -> str | Doc:
    """What the pipeline gets for a record: its text or, in its place, a doc of all."""
    if record.problem:
        return empty_doc(nlp)
    if record.sides is None:
        return record.text
    before, after = record.sides
    try:
        return doc_in_context(nlp, record.text, before, after)
    except Exception:  # the pipeline fails in the same way, and its error belongs to this text
        return f"{before}{record.text}{after}"
