"""Errors as a user at a terminal sees them: one message on standard error, no traceback, exit code 1."""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from wasabi import Printer

from .terminal import show_what_cannot_be_encoded, visible


def fail(message: str) -> NoReturn:
    """Show a message and end the command. It goes to standard error, since standard output may carry results."""
    print(Printer(no_print=True).fail(visible(message)), file=sys.stderr)
    raise SystemExit(1)


# What the package calls by the names of the component's settings, and what to type instead.
IN_OPTIONS = {
    r"[Ss]et `(\w+)` to null": r"Leave out `\1`",
    r"Set `name` in the settings of `model` to": "Give with `model`",
    r"`get_spans` set to spacy-pll\.strided_spans\.v1": "--spans strided",
    r"`name`": "`model`",
    r"`(component|causal|metrics|model|words|alternatives|distribution)`": r"--\1",
    r"`mask_(\w+)`": r"--mask-\1",
}


def in_options(message: str) -> str:
    """A message of the package with the options of the command line in place of the component's settings."""
    for pattern, option in IN_OPTIONS.items():
        message = re.sub(pattern, option, message)
    return message


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show the errors that a user can fix as a message. All others are defects and keep their traceback.

    Warnings are shown as messages, too.
    """
    show_what_cannot_be_encoded()
    before, warnings.formatwarning = warnings.formatwarning, _format_warning
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        fail(in_options(str(error)))
    finally:
        warnings.formatwarning = before


def _format_warning(message: Warning | str, *where: Any, **more: Any) -> str:
    return f"{Printer(no_print=True).warn(visible(in_options(str(message))))}\n"
