"""Warnings that point at the user's line, whatever called this package: the pipeline, `nlp.pipe`, a function here."""

import sys
import warnings

# The packages between the user's line and a warning, and the module of contexts, in which functions of this one run.
PASSED_OVER = {"spacy_pll", "spacy", "tqdm", "contextlib"}


class TextWarning(UserWarning):
    """A warning about texts. kind (str): Warnings of one kind differ in their examples alone, so one is shown."""

    kind = ""


def warn_user(message: str | Warning) -> None:
    """Warn at the nearest line outside these packages."""
    frame, level = sys._getframe(), 1
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in PASSED_OVER:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)
