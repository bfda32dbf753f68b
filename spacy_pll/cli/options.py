"""The options that several commands have, each written once."""

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

from ..corpus.readers import READERS
from ..pipelines import PRECISIONS, SPAN_GETTERS, PipelineSettings
from ..scoring.wordpieces import WORDS

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


def several(help: str, *names: str, metavar: str = "NAME,NAME,...", **more: Any) -> Any:
    """An option that takes several values, with commas or by being given several times. Its type is `list[str]`."""

    def split(values: list[str] | None) -> list[str]:
        return [value.strip() for value in ",".join(values or ()).split(",") if value.strip()]

    return setting(help, *names, metavar=metavar, callback=split, **more)


def parse_numbers(option: str, values: Sequence[str]) -> list[int]:
    """The numbers of such an option. RAISES (ValueError): They are no whole numbers."""
    try:
        return [int(value) for value in values]
    except ValueError:
        given = ",".join(values)
        raise ValueError(f"{option} must be whole numbers with commas, such as 0,1. It is {given!r}.") from None


INPUT_HELP = (
    f"A file ({', '.join(READERS)}; the first four also compressed, such as texts.txt.gz), a folder of such files, "
    "or - for standard input, as .txt"
)
# Options of commands that show tokens.
EXPECTED = ("alternatives", "distribution")

ColumnOption = Annotated[str, typer.Option(help="The column, or JSON key, that contains the text.")]
ColumnsOption = Annotated[
    list[str], several("The names of the columns, in their order, if .csv and .tsv files have no header.")
]
BatchSizeOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000_000,
        help="Texts per batch. Masked contexts that occur several times in a batch are computed once.",
    ),
]
ProcessesOption = Annotated[
    int, typer.Option(callback=_check_processes, help="Number of worker processes, on a CPU. -1 for one per core.")
]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")]
PICTURES = (".png", ".svg", ".pdf")
PlotOption = Annotated[
    Path | None,
    typer.Option(help=f"Also draw the results to a file ({', '.join(PICTURES)}). Needs the extra `[plot]`."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing output.")]


# The options for `PipelineSettings`, in the order of the help. The fields have the types and the defaults.
SETTINGS: dict[str, Any] = {
    "model": setting(
        "Hub name or folder of a language model, or a spaCy pipeline with a `pll` component. [default: the built-in "
        "English model]"
    ),
    "component": setting(
        "The `pll` component to use, if --model is a spaCy pipeline that has several. The others do not run."
    ),
    "causal": setting(
        "--model is a left-to-right model, for the metric causal. Only needed if there are masked models of its type, "
        "too.",
        "--causal",
    ),
    "metrics": several(
        "Names of metrics, separated by commas, such as word_l2r,original. The first is the primary one. [default: "
        "word_l2r, or causal for a left-to-right model]",
    ),
    "words": setting(
        "What counts as a word: spaCy's tokens, the words of the model's tokenizer, or what white space separates. "
        "[default: spacy]",
        **one_of(*WORDS),
    ),
    "spans": setting(
        "What the model reads as one context: whole texts, sentences, or windows of {window} tokens that begin "
        "{stride} tokens apart. [default: doc]".format(**SPAN_GETTERS["strided"]),
        **one_of(*SPAN_GETTERS),
    ),
    "mask_spacing": setting(
        "Mask several words in one forward pass if they are at least this many pieces apart. The scores are close to "
        "the exact ones, and the cost grows linearly with the length. [default: exact scores]",
        min=1,
    ),
    "mask_margin": setting(
        "Read all masks of a text in one forward pass, each with this many wordpieces on each side. 0 is the fastest, "
        "and a wider margin is closer to the exact scores: `pll agree --margins` measures it on your texts. [default: "
        "exact scores]",
        min=0,
    ),
    "alternatives": setting(
        "How many alternatives to keep for each token: what the model expected in its place. [default: 0]", min=0
    ),
    "distribution": setting(
        "Keep the rank of each token and the entropy of the model's prediction. [default: no]",
        "--distribution/--no-distribution",
    ),
    "lang": typer.Option(help="Language of spaCy's tokenizer. Not used if --model is a spaCy pipeline."),
    "gpu_id": typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU."),
    "precision": setting(
        "Data type of the forward passes. bfloat16 uses autocast. [default: float32]", **one_of(*PRECISIONS)
    ),
}


def save_plot(file: Path | None, plot: Callable[..., Any], *arguments: Any) -> None:
    """Draw a result to a file, if one is given, and make its folder if needed."""
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        plot(*arguments).savefig(file)


def pipeline_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options in `SETTINGS` in place of its parameter `settings`.

    without (Collection[str]): Options that the command does not have.
    """
    options = {name: option for name, option in SETTINGS.items() if name not in without}
    return options_in_place("settings", PipelineSettings, options, PipelineSettings)


def options_in_place(
    place: str, settings: type, options: dict[str, Any], make: Callable[..., Any]
) -> Callable[[Command], Command]:
    """Give a command options in place of one of its parameters.

    place (str): The parameter.
    settings (type): A dataclass, whose fields have the types and defaults of the options.
    options (dict[str, Any]): A `typer.Option` for each field that is an option.
    make (Callable[..., Any]): What the command gets is made from the values, which are given by name.
    """
    types, defaults = get_type_hints(settings), {field.name: field.default for field in fields(settings)}
    types |= {name: str for name, type_ in types.items() if get_origin(type_) is Literal}
    lists = [name for name in options if "Sequence" in str(types[name])]
    types, defaults = types | dict.fromkeys(lists, list[str]), defaults | dict.fromkeys(lists, ())
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
