"""Errors that a user can put right, in the words of Python, and how others write the settings in them.

A message names a setting in backquotes: `metrics`, or with the value to give it, `resume=True`. The command line writes
its options in their place.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

SETTING = re.compile(r"`([a-z]\w*)(?:=([^`]+))?`")
OF_COMMENTS = (
    "If lines that begin with # are comments, as in the results of PCIbex, remove them all (grep -v '^#' FILE > NEW), "
    "and give the names of the columns, which the comments list, as `header`."
)
# From the name and the value of a setting (`...` if none is given) to how it is written; None: as it is.
Spelling = Callable[[str, Any], str | None]


class PLLError(ValueError):
    """Something that a user can put right.

    problem (str): What is wrong, with the value.
    advice (str): What to do about it.
    """

    def __init__(self, problem: str, advice: str = ""):
        super().__init__(problem, advice)  # what pickle makes it from again
        self.problem, self.advice = problem, advice

    def __str__(self) -> str:
        return f"{self.problem} {self.advice}".strip()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the advice names, with the values that it suggests; `...` where it suggests none."""
        return settings_in(self.advice)


class InputError(PLLError):
    """The input cannot be read. The message says where, what is wrong, and what to do."""


class NoColumnError(InputError):
    """A row, or another thing that has columns, lacks one."""


class RunComplete(Exception):
    """The run to resume had written all its outputs. Nothing is to be done."""


class ResumeError(PLLError):
    """A run cannot start or resume. The message says why, and what to do."""


def is_comment(cell: object) -> bool:
    """Whether a line whose first cell this is looks like a comment."""
    return str(cell).lstrip("\ufeff \t").startswith("#")


def no_column(where: str, column: str, columns: Iterable[str], advice: str = "") -> NoColumnError:
    """The error, with the columns that are there."""
    columns = list(columns)
    if columns and is_comment(columns[0]):
        advice = f"{advice} {OF_COMMENTS}".strip()
    return NoColumnError(f"{where}: there is no column {column!r}. The columns are: {listed(column, columns)}", advice)


def settings_in(text: str) -> dict[str, Any]:
    """The settings that a message names, with their values."""
    return {match[1]: _value(match) for match in SETTING.finditer(text)}


def spell(text: str, spelling: Spelling) -> str:
    """A message with its settings in another spelling."""
    return SETTING.sub(lambda match: spelling(match[1], _value(match)) or match[0], text)


def similar(name: str, names: Iterable[object]) -> str:
    """The end of a message about a wrong name: those of some names that are like it, in whatever letters."""
    by_letters = {str(known).lower(): str(known) for known in names}
    near = [by_letters[letters] for letters in get_close_matches(str(name).lower(), by_letters)]
    return f" Similar: {', '.join(near)}." if near else ""


def listed(name: str, names: Iterable[object]) -> str:
    """The same, after all names."""
    names = list(names)
    return f"{', '.join(map(repr, names)) or 'none'}.{similar(name, names)}"


def _value(match: re.Match[str]) -> Any:
    if match[2] is None:
        return ...
    try:
        return literal_eval(match[2])
    except (SyntaxError, ValueError):
        return match[2]


@contextmanager
def explained(problem: str, advice: str = "") -> Iterator[None]:
    """Say of what it is that another package raises a ValueError, if that is of a file or a value of the user: it
    becomes an error that a user can put right.

    problem, advice (str): See `PLLError`. What the package says comes behind the problem.
    """
    try:
        yield
    except PLLError:
        raise
    except ValueError as error:
        raise PLLError(f"{problem}: {' '.join(str(error).split()).removesuffix('.')}.", advice) from error


@contextmanager
def shown_errors(show: Callable[[Exception], object]) -> Iterator[None]:
    """Show the errors that a user can put right: ours, and what the system says of files and packages. All others are
    defects, and keep their traceback.
    """
    try:
        yield
    except (ImportError, OSError, PLLError) as error:
        show(error)
