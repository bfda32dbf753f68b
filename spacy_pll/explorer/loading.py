"""The pipeline behind the page: its model is loaded once, while metrics, unit of words and margin change."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TypeVar

from spacy.language import Language

from ..metrics import pll_metrics
from ..pipelines import PipelineSettings, get_scorer, make_pipeline, scorer_config

# How many alternatives to each token the page shows, unless the command line says otherwise.
N_ALTERNATIVES = 5
Result = TypeVar("Result")


def show_expected(settings: PipelineSettings) -> PipelineSettings:
    """The settings with all that the page shows of a token: wordpieces, rank, entropy and alternatives."""
    n = N_ALTERNATIVES if settings.alternatives is None else settings.alternatives
    return replace(settings, keep_pieces=True, alternatives=n, distribution=True)


class SharedPipeline:
    """A pipeline whose component can be set anew without loading the model again.

    Streamlit runs each open page in a thread of its own, and spaCy's pipelines are not made for several threads. So
    only one page uses the pipeline at a time.

    settings (PipelineSettings): The model, and the settings that do not change. `metrics`, `words` and `mask_margin`
        are those to begin with.
    RAISES (OSError, ValueError, ImportError): As `make_pipeline`.
    """

    def __init__(self, settings: PipelineSettings):
        self._nlp = make_pipeline(settings)
        self._lock = RLock()
        scorer = get_scorer(self._nlp)
        used = scorer.settings
        self.metrics, self.words, self.attr, self.name = list(used.metrics), used.words, scorer.attr, scorer.name
        self.title = scorer.model.describe().title
        self.mask_spacing, self.mask_margin = used.mask_spacing, used.mask_margin
        self._config = self._used = scorer_config(self._nlp)

    def list_metrics(self) -> list[str]:
        """The metrics that the model can compute, beginning with those that the pipeline has."""
        return [
            *self.metrics,
            *(name for name in pll_metrics.get_all() if name not in self.metrics and self._can(name)),
        ]

    def _can(self, metric: str) -> bool:
        scorer = get_scorer(self._nlp)
        try:
            scorer.model.serve([metric])
        except ValueError:
            return False
        return True

    @contextmanager
    def use(
        self, metrics: Sequence[str] | None, words: str | None, mask_margin: int | None = None
    ) -> Iterator[Language]:
        """The pipeline with some metrics, a unit of words and a margin, for as long as the context lasts.

        metrics (Optional[Sequence[str]]): None takes those that the pipeline was loaded with.
        words (Optional[str]): The same.
        mask_margin (Optional[int]): None takes none.
        RAISES (ValueError): A setting is not valid. The pipeline stays as it was.
        """
        chosen = {"metrics": list(metrics or self.metrics), "words": words or self.words, "mask_margin": mask_margin}
        config = {**self._config, **chosen}
        with self._lock:
            if config != self._used:
                model = get_scorer(self._nlp).model
                self._nlp.create_pipe("pll", name=self.name, config=config)  # fails before the old one is removed
                self._nlp.replace_pipe(self.name, "pll", config=config)
                get_scorer(self._nlp).model = model
                self._used = config
            yield self._nlp

    def run(self, settings: PipelineSettings, function: Callable[[Language], Result]) -> tuple[Result, list[str]]:
        """What a function makes of the pipeline with the metrics, unit of words and margin that the settings name.

        RETURNS (tuple[Result, list[str]]): Its result, and the warnings that a user should see.
        """
        chosen = settings.metrics, settings.words, settings.mask_margin
        with self.use(*chosen) as nlp, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            get_scorer(nlp).predictor.warned.clear()  # an earlier text may have had the same warning
            result = function(nlp)
        shown = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
        return result, list(dict.fromkeys(shown))
