"""The settings of a tuning run."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from scripts.paper.errors import PLLError
from scripts.paper.passes import Words, get_metric
from spacy_pll import ScoringSettings

# The learning rate that suits a model of this width; for wider ones it is lower in proportion.
LEARNING_RATE, WIDTH = 3e-4, 256
# Words to try a metric on.
TRIAL = np.array([0, 0, 0, 1, 2, 2])


@dataclass(frozen=True)
class TuningSettings:
    """How a model is tuned: the options of `tune`."""

    model: str | None  # hub name or folder; None is the built-in model
    texts: str  # a file, or a folder: see `read_records`
    dev_texts: str | None = None  # the same, for texts that are only measured on; None: a part of `texts` is held out
    metrics: Sequence[str] = ("word_l2r", "original")
    words: Words = "spacy"
    margins: Sequence[int] = (0, 1)  # each is trained half as often as the one before
    steps: int = 600
    targets: int = 300  # how many pieces are predicted in one step
    learning_rate: float | None = None  # the highest one; None: 3e-4 for a width of 256, less for wider models
    seed: int = 0
    precision: Literal["float32", "bfloat16"] = "float32"  # of forward passes, under autocast; weights stay in float32
    column: str = "text"
    lang: str = "en"

    def __post_init__(self) -> None:
        ScoringSettings(self.metrics, self.words)
        for metric in self.metrics:
            check_can_be_tuned_for(metric)
        if not self.margins or len(set(self.margins)) < len(self.margins) or min(self.margins) < 0:
            raise PLLError(f"`margins` must be numbers from 0, each only once. They are {list(self.margins)}.")
        if self.precision not in ("float32", "bfloat16"):
            raise PLLError(f"`precision` must be float32 or bfloat16. It is {self.precision!r}.")
        for name in ("steps", "targets", "learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise PLLError(f"`{name}` must be more than 0. It is {value}.")

    def highest_rate(self, model: Any) -> float:
        """The highest learning rate for a `MaskedLanguageModel`."""
        embeddings: Any = model.load().checkpoint.transformer.get_input_embeddings()
        return self.learning_rate or LEARNING_RATE * min(1.0, WIDTH / embeddings.weight.shape[1])

    def as_dict(self) -> dict[str, Any]:
        """What a run depends on. How long it is may change when it is resumed."""
        others = ("model", "texts", "dev_texts", "steps")
        return {name: value for name, value in asdict(self).items() if name not in others}


def check_can_be_tuned_for(metric_name: str) -> None:
    """RAISES (ValueError): The metric does not mask within words, or scores a piece by several masked contexts."""
    metric = get_metric(metric_name)
    rows = metric.mask_rows(TRIAL)
    one_each = np.array_equal(np.sort(rows.target), np.arange(len(TRIAL))) and bool((rows.weight == 1).all())
    if not (one_each and metric.within_words):
        raise PLLError(
            f"A model cannot be tuned for the metric {metric_name!r}: that needs a metric that scores each piece by "
            "one masked context, in which pieces of its own word are masked, such as word_l2r, original or whole_word."
        )
