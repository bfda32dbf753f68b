"""Lines of .txt files that are rows of a table: what is said of them, since all of a line would be read as text."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ..user_warnings import warn_user
from .delimited import R_HEADER

HEAD = 20  # lines of a corpus from which it is told
COLUMN_NAMES = re.compile(r"\w+(?:([,;|])\w+)(?:\1\w+)*")  # of columns, as in "sentence,label"
SCORE = r"(?:[01]|-\d+|[-+]?\d*[.,]\d+(?:[eE][-+]?\d+)?)"
SCORE_BEHIND = re.compile(rf"[.!?…。]['\"”’)]*(?:\s+|\s*[,;|]\s*){SCORE}\Z")
LABEL_BEFORE = re.compile(r"([01])(?:\s+|\s*[,;|]\s*)\D")
# A cell of R's write.table, where what is not text stands without quotation marks.
R_CELL = re.compile(r'(?:"(?:[^"\\]|\\.|"")*"|[-+\d.e]+|TRUE|FALSE|NA|NaN|-?Inf)(?: |\Z)')
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
    if {*widths} in ({n + 1}, {n}) and n + widths[0] > 2 and R_HEADER.fullmatch(f'"" {lines[0]}'):
        return f"line 1 is {lines[0]!r:.100}, as R writes the names of columns"
    if len(lines) >= least and all(map(SCORE_BEHIND.search, lines)):
        return "a number stands behind each sentence"
    labels = {found[1] if (found := LABEL_BEFORE.match(line)) else "" for line in lines}
    if len(lines) >= least and labels == {"0", "1"}:
        return "0 or 1 stands before each sentence"
    return ""


def watched(lines: Iterable[str], name: str) -> Iterator[str]:
    """The lines of a corpus. A warning comes behind the first ones if they are rows of a table."""
    head = list[str]()
    for line in lines:
        if len(head) < HEAD:
            head.append(line)
            if len(head) == HEAD:
                _warn(head, name)
        yield line
    if len(head) < HEAD:
        _warn(head, name)


def _warn(head: Sequence[str], name: str) -> None:
    if found := signs_of_table(head):
        warn_user(f"{name}: {found}, and all of each line is read as text. {HOW_TO_READ}")
