"""Files of words that may stand in a gap: tables are read by column, and all others by line."""

import re
from collections.abc import Sequence
from pathlib import Path

from ..analysis.gaps import distinct_candidates
from ..compression import format_of, open_file
from ..corpus.decoding import numbered_lines
from ..corpus.readers import read_rows
from ..corpus.records import FileOptions, ReadOptions, get_text
from ..corpus.txt_tables import signs_of_table
from ..errors import no_column
from ..tables.odd_rows import CONTINUES, pattern_of_pieces
from ..user_warnings import warn_user
from .readers import TABLE_ENDINGS

SPECIAL = re.compile(r"\[(?:PAD|UNK|CLS|SEP|MASK|unused\d+)\]|<(?:s|/s|pad|unk|mask)>")
NUMBER = r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?"
WITH_NUMBER = re.compile(rf"(\S.*?)[\s,;|]+{NUMBER}|{NUMBER}[\s,;|]+(\D.*)", re.IGNORECASE)
MOST = 3 / 4  # of the lines, which tell what all are


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
        if sign := signs_of_table(lines) or _numbers_beside(words):
            warn_user(
                f"{path}: {sign}, and each whole line is a candidate. If it is a table, make it a .tsv or .csv file. "
                "There, `word` names the column of the words."
            )
    patterns = SPECIAL, CONTINUES, pattern_of_pieces(words)
    if pieces := [one for one in words if any(pattern.fullmatch(one) for pattern in patterns)]:
        warn_user(
            f"{path}: {len(pieces):,} of {len(words):,} candidates are written as wordpieces or special tokens of a "
            f"tokenizer, such as {pieces[0]!r:.100}. They are scored as they are. Leave them out, or let words be "
            "searched, with `top`."
        )
    return words


def _of_table(path: str, word: str, encoding: str) -> tuple[str, ...] | None:
    """The words in a column; None where the only column has another name, and is no column then, but a word."""
    names = list[str]()
    files = FileOptions(encoding=encoding, na_as_text=True)
    rows = list(read_rows(Path(path), files, found=lambda _, columns: names.extend(columns)))
    names = names or [name for _, row in rows[:1] for name in row]
    column = word if word in names else next((one for one in names if one.strip().lower() == word.lower()), None)
    if column is None:
        if len(names) < 2 and format_of(Path(path)) in (".csv", ".tsv"):
            return None
        advice = "Name the column of the words with `word`. If line 1 has no names of columns, write them."
        raise no_column(path, word, names, advice)
    found = [(place, get_text(row, place, column, "`word`").strip()) for place, row in rows]
    return distinct_candidates(f"{path}, row", dict.fromkeys(text for _, text in found))


def _numbers_beside(words: Sequence[str]) -> str:
    """What says that a number stands beside each of different words; "" if nothing does."""
    found = [one[1] or one[2] for one in map(WITH_NUMBER.fullmatch, words) if one]
    is_list = len(found) > 1 and len(found) >= MOST * len(words) and len({*found}) == len(found)
    return f"a number stands beside the word in {len(found):,} of {len(words):,} lines" if is_list else ""
