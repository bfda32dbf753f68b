"""Errors as a user at a terminal sees them: one message on standard error, no traceback, exit code not 0."""

import os
import shlex
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

from typer.core import TyperCommand
from wasabi import Printer

from .. import errors
from ..corpus.records import STANDARD_STREAM
from ..errors import Spelling, settings_in, spell
from ..user_warnings import warn_user
from .terminal import report, visible

WITHOUT_SCORES = 3  # the exit status if texts were skipped, and none was scored (docs/command-line.md)


def shown_message(kind: Literal["fail", "warn"], message: str) -> str:
    """A message for standard error: in a log, without colours, and with no line broken."""
    printer = Printer(no_print=True)
    if not sys.stderr.isatty():
        return f"{printer.icons[kind]} {visible(message)}"
    printer.show_color &= "NO_COLOR" not in os.environ
    return str(getattr(printer, kind)(visible(message)))


def options_of(command: TyperCommand) -> Spelling:
    """How a command writes settings: `resume=True` is --resume, and an argument is named as in its help."""
    parameters = {parameter.name: parameter for parameter in command.params}

    def spell(name: str, value: Any) -> str | None:
        # Some commands have one metric.
        if (parameter := parameters.get(name) or parameters.get(name.removesuffix("s"))) is None:
            return None
        if parameter.param_type_name == "argument":
            return parameter.metavar or name.upper()
        option = parameter.opts[0]
        if value is ... or value is True:
            return option
        if value is False:
            return next(iter(parameter.secondary_opts), None)
        values = value if isinstance(value, list | tuple) else [value]
        return None if value is None else f"{option} {shlex.quote(','.join(map(str, values)))}"

    return spell


@contextmanager
def printed_errors(spelling: Spelling = lambda name, value: None) -> Iterator[None]:
    """Show the errors that a user can fix as a message. All others are defects and keep their traceback.

    Warnings are shown as messages, too, and so are Ctrl-C and SIGTERM, after everything is tidied up.

    spelling (Callable[[str, Any], Optional[str]]): How settings are written in them.
    """

    def show_warning(message: Warning | str, *where: Any, **more: Any) -> str:
        return f"{shown_message('warn', spell(str(message), spelling))}\n"

    def show(error: BaseException, message: str | None = None, code: int = 1) -> NoReturn:
        """On standard error, since standard output may carry results. With the notes that the error has. If they are of
        a run that can be resumed, also with the command, in an unbroken line that can be copied.
        """
        notes = getattr(error, "__notes__", [])
        if isinstance(error, PermissionError) and _is_unreadable(error.filename):
            message = f"You may not read {error.filename!r}: its permissions do not allow it."
        print(shown_message("fail", spell("\n".join([message or str(error), *notes]), spelling)), file=sys.stderr)
        if any("resume" in settings_in(note) for note in notes):
            words = [word for word in sys.orig_argv if word not in ("--force", "--resume")]
            print(visible(shlex.join([*words, "--resume"])), file=sys.stderr)
        raise SystemExit(code)

    for stream in (sys.stdout, sys.stderr):  # one that knows only ASCII gets other characters as escapes, not an error
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    before, warnings.formatwarning = warnings.formatwarning, show_warning
    handler = _handle_termination(_terminate)
    try:
        with errors.shown_errors(show):
            yield
    except errors.RunComplete as done:
        report(str(done))
    except KeyboardInterrupt as error:
        number = signal.Signals(error.args[0] if error.args else signal.SIGINT)
        cause = "Ctrl-C" if number == signal.SIGINT else f"the signal {number.name}"
        show(error, f"Stopped by {cause}.", 128 + number)
    finally:
        _handle_termination(handler)
        warnings.formatwarning = before


def end_without_scores(message: str) -> NoReturn:
    """End a command that has written what it could, and has no score at all. Its output stays."""
    print(shown_message("fail", message), file=sys.stderr)
    raise SystemExit(WITHOUT_SCORES)


def _is_unreadable(name: Any) -> bool:
    return isinstance(name, str | os.PathLike) and os.path.exists(name) and not os.access(name, os.R_OK)


def warn_of_nothing(name: str, n_texts: int) -> None:
    """Warn if an input has no text at all, such as an empty file or a header alone."""
    if not n_texts:
        what = "Standard input" if name == STANDARD_STREAM else repr(name)
        warn_user(f"{what} has no text: nothing was scored.")


def _handle_termination(handler: Any) -> Any:
    """Set what SIGTERM does, and return what it did before. (Only the main thread may.)"""
    is_main = threading.current_thread() is threading.main_thread()
    return signal.signal(signal.SIGTERM, handler) if is_main else None


def _terminate(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt(number)
