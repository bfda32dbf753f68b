"""The options that several commands have, each written once."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints

import typer

from ..corpus.readers import READERS
from ..corpus.records import FileOptions
from ..errors import spell
from ..pipelines import SETTINGS, PipelineSettings
from ..settings import ScoringSettings, choices_of, describe_settings
from .terminal import PICTURES

Command = Callable[..., Any]


def one_of(*choices: str) -> dict[str, Any]:
    """For `typer.Option`: only these values are valid. (An Enum would put its members into configs, not the values.)"""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}.")
        return value

    return {"callback": check, "metavar": f"[{'|'.join(choices)}]"}


def _check_processes(value: int) -> int:
    if value < 1 and value != -1:
        raise typer.BadParameter(f"It must be 1 or more, or -1 for one per core. It is {value}.")
    return value


def setting(help: str, *names: str, **more: Any) -> Any:
    """An option whose default is not shown, or is said in the help text."""
    return typer.Option(*names, help=help, show_default=False, **more)


def split(values: list[str] | None) -> list[str]:
    """The values of an option that takes several."""
    return [value.strip() for value in ",".join(values or ()).split(",") if value.strip()]


def several(help: str, *names: str, metavar: str = "NAME,NAME,...", **more: Any) -> Any:
    """An option that takes several values, with commas or by being given several times. Its type is `list[str]`."""
    return setting(help, *names, metavar=metavar, callback=split, **more)


def parse_numbers(option: str, values: Sequence[str]) -> list[int]:
    """The numbers of such an option. RAISES (ValueError): They are no whole numbers."""
    try:
        return [int(value) for value in values]
    except ValueError:
        given = ",".join(values)
        raise ValueError(f"{option} must be whole numbers with commas, such as 0,1. It is {given!r}.") from None


INPUT_HELP = (
    f"A file ({', '.join(READERS)}; the first five also compressed, such as texts.txt.gz), a folder of such files, "
    "or - for standard input, as .txt"
)


SEPARATOR: Any = setting(
    "What stands between a context and a text, if neither has white space there. Give '' for languages that are "
    "written without spaces. [default: a space]"
)
COLUMN_AND_VALUE = {"metavar": "COLUMN[=VALUE]"}
# Settings that change nothing in numbers about whole texts.
OF_TOKENS = ("alternatives", "distribution", "keep_pieces", "attr")

Column = Annotated[str, typer.Option(help="The column, or JSON key, that contains the text.")]
BatchSize = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000_000,
        help="Texts per batch. Masked contexts that occur several times in a batch are computed once.",
    ),
]
Processes = Annotated[
    int, typer.Option(callback=_check_processes, help="Number of worker processes, on a CPU. -1 for one per core.")
]
Plot = Annotated[
    Path | None,
    typer.Option(help=f"Also draw the results to a file ({', '.join(PICTURES)}). Needs the extra `[plot]`."),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Also write the results to FILE.json.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run: what was scored is kept beside the output.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]


# What options have besides their help.
MORE: dict[str, dict[str, Any]] = {
    "gpu_id": {"param_decls": ["--gpu-id", "-g"]},
    "delimiter": {"callback": lambda value: "\t" if value in ("\\t", "tab") else value},
    "header": {"param_decls": ["--columns"]},
    "file_format": {"param_decls": ["--format"], **one_of(*READERS)},
    "unit": {"param_decls": ["--word-unit"]},
}


def pipeline_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options for `PipelineSettings` in place of its parameter `settings`, each with what the
    docstrings say of it as its help.

    without (Collection[str]): Options that the command does not have.
    """
    types, defaults = fields_of(PipelineSettings)
    of_scoring, _ = fields_of(ScoringSettings)  # what is not given is as a saved pipeline has it
    types |= {"model": str | None, **{name: type_ | None for name, type_ in of_scoring.items()}}
    options = {**described_options(PipelineSettings), **described_options(ScoringSettings)}
    options = {name: option for name, option in options.items() if name in SETTINGS and name not in without}
    return options_in_place("settings", types, {**defaults, **dict.fromkeys(of_scoring)}, options, _make_settings)


def argument_options(
    place: str, source: Any, *names: str, note: str = "", make: Callable[..., Any] = dict, **more: dict[str, Any]
) -> Callable[[Command], Command]:
    """Give a command the options for arguments of a function, or fields of a dataclass, in place of its parameter
    `place`: see `described_options` and `options_in_place`.
    """
    return options_in_place(place, *fields_of(source), described_options(source, names, note, more), make)


def described_options(
    source: Any, names: Collection[str] = (), note: str = "", more: Mapping[str, dict[str, Any]] = MappingProxyType({})
) -> dict[str, Any]:
    """Options for the fields of a dataclass, or the parameters of a function, with what its docstring says as help.

    names (Collection[str]): Some of them. Empty: all.
    note (str): What the help begins with.
    more (Mapping[str, Dict[str, Any]]): What options have besides.
    """
    (types, defaults), texts, options = fields_of(source), describe_settings(source), {}
    limits = {one.name: one.metadata for one in fields(source)} if is_dataclass(source) else {}

    def option_of(name: str, value: object) -> str | None:
        option = "--" + name.replace("_", "-")
        return None if name not in {*SETTINGS, *names} else option if value is ... else f"{option} {value}"

    for name in names or texts:
        text, default = f"{note}{texts[name]}", defaults[name]
        own = {**MORE.get(name, {}), **limits.get(name, {}), **more.get(name, {})}
        if choices := choices_of(types[name]):
            own |= one_of(*choices)
        if "Sequence" in str(types[name]):
            own = {"metavar": "NAME,NAME,...", "callback": split, **own}
        if default is False and source is not ScoringSettings:  # whose settings of a saved pipeline can be taken back
            own["param_decls"] = [f"--{name.replace('_', '-')}"]
        if default is None or default == ():
            text = re.sub(r" (None|Empty): (.+)\.$", r" [default: \2]", text)
        elif default is not False:
            text += f" [default: {','.join(map(str, default)) if isinstance(default, tuple) else default}]"
        options[name] = setting(spell(text, option_of), *own.pop("param_decls", ()), **own)
    return options


def _make_settings(**values: Any) -> PipelineSettings:
    return PipelineSettings(**{name: value for name, value in values.items() if value is not None})


def fields_of(settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types and the defaults of the fields of a dataclass, or of the parameters of a function."""
    if is_dataclass(settings):
        return get_type_hints(settings), {one.name: one.default for one in fields(settings)}
    parameters = inspect.signature(settings).parameters
    return {name: one.annotation for name, one in parameters.items()}, {n: one.default for n, one in parameters.items()}


def options_in_place(
    place: str,
    types: Mapping[str, Any],
    defaults: Mapping[str, Any],
    options: Mapping[str, Any],
    make: Callable[..., Any],
) -> Callable[[Command], Command]:
    """Give a command options in place of one of its parameters.

    place (str): The parameter.
    types, defaults (Mapping[str, Any]): Of the options, by name.
    options (Mapping[str, Any]): A `typer.Option` for each.
    make (Callable[..., Any]): What the command gets is made from the values, which are given by name.
    """
    lists = [name for name in options if "Sequence" in str(types[name])]
    types = {**types, **{name: str | None for name, type_ in types.items() if choices_of(type_)}}
    types, defaults = {**types, **dict.fromkeys(lists, list[str])}, {**defaults, **dict.fromkeys(lists, ())}
    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=Annotated[types[name], option]
        )
        for name, option in options.items()
    ]

    def decorate(command: Command) -> Command:
        parameters = []
        for parameter in inspect.signature(command).parameters.values():
            parameters += shared if parameter.name == place else [parameter]
        # Typer calls commands by keyword, so an option may stand before an argument.
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]

        @wraps(command)
        def with_settings(**values: Any) -> Any:
            chosen = {option.name: values.pop(option.name) for option in shared}
            given = {name: value for name, value in chosen.items() if name not in lists or value}
            return command(**{place: make(**given)}, **values)

        vars(with_settings).update(__signature__=inspect.Signature(parameters))
        with_settings.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_settings

    return decorate


FILES = described_options(FileOptions)
# Gives a command the options for `FileOptions` in place of its parameter `how`, which is a dictionary.
file_options = argument_options("how", FileOptions, make=lambda **given: FileOptions(**given).of_files)
