"""Masked models in EleutherAI's lm-evaluation-harness, as its model `spacy-pll`. This needs the extra `[lm-eval]`.

A request is a context and a continuation. Both are read as one text, and the log-likelihood of the continuation is the
sum of the scores of its wordpieces under the metric: see docs/lm-eval.md for what that means for their tasks.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from .component import get_scorer
from .errors import PLLError, similar
from .files import files_digest
from .pipelines import SETTINGS, Model, PipelineSettings, describe_scorer, make_pipeline, parse_value
from .requirements import install_command
from .settings import BATCH_SIZE
from .stream.contexts import Placed, check_places
from .stream.known import score_distinct
from .stream.workers import Work

try:
    import lm_eval.models  # noqa: F401  # their own models, which they only look for where none is registered
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM, CacheHook
    from lm_eval.api.registry import register_model
except ImportError as error:
    raise ImportError(
        f"lm-evaluation-harness cannot be imported ({error}). Install it with: {install_command('lm-eval')}"
    ) from None


# Those that have other names here, or that a request decides, are left out.
OTHER_SETTINGS = [name for name in SETTINGS if name not in ("model", "metrics", "gpu_id", "targets")]


@register_model("spacy-pll")
class PLL(LM):
    """A language model of lm-evaluation-harness that scores with a `pll` component.

    pretrained (Optional[Union[str, Language, Tuple[PreTrainedModel, PreTrainedTokenizerBase]]]): Hub name or folder of
        a language model, or of a spaCy pipeline with a `pll` component. Or, in Python, such a pipeline, or a model of
        transformers and its tokenizer, `(model, tokenizer)`. None, or "builtin": the built-in model.
    metrics (Optional[str]): The metric. None: word_l2r, or causal for a left-to-right model. `metric` is the same.
    batch_size (Union[int, str]): The largest number of texts that are read together. "auto" and 1 (the default of the
        harness) mean 1,024.
    max_batch_size (Optional[int]): The limit with "auto".
    device (Optional[str]): cpu, cuda or cuda:N. Without a GPU, the CPU is used. A model in memory stays on its device.
    show_progress (bool): Show a progress bar.
    shared_pieces (Union[bool, str]): Accept requests whose context and continuation share a wordpiece, which then
        belongs to the context. Otherwise such requests are an error.
    settings (Any): The other settings of `PipelineSettings` and `ScoringSettings`, such as `mask_margin` or `words`.
    RAISES (ValueError): There is no such setting, one is not valid, or the model cannot score text.
    """

    def __init__(
        self,
        pretrained: Model = None,
        metrics: str | None = None,
        batch_size: int | str = "auto",
        max_batch_size: int | None = None,
        device: str | None = None,
        show_progress: bool = True,
        shared_pieces: bool | str = False,
        metric: str | None = None,
        **settings: Any,
    ):
        super().__init__()
        if "model" in settings:  # as make_pipeline calls it
            if pretrained is not None:
                raise PLLError("Both `pretrained` and `model` are given.", "Leave one of them out.")
            pretrained = settings.pop("model")
        if metric and metrics:
            raise PLLError("`metrics` and `metric` are the same model argument.", "Give one of the two.")
        chosen = metrics or metric
        if not isinstance(chosen, str | None) or "+" in (chosen or ""):
            raise PLLError(f"`metrics` is {chosen!r}, and a task has one score for each text.", "Give one metric.")
        for name, value in settings.items():
            if name not in OTHER_SETTINGS:
                raise PLLError(
                    f"spacy-pll has no model argument {name!r}.{similar(name, OTHER_SETTINGS)}",
                    f"It has pretrained, metrics, shared_pieces, {', '.join(OTHER_SETTINGS)}.",
                )
            settings[name] = _argument(name, value, SETTINGS[name])
        self.shared_pieces: bool = _argument("shared_pieces", shared_pieces, bool)
        is_named = isinstance(pretrained, str | PathLike | Mapping | None)
        gpu_id = _gpu_id(device) if device or is_named else -1
        self.settings = PipelineSettings(pretrained, chosen, gpu_id=gpu_id, **settings)
        self.nlp = make_pipeline(self.settings)
        get_scorer(self.nlp).settings.check_whole("the answers of a task are compared")
        self.work = Work(_batch_size(batch_size, max_batch_size), show_progress=show_progress)

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        """The log-likelihood of each continuation, natural log, and whether a greedy search would find it: a masked
        model has none, so this is always False.

        RAISES (ValueError): A continuation has no wordpiece of its own, or shares one with its context.
        """
        return self._respond("loglikelihood", requests, lambda score: (score, False))

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        """The log-likelihood of each text, natural log. RAISES (ValueError): A text has no wordpiece."""
        return self._respond("loglikelihood_rolling", requests, lambda score: score)

    def generate_until(self, requests: list[Instance]) -> list[str]:
        """RAISES (ValueError): Always."""
        tasks = ", ".join(sorted({str(request.task_name) for request in requests}))
        raise PLLError(
            f"These tasks need text that the model writes: {tasks}. spacy-pll scores text, and writes none.",
            "Choose tasks whose output_type is loglikelihood, loglikelihood_rolling or multiple_choice.",
        )

    @property
    def tokenizer_name(self) -> str:
        """What the harness asks for if there is to be a chat template. RAISES (ValueError): Always."""
        raise PLLError("spacy-pll has no chat template: it scores a text as it is.", "Leave out `apply_chat_template`.")

    def get_model_info(self) -> dict[str, Any]:
        """What the scores depend on, for the file of results."""
        return {"spacy_pll": {"component": get_scorer(self.nlp).name, **describe_scorer(self.nlp, self.settings)}}

    def set_cache_hook(self, cache_hook: CacheHook) -> None:
        """Their cache of responses knows the texts alone.

        RAISES (ValueError): It has responses of other settings, or of another class of model.
        """
        super().set_cache_hook(cache_hook)
        if cache_hook.dbdict is not None:
            with TemporaryDirectory() as folder:  # a pipeline may take its weights from elsewhere
                get_scorer(self.nlp).model.to_disk(folder)
                weights = files_digest(sorted(path for path in Path(folder).rglob("*") if path.is_file()))
            now = {**self.get_model_info(), "contents": weights}
            if "spacy-pll" not in cache_hook.dbdict and len(cache_hook.dbdict):
                raise PLLError(
                    "The cache has responses of another model: spacy-pll has written no settings into it. Give "
                    "--use_cache another name."
                )
            if (before := cache_hook.dbdict.setdefault("spacy-pll", now)) != now:
                raise PLLError(
                    f"The cache has the scores of other settings: {before}. Now they are: {now}. Give --use_cache "
                    "another name."
                )

    def _respond(self, kind: str, requests: list[Instance], response: Callable[[float], Any]) -> list[Any]:
        """The responses to requests. Each goes to the cache as soon as it is known.

        RAISES (ValueError): One of these requests cannot be scored, or one of those that the harness has for later.
        """
        by_place = defaultdict[Placed, list[Instance]](list)
        for request in requests:
            by_place[_place_of(request)].append(request)
        later, answers = _later_requests(kind), dict[Placed, Any]()
        if later.get("generate_until"):
            self.generate_until(later.pop("generate_until"))
        places = dict.fromkeys(_place_of(request) for kind in later for request in later[kind])
        check_places(get_scorer(self.nlp), [*by_place, *places], self.shared_pieces)
        try:
            for in_context, (sums,) in score_distinct(self.nlp, dict.fromkeys(by_place, [None]), self.work):
                answers[in_context] = response(sums.scores[0])
                for request in by_place[in_context]:
                    self.cache_hook.add_partial(kind, request.args, answers[in_context])
        finally:
            if self.cache_hook.dbdict is not None:
                self.cache_hook.dbdict.commit()  # also where this was stopped
        return [answers[_place_of(request)] for request in requests]


def _place_of(request: Instance) -> Placed:
    """A continuation after its context. Without one, it begins a sentence."""
    context, text = request.args if len(request.args) == 2 else ("", *request.args)
    return (text, context, "") if context.strip() else (text.lstrip(), "", "")


def _later_requests(kind: str) -> dict[str, list[Instance]]:
    """The requests that the evaluation, if one is running, has for later, by their kinds.

    The harness makes all requests, hands them over kind by kind, and keeps no response if a later kind fails. It does
    not say what is to come, so this looks at the variable in which it has them.
    """
    frame = sys._getframe().f_back
    while frame and (frame.f_globals.get("__name__"), frame.f_code.co_name) != ("lm_eval.evaluator", "evaluate"):
        frame = frame.f_back
    requests = dict(frame.f_locals.get("requests", {})) if frame else {}
    kinds = list(requests)
    return {other: requests[other] for other in kinds[kinds.index(kind) + 1 :]} if kind in kinds else {}


def _argument(name: str, value: Any, type_: Any) -> Any:
    """The value of a model argument, which comes as text from a command line."""
    if not isinstance(value, str):
        return value
    try:
        return parse_value(value, type_)
    except ValueError as error:
        raise PLLError(f"The model argument {name!r} is {value!r}.", str(error)) from None


def _gpu_id(device: str | None) -> int:
    """The setting `gpu_id`. Their command line always says cuda:0, so a GPU that is not there is no error."""
    kind, _, number = str(device or "cuda").partition(":")
    if kind not in ("cpu", "cuda") or not (number or "0").isdecimal():
        raise PLLError(f"`device` is {device!r}.", "Give cpu, cuda or cuda:N.")
    return int(number or 0) if kind == "cuda" and torch.cuda.is_available() else -1


def _batch_size(batch_size: int | str, at_most: int | None) -> int:
    if str(batch_size) == "1" or str(batch_size).startswith("auto"):
        return min(BATCH_SIZE, at_most or BATCH_SIZE)
    if not str(batch_size).isdecimal():
        raise PLLError(f"`batch_size` is {batch_size!r}.", "Give a whole number, or auto.")
    return int(batch_size)
