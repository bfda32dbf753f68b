"""What a run reads: the texts, and what is known of all of them before the first is scored."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from spacy.tokens import Doc
from spacy.vocab import Vocab

from .readers import read_records
from .records import STANDARD_STREAM, Record, get_text


@dataclass(frozen=True)
class Input:
    """Texts with their other columns."""

    path: str  # a file, a folder, or "-" for standard input
    column: str = "text"
    file_format: str | None = None  # of standard input, such as ".jsonl"; None is .txt
    encoding: str = "utf-8"
    delimiter: str | None = None
    header: Sequence[str] | None = None  # the columns of tables that have no header
    context_column: str | None = None  # with the table of words: each text is read after its context

    def records(self, vocab: Vocab, **options: Any) -> Iterator[Record]:
        """Read the texts with their contexts and fingerprints. A fingerprint is 16 hexadecimal digits of a SHA-256 over
        the texts and columns until there, so two readings that give the same texts and columns give the same ones.

        options (Any): The others of `ReadOptions`: `typed`, `found`.
        RAISES (InputError): A line cannot be read.
        """
        total = sha256()
        options |= {"encoding": self.encoding, "delimiter": self.delimiter, "header": self.header}
        for record in read_records(self.path, self.column, vocab, self.file_format, **options):
            # The strings of a doc have no order.
            text = repr(record.text.to_bytes(exclude=["strings"])) if isinstance(record.text, Doc) else record.text
            total.update(repr((text, record.fields)).encode("utf8", "surrogatepass"))
            yield record._replace(context=self._context(record), fingerprint=total.copy().hexdigest()[:16])

    def _context(self, record: Record) -> str | None:
        if self.context_column is None:
            return None
        row = {self.column: record.text, **record.fields}
        # Parquet files give Arrow's scalars.
        row = {name: value.as_py() if hasattr(value, "as_py") else value for name, value in row.items()}
        return get_text(row, record.location, self.context_column, "--context-column")

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


class Mark(NamedTuple):
    """What is known of the first texts of an input, or of all."""

    texts: int = 0
    fingerprint: str = ""
    work: int = 0  # about how many ids are read for them


START = Mark()


def marks_of(
    records: Iterable[Record], estimate: Callable[[str], int], ends: Collection[int] = ()
) -> tuple[Mark, Mapping[int, Mark]]:
    """Read all texts.

    estimate (Callable): About how many ids are read for a text.
    ends (Collection[int]): Numbers of texts after which a mark is wanted.
    RETURNS (Tuple[Mark, Mapping[int, Mark]]): That of all texts, and those after so many texts.
    """
    mark, marks = START, {0: START}
    for n, record in enumerate(records, 1):
        text = record.text if isinstance(record.text, str) else record.text.text
        mark = Mark(n, record.fingerprint, mark.work + estimate(text))
        if n in ends:
            marks[n] = mark
    return mark, marks
