"""From command-line options to a pipeline that scores."""

from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy.cli._util import setup_gpu
from spacy.language import Language
from spacy.util import get_package_path, is_package, load_config

from .component import DEFAULT_CONFIG, PLLScorer
from .corpus.files import digest
from .language_model.base import BUILTIN
from .scoring.wordpieces import WORDS

SPAN_GETTERS = {
    "doc": {"@span_getters": "spacy-transformers.doc_spans.v1"},
    "sents": {"@span_getters": "spacy-transformers.sent_spans.v1"},
    "strided": {"@span_getters": "spacy-transformers.strided_spans.v1", "window": 128, "stride": 96},
}


def one_of(*choices: str) -> dict:
    """For `typer.Option`: only these are legal. An Enum would put its members, not their values, into configs."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in choices:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(choices)}.")
        return value

    return {"callback": check, "metavar": f"[{'|'.join(choices)}]"}


# The options that every command takes which scores text. Unset ones stay as the pipeline has them.
ModelOption = Annotated[
    str | None,
    typer.Option(
        help="Hub name or folder of a masked language model, or a spaCy pipeline with a `pll` component. "
        "The built-in English model if left out.",
        show_default=False,
    ),
]
MetricsOption = Annotated[
    str | None,
    typer.Option(help="Comma-separated, the first is the primary one. [default: word_l2r]", show_default=False),
]
WordsOption = Annotated[
    str | None,
    typer.Option(**one_of(*WORDS), help="What counts as a word. [default: spacy]", show_default=False),
]
SpansOption = Annotated[
    str | None,
    typer.Option(
        **one_of(*SPAN_GETTERS),
        help="What is read as one context: whole texts, sentences, or windows of 128 tokens. [default: doc]",
        show_default=False,
    ),
]
LangOption = Annotated[str, typer.Option(help="Language of spaCy's tokenizer, unless --model is a spaCy pipeline.")]
GpuOption = Annotated[int, typer.Option("--gpu-id", "-g", help="GPU ID or -1 for CPU.")]
PrecisionOption = Annotated[
    str | None,
    typer.Option(
        **one_of("float32", "bfloat16"),
        help="bfloat16 runs the forward passes under autocast. [default: float32]",
        show_default=False,
    ),
]
MaskSpacingOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Words of a context whose masked pieces are at least so many pieces apart share a forward pass: nearly "
        "the exact scores at a cost that grows linearly. [default: none, exact]",
        show_default=False,
    ),
]
BatchSizeOption = Annotated[int, typer.Option(min=1, help="How many texts to buffer: equal contexts are shared.")]
ProcessesOption = Annotated[int, typer.Option(min=-1, help="Worker processes, on a CPU; -1 for one a core.")]


def split_names(value: str | None) -> list[str] | None:
    """The names of a comma-separated option."""
    return None if value is None else [name.strip() for name in value.split(",") if name.strip()]


def is_spacy_pipeline(model: str) -> bool:
    return is_package(model) or (Path(model) / "config.cfg").is_file()


def make_pipeline(
    model: str | None = None,
    metrics: list[str] | None = None,
    words: str | None = None,
    spans: str | None = None,
    lang: str = "en",
    precision: str | None = None,
    mask_spacing: int | None = None,
    keep_pieces: bool = False,
    gpu_id: int = -1,
) -> Language:
    """A pipeline with a loaded `pll` component. What is None stays as the pipeline, or the factory, has it.

    model (Optional[str]): Hub name or folder of a masked language model, or name or folder
        of a spaCy pipeline that has a `pll` component; None is the built-in model.
    RAISES (OSError): There is no such model.
    RAISES (ValueError): A setting is not legal, or the model cannot score text; the message says why.
    """
    setup_gpu(gpu_id, silent=True)
    settings = {"metrics": metrics, "words": words, "get_spans": SPAN_GETTERS.get(spans), "mask_spacing": mask_spacing}
    settings = {name: value for name, value in settings.items() if value is not None}
    if keep_pieces:
        settings["keep_pieces"] = True
    if model and is_spacy_pipeline(model):
        nlp = _load_with(model, settings, precision)
    else:
        nlp = spacy.blank(lang)
        if spans == "sents":
            nlp.add_pipe("sentencizer")
        architecture = {**DEFAULT_CONFIG["model"], "name": model, "mixed_precision": precision == "bfloat16"}
        nlp.add_pipe("pll", config={**settings, "model": architecture})
    get_scorer(nlp).initialize()
    return nlp


def _load_with(pipeline: str, settings: dict, precision: str | None) -> Language:
    """A saved pipeline, with some settings of its `pll` component replaced."""
    folder = get_package_path(pipeline) if is_package(pipeline) else Path(pipeline)
    config_path = next(path for pattern in ("config.cfg", "*/config.cfg") for path in folder.glob(pattern))
    components = load_config(config_path)["components"]
    names = [name for name, settings in components.items() if settings.get("factory") == "pll"]
    if not names:
        raise ValueError(
            f"The pipeline {pipeline!r} has no `pll` component; it has these: {', '.join(components) or 'none'}. "
            'Add one, nlp.add_pipe("pll"), and save it again with nlp.to_disk.'
        )
    overrides = {f"components.{names[0]}.{setting}": value for setting, value in settings.items()}
    if precision:
        overrides[f"components.{names[0]}.model.mixed_precision"] = precision == "bfloat16"
    return spacy.load(pipeline, config=overrides)


def describe_model(model: str | None, nlp: Language) -> dict:
    """What tells two models apart: a folder's contents, a package's version, a commit on the hub."""
    if model and is_package(model):
        return {"package": model, "version": nlp.meta["version"]}
    folder = Path(model) if model else BUILTIN
    if folder.is_dir():
        return {"folder": model, "digest": digest(sorted(path for path in folder.rglob("*") if path.is_file()))}
    return {"hub": model, "commit": get_scorer(nlp).model.commit}


def get_scorer(nlp: Language) -> PLLScorer:
    """The first `pll` component of a pipeline."""
    return next(component for _, component in nlp.components if isinstance(component, PLLScorer))
