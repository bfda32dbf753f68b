"""Texts with a gap from files, and how well candidates that should be in it are found."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..analysis.filling import Filler
from ..analysis.gaps import GAP, Slot, distinct_candidates
from ..corpus.records import FileOptions, get_text
from ..errors import InputError
from .measurements import ACCURACY, Measurement, accuracies
from .readers import TABLE_ENDINGS, check_distinct, of_folders, rows_of
from .vocabularies import read_vocabulary


@of_folders
def read_slots(
    path: str,
    candidates: Sequence[str] = (),
    candidate_column: str | None = None,
    vocabulary: str | None = None,
    *,
    word: str = "word",
    column: str = "text",
    gold: str | None = None,
    gap: str = GAP,
    search: bool = False,
    **file_options: Any,
) -> list[Slot]:
    """Read texts with a gap from a table, or from the lines of a .txt file; or from the files of a folder.

    candidates (Sequence[str]): The same candidates for all texts.
    candidate_column (Optional[str]): Instead, the column of the candidates of each text: a list, or a|b|c.
    vocabulary (Optional[str]): Instead, a file with a word or a phrase in each line, or a table of words.
    word (str): The column of the words in this table.
    column (str): The column of the texts.
    gold (Optional[str]): The column of the right candidate. Then accuracies are measured.
    gap (str): The sign for the gap in a text. If it repeats one character, as ___ does, a longer gap is found, too.
    search (bool): There are no candidates: they will be searched.
    file_options (Any): How files are written: `encoding`, `delimiter`, `quoting`, `header`, `na_as_text` (see
        `FileOptions`).
    RAISES (InputError): A row cannot be read; the message gives the line.
    """
    if sum(map(bool, (candidates, candidate_column, vocabulary, search))) != 1:
        raise InputError(
            "Say what may stand in the gap: `candidates`, `candidate_column` or `vocabulary`, or `top` to search words."
        )
    check_distinct(column=[column], candidate_column=[candidate_column])
    files = FileOptions.of(file_options, "texts with a gap")
    slots, every = list[Slot](), None if search else distinct_candidates("Candidate", candidates)
    if vocabulary:
        every = read_vocabulary(vocabulary, word, files.encoding)
    for _, location, row, of_file in rows_of(path, "texts with a gap", files, (".txt", *TABLE_ENDINGS)):
        text, right = get_text(row, location, column), get_text(row, location, gold, "`gold`") if gold else None
        own = every
        if candidate_column:
            given = row.get(candidate_column)
            if not isinstance(given, list):
                cell = get_text(row, location, candidate_column, "`candidate_column`")
                if "|" not in cell and ("," in cell or cell.startswith("[")):  # as Python, or `candidates`, has several
                    problem = f"{location}: {candidate_column!r} has no | between candidates. It is {cell!r:.100}."
                    raise InputError(problem, "Write a|b|c, or a list in a .jsonl file, also for one that has a comma.")
                given = cell.split("|")
            own = distinct_candidates(f"{location}, candidate", given)
        fields = {name: value for name, value in {**of_file, **row}.items() if name != candidate_column}
        slots.append(Slot.of(text, gap, own, right, location, fields=fields))
    if not slots:
        raise InputError(f"There is no text in {path!r}.")
    return slots


def slot_measurements(
    slots: Sequence[Slot], fillers: Sequence[Sequence[Filler]], hits: Sequence[int], by: Sequence[str] | None = None
) -> list[Measurement]:
    """How well the right candidates are found, of all texts and of groups: the accuracy (of equally probable best
    candidates, each counts a share), the mean reciprocal rank, and the share of texts in which they are among the best.
    A right candidate without a score is not found.

    hits (Sequence[int]): Of so many of the best.
    by (Optional[Sequence[str]]): See `levels`.
    """
    ranks = np.array([next(filler.rank or np.inf for filler in of_slot if filler.is_gold) for of_slot in fillers])
    equal = np.array([sum(filler.rank == 1 for filler in of_slot) for of_slot in fillers])
    outcomes = {ACCURACY: (ranks == 1) / equal, "mean reciprocal rank": 1 / ranks}
    outcomes |= {f"hits at {n}": (ranks <= n).astype(float) for n in hits}
    return [
        measurement
        for name, values in outcomes.items()
        for measurement in accuracies(slots, {"word_l2r": values}, by, name)
    ]
