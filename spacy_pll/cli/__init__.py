"""The command line: `python -m spacy pll ...`, or `spacy-pll ...`, which is the same.

spaCy imports this module whenever its command line starts, so a command's module is imported only when it is called.
"""

import os
from collections.abc import Iterator, Mapping
from functools import wraps
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any

import typer
from spacy.cli._util import app as spacy_cli
from typer.core import TyperCommand, TyperGroup

HELP = "Score text with language models: pseudo-log-likelihood (Kauf & Ivanova 2023)."
# Each command is the function NAME_cli in the module of its name, both with _ for -. The text is the first line of its
# docstring.
COMMANDS = {
    "explore": "Open a local page to try out texts, models and metrics.",
    "show": "Print the tokens of some texts with their wordpieces and scores.",
    "score": "Score the texts of a file or folder, and write the scores to a file.",
    "words": "Score a table that has one word in each row.",
    "render": "Write a web page with the tokens of a corpus coloured by score.",
    "pairs": "Measure the accuracy on minimal pairs.",
    "choices": "Measure the accuracy on choices, with or without a context.",
    "suite": "Score a published test suite: StereoSet, SyntaxGym, acceptability judgments.",
    "ppl": "Measure the pseudo-perplexity of a corpus.",
    "rescore": "Rerank n-best lists with the PLL.",
    "agree": "Compare the scores of two scorers on the same texts.",
    "margins": "Choose a margin: how close its scores are to the exact ones.",
    "variants": "Score the variants of a protein.",
    "unigrams": "Count the wordpieces of a corpus, for normalised scores.",
    "lm-eval": "Run lm-evaluation-harness with the model spacy-pll.",
}


class PLLCommand(TyperCommand):
    """A command whose errors name its options, and whose help ends with the metrics that there are, if it takes any."""

    def invoke(self, ctx: Any) -> Any:
        from .errors import options_of, printed_errors
        from .terminal import hint_if_busy, report

        load = min(os.getloadavg()[:2]) if hasattr(os, "getloadavg") else 0.0  # in the last minute, and in five
        if hint := hint_if_busy(ctx.params, os.environ, load, os.cpu_count() or 1):
            report(hint)
        with printed_errors(options_of(self)):
            return super().invoke(ctx)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if {"metrics", "metric"}.intersection(parameter.name for parameter in self.params):
            from ..metrics import pll_metrics

            with formatter.section("Metrics"):
                about = {
                    name: (metric.__doc__ or "").partition("\n")[0] for name, metric in pll_metrics.get_all().items()
                }
                formatter.write_dl(sorted(about.items()))


class LazyCommands(Mapping[str, Any]):
    """The commands by name. A command's module is imported when the command is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        module = name.replace("-", "_")
        function = getattr(import_module(f".{module}", __name__), f"{module}_cli")

        @wraps(function)
        def checked(**given: Any) -> None:
            from .terminal import check_files

            check_files(given, [one.name for one in found.params if one.param_type_name == "argument"])
            function(**given)

        command = typer.Typer(add_completion=False, rich_markup_mode=None)
        command.command(name, cls=PLLCommand)(checked)
        found = typer.main.get_command(command)
        found.no_args_is_help = any(parameter.required for parameter in found.params)
        if name == "lm-eval":  # all that follows is read by another program
            found.ignore_unknown_options, found.add_help_option = True, False
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class LazyGroup(TyperGroup):
    """A group of commands that are listed without importing them."""

    def __init__(self, **settings: Any):
        super().__init__(**{**settings, "commands": LazyCommands(), "rich_markup_mode": None})

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(name="pll", cls=LazyGroup, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spacy-pll {version('spacy-pll')}")
        raise typer.Exit()


@app.callback(help=HELP)
def pll(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Typer makes a group of an app that has a callback."""


# spaCy imports the modules registered under `spacy_cli` before it runs, so this adds `python -m spacy pll`.
spacy_cli.add_typer(app)

__all__ = ["app"]
