"""The command line: `python -m spacy pll ...`, or `spacy-pll ...`, which is the same.

spaCy imports this module whenever its command line starts, so a command's module is imported only when it is called.
"""

import ast
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext, suppress
from functools import wraps
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from spacy.cli._util import app as spacy_cli
from typer.core import TyperCommand, TyperGroup

from ..errors import PLLError

HELP = "Score text with language models: pseudo-log-likelihood (Kauf & Ivanova 2023)."
# The commands of this folder: each is the function NAME_cli in the module of its name, both with _ for -.
COMMANDS = (
    *("explore", "show", "score", "words", "render", "slots", "pairs", "choices", "suite", "ppl", "rescore", "agree"),
    *("margins", "unigrams", "lm-eval"),
)
GROUP = "spacy_pll_commands"  # the entry points of other commands, ours of other rooms among them


def find_commands() -> dict[str, list[EntryPoint]]:
    """Where the function of each command is, or several are: ours of this folder in their order, then others."""
    modules = {name: name.replace("-", "_") for name in COMMANDS}
    commands = {name: [EntryPoint(name, f"{__name__}.{own}:{own}_cli", GROUP)] for name, own in modules.items()}
    for entry_point in sorted(entry_points(group=GROUP), key=lambda entry_point: entry_point.name):
        commands.setdefault(entry_point.name, []).append(entry_point)
    return commands


def load(name: str) -> Callable[..., None]:
    """The function of a command.

    RAISES (KeyError): There is no such command.
    RAISES (PLLError): Several packages have it, or it cannot be imported from another package.
    """
    entry_point, *others = find_commands()[name]
    if others:
        named = " and ".join(each.value for each in (entry_point, *others))
        raise PLLError(f"Several packages have a command {name!r}: {named}.", "Uninstall all but one of them.")
    try:
        return entry_point.load()
    except Exception as error:
        if name in COMMANDS:
            raise
        problem = (
            f"The command {name!r} is {entry_point.value}, which cannot be imported ({type(error).__name__}: {error})."
        )
        raise PLLError(problem, "Install its package again, or uninstall it.") from error


def about(entry_point: EntryPoint) -> str:
    """The first line of the docstring of a command, which is read and not imported."""
    with suppress(Exception):  # the package is damaged, as is said when the command is called
        spec = find_spec(entry_point.module)
        for node in ast.parse(Path(str(spec and spec.origin)).read_text("utf8")).body:
            if isinstance(node, ast.FunctionDef) and node.name == entry_point.attr:
                return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


class PLLCommand(TyperCommand):
    """A command whose errors name its options, and whose help has examples, the options under headings, and the metrics
    that there are, if it takes any.
    """

    def invoke(self, ctx: Any) -> Any:
        from .errors import options_of, printed_errors
        from .terminal import hint_if_busy, quietly, report

        with quietly() if ctx.params.get("quiet") else nullcontext():
            load = min(os.getloadavg()[:2]) if hasattr(os, "getloadavg") else 0.0  # in the last minute, and in five
            if hint := hint_if_busy(ctx.params, os.environ, load, os.cpu_count() or 1):
                report(hint)
            with printed_errors(options_of(self)):
                return super().invoke(ctx)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        from .help import write_about

        write_about(self.help or "", formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        from .help import write_options

        write_options(self, ctx, formatter)

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
        try:
            function = load(name)
        except PLLError as error:
            from .errors import printed_errors

            with printed_errors():
                raise error

        @wraps(function)
        def checked(**given: Any) -> None:
            from .terminal import check_files

            check_files(
                given, [parameter.name for parameter in click_command.params if parameter.param_type_name == "argument"]
            )
            function(**given)

        command = typer.Typer(add_completion=False, rich_markup_mode=None)
        command.command(name, cls=PLLCommand)(checked)
        click_command = typer.main.get_command(command)
        click_command.no_args_is_help = any(parameter.required for parameter in click_command.params)
        if name == "lm-eval":  # all that follows is read by another program
            click_command.ignore_unknown_options, click_command.add_help_option = True, False
        return click_command

    def __iter__(self) -> Iterator[str]:
        return iter(find_commands())

    def __len__(self) -> int:
        return len(find_commands())


class LazyGroup(TyperGroup):
    """A group of commands that are listed without importing them. It knows other names for what they do."""

    def __init__(self, **settings: Any):
        super().__init__(**{**settings, "commands": LazyCommands(), "rich_markup_mode": None})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        from .help import advice_for

        if args[0] not in self.commands and (advice := advice_for(args[0])):
            ctx.fail(advice)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about(entry_point)) for name, (entry_point, *_) in find_commands().items()])


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
