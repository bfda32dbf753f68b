"""The pipeline behind the page: its model is loaded once, while metrics and unit of words change."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import RLock

from spacy.language import Language

from ..component import get_scorer
from ..metrics import pll_metrics
from ..pipelines import PipelineSettings, make_pipeline


class SharedPipeline:
    """A pipeline whose model serves other settings of the component, too.

    Streamlit runs each open page in a thread of its own, and spaCy's pipelines are not made for several threads. So
    only one page uses the pipeline at a time.

    settings (PipelineSettings): The model, and the settings that do not change. `metrics` and `words` are those to
        begin with.
    RAISES (OSError, ValueError, ImportError): As `make_pipeline`.
    """

    def __init__(self, settings: PipelineSettings):
        self._nlp = make_pipeline(settings, keep_pieces=True, distribution=True)
        self._lock = RLock()
        scorer = get_scorer(self._nlp)
        used = scorer.settings
        self.metrics, self.words, self.attr = list(used.metrics), used.words, scorer.attr

    def list_metrics(self) -> list[str]:
        """The metrics that the model can compute, beginning with those that the pipeline has."""
        served = list(self.metrics)
        for name in pll_metrics.get_all():
            with suppress(ValueError):
                get_scorer(self._nlp).model.check_metrics([name])
                served.append(name)
        return list(dict.fromkeys(served))

    @contextmanager
    def use(self, settings: PipelineSettings) -> Iterator[Language]:
        """The pipeline with the metrics and unit of words of some settings, for as long as the context lasts.

        RAISES (ValueError): A setting is not valid.
        """
        changes = {name: settings.scoring[name] for name in ("metrics", "words") if name in settings.scoring}
        with self._lock:
            yield make_pipeline(self._nlp, **changes)
