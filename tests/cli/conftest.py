"""The commands are run as spaCy's own are: through `spacy.cli.app`."""

import functools
import re

import typer.testing
from spacy.cli._util import app
from typer.testing import CliRunner

import spacy_pll.cli  # noqa: F401  (what the entry point `spacy_cli` imports)

# The runner asks for the command each time, and it is made anew, with the options of all of spaCy's commands.
typer.testing._get_command = functools.cache(typer.testing._get_command)


def run(*arguments, fails=False, code=None, **more):
    """`python -m spacy pll ARGUMENTS`, which must end well, or with exit code 1 (`fails`), or with `code`."""
    result = CliRunner().invoke(app, ["pll", *map(str, arguments)], **more)
    expected = code if code is not None else int(fails)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == expected, result.output
    # wasabi and rich break lines to the terminal's width, and some versions of typer draw a frame around them
    result.unwrapped_stderr = " ".join(re.sub("[╭─╮│╰╯]", " ", result.stderr).split())
    return result


def run_spacy(*arguments):
    """`python -m spacy ARGUMENTS`, which must end well. RETURNS (str): What it prints."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output
