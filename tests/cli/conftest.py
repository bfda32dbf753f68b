"""The commands are run as spaCy's own are: through `spacy.cli.app`."""

import functools
import inspect
import multiprocessing
import os
import re
import signal
import sys
from typing import Any, NamedTuple, get_args

import typer.testing
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_pll.cli  # what the entry point `spacy_cli` imports

# The runner asks for the command each time, and it is made anew, with the options of all of spaCy's commands.
typer.testing._get_command = functools.cache(typer.testing._get_command)
make = spacy_pll.cli.LazyCommands.__getitem__


@functools.cache
def made(name, path):
    return make(spacy_pll.cli.LazyCommands(), name)


# The commands, too, and each is looked for among the entry points of all packages: those in the folders of `sys.path`.
spacy_pll.cli.LazyCommands.__getitem__ = lambda self, name: made(name, (*sys.path,))
COMMANDS = spacy_pll.cli.LazyCommands()


def invoke(*arguments, **more):
    """`python -m spacy pll ARGUMENTS`, which must end well, or with a message."""
    result = CliRunner().invoke(app, ["pll", *map(str, arguments)], **more)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def run(*arguments, fails=False, code=None, **more):
    """`python -m spacy pll ARGUMENTS`, which must end well, or with exit code 1 (`fails`), or with `code`."""
    result = invoke(*arguments, **more)
    expected = code if code is not None else int(fails)
    assert result.exit_code == expected, result.output
    # wasabi and rich break lines to the terminal's width, and some versions of typer draw a frame around them
    result.unwrapped_stderr = " ".join(re.sub("[╭─╮│╰╯]", " ", result.stderr).split())
    return result


def start(*arguments, log=os.devnull):
    """Start `python -m spacy pll ARGUMENTS` in a process that is a copy of this one: a new one needs longer for its
    imports than for what is tested.

    log: The file for its standard error.
    RETURNS: The process.
    """

    def work():
        os.setsid()
        # A shell lets its background jobs ignore Ctrl-C, and the tests may run in one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.orig_argv = ["pll", *map(str, arguments)]
        with open(log, "w", buffering=1, encoding="utf8") as sys.stderr:
            os.dup2(sys.stderr.fileno(), 2)
            spacy_pll.cli.app(sys.orig_argv[1:])

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def run_spacy(*arguments):
    """`python -m spacy ARGUMENTS`, which must end well. RETURNS (str): What it prints."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


class Parameter(NamedTuple):
    """An option or argument of a command, as the command declares it."""

    name: str
    type: Any  # `str` for `str`, `str | None` and `list[str]`
    flag: str | None  # how the option is written; None for an argument
    about: Any  # what Typer made of it: its help, its metavar, whether it is required


@functools.cache
def parameters_of(command):
    """All options and arguments of a command: what is tested with each of them holds for new ones, too."""
    made, found = COMMANDS[command], []
    types = inspect.signature(spacy_pll.cli.load(command)).parameters
    for one in made.params:
        type_ = types[one.name].annotation
        while inner := get_args(type_):
            type_ = inner[0]
        found.append(Parameter(one.name, type_, None if one.param_type_name == "argument" else one.opts[0], one))
    return found
