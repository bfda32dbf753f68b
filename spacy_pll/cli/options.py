"""The options that several commands have, each written once."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from ..corpus.readers import READERS
from ..corpus.records import QUOTINGS, FileOptions
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


# The options for `FileOptions`.
FILES: dict[str, Any] = {
    "encoding": typer.Option(help="Of all input but .parquet and .spacy."),
    "delimiter": setting(
        "The character between the columns of .csv and .tsv input. [default: a comma, or a tab for .tsv; or what the "
        "header has in its place]",
        callback=lambda value: "\t" if value in ("\\t", "tab") else value,
    ),
    "quoting": setting(
        "Whether quotation marks at the beginning of a cell of .csv and .tsv input stand around it, as CSV has it, or "
        "are text. [default: csv, or, with tabs between columns, what fits the file]",
        **one_of(*QUOTINGS),
    ),
    "header": several("The names of the columns, in their order, if .csv and .tsv files have no header.", "--columns"),
    "na_as_text": typer.Option(
        "--na-as-text", help="In .csv and .tsv input, NA, N/A, #N/A, NaN and <NA> are texts, and not missing values."
    ),
}
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
Force = Annotated[bool, typer.Option("--force", help="Replace existing output.")]


# What the options for settings have besides their help.
MORE: dict[str, dict[str, Any]] = {
    "model": {"param_decls": ["--model"]},
    "causal": {"param_decls": ["--causal"]},
    "gpu_id": {"param_decls": ["--gpu-id", "-g"]},
}


def pipeline_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options for `PipelineSettings` in place of its parameter `settings`, each with what the
    docstrings say of it as its help.

    without (Collection[str]): Options that the command does not have.
    """
    types, defaults, options = dict(SETTINGS), {}, {}
    for cls in (PipelineSettings, ScoringSettings):
        texts = describe_settings(cls)
        for one in fields(cls):
            if one.name in SETTINGS and one.name not in without:
                defaults[one.name] = one.default
                more = {**MORE.get(one.name, {}), **one.metadata}
                options[one.name] = _described_option(SETTINGS[one.name], one.default, texts[one.name], SETTINGS, more)
            if cls is ScoringSettings:  # what is not given is as a saved pipeline has it
                types[one.name], defaults[one.name] = types[one.name] | None, None
    types["model"] = str | None
    return options_in_place("settings", types, defaults, options, _make_settings)


def argument_options(
    place: str, function: Callable[..., Any], *names: str, **more: dict[str, Any]
) -> Callable[[Command], Command]:
    """Give a command the options for some arguments of a function in place of its parameter `place`, a dictionary:
    each with what the docstring says of it as its help.

    more (Dict[str, Any]): What an option has besides.
    """
    types, texts = get_type_hints(function), describe_settings(function)
    defaults, options = {name: inspect.signature(function).parameters[name].default for name in names}, {}
    for name in names:
        flag = {"param_decls": [f"--{name.replace('_', '-')}"]} if types[name] is bool else {}
        spelt = {*SETTINGS, *names}
        options[name] = _described_option(
            types[name], defaults[name], texts[name], spelt, {**flag, **more.get(name, {})}
        )
    return options_in_place(place, types, defaults, options, dict)


def _described_option(type_: Any, default: Any, text: str, names: Collection[str], more: dict[str, Any]) -> Any:
    """An option of a type. text (str): Its description, which ends with what it is if it is None or empty.

    names (Collection[str]): What is in the text the name of an option.
    """
    if choices := choices_of(type_):
        more = {**more, **one_of(*choices)}
    elif "Sequence" in str(type_):
        more = {"metavar": "NAME,NAME,...", "callback": split, **more}
    if default is None or default == ():
        text = re.sub(r" (?:None|Empty): (.+)\.$", r" [default: \1]", text)
    elif default is not False:
        text += f" [default: {','.join(map(str, default)) if isinstance(default, tuple) else default}]"

    def option_of(name: str, _value: object) -> str | None:
        return "--" + name.replace("_", "-") if name in names else None

    more = {**more}
    return setting(spell(text, option_of), *more.pop("param_decls", ()), **more)


def _make_settings(**values: Any) -> PipelineSettings:
    return PipelineSettings(**{name: value for name, value in values.items() if value is not None})


def file_options(command: Command) -> Command:
    """Give a command the options for `FileOptions` in place of its parameter `how`, which is a dictionary."""

    def checked(**given: Any) -> dict[str, Any]:
        return FileOptions(**given).of_files

    return options_in_place("how", *fields_of(FileOptions), FILES, checked)(command)


def fields_of(settings: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types and the defaults of the fields of a dataclass."""
    return get_type_hints(settings), {one.name: one.default for one in fields(settings)}


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
