"""From a few settings to a pipeline that scores, and what identifies the model in it."""

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

import spacy
import spacy.lang
import torch
from spacy.language import Language
from spacy.util import get_package_version, is_package, load_config, registry
from thinc.api import Config, ConfigValidationError, get_torch_default_device
from thinc.compat import has_cupy

from .component import PLLScorer, get_scorer
from .documentation import page
from .errors import PLLError, explained, similar
from .files import file_digest, folder_digest
from .language_model import BUILTIN, BUILTIN_NAME, BUILTIN_NAMES, DOCUMENTS
from .language_model.protocol import LanguageModel
from .settings import ScoringSettings, at_least, check_values, choices_of, in_order, plain_number, shows_settings
from .user_code import import_code

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SPAN_GETTERS: dict[str, dict[str, Any]] = {
    "doc": {"@span_getters": "spacy-pll.doc_spans.v1"},
    "sents": {"@span_getters": "spacy-pll.sent_spans.v1"},
    "strided": {"@span_getters": "spacy-pll.strided_spans.v1", "window": 128, "stride": 96},
}
# By whether the model is a left-to-right one.
ARCHITECTURES = {False: "spacy-pll.MaskedLM.v1", True: "spacy-pll.CausalLM.v1"}
# The packages whose versions files of results have.
PACKAGES = ["spacy-pll", "spacy", "spacy-transformers", "transformers", "tokenizers", "torch"]
# What scores: a name or a folder, a pipeline, or a language model of transformers with its tokenizer.
Model = (
    str | os.PathLike[str] | Mapping[str, Any] | Language | tuple["PreTrainedModel", "PreTrainedTokenizerBase"] | None
)


@dataclass(frozen=True, init=False)
class PipelineSettings:
    """The settings of a pipeline with a `pll` component. The settings of `ScoringSettings` can also be given, by their
    names. A setting that is not given, or is None although it cannot be None, has the value of the saved pipeline, or
    else its default. The model may also be in memory: see `make_pipeline`.

    model (Optional[str]): Hub name or folder of a language model, or of a spaCy pipeline with a `pll` component. None:
        the built-in English model.
    component (Optional[str]): The name of the `pll` component to use, if the pipeline has several `pll` components. The
        others are left out.
    revision (Optional[str]): Branch, tag or commit of the language model on the Hugging Face hub. None: main.
    causal (bool): The model is a left-to-right model, for the metric causal. Only needed if there are also masked
        models of its type, as for a BERT decoder.
    leading_space (Optional[str]): Of a left-to-right model: which word gets the probability of the space between two
        words, the second (word) or the first (previous). None: word.
    spans (Optional[str]): What the model reads as one context: whole texts, sentences, or windows of 128 tokens that
        begin 96 tokens apart. None: doc.
    lang (str): Language of spaCy's tokenizer. A spaCy pipeline has its own.
    precision (Optional[str]): The precision of the model: float32; or tf32 and float16 (only on GPUs) or bfloat16,
        which are faster on many devices and less exact (docs/speed.md). None: float32.
    gpu_id (int): GPU ID, or -1 for the CPU (in Python, for the device that is set).
    threads (Optional[int]): How many threads PyTorch uses on a CPU. Give 1 if other programs also use the machine. In a
        container with a limit on CPU time, give this limit. None: what PyTorch chooses.
    attr (Optional[str]): What the names of the attributes and of the columns of scores begin with. None: pll.
    code (Optional[str]): A Python file that is imported first. It may register the classes of a model, or a metric
        (docs/models.md). None: nothing.
    scoring (Mapping[str, Any]): Settings of `ScoringSettings`, if they are not given one by one.
    RAISES (ValueError): A setting has a value that is not allowed.
    RAISES (TypeError): There is no such setting.
    """

    model: Any = None
    component: str | None = None
    revision: str | None = None
    causal: bool = False
    leading_space: Literal["word", "previous"] | None = None
    spans: Literal["doc", "sents", "strided"] | None = None
    lang: str = "en"
    precision: Literal["float32", "tf32", "bfloat16", "float16"] | None = None
    gpu_id: int = at_least(-1, -1)
    threads: int | None = at_least(1)
    attr: str | None = None
    code: str | None = None
    scoring: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        model: Model = None,
        metrics: Sequence[str] | str | None = None,
        *,
        scoring: Mapping[str, Any] = {},  # noqa: B006
        **settings: Any,
    ):
        model = os.fspath(model) if isinstance(model, os.PathLike) else model
        scoring = {name: in_order(value) for name, value in scoring.items()}
        values = DEFAULTS | {"model": None if model in BUILTIN_NAMES else model, "scoring": scoring}
        for name, value in {"metrics": metrics, **settings}.items():
            if name not in SETTINGS:
                unknown = f"Unknown setting {name!r}.{similar(name, SETTINGS)}"
                raise TypeError(f"{unknown} The settings are: {', '.join(SETTINGS)}.")
            if name in values:
                values[name] = DEFAULTS[name] if value is None else value
            elif value is not None or SCORING[name] is None:
                values["scoring"][name] = in_order(plain_number(value))
        for name, value in values.items():
            if isinstance(value, str) and not value.strip():
                raise PLLError(f"`{name}` is empty, as of a variable that is not set.", "Leave it out, or set it.")
            object.__setattr__(self, name, value)
        check_values(self)
        if self.code:  # first, because it may have metrics
            import_code(self.code)
        ScoringSettings(**self.scoring)

    def changed(self, **changes: Any) -> "PipelineSettings":
        """A copy in which some settings are changed, by their names."""
        return PipelineSettings(**{**vars(self), **changes})


DEFAULTS: dict[str, Any] = {setting.name: setting.default for setting in fields(PipelineSettings)}
SCORING = vars(ScoringSettings())  # with the defaults
# All of them by name, with their types, in the order of the help.
SETTINGS: dict[str, Any] = {**get_type_hints(PipelineSettings), **get_type_hints(ScoringSettings)}
del SETTINGS["scoring"]
with_all_settings = shows_settings(SETTINGS, SCORING | DEFAULTS)
with_all_settings(PipelineSettings.__init__)
OF_LOADED = ("revision", "causal", "leading_space", "lang", "precision", "gpu_id")  # stay as they are once it is loaded


@with_all_settings
def make_pipeline(
    model: Model | PipelineSettings = None, metrics: Sequence[str] | str | None = None, **settings: Any
) -> Language:
    """Make a pipeline with a `pll` component whose model is loaded.

    If you give a model in memory, it is not copied and stays on its device, and the scores are computed from its
    current weights. While texts are scored, the model is in evaluation mode; then each part has its earlier mode again.
    The pipeline adds hooks to the model, which have no effect on other forward passes. If its weights are not in
    float32, a copy in float32 is used, which gets the current weights before passes. You can add pieces to the
    tokenizer, and embeddings for them. It is not checked whether the head of such a model was trained.

    model (Optional[Union[str, Path, Language, Tuple[PreTrainedModel, PreTrainedTokenizerBase]]]): Hub name or folder of
        a language model, or of a spaCy pipeline with a `pll` component. Or a pipeline: it is not changed, and the new
        pipeline shares its components and the language model. If it has several `pll` components, the new pipeline has
        the first one, or the one that `component` names. Or a model of transformers in memory and its tokenizer:
        `(model, tokenizer)`. Or the block `model` of a config, such as `{"name": "gpt2", "tokenizer_config": {...}}`.
        None, or "builtin": the built-in model.
    metrics (Optional[Sequence[str]]): Names of metrics; the first is the primary one. None: word_l2r, or causal for a
        left-to-right model, or the metrics of the pipeline.
    settings (Any): The other settings of `PipelineSettings` and `ScoringSettings`, such as `words`, `spans`, `lang`,
        `precision`, `gpu_id`, `mask_margin` or `units`.
    RAISES (OSError): There is no such model.
    RAISES (ValueError): A setting is not valid, or the model cannot score text; the message says why.
    RAISES (TypeError): There is no such setting.

    ```python
    import spacy_pll
    nlp = spacy_pll.make_pipeline(metrics=["word_l2r", "original"], mask_margin=1)
    nlp("The cats sleeps.")._.pll_original  # -19.0
    ```
    """
    start = model if isinstance(model, PipelineSettings) else PipelineSettings(model)
    return assemble_pipeline(start.changed(metrics=metrics, **settings))


def assemble_pipeline(chosen: PipelineSettings, model: LanguageModel | None = None) -> Language:
    """See `make_pipeline`. model (Optional[LanguageModel]): The one that the settings name, if it is loaded already."""
    if chosen.gpu_id >= 0:
        advice = "" if has_cupy else f"Install CuPy (see {page('speed.md#gpu')}), or leave out `gpu_id`."
        with explained(f"The GPU {chosen.gpu_id} cannot be used", advice):
            spacy.require_gpu(chosen.gpu_id)
    if chosen.threads:
        torch.set_num_threads(chosen.threads)
    if isinstance(chosen.model, Language):
        nlp = _vary(chosen)
    elif isinstance(chosen.model, str) and (config := pipeline_config(chosen.model)):
        for name in ("causal", "revision", "leading_space"):
            if getattr(chosen, name):
                problem = f"{chosen.model!r} is a spaCy pipeline, whose config names its model."
                raise PLLError(problem, f"Leave out `{name}`.")
        nlp = _load_saved(chosen, config)
    elif chosen.component:
        raise PLLError(
            f"`component` names a component of a spaCy pipeline, and {chosen.model or BUILTIN_NAME!r:.100} is a "
            "language model.",
            "Leave out `component`.",
        )
    else:
        nlp = _make_new(chosen)
    if model is not None:
        change_component(nlp, model=model)
    get_scorer(nlp).initialize()
    return nlp


def _component_config(settings: PipelineSettings) -> dict[str, Any]:
    """What the settings change in the component's config, apart from the block `model`."""
    config = {**settings.scoring, **({"attr": settings.attr} if settings.attr else {})}
    return {**config, "get_spans": SPAN_GETTERS[settings.spans]} if settings.spans else config


def _make_new(settings: PipelineSettings) -> Language:
    """A pipeline with nothing but the component, and what it needs."""
    nlp = _blank(settings.lang)
    if settings.spans == "sents":
        nlp.add_pipe("sentencizer")
    loaded, causal = None, settings.causal
    if isinstance(settings.model, str | Mapping | None):
        model = _block(settings)
        causal = "CausalLM" in model["@architectures"]
    else:
        from .language_model.in_memory import use_loaded  # imports torch

        loaded = use_loaded(settings.model, settings.causal, settings.precision or "float32")
        device, causal = str(loaded.load().forward.device), loaded.kind == "causal"
        is_ignored = {**vars(settings), "gpu_id": settings.gpu_id >= 0 and device != f"cuda:{settings.gpu_id}"}
        for name in filter(is_ignored.get, ("revision", "leading_space", "gpu_id")):
            raise PLLError(
                f"`{name}` is {getattr(settings, name)!r}, and the model is in memory already, on {device!r}.",
                f"Leave out `{name}`.",
            )
        model = {"@architectures": ARCHITECTURES[causal], "name": loaded.name, "precision": loaded.precision}
    config = _component_config(settings)
    nlp.add_pipe("pll", config={**({"metrics": ["causal"]} if causal else {}), **config, "model": model})
    if loaded is not None:
        change_component(nlp, model=loaded)
    return nlp


def change_component(nlp: Language, attr: str | None = None, **parts: Any) -> None:
    """Put another `pll` in the place of the one of a pipeline that nobody else has. parts (Any): Of `Predictor`."""
    scorer = get_scorer(nlp)
    changed = PLLScorer(replace(scorer.predictor, **parts), scorer.name, attr=attr or scorer.attr)
    nlp._components = [(name, changed if pipe is scorer else pipe) for name, pipe in nlp._components]


def _blank(lang: str) -> Language:
    """A pipeline without components. RAISES (PLLError): spaCy has no such language, or lacks a package for it."""
    try:
        return spacy.blank(lang)
    except ImportError as error:
        languages = [module.name for module in iter_modules(spacy.lang.__path__) if module.ispkg]
        if lang in languages:
            raise PLLError(
                f"spaCy's tokenizer for `lang={lang!r}` needs a package that is missing: {str(error).rstrip('.')}.",
                "Install it. Or set `lang='xx'`, which divides at spaces and punctuation.",
            ) from error
        raise PLLError(
            f"`lang` is {lang!r}, and spaCy has no such language.{similar(lang, languages)}",
            "Set it to a code, such as 'de' for German, or 'xx' where spaCy has none: https://spacy.io/usage/models.",
        ) from None


def _block(settings: PipelineSettings) -> dict[str, Any]:
    """The block `model` of a config: the one that is given, or that of a name, with what is given beside it.

    RAISES (ValueError): The block has something else.
    """
    block = dict(settings.model) if isinstance(settings.model, Mapping) else {"name": settings.model}
    name = block["name"] = None if block.get("name") in BUILTIN_NAMES else block.get("name")
    has = {**block, "precision": "bfloat16"} if block.get("mixed_precision") else block
    for key in ("revision", "precision", "leading_space"):
        if (given := getattr(settings, key)) and (has.get(key) or given) != given:
            raise PLLError(f"`{key}` is {given!r}, and the block of the model has {has[key]!r}.", f"Leave out `{key}`.")
        block |= {key: given} if given else {}
    architecture = block.get("@architectures")
    if settings.causal and (name is None or "CausalLM" not in (architecture or ARCHITECTURES[True])):
        named = "the built-in one is a masked one" if name is None else f"the block of the model has {architecture!r}"
        advice = "Leave out `causal`, or give a `model`, such as gpt2."
        raise PLLError(f"`causal` asks for a left-to-right model, and {named}.", advice)
    if architecture is None:
        from .language_model.reading.checkpoint import is_left_to_right  # imports torch

        causal = settings.causal or (name is not None and is_left_to_right(block))
        block["@architectures"] = ARCHITECTURES[causal]
    if settings.leading_space and block["@architectures"] == ARCHITECTURES[False]:
        raise PLLError(f"`leading_space` is for left-to-right models, not {name or BUILTIN_NAME!r}.", "Leave it out.")
    return block


def parse_settings(scorer: str, **defaults: Any) -> PipelineSettings:
    """The settings of a pipeline from a short text: a model, and settings after commas.

    scorer (str): Such as "builtin" or "bert-base-cased,mask_margin=1". Names of several metrics are separated by "+".
    defaults (Any): Settings that the text need not give.
    RAISES (ValueError): A setting is unknown, or has a value of another type.
    """
    model, *given = (setting.strip() for setting in scorer.split(","))
    values: dict[str, Any] = {**defaults, "model": model}
    for setting in given:
        name, _, value = setting.partition("=")
        if name not in SETTINGS or name == "model":
            problem = f"Unknown setting {name!r} of the scorer {scorer!r}.{similar(name, SETTINGS)}"
            raise PLLError(f"{problem} The settings are: {', '.join([*SETTINGS][1:])}.")
        try:
            values[name] = parse_value(value, SETTINGS[name])
        except ValueError as error:
            raise PLLError(f"The setting {name!r} of the scorer {scorer!r} is {value!r}. {error}") from None
    return PipelineSettings(**values)


def parse_value(text: str, type_: Any) -> Any:
    """The value of a setting from a text.

    type_ (Any): Of the setting, which may be optional. The items of a sequence are separated by "+".
    RAISES (ValueError): The text is none; the message says what it must be.
    """
    choices = choices_of(type_) or (["true", "false"] if type_ is bool else [])
    text = text or "true" if type_ is bool else text
    if choices and text not in choices:
        raise ValueError(f"It must be {' or '.join(choices)}.")
    for kind, what in ((int, "a whole number"), (float, "a number")):
        if kind in (type_, *get_args(type_)):
            try:
                return kind(text)
            except ValueError:
                raise ValueError(f"It must be {what}.") from None
    return text == "true" if type_ is bool else text.split("+") if "Sequence" in str(type_) else text


def pipeline_config(model: str) -> Path | None:
    """The config of a spaCy pipeline, by the name of its package or its folder; None if this names none."""
    if (config := Path(model, "config.cfg")).is_file():
        return config
    if not is_package(model) or "." in model:  # a dotted name, which no pipeline has, would be imported
        return None
    spec = find_spec(model)  # without an import, which may do or raise anything
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or () for path in Path(folder).glob("*/config.cfg")), None)


def _load_saved(settings: PipelineSettings, path: Path) -> Language:
    """A saved pipeline with one `pll` component, some settings of which are replaced."""
    pipeline, component = settings.model, settings.component
    with explained(f"{path} cannot be read"):
        saved = load_config(path)
    if settings.lang not in ("en", lang := saved["nlp"]["lang"]):
        problem = f"`lang` is {settings.lang!r}, and the pipeline {pipeline!r} is in {lang!r}."
        raise PLLError(problem, "Leave out `lang`.")
    components = saved["components"]
    names = [name for name, block in components.items() if block.get("factory") == "pll"]
    if not names:
        raise PLLError(
            f"The pipeline {pipeline!r} has no `pll` component; it has these: {', '.join(components) or 'none'}. "
            'Add one with nlp.add_pipe("pll"), and save the pipeline again with nlp.to_disk.'
        )
    enabled = [name for name in names if name not in saved["nlp"].get("disabled", [])] or names
    if component not in names and (component or len(enabled) > 1):
        problem = f"no `pll` component {component!r}" if component else f"{len(enabled)} `pll` components"
        advice = f"Set `component` to one of these: {', '.join(names)}."
        raise PLLError(f"The pipeline {pipeline!r} has {problem}.", advice)
    chosen = component or enabled[0]
    config = {f"components.{chosen}.{name}": value for name, value in _component_config(settings).items()}
    if settings.precision:
        config[f"components.{chosen}.model.precision"] = settings.precision
        config[f"components.{chosen}.model.mixed_precision"] = False  # bfloat16 in older configs
    # By the folder, which may have the name of an installed package. The package of a pipeline has its folder inside.
    source = path.parent if path == Path(pipeline, "config.cfg") else pipeline
    try:
        nlp = spacy.load(source, config=config, exclude=[name for name in names if name != chosen])
    except ConfigValidationError as error:
        raise PLLError(f"The config of the pipeline {pipeline!r} is not valid. {_faults_of(error)}") from None
    except PLLError:
        raise
    except ValueError as error:
        reason, own, _ = str(error).partition(" This usually happens")  # what is missing is the user's own
        advice = "Give the Python file that registers it as `code`." if own else ""
        raise PLLError(f"The pipeline {pipeline!r} cannot be loaded: {reason}", advice) from error
    if chosen in nlp.disabled:
        nlp.enable_pipe(chosen)
    return nlp


def _faults_of(error: ConfigValidationError) -> str:
    """What is wrong in a block of a config, without the block itself."""
    names = [str(name) for name in error.config or {} if not str(name).startswith("@")]
    faults = []
    for fault in error.errors or ():
        *blocks, name = map(str, fault["loc"])
        near = similar(name, [other for other in names if other != name])
        faults.append(f"{' -> '.join([*blocks, name])}: {fault['msg']}.{near}")
    return " ".join(faults)


def _vary(settings: PipelineSettings) -> Language:
    """A pipeline with one `pll` component of another pipeline, changed, and its other components. They are shared."""
    nlp, scorer = settings.model, get_scorer(settings.model, settings.component)
    for name in OF_LOADED:
        if (value := getattr(settings, name)) != getattr(PipelineSettings, name):
            raise PLLError(
                f"`{name}` is {value!r}, and this pipeline is loaded already. Leave it out, or give the name or folder "
                "of a model instead of the pipeline."
            )
    changes = _component_config(settings)
    parts = registry.resolve({"get_spans": changes["get_spans"]}) if settings.spans else {}
    varied = copy(nlp)  # and of what spaCy keeps of a pipeline
    varied._components = [pipe for pipe in nlp.components if pipe[1] is scorer or not isinstance(pipe[1], PLLScorer)]
    change_component(varied, settings.attr, settings=replace(scorer.settings, **settings.scoring), **parts)
    varied._disabled = {name for name, _ in varied._components if name in nlp.disabled and name != scorer.name}
    varied._pipe_configs = {**nlp._pipe_configs, scorer.name: Config({**nlp.get_pipe_config(scorer.name), **changes})}
    varied._config = nlp._config.copy()
    return varied


def describe_scorer(nlp: Language, settings: PipelineSettings) -> dict[str, Any]:
    """What a scorer is, for files of results, and to tell it from any other: the model and what is in its files, the
    settings that a pipeline was made from, and the versions of what computes.
    """
    scorer = get_scorer(nlp)
    title, commit, _ = scorer.model.describe()
    name = settings.model.get("name") if isinstance(settings.model, Mapping) else settings.model
    is_named = isinstance(name, str | None)
    weights: dict[str, Any] = describe_model(name, commit) if is_named else {"in_memory": title}
    config = pipeline_config(name) if is_named and name else None
    if config and not Path(config.parent, scorer.name, "model").is_dir():  # they are where its config says
        weights["model"] = describe_model(getattr(scorer.model, "name", None), commit)
    return {
        "model": (name or BUILTIN_NAME) if is_named else title,
        "weights": weights,
        "metrics": list(scorer.settings.metrics),
        **{name: getattr(settings, name) for name in ("revision", "spans", "precision")},
        **scorer.settings.record,
        "code": settings.code and file_digest(Path(settings.code)),
        "lang": nlp.lang,
        "pipeline": nlp.config["components"],
        "device": str(get_torch_default_device()),
        "versions": {package: get_package_version(package) for package in PACKAGES},
    }


def describe_model(model: str | None, commit: str | None = None) -> dict[str, str | None]:
    """What distinguishes a model from any other: the contents of a folder, also of a package, or a commit on the hub.

    model (Optional[str]): As in `PipelineSettings`.
    commit (Optional[str]): For a model on the hub, the commit that was loaded, from `get_scorer(nlp).model.describe()`.
    """
    config = pipeline_config(model) if model else None
    folder = config.parent if config else Path(model) if model else BUILTIN
    if not folder.is_dir():
        return {"hub": model, "commit": commit}
    # A model card and the like say nothing about the scores.
    digest = folder_digest(folder, lambda file: file.suffix != ".md" and file.name not in DOCUMENTS)
    if model and folder != Path(model):
        return {"package": model, "version": get_package_version(model), "digest": digest}
    return {"folder": model, "digest": digest}
