"""One pipeline for all open pages, which take turns, and what it said about their texts."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from spacy.language import Language

from ..component import get_scorer
from ..errors import PLLError
from ..metrics import pll_metrics
from ..pipelines import PipelineSettings, make_pipeline
from ..visualize.text import approximation
from . import MAX_CHARACTERS

KEPT_ANSWERS = 150


class SharedPipeline:
    """A pipeline whose model serves other metrics and units of words, too.

    Streamlit runs each open page in a thread of its own, and spaCy's pipelines are not made for several threads. So
    only one page uses the pipeline at a time, and the others wait in a queue.

    max_characters (int): How much a page may ask at once.
    """

    def __init__(self, settings: PipelineSettings, max_characters: int = MAX_CHARACTERS):
        self._nlp = make_pipeline(settings, keep_pieces=True, distribution=True)
        self._queue: list[object] = []  # the first one uses the pipeline
        self._answers: dict[Any, tuple[Any, list[str]]] = {}
        scorer = get_scorer(self._nlp)
        used = scorer.settings
        self.metrics, self.words, self.attr = list(used.metrics), used.words, scorer.attr
        self.approximate = approximation([used])
        self.max_characters = max_characters

    def list_metrics(self) -> list[str]:
        """The metrics that the model can compute, beginning with those that the pipeline has."""
        served = list(self.metrics)
        for name in pll_metrics.get_all():
            with suppress(ValueError):
                get_scorer(self._nlp).model.check_metrics([name])
                served.append(name)
        return list(dict.fromkeys(served))

    def check_length(self, texts: list[str]) -> None:
        """Check that texts are not too long together. RAISES (ValueError): They are."""
        n, length = len(texts), sum(map(len, texts))
        if length > self.max_characters:
            raise PLLError(
                f"{length:,} characters in {n} text{'s' * (n > 1)} are too many. This page takes up to "
                f"{self.max_characters:,} at once, because others may be waiting. Take less, or score a file with "
                "`spacy-pll score`. The limit is `max_characters`."
            )

    @contextmanager
    def use(
        self, settings: PipelineSettings, wait: Callable[[int], object] = lambda before: None
    ) -> Iterator[Language]:
        """The pipeline with the metrics and unit of words of some settings, for as long as the context lasts.

        wait: Is called again and again with the number of requests that come before, until that is 0. If it raises an
            error, because the page is gone, its place in the queue is free.
        """
        changes = {name: settings.scoring[name] for name in ("metrics", "words") if name in settings.scoring}
        request = object()
        self._queue.append(request)
        try:
            while before := self._queue.index(request):
                wait(before)
                time.sleep(0.2)
            wait(0)
            yield make_pipeline(self._nlp, **changes)
        finally:
            self._queue.remove(request)

    def ask(
        self, scorer: Callable[..., Any], settings: PipelineSettings, *texts: Any, wait: Callable[[int], object]
    ) -> tuple[Any, list[str]]:
        """What a scorer makes of a pipeline and texts, and the warnings for the user. It is kept, because a page runs
        again whenever one of its fields changes, and in a class, many pages ask the same.
        """
        question = (scorer.__name__, repr(settings), texts)
        if answer := self._answers.get(question):
            return answer
        with self.use(settings, wait) as nlp, warnings.catch_warnings(record=True) as caught:
            if answer := self._answers.get(question):  # others asked it in the meantime
                return answer
            warnings.simplefilter("always")
            result = scorer(nlp, *texts)
            messages = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
            answer = self._answers[question] = result, list(dict.fromkeys(messages))
            if len(self._answers) > KEPT_ANSWERS:
                del self._answers[next(iter(self._answers))]  # the oldest
        return answer
