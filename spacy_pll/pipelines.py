"""From a few settings to a pipeline that scores, and what identifies the model in it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import spacy
from spacy.language import Language
from spacy.util import get_package_version, is_package, load_config
from thinc.api import ConfigValidationError

from .component import PLLScorer, get_scorer
from .language_model import BUILTIN, DOCUMENTS
from .language_model.checksums import files_digest
from .scoring.wordpieces import WORDS
from .settings import ScoringSettings

SPAN_GETTERS: dict[str, dict[str, Any]] = {
    "doc": {"@span_getters": "spacy-pll.doc_spans.v1"},
    "sents": {"@span_getters": "spacy-pll.sent_spans.v1"},
    "strided": {"@span_getters": "spacy-pll.strided_spans.v1", "window": 128, "stride": 96},
}
PRECISIONS = ("float32", "bfloat16")
# How the built-in model is called where a name is needed.
BUILTIN_NAME = "builtin"
CHOICES: dict[str, Sequence[str]] = {"words": WORDS, "spans": tuple(SPAN_GETTERS), "precision": PRECISIONS}
# The settings of `parse_settings`, and what makes their values from text.
FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "metrics": lambda names: names.split("+"),
    **dict.fromkeys(CHOICES, str),
    "mask_spacing": int,
    "component": str,
    "mask_margin": int,
    "lang": str,
    "causal": {"": True, "true": True, "false": False}.__getitem__,
}


@dataclass(frozen=True)
class PipelineSettings:
    """What a pipeline with a `pll` component is made from. A setting that is None keeps the value of the saved pipeline
    or, without one, the component's default. Those that are not listed here are the component's.

    model (Optional[str]): Hub name or folder of a language model, or name or folder of a spaCy pipeline that has a
        `pll` component. None is the built-in English model.
    component (Optional[str]): The name of one of several `pll` components of that pipeline. The others are left out.
    attr (Optional[str]): What attributes and columns begin with: the component's setting of that name.
    spans (Optional[str]): What is read as one context: "doc" (the text), "sents" (each sentence) or "strided" (windows
        of tokens). `spacy_pll.pipelines.SPAN_GETTERS` has the span getters of these names.
    lang (str): Language of spaCy's tokenizer. Not used if `model` is a spaCy pipeline.
    precision (Optional[str]): "float32" or "bfloat16" (forward passes under autocast).
    gpu_id (int): The GPU to use. -1 leaves the device as it is: the CPU, unless `spacy.require_gpu` was called.
    causal (bool): `model` is a left-to-right model. Only needed if its type also has masked ones.
    RAISES (ValueError): `spans` or `precision` has another value.
    """

    model: str | None = None
    metrics: Sequence[str] | None = None
    words: str | None = None
    spans: str | None = None
    lang: str = "en"
    precision: str | None = None
    mask_spacing: int | None = None
    mask_margin: int | None = None
    alternatives: int | None = None
    distribution: bool | None = None
    keep_pieces: bool = False
    targets: str | None = None
    attr: str | None = None
    gpu_id: int = -1
    component: str | None = None
    causal: bool = False

    def __post_init__(self) -> None:
        for name in ("spans", "precision"):
            value = getattr(self, name)
            if value is not None and value not in CHOICES[name]:
                raise ValueError(f"`{name}` must be {' or '.join(CHOICES[name])}. It is {value!r}.")


def make_pipeline(settings: PipelineSettings) -> Language:
    """Make a pipeline with a `pll` component whose model is loaded.

    RAISES (OSError): There is no such model.
    RAISES (ValueError): A setting is not valid, or the model cannot score text; the message says why.
    """
    setup_gpu(settings.gpu_id)
    overrides = component_config(settings)
    if settings.model and (config := pipeline_config(settings.model)):
        nlp = _load_saved(settings.model, config, settings.component, overrides, settings.precision)
        if settings.causal:
            raise ValueError(
                f"{settings.model!r} is a spaCy pipeline, whose config names its model. Leave out `causal`."
            )
    elif settings.component:
        raise ValueError(
            f"`component` names a component of a spaCy pipeline, and {settings.model or BUILTIN_NAME!r} is a language "
            "model. Leave it out."
        )
    else:
        nlp = spacy.blank(settings.lang)
        if settings.spans == "sents":
            nlp.add_pipe("sentencizer")
        causal = is_causal(settings)
        if causal:
            overrides.setdefault("metrics", ["causal"])
        model = {
            "@architectures": "spacy-pll.CausalLM.v1" if causal else "spacy-pll.MaskedLM.v1",
            "name": settings.model,
            "mixed_precision": settings.precision == "bfloat16",
        }
        nlp.add_pipe("pll", config={**overrides, "model": model})
    get_scorer(nlp).initialize()
    return nlp


def component_config(settings: PipelineSettings) -> dict[str, Any]:
    """What the settings change in the component's config, apart from the block `model`."""
    names = [field.name for field in fields(ScoringSettings) if hasattr(settings, field.name)]
    chosen = {name: getattr(settings, name) for name in names}
    chosen |= {"metrics": settings.metrics and list(settings.metrics), "keep_pieces": settings.keep_pieces or None}
    chosen["attr"] = settings.attr
    if settings.spans:
        chosen["get_spans"] = SPAN_GETTERS[settings.spans]
    return {name: value for name, value in chosen.items() if value is not None}


def is_causal(settings: PipelineSettings) -> bool:
    """Whether the language model is a left-to-right one: the settings say so, or its configuration leaves no choice.

    RAISES (ValueError): It should be the built-in one.
    """
    if settings.model is None:
        if settings.causal:
            raise ValueError(
                "`causal` asks for a left-to-right model, and the built-in one is a masked one. Leave it out, or give "
                "a `model`, such as gpt2."
            )
        return False
    from .language_model.checkpoint import is_left_to_right  # imports torch

    return settings.causal or is_left_to_right(settings.model)


def parse_settings(scorer: str, **defaults: Any) -> PipelineSettings:
    """The settings of a pipeline from a short text: a model, and settings after commas.

    scorer (str): Such as "builtin" or "bert-base-cased,mask_margin=1". Names of several metrics are separated by "+".
    defaults (Any): Settings that the text need not give.
    RAISES (ValueError): A setting is unknown, or has a value of another type.
    """
    model, *parts = (part.strip() for part in scorer.split(","))
    values: dict[str, Any] = {**defaults, "model": None if model == BUILTIN_NAME else model}
    for part in parts:
        name, _, value = part.partition("=")
        if name not in FROM_TEXT:
            raise ValueError(
                f"Unknown setting {name!r} of the scorer {scorer!r}. The settings are: {', '.join(FROM_TEXT)}."
            )
        choices = CHOICES.get(name, ["a whole number"])
        try:
            values[name] = FROM_TEXT[name](value)
            valid = name not in CHOICES or value in choices
        except (KeyError, ValueError):
            valid = False
        if not valid:
            raise ValueError(
                f"The setting {name!r} of the scorer {scorer!r} is {value!r}. It must be {' or '.join(choices)}."
            )
    return PipelineSettings(**values)


def setup_gpu(gpu_id: int) -> None:
    """Use a GPU; with -1 change nothing. (spaCy's function of that name belongs to its command line.)

    RAISES (ValueError): There is no GPU, or CuPy is not installed.
    """
    if gpu_id >= 0:
        spacy.require_gpu(gpu_id)


def pipeline_config(model: str) -> Path | None:
    """The config of a spaCy pipeline, by the name of its package or its folder; None if this names none."""
    if (own := Path(model, "config.cfg")).is_file():
        return own
    if not is_package(model) or "." in model:  # a dotted name, which no pipeline has, would be imported
        return None
    spec = find_spec(model)  # without an import, which may do or raise anything
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () for path in Path(folder).glob("*/config.cfg")), None)


def _load_saved(
    pipeline: str, path: Path, component: str | None, overrides: dict[str, Any], precision: str | None
) -> Language:
    """A saved pipeline with one `pll` component, some settings of which are replaced."""
    saved = load_config(path)
    components = saved["components"]
    names = [name for name, block in components.items() if block.get("factory") == "pll"]
    if not names:
        raise ValueError(
            f"The pipeline {pipeline!r} has no `pll` component; it has these: {', '.join(components) or 'none'}. "
            'Add one with nlp.add_pipe("pll"), and save the pipeline again with nlp.to_disk.'
        )
    enabled = [name for name in names if name not in saved["nlp"].get("disabled", [])] or names
    if component not in names and (component or len(enabled) > 1):
        problem = f"no `pll` component {component!r}" if component else f"{len(enabled)} `pll` components"
        raise ValueError(
            f"The pipeline {pipeline!r} has {problem}. Set `component` to one of these: {', '.join(names)}."
        )
    chosen = component or enabled[0]
    config = {f"components.{chosen}.{setting}": value for setting, value in overrides.items()}
    if precision:
        config[f"components.{chosen}.model.mixed_precision"] = precision == "bfloat16"
    # By the folder, which may have the name of an installed package. The package of a pipeline has its folder inside.
    source = path.parent if path == Path(pipeline, "config.cfg") else pipeline
    try:
        nlp = spacy.load(source, config=config, exclude=[name for name in names if name != chosen])
    except ConfigValidationError as error:
        raise ValueError(f"The config of the pipeline {pipeline!r} is not valid. {_explained(error)}") from None
    if chosen in nlp.disabled:
        nlp.enable_pipe(chosen)
    return nlp


def _explained(error: ConfigValidationError) -> str:
    """What is wrong in a block of a config, without the block itself."""
    names = [str(name) for name in error.config or {} if not str(name).startswith("@")]
    found = []
    for one in error.errors or ():
        *blocks, name = map(str, one["loc"])
        near = get_close_matches(name, [other for other in names if other != name])
        similar = f" Similar: {', '.join(near)}." if near else ""
        found.append(f"{' -> '.join([*blocks, name])}: {one['msg']}.{similar}")
    return " ".join(found)


@contextmanager
def pieces_kept(nlp: Language) -> Iterator[PLLScorer]:
    """The pipeline's scorer, which meanwhile keeps the record of wordpieces: `keep_pieces` is set."""
    scorer = get_scorer(nlp)
    settings = scorer.settings
    scorer.predictor.settings = replace(settings, keep_pieces=True)
    try:
        yield scorer
    finally:
        scorer.predictor.settings = settings


def vary_scorer(nlp: Language, **changes: Any) -> PLLScorer:
    """The pipeline's scorer with some settings changed, and the same model. The pipeline stays as it is.

    changes (Any): Settings of the component, such as `mask_margin`.
    RAISES (ValueError): A setting is not valid.
    """
    scorer = get_scorer(nlp)
    config = {**nlp.get_pipe_config(scorer.name), **changes}
    del config["factory"]  # which spaCy adds to a component's settings, and does not take back
    varied = cast(PLLScorer, nlp.create_pipe("pll", name=scorer.name, config=config))
    varied.model = scorer.model
    return varied


def describe_model(model: str | None, commit: str | None = None) -> dict[str, str | None]:
    """What distinguishes a model from any other: the contents of a folder, the version of a package, or a commit on the
    hub.

    model (Optional[str]): As in `PipelineSettings`.
    commit (Optional[str]): For a model on the hub, the commit that was loaded, from `get_scorer(nlp).model.describe()`.
    """
    if model and is_package(model) and pipeline_config(model):
        return {"package": model, "version": get_package_version(model)}
    folder = Path(model) if model else BUILTIN
    if folder.is_dir():
        # A model card and the like say nothing about the scores.
        found = (path for path in folder.rglob("*") if path.suffix != ".md" and path.name not in DOCUMENTS)
        files = sorted(path for path in found if path.is_file())
        return {"folder": model, "digest": files_digest(files)}
    return {"hub": model, "commit": commit}
