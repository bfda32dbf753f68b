"""The options that several commands have, each written once."""

import inspect
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_origin, get_type_hints

import typer

from ..corpus.readers import READERS
from ..corpus.records import FileOptions
from ..errors import PLLError, spell
from ..pipelines import SETTINGS, PipelineSettings
from ..settings import BATCH_SIZE, ScoringSettings, choices_of, describe_settings
from ..stream.workers import Work
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


def in_range(least: int, most: float) -> Callable[[Any], Any]:
    """A check of the values of an option, in the words of `check_values`."""

    def check(value: Any) -> Any:
        if value is not None and not least <= value <= most:
            limit = "" if math.isinf(most) else f", and at most {most}"
            raise typer.BadParameter(f"It must be {least} or more{limit}. It is {value}.")
        return value

    return check


def split(values: list[str] | None) -> list[str]:
    """The values of an option that takes several."""
    return [value.strip() for value in ",".join(values or ()).split(",") if value.strip()]


def parse_numbers(option: str, values: Sequence[str]) -> list[int]:
    """The numbers of such an option. RAISES (ValueError): They are no whole numbers."""
    try:
        return [int(value) for value in values]
    except ValueError:
        given = ",".join(values)
        raise PLLError(f"{option} must be whole numbers with commas, such as 0,1. It is {given!r}.") from None


# Settings that change nothing in numbers about whole texts.
OF_TOKENS = ("alternatives", "distribution", "keep_pieces", "attr")
COLUMN_AND_VALUE = {"metavar": "COLUMN[=VALUE]"}
INPUT_HELP = (
    f"A file ({', '.join(READERS)}; the first five also compressed, such as texts.txt.gz), a folder of such files, "
    "or - for standard input, as .txt"
)
INPUT = {"metavar": "INPUT", "help": f"{INPUT_HELP}."}
# What options have that a docstring does not say: of those that several commands have, also the help.
MORE: dict[str, dict[str, Any]] = {
    "gpu_id": {"param_decls": ["--gpu-id", "-g"]},
    "delimiter": {"callback": lambda value: "\t" if value in ("\\t", "tab") else value},
    "header": {"param_decls": ["--columns"]},
    "file_format": {"param_decls": ["--format"], **one_of(*READERS)},
    "unit": {"param_decls": ["--word-unit"]},
    "column": {"help": "The column, or JSON key, that contains the text."},
    "separator": {
        "help": "What is put between a context and a text, unless one of them has white space there. Give '' for "
        "languages that are written without spaces. [default: a space]",
        "show_default": False,
    },
    "per_piece": {"help": "Compare the mean scores per wordpiece instead of the sums."},
    "batch_size": {
        **{"min": 1, "max": 1_000_000},
        "help": "Texts per batch. Equal masked texts in a batch are computed once.",
    },
    "n_process": {"callback": _check_processes, "help": "Number of worker processes, on a CPU. -1 for one per core."},
    "plot": {"help": f"Also draw the results to a file ({', '.join(PICTURES)}). Needs the extra `[plot]`."},
    "output": {"param_decls": ["--output", "-o"], "help": "Also write the results to FILE.json or FILE.csv."},
    "resume": {"help": "Continue an interrupted run: what was scored is kept beside the output."},
    "force": {"help": "Replace existing output."},
    "quiet": {
        "help": "Show no progress and no summary on standard error. Errors, warnings and standard output stay as they "
        "are."
    },
}


def described(**more: dict[str, Any]) -> Callable[[Command], Command]:
    """Give a command an option for each parameter of which its docstring or `MORE` says something, and an argument for
    each of these without a default.

    more (Dict[str, Any]): What they have besides, by name.
    """

    def decorate(command: Command) -> Command:
        texts, parameters = describe_settings(command), list[inspect.Parameter]()
        for name, parameter in inspect.signature(command).parameters.items():
            own = {"help": texts[name], **more.get(name, {})} if name in texts else more.get(name, {})
            is_described = "help" in {**MORE.get(name, {}), **own}
            parameters.append(
                _parameter(name, parameter.annotation, parameter.default, own) if is_described else parameter
            )
        command.__doc__ = (command.__doc__ or "").partition(f"\n    {next(iter(texts), None)} (")[0].rstrip()
        return _with_parameters(command, parameters)

    return decorate


def _with_parameters(command: Command, parameters: Sequence[inspect.Parameter]) -> Command:
    # Typer calls commands by keyword, so an option may stand before an argument.
    by_keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    vars(command).update(__signature__=inspect.Signature(by_keyword))
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in by_keyword}
    return command


def _parameter(name: str, type_: Any, default: Any, own: dict[str, Any]) -> inspect.Parameter:
    """An option of a command; or an argument, if it has no default. What is annotated as such stays as it is."""
    kind = inspect.Parameter.KEYWORD_ONLY
    if get_origin(type_) is Annotated:
        return inspect.Parameter(name, kind, default=default, annotation=type_)
    is_argument = default is inspect.Parameter.empty and "param_decls" not in own
    own = dict(own) if is_argument else {**MORE.get(name, {}), **own}
    if default is False:
        own["param_decls"] = [f"--{name.replace('_', '-')}"]
    if (least := own.pop("min", None)) is not None:
        most = own.pop("max", math.inf)
        own["callback"] = in_range(least, most)
        own["help"] += f" ({least} or more)" if math.isinf(most) else f" ({least} to {most})"
    choices = choices_of(type_)
    if choices:
        own |= one_of(*choices)
    if "Sequence" in str(type_):  # with commas, or given several times
        own = {"metavar": "NAME,NAME,...", "callback": split, "show_default": False, **own}
        type_, default = list[str], ()
    elif choices or type_ is Any:
        type_ = str | None
    option = (typer.Argument if is_argument else typer.Option)(*own.pop("param_decls", ()), **own)
    return inspect.Parameter(name, kind, default=default, annotation=Annotated[type_, option])


def pipeline_options(*, without: Collection[str] = (), sample: bool = False) -> Callable[[Command], Command]:
    """Give a command the options for `PipelineSettings` in place of its parameter `settings`, each with what the
    docstrings say of it as its help.

    without (Collection[str]): Options that the command does not have. `quiet`, which all others have, may be one.
    sample (bool): Whether it has those for a part of the words.
    """
    names = [name for name in SETTINGS if name not in without and (sample or name not in ("sample_words", "seed"))]

    def make(**values: Any) -> PipelineSettings:
        return PipelineSettings(**{name: value for name, value in values.items() if value is not None})

    of_settings = options_from("settings", (PipelineSettings, ScoringSettings), *names, make=make)
    return of_settings if "quiet" in without else lambda command: _with_quiet(of_settings(command))


def _with_quiet(command: Command) -> Command:
    """Give a command the option --quiet. What it does is done where commands are called."""

    @wraps(command)
    def without_quiet(quiet: bool = False, **values: Any) -> Any:
        return command(**values)

    parameters = inspect.signature(command).parameters.values()
    return _with_parameters(without_quiet, [*parameters, _parameter("quiet", bool, False, {})])


def options_from(
    replaced: str, source: Any, *names: str, note: str = "", make: Callable[..., Any] = dict, **more: dict[str, Any]
) -> Callable[[Command], Command]:
    """Give a command options in place of one of its parameters.

    replaced (str): The parameter.
    source (Any): A dataclass, or several, for whose fields the options are, or a function, for whose parameters.
    names (str): Some of them. None: all for which there is an option.
    note (str): What the help of options begins with.
    make (Callable[..., Any]): What the command gets is made from the values, which are given by name. Those of options
        that take several are left out if there is none.
    more (Dict[str, Any]): What options have besides, by name, or another note.
    """
    sources = source if isinstance(source, tuple) else (source,)
    options = [option for source in sources for option in described_options(source, names, note, more)]

    def decorate(command: Command) -> Command:
        parameters = list[inspect.Parameter]()
        for parameter in inspect.signature(command).parameters.values():
            parameters += options if parameter.name == replaced else [parameter]

        @wraps(command)
        def with_settings(**values: Any) -> Any:
            chosen = {option.name: values.pop(option.name, option.default) for option in options}
            lists = [option.name for option in options if option.default == ()]
            given = {name: value for name, value in chosen.items() if name not in lists or value}
            return command(**{replaced: make(**given)}, **values)

        return _with_parameters(with_settings, parameters)

    return decorate


def options_as_in(source: Any, *names: str, note: str = "", **more: dict[str, Any]) -> Callable[[Command], Command]:
    """Make options of the parameters of a command that a dataclass or a function has, too, with the help and the
    defaults that they have there.

    source, note, more: See `options_from`.
    names (str): The parameters.
    """
    options = {option.name: option for option in described_options(source, names, note, more)}

    def decorate(command: Command) -> Command:
        parameters = inspect.signature(command).parameters
        return _with_parameters(command, [options.get(name, parameter) for name, parameter in parameters.items()])

    return decorate


def described_options(
    source: Any, names: Collection[str], note: str, more: Mapping[str, dict[str, Any]]
) -> list[inspect.Parameter]:
    """The options for a dataclass or a function, as parameters of a command. Their help is what its docstring says, or
    `MORE`.
    """
    texts, limits, options = describe_settings(source), dict[str, Mapping[str, Any]](), list[inspect.Parameter]()
    if is_dataclass(source):
        types, own_fields = get_type_hints(source), fields(source)
        defaults, limits = (
            {own_field.name: getattr(own_field, of) for own_field in own_fields} for of in ("default", "metadata")
        )
    else:
        parameters = inspect.signature(source).parameters
        types, defaults = ({n: getattr(p, of) for n, p in parameters.items()} for of in ("annotation", "default"))

    def option_of(name: str, value: object) -> str | None:
        option = "--" + name.replace("_", "-")
        return None if name not in {*SETTINGS, *names} else option if value is ... else f"{option} {value}"

    has_help = {*texts, *(name for name in MORE if "help" in MORE[name])}
    has_option = [name for name, type_ in types.items() if name in has_help or get_origin(type_) is Annotated]
    for name in filter(has_option.__contains__, names or has_option):
        default, own = defaults[name], {"note": note, **limits.get(name, {}), **more.get(name, {})}
        text = own.pop("note") + texts.get(name, "")
        if default is None or default == ():
            text = re.sub(r" (None|Empty): (.+)\.$", r" [default: \2]", text)
        elif default is not False:
            text += f" [default: {','.join(map(str, default)) if isinstance(default, tuple) else default}]"
        if name in texts:
            own = {"help": spell(text, option_of), "show_default": False, **own}
        # What is not given is as a saved pipeline has it, and False may be given.
        type_, default = (types[name] | None, None) if source is ScoringSettings else (types[name], default)
        options.append(_parameter(name, type_, default, own))
    return options


# Gives a command the options for `FileOptions` in place of its parameter `files`.
file_options = options_from("files", FileOptions, make=FileOptions)


def _make_work(batch_size: int = BATCH_SIZE, n_process: int = 1) -> Work:
    return Work(batch_size, n_process, show_progress=True)


# Gives a command the options for `Work` in place of its parameter `work`.
work_options = options_from("work", _make_work, make=_make_work)
