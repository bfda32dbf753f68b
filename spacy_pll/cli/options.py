"""The options that several commands have, each written once."""

import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import Annotated, Any

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


def parse_numbers(option: str, text: str | None) -> list[int]:
    """The numbers of an option that takes several. RAISES (ValueError): They are no whole numbers."""
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"{option} must be whole numbers with commas, such as 0,1. It is {text!r}.") from None


INPUT_HELP = (
    f"A file ({', '.join(READERS)}; the first four also compressed, such as texts.txt.gz), a folder of such files, "
    "or - for standard input, as .txt"
)
# Options of commands that show tokens.
EXPECTED = ("alternatives", "distribution")

ColumnOption = Annotated[str, typer.Option(help="The column, or JSON key, that contains the text.")]
BatchSizeOption = Annotated[
    int,
    typer.Option(
        min=1,
        max=1_000_000,
        help="Texts per batch. Masked contexts that occur several times in a batch are computed once.",
    ),
]
ProcessesOption = Annotated[
    int,
    typer.Option(callback=_check_processes, help="Number of worker processes, on a CPU. -1 for one per core."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace existing output.")]


def make_settings(
    model: Annotated[
        str | None,
        typer.Option(
            help="Hub name or folder of a language model, or a spaCy pipeline with a `pll` component. "
            "[default: the built-in English model]",
            show_default=False,
        ),
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(
            help="The `pll` component to use, if --model is a spaCy pipeline that has several. The others do not run.",
            show_default=False,
        ),
    ] = None,
    causal: Annotated[
        bool,
        typer.Option(
            "--causal",
            help="--model is a left-to-right model, for the metric causal. Only needed if there are masked models of "
            "its type, too.",
        ),
    ] = False,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Names of metrics, separated by commas. The first is the primary one. [default: word_l2r, or causal "
            "for a left-to-right model]",
            show_default=False,
        ),
    ] = None,
    words: Annotated[
        str | None,
        typer.Option(
            **one_of(*WORDS),
            help="What counts as a word: spaCy's tokens, the words of the model's tokenizer, or what white space "
            "separates. [default: spacy]",
            show_default=False,
        ),
    ] = None,
    spans: Annotated[
        str | None,
        typer.Option(
            **one_of(*SPAN_GETTERS),
            help="What the model reads as one context: whole texts, sentences, or windows of {window} tokens that "
            "begin {stride} tokens apart. [default: doc]".format(**SPAN_GETTERS["strided"]),
            show_default=False,
        ),
    ] = None,
    mask_spacing: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Mask several words in one forward pass if they are at least this many pieces apart. The scores are "
            "close to the exact ones, and the cost grows linearly with the length. [default: exact scores]",
            show_default=False,
        ),
    ] = None,
    mask_margin: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Read all masks of a text in one forward pass, each with this many wordpieces on each side. 0 is the "
            "fastest, and a wider margin is closer to the exact scores: `pll agree --margins` measures it on your "
            "texts. [default: exact scores]",
            show_default=False,
        ),
    ] = None,
    alternatives: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many alternatives to keep for each token: what the model expected in its place. [default: 0]",
            show_default=False,
        ),
    ] = None,
    distribution: Annotated[
        bool | None,
        typer.Option(
            "--distribution/--no-distribution",
            help="Keep the rank of each token and the entropy of the model's prediction. [default: no]",
            show_default=False,
        ),
    ] = None,
    lang: Annotated[
        str, typer.Option(help="Language of spaCy's tokenizer. Not used if --model is a spaCy pipeline.")
    ] = "en",
    gpu_id: Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")] = -1,
    precision: Annotated[
        str | None,
        typer.Option(
            **one_of(*PRECISIONS),
            help="Data type of the forward passes. bfloat16 uses autocast. [default: float32]",
            show_default=False,
        ),
    ] = None,
) -> PipelineSettings:
    """The settings of a pipeline from the options of a command."""
    values = locals()  # of the parameters
    names = None if metrics is None else [name.strip() for name in metrics.split(",") if name.strip()]
    return PipelineSettings(**{**values, "metrics": names})


def pipeline_options(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Give a command the options of `make_settings` in place of its parameter `settings`.

    without (Collection[str]): Options that the command does not have.
    """
    shared = [option for option in inspect.signature(make_settings).parameters.values() if option.name not in without]

    def decorate(command: Command) -> Command:
        parameters = []
        for parameter in inspect.signature(command).parameters.values():
            parameters += shared if parameter.name == "settings" else [parameter]
        # Typer calls commands by keyword, so an option may stand before an argument.
        parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]

        @wraps(command)
        def with_settings(**values: Any) -> Any:
            settings = make_settings(**{option.name: values.pop(option.name) for option in shared})
            return command(settings=settings, **values)

        vars(with_settings).update(__signature__=inspect.Signature(parameters))
        with_settings.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_settings

    return decorate
