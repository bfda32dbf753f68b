"""What is scored, and how: the settings of the component `pll` that say what the numbers mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .metrics import check_within_words, get_metric
from .scoring.wordpieces import WORDS, Words


@dataclass(frozen=True)
class ScoringSettings:
    """How docs are scored. Each setting stands here once, with its default and its check.

    metrics (Sequence[str]): Names in `registry.pll_metrics`; the first is the primary one.
    words (str): What counts as a word: "spacy", "tokenizer" or "whitespace".
    targets (Optional[str]): Key into `doc.spans`: score only the tokens in those spans.
    units (Optional[str]): Key into `doc.spans`: read each of those spans as one word. Spans that overlap are one.
    keep_pieces (bool): Also keep the wordpiece record `doc._.pll_data`.
    max_batch_tokens (Optional[int]): Wordpieces in one forward pass, padding included. None: what suits the device.
    mask_spacing (Optional[int]): Mask several words of a context in the same forward pass if their masked pieces are at
        least this many pieces apart. A context then takes about `mask_spacing` passes, whatever its length, and the
        scores are nearly the same. For metrics that mask within words. None: each word by itself, the exact scores.
    mask_margin (Optional[int]): Read all masks of a context in one forward pass: the context once, and beside it, for
        each masked set, a group of the masked pieces and this many pieces on each side. 0 is the fastest; the wider
        the margin, the closer are the scores to the exact ones (docs/one-pass.md). For metrics that mask within words,
        and not together with `mask_spacing`. None: the exact scores.
    alternatives (int): How many alternatives to each token to keep: the model's most probable pieces in the place of
        the token's first piece, under the primary metric.
    distribution (bool): Also keep the rank of each token and the entropy of the model's prediction, under the primary
        metric.
    RAISES (ValueError): A setting has a value that is not allowed.
    """

    metrics: Sequence[str] = ("word_l2r",)
    words: Words = "spacy"
    targets: str | None = None
    units: str | None = None
    keep_pieces: bool = False
    max_batch_tokens: int | None = None
    mask_spacing: int | None = None
    mask_margin: int | None = None
    alternatives: int = 0
    distribution: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "metrics", list(self.metrics))  # as a config has them
        if not self.metrics or len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"`metrics` must name at least one metric, and each only once. It is {self.metrics!r}.")
        if self.words not in WORDS:
            raise ValueError(f"Unknown unit of words {self.words!r}. Set `words` to one of these: {', '.join(WORDS)}.")
        if self.max_batch_tokens is not None and self.max_batch_tokens < 1:
            raise ValueError(f"`max_batch_tokens` must be 1 or more, or null. It is {self.max_batch_tokens}.")
        for name, least, page in (("mask_spacing", 1, "mask-spacing"), ("mask_margin", 0, "one-pass")):
            value = getattr(self, name)
            if value is not None and value < least:
                raise ValueError(
                    f"`{name}` must be {least} or more pieces, or null for exact scores. It is {value}. The wider it "
                    f"is, the closer are the scores to exact ones (docs/{page}.md)."
                )
        if self.mask_margin is not None and self.mask_spacing is not None:
            raise ValueError(
                f"`mask_margin` ({self.mask_margin}) and `mask_spacing` ({self.mask_spacing}) are two ways to save "
                "passes. Leave one of them out."
            )
        if self.alternatives < 0:
            raise ValueError(f"`alternatives` must be 0 or more. It is {self.alternatives}.")
        for metric in self.metrics:
            get_metric(metric)
            for name in ("mask_spacing", "mask_margin"):
                if getattr(self, name) is not None:
                    check_within_words(metric, name)

    @property
    def n_alternatives(self) -> int | None:
        """How many alternatives the model has to give at each target; None if nothing but the log-probability."""
        return self.alternatives if self.alternatives or self.distribution else None

    @property
    def record(self) -> dict[str, Any]:
        """What the scores of a metric depend on, besides the model and the text."""
        return {name: getattr(self, name) for name in ("words", "units", "mask_spacing", "mask_margin")}
