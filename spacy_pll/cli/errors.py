"""Errors as a user at a terminal sees them: one message on standard error, no traceback, exit code 1."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from wasabi import Printer


def fail(message: str) -> NoReturn:
    """Show a message and end the command. It goes to standard error, since standard output may carry results."""
    print(Printer(no_print=True).fail(message), file=sys.stderr)
    raise SystemExit(1)


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show the errors that a user can fix as a message. All others are defects and keep their traceback."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        fail(str(error))
