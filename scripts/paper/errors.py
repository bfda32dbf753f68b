"""Errors that a user can fix, as one message without a traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from wasabi import Printer


def fail(message: str) -> NoReturn:
    """Show a message on standard error, and end the command."""
    print(Printer(no_print=True).fail(message), file=sys.stderr)
    raise SystemExit(1)


@contextmanager
def shown_errors() -> Iterator[None]:
    """All other errors are defects, and keep their traceback."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        fail(str(error))
