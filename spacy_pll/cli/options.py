"""The options that several commands have, each written once."""

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ..corpus.readers import READERS
from ..corpus.records import FileOptions
from ..errors import spell
from ..pipelines import SETTINGS, PipelineSettings
from ..settings import BATCH_SIZE, ScoringSettings, choices_of, describe_settings
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


def pipeline_options(*, without: Collection[str] = (), sample: bool = False) -> Callable[[Command], Command]:
    """Give a command the options for `PipelineSettings` in place of its parameter `settings`, each with what the
    docstrings say of it as its help.

    without (Collection[str]): Options that the command does not have.
    sample (bool): Whether it has those for a part of the words.
    """
    names = [name for name in SETTINGS if name not in without and (sample or name not in ("sample_words", "seed"))]
    return options_from("settings", (PipelineSettings, ScoringSettings), *names, make=_make_settings)


def _make_settings(**values: Any) -> PipelineSettings:
    return PipelineSettings(**{name: value for name, value in values.items() if value is not None})


def options_from(
    place: str, source: Any, *names: str, note: str = "", make: Callable[..., Any] = dict, **more: dict[str, Any]
) -> Callable[[Command], Command]:
    """Give a command options in place of one of its parameters.

    place (str): The parameter.
    source (Any): A dataclass, or several, for whose fields the options are, or a function, for whose parameters.
    names (str): Some of them. None: all for which there is an option.
    note (str): What the help of options begins with.
    make (Callable[..., Any]): What the command gets is made from the values, which are given by name. Those of options
        that take several are left out if there is none.
    more (Dict[str, Any]): What options have besides, by name, or another note.
    """
    sources = source if isinstance(source, tuple) else (source,)
    options = [option for one in sources for option in described_options(one, names, note, more)]

    def decorate(command: Command) -> Command:
        parameters = list[inspect.Parameter]()
        for parameter in inspect.signature(command).parameters.values():
            parameters += options if parameter.name == place else [parameter]
        # Typer calls commands by keyword, so an option may stand before an argument.
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]

        @wraps(command)
        def with_settings(**values: Any) -> Any:
            chosen = {option.name: values.pop(option.name, option.default) for option in options}
            lists = [option.name for option in options if option.default == ()]
            given = {name: value for name, value in chosen.items() if name not in lists or value}
            return command(**{place: make(**given)}, **values)

        vars(with_settings).update(__signature__=inspect.Signature(parameters))
        with_settings.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_settings

    return decorate


def described_options(
    source: Any, names: Collection[str], note: str, more: Mapping[str, dict[str, Any]]
) -> list[inspect.Parameter]:
    """The options for a dataclass or a function, as parameters of a command: the one that a type is annotated with; or
    its help is what the docstring says.
    """
    texts, limits, found = describe_settings(source), dict[str, Mapping[str, Any]](), list[inspect.Parameter]()
    if is_dataclass(source):
        types, own_fields = get_type_hints(source, include_extras=True), fields(source)
        defaults, limits = ({one.name: getattr(one, of) for one in own_fields} for of in ("default", "metadata"))
    else:
        parameters = inspect.signature(source).parameters
        types, defaults = ({n: getattr(p, of) for n, p in parameters.items()} for of in ("annotation", "default"))

    def option_of(name: str, value: object) -> str | None:
        option = "--" + name.replace("_", "-")
        return None if name not in {*SETTINGS, *names} else option if value is ... else f"{option} {value}"

    has_option = [name for name, type_ in types.items() if name in texts or get_origin(type_) is Annotated]
    for name in filter(has_option.__contains__, names or has_option):
        type_, default = types[name], defaults[name]
        if get_origin(type_) is Annotated:
            type_, option = get_args(type_)
        else:
            own = {"note": note, **MORE.get(name, {}), **limits.get(name, {}), **more.get(name, {})}
            text = own.pop("note") + texts[name]
            if choices := choices_of(type_):
                own |= one_of(*choices)
            if "Sequence" in str(type_):
                own = {"metavar": "NAME,NAME,...", "callback": split, **own}
            if default is False and source is not ScoringSettings:
                own["param_decls"] = [f"--{name.replace('_', '-')}"]
            if default is None or default == ():
                text = re.sub(r" (None|Empty): (.+)\.$", r" [default: \2]", text)
            elif default is not False:
                text += f" [default: {','.join(map(str, default)) if isinstance(default, tuple) else default}]"
            option = setting(spell(text, option_of), *own.pop("param_decls", ()), **own)
        if source is ScoringSettings:  # what is not given is as a saved pipeline has it, and False may be given
            type_, default = type_ | None, None
        if "Sequence" in str(type_):
            type_, default = list[str], ()
        elif choices_of(type_) or type_ is Any:
            type_ = str | None
        kind = inspect.Parameter.KEYWORD_ONLY
        found.append(inspect.Parameter(name, kind, default=default, annotation=Annotated[type_, option]))
    return found


# Gives a command the options for `FileOptions` in place of its parameter `how`, which is a dictionary.
file_options = options_from("how", FileOptions, make=lambda **given: FileOptions(**given).of_files)


def _make_work(batch_size: BatchSize = BATCH_SIZE, n_process: Processes = 1) -> dict[str, Any]:
    return {"batch_size": batch_size, "n_process": n_process, "show_progress": True}


# Gives a command the options for `Work` in place of its parameter `work`, which has its values by name.
work_options = options_from("work", _make_work, make=_make_work)
