"""Errors that a user can fix, and how they are shown: as one message without a traceback."""

import sys
from contextlib import AbstractContextManager
from typing import NoReturn

from wasabi import Printer

from spacy_pll import errors
from spacy_pll.errors import InputError, PLLError, explained

__all__ = ["InputError", "PLLError", "explained", "fail", "shown_errors"]


def fail(message: object) -> NoReturn:
    """Show a message, or an error, on standard error, and end the command."""
    print(Printer(no_print=True).fail(str(message)), file=sys.stderr)
    raise SystemExit(1)


def shown_errors() -> AbstractContextManager[None]:
    return errors.shown_errors(fail)
