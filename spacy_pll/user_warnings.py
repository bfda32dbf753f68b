"""Warnings that point at the user's line, whatever called this package: the pipeline, `nlp.pipe`, a function here."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# The packages between the user's line and a warning, and the module of contexts, in which functions of this one run.
PASSED_OVER = {"spacy_pll", "spacy", "tqdm", "contextlib"}
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


class TextWarning(UserWarning):
    """A warning about texts. kind (str): Warnings of one kind differ in their examples alone, so one is shown."""

    kind = ""


def warn_user(message: str | Warning) -> None:
    """Warn at the nearest line outside these packages."""
    if _quiet.get():
        return
    frame, level = sys._getframe(), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


@contextmanager
def no_warnings() -> Iterator[None]:
    """A context without these warnings, in this thread alone. Python's `catch_warnings` is for the whole process: two
    threads that use it may leave all warnings off.
    """
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
