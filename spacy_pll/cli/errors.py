"""What went wrong, for a person at a terminal: one message on standard error, no traceback, exit code 1."""

import sys
from contextlib import contextmanager

from wasabi import Printer


def fail(message: str):
    """Show a message and end the command. Standard output may be carrying results, so it goes to standard error."""
    print(Printer(no_print=True).fail(message), file=sys.stderr)
    raise SystemExit(1)


@contextmanager
def shown_errors():
    """Show the errors that a user can do something about; any other is a defect, and keeps its traceback."""
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        fail(str(error))
