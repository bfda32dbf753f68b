"""The pipeline behind the page: its model is loaded once, while metrics and unit of words change."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import RLock

from spacy.language import Language

from ..component import get_scorer
from ..metrics import pll_metrics
from ..pipelines import PipelineSettings, make_pipeline, vary_scorer


class SharedPipeline:
    """A pipeline whose component can be set anew without loading the model again.

    Streamlit runs each open page in a thread of its own, and spaCy's pipelines are not made for several threads. So
    only one page uses the pipeline at a time.

    settings (PipelineSettings): The model, and the settings that do not change. `metrics` and `words` are those to
        begin with.
    RAISES (OSError, ValueError, ImportError): As `make_pipeline`.
    """

    def __init__(self, settings: PipelineSettings):
        self._nlp = make_pipeline(replace(settings, keep_pieces=True, distribution=True))
        self._lock = RLock()
        scorer = get_scorer(self._nlp)
        used = scorer.settings
        self.metrics, self.words, self.attr = list(used.metrics), used.words, scorer.attr

    def list_metrics(self) -> list[str]:
        """The metrics that the model can compute, beginning with those that the pipeline has."""
        served = list(self.metrics)
        for name in pll_metrics.get_all():
            with suppress(ValueError):
                get_scorer(self._nlp).model.serve([name])
                served.append(name)
        return list(dict.fromkeys(served))

    @contextmanager
    def use(self, settings: PipelineSettings) -> Iterator[Language]:
        """The pipeline with the metrics and unit of words of some settings, for as long as the context lasts.

        What is None is as it was when the pipeline was loaded.
        RAISES (ValueError): A setting is not valid. The pipeline stays as it was.
        """
        metrics, words = list(settings.metrics or self.metrics), settings.words or self.words
        with self._lock:
            scorer = get_scorer(self._nlp)
            varied = vary_scorer(self._nlp, metrics=metrics, words=words)
            scorer.predictor, scorer.names = varied.predictor, varied.names
            yield self._nlp
