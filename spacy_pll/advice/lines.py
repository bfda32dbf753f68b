"""Lines of files of texts, pairs or words that are rows of a table, or no sentences: all of a line is read."""

import re
from collections.abc import Sequence

from .odd_words import CONTINUES, pattern_of_pieces

HEAD = 20  # lines of a corpus from which it is told
COLUMN_NAMES = re.compile(r"\w+(?:([,;|])\w+)(?:\1\w+)*")  # of columns, as in "sentence,label"
SCORE = r"(?:[01]|-\d+|[-+]?\d*[.,]\d+(?:[eE][-+]?\d+)?)"
SCORE_BEHIND = re.compile(rf"[.!?…。]['\"”’)]*(?:\s+|\s*[,;|]\s*){SCORE}\Z")
LABEL_BEFORE = re.compile(r"([01])(?:\s+|\s*[,;|]\s*)\D")
# A cell of R's write.table, where what is not text stands without quotation marks.
R_CELL = re.compile(r'(?:"(?:[^"\\]|\\.|"")*"|[-+\d.e]+|TRUE|FALSE|NA|NaN|-?Inf)(?: |\Z)')
R_NAMES = re.compile(r'"[^"]*"(?: "[^"]*")*')  # of its columns
# A line that is no sentence, such as "Ungrammatical:".
TITLE = re.compile(
    r"\W*(un|in|im)?(good|bad|grammatical|acceptable|correct|plausible|well-formed|ill-formed)( sentences?)?[^\w.!?]*"
    r"|\w+:",
    re.IGNORECASE,
)
SPECIAL = re.compile(r"\[(?:PAD|UNK|CLS|SEP|MASK|unused\d+)\]|<(?:s|/s|pad|unk|mask)>")
NUMBER = r"[-+]?\d[\d.,]*(?:e[-+]?\d+)?"
WITH_NUMBER = re.compile(rf"(\S.*?)[\s,;|]+{NUMBER}|{NUMBER}[\s,;|]+(\D.*)", re.IGNORECASE)
MOST = 3 / 4  # of the lines, which tell what all are
HOW_TO_READ = (
    "If it is a table, make it a .tsv or .csv file. There, `column` names the column of the texts, and `header` all "
    "columns, if line 1 does not."
)


def has_tab(line: str) -> bool:
    """Whether a tab stands inside a line. At its ends it is white space."""
    return "\t" in line.strip()


def signs_of_table(lines: Sequence[str], least: int = 3) -> str:
    """What says that lines are rows of a table; "" if nothing does.

    least (int): So many lines tell that numbers behind sentences, or before them, are no part of these.
    """
    lines = [line.strip() for line in lines if line.strip()]
    with_tab = sum(map(has_tab, lines))
    if len(lines) > 1 and with_tab > 0.75 * len(lines):
        return f"tabs stand in {with_tab} of {len(lines)} lines"
    names = COLUMN_NAMES.fullmatch(lines[0]) if lines else None
    if names and len(lines) > 1 and all(line.count(names[1]) >= lines[0].count(names[1]) for line in lines):
        return f"line 1 is {lines[0]!r:.100}, as the names of columns"
    n, *widths = [0 if rest else n for rest, n in (R_CELL.subn("", line) for line in lines)] or [0]
    if {*widths} in ({n + 1}, {n}) and n + widths[0] > 2 and R_NAMES.fullmatch(lines[0]):
        return f"line 1 is {lines[0]!r:.100}, as R writes the names of columns"
    if len(lines) >= least and all(map(SCORE_BEHIND.search, lines)):
        return "a number stands behind each sentence"
    labels = {label[1] if (label := LABEL_BEFORE.match(line)) else "" for line in lines}
    if len(lines) >= least and labels == {"0", "1"}:
        return "0 or 1 stands before each sentence"
    return ""


def table_in_corpus(lines: Sequence[str], name: str) -> str | None:
    """About the first lines of a corpus, if they are rows of a table. name (str): What the file is called."""
    signs = signs_of_table(lines)
    return f"{name}: {signs}, and all of each line is read as text. {HOW_TO_READ}" if signs else None


def no_sentences(lines: Sequence[tuple[str, str]], name: str) -> str | None:
    """About lines of pairs that seem to be no sentences: rows of a table, titles of sections, or marked.

    lines (Sequence[Tuple[str, str]]): Where each is, and what it has. name (str): What the file is called.
    """
    problem = signs_of_table([line for _, line in lines], least=2)
    problem = problem or next(filter(None, (_no_sentence(where, line.strip()) for where, line in lines)), "")
    if not problem:
        return None
    return (
        f"{name}: {problem}. In a .txt file, each line is a sentence, and they take turns. If it is a table, make "
        "it a .tsv or .csv file. There, `good` and `bad` name the columns of the two sentences, or `sentence` and "
        "`label` the column of a sentence and the one that says if it is good, and `header` all columns, if line 1 "
        "does not. Otherwise, keep the sentences alone."
    )


def _no_sentence(where: str, line: str) -> str:
    if has_tab(line):
        return f"{where} has a tab"
    return f"{where}, {line!r:.100}, is no sentence alone" if TITLE.fullmatch(line) or line.startswith("*") else ""


def table_in_vocabulary(lines: Sequence[str], words: Sequence[str], name: str) -> str | None:
    """About lines of candidates, if they are rows of a table.

    words (Sequence[str]): The lines without white space at their ends. name (str): What the file is called.
    """
    sign = signs_of_table(lines) or _numbers_beside(words)
    if not sign:
        return None
    return (
        f"{name}: {sign}, and each whole line is a candidate. If it is a table, make it a .tsv or .csv file. "
        "There, `word` names the column of the words."
    )


def _numbers_beside(words: Sequence[str]) -> str:
    """What says that a number stands beside each of different words; "" if nothing does."""
    numbers = [match[1] or match[2] for match in map(WITH_NUMBER.fullmatch, words) if match]
    is_list = len(numbers) > 1 and len(numbers) >= MOST * len(words) and len({*numbers}) == len(numbers)
    return f"a number stands beside the word in {len(numbers):,} of {len(words):,} lines" if is_list else ""


def pieces_in_vocabulary(words: Sequence[str], name: str) -> str | None:
    """About candidates that are written as wordpieces or special tokens. name (str): What the file is called."""
    patterns = SPECIAL, CONTINUES, pattern_of_pieces(words)
    pieces = [word for word in words if any(pattern.fullmatch(word) for pattern in patterns)]
    if not pieces:
        return None
    return (
        f"{name}: {len(pieces):,} of {len(words):,} candidates are written as wordpieces or special tokens of a "
        f"tokenizer, such as {pieces[0]!r:.100}. They are scored as they are. Leave them out, or let words be "
        "searched, with `top`."
    )
