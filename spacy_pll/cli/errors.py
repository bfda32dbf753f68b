"""Errors as a user at a terminal sees them: one message on standard error, no traceback, exit code not 0."""

import re
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from wasabi import Printer

from ..pipelines import SETTINGS
from .terminal import show_what_cannot_be_encoded, visible


def fail(message: str, code: int = 1, command: str | None = None) -> NoReturn:
    """Show a message and end the command. It goes to standard error, since standard output may carry results.

    command (Optional[str]): What to type next. Its line is not broken, so that it can be copied.
    """
    print(Printer(no_print=True).fail(visible(message)), file=sys.stderr)
    if command:
        print(visible(command), file=sys.stderr)
    raise SystemExit(code)


# What the package calls by the names of the component's settings, and what to type instead.
IN_OPTIONS: dict[str, Any] = {
    r"[Ss]et `(\w+)` to null": r"Leave out `\1`",
    r"set `log_frequency` to false": "add --no-log-frequency",
    r"Set `name` in the settings of `model` to": "Give with `model`",
    r"`get_spans` set to spacy-pll\.strided_spans\.v1": "--spans strided",
    r"set `attr` to another name": "add --attr NAME, and its columns begin with NAME",
    r"`name`": "`model`",
    rf"`({'|'.join(SETTINGS)})`": lambda found: "--" + found[1].replace("_", "-"),
}


def in_options(message: str) -> str:
    """A message of the package with the options of the command line in place of the component's settings."""
    for pattern, option in IN_OPTIONS.items():
        message = re.sub(pattern, option, message)
    return message


@contextmanager
def shown_errors() -> Iterator[None]:
    """Show the errors that a user can fix as a message. All others are defects and keep their traceback.

    Warnings are shown as messages, too, and so are Ctrl-C and SIGTERM, after everything is tidied up.
    """
    show_what_cannot_be_encoded()
    before, warnings.formatwarning = warnings.formatwarning, _format_warning
    handler = _handle_termination(_terminate)
    try:
        yield
    except (ImportError, OSError, ValueError) as error:
        _fail_with_notes(in_options(str(error)), error)
    except KeyboardInterrupt as error:
        number = signal.Signals(error.args[0] if error.args else signal.SIGINT)
        cause = "Ctrl-C" if number == signal.SIGINT else f"the signal {number.name}"
        _fail_with_notes(f"Stopped by {cause}.", error, 128 + number)
    finally:
        _handle_termination(handler)
        warnings.formatwarning = before


def _handle_termination(handler: Any) -> Any:
    """Set what SIGTERM does, and return what it did before. (Only the main thread may.)"""
    is_main = threading.current_thread() is threading.main_thread()
    return signal.signal(signal.SIGTERM, handler) if is_main else None


def _terminate(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)


def _fail_with_notes(message: str, error: BaseException, code: int = 1) -> NoReturn:
    """Show the message and the notes that the error has. If they are of a run that can be resumed, also the command."""
    notes, command = getattr(error, "__notes__", []), None
    if any("--resume" in note for note in notes):
        words = [word for word in sys.orig_argv if word not in ("--force", "--resume")]
        command = shlex.join([*words, "--resume"])
    fail("\n".join([message, *notes]), code, command)


def _format_warning(message: Warning | str, *where: Any, **more: Any) -> str:
    return f"{Printer(no_print=True).warn(visible(in_options(str(message))))}\n"
