"""Files of words that may stand in a gap: tables are read by column, and all others by line."""

from pathlib import Path

from ..advice.giving import advise
from ..advice.lines import pieces_in_vocabulary, table_in_vocabulary
from ..analysis.gaps import distinct_candidates
from ..compression import format_of, open_file
from ..corpus.decoding import numbered_lines
from ..corpus.readers import read_rows
from ..corpus.records import FileOptions, ReadOptions, get_text
from ..errors import no_column
from .readers import TABLE_ENDINGS


def read_vocabulary(path: str, word: str = "word", encoding: str = "utf-8") -> tuple[str, ...]:
    """The words or phrases of a file. In a table, a word that several rows have is one.

    word (str): The column of the words, whatever its case, in a table that has several columns, or this one alone.
    RAISES (InputError): There is none, or a word is empty, or a line is there twice.
    """
    words = _of_table(path, word, encoding) if format_of(Path(path)) in TABLE_ENDINGS else None
    if words is None:
        with open_file(Path(path)) as file:
            lines = [line for _, line in numbered_lines(file, path, ReadOptions(files=FileOptions(encoding=encoding)))]
        words = distinct_candidates(f"{path}, line", lines)
        advise(table_in_vocabulary(lines, words, path))
    advise(pieces_in_vocabulary(words, path))
    return words


def _of_table(path: str, word: str, encoding: str) -> tuple[str, ...] | None:
    """The words in a column; None where the only column has another name, and is no column then, but a word."""
    names = list[str]()
    files = FileOptions(encoding=encoding, na_as_text=True)
    rows = list(read_rows(Path(path), files, found=lambda _, columns: names.extend(columns)))
    names = names or [name for _, row in rows[:1] for name in row]
    column = word if word in names else next((name for name in names if name.strip().lower() == word.lower()), None)
    if column is None:
        if len(names) < 2 and format_of(Path(path)) in (".csv", ".tsv"):
            return None
        advice = "Name the column of the words with `word`. If line 1 has no names of columns, write them."
        raise no_column(path, word, names, advice)
    words = [(location, get_text(row, location, column, "`word`").strip()) for location, row in rows]
    return distinct_candidates(f"{path}, row", dict.fromkeys(text for _, text in words))
