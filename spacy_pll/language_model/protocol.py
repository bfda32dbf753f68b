"""What the library needs of a language model. Importing this loads neither torch nor transformers."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..metrics import Metric
from ..scoring.groups import GroupBatch
from ..scoring.plan import Batch

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class PendingLogProbs(Protocol):
    """Log-probabilities that a device may still be computing."""

    def result(self) -> npt.NDArray[np.float32]:
        """Wait for them. float32, shape (rows, targets), in the order of the batches' targets.

        The first row holds the log-probabilities. If `Batch.n_alternatives` is not None, the rows of
        `scoring.distributions.Distributions` follow.
        """


class GroupLimits(NamedTuple):
    """What a model allows in passes with groups."""

    pads: bool  # whether several rows may share a pass
    max_batch_tokens: int  # the most ids in one pass


class LanguageModel(Protocol):
    """A model that gives the log-probability of a piece at a position. What stands below `load` needs it loaded."""

    @property
    def title(self) -> str:
        """How messages name the model."""

    @property
    def commit(self) -> str | None:
        """The commit on the Hugging Face hub that was loaded; None if there is none."""

    def check_serves(self, metric_name: str, metric: Metric) -> None:
        """RAISES (ValueError): The model cannot compute the metric."""

    def load(self) -> object:
        """Load tokenizer and weights, unless that is done."""

    @property
    def tokenizer(self) -> "Tokenizer":
        """The backend of a fast tokenizer, with truncation and padding off."""

    @property
    def max_length(self) -> int:
        """The most ids in one context, special tokens included."""

    @property
    def mask_id(self) -> int: ...

    @property
    def pad_id(self) -> int: ...

    @property
    def unknown_id(self) -> int | None:
        """The id for text that the tokenizer does not know; None if it knows everything."""

    @property
    def lookahead(self) -> int:
        """How many following pieces the score of a piece depends on, under a left-to-right model or a metric that masks
        all following pieces: 0, or 1 if the space before a word counts for the word before it.
        """

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the model is said to be for, as spaCy's codes; empty if that is not known."""

    @property
    def pads(self) -> bool:
        """Whether rows of different lengths may share a forward pass."""

    @property
    def max_batch_tokens(self) -> int:
        """The most ids in one forward pass, padding included."""

    def check_groups(self) -> GroupLimits:
        """What limits passes with groups, for the setting `mask_margin`. The model is tried on first use.

        RAISES (ValueError): The model cannot read them.
        """

    @property
    def max_batch_targets(self) -> int:
        """The most targets in one forward pass."""

    @property
    def prefetch(self) -> int:
        """How many batches of docs to submit before the first is waited for."""

    def submit(self, batches: Iterable[Batch | GroupBatch]) -> PendingLogProbs:
        """Run forward passes without waiting for their results."""

    @property
    def to_bytes(self) -> Callable[..., bytes]: ...

    @property
    def from_bytes(self) -> Callable[..., Any]: ...

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None: ...

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> Any: ...
