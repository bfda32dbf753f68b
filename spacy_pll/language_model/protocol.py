"""What the library needs of a language model. Importing this loads neither torch nor transformers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from ..scoring.passes import Batch, PassLimits
from ..scoring.scores import Predictions

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class PendingPredictions(Protocol):
    """An answer that a device may still be computing."""

    def result(self) -> Predictions:
        """Wait for it. The targets are those of the batches, in their order."""


class Description(NamedTuple):
    """Which model it is."""

    title: str  # how messages name it
    commit: str | None = None  # on the Hugging Face hub; None if there is none, or until the model is loaded
    language: str | None = None  # that it was trained on, as spaCy's code; None if that is not known


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """What is known once a model is loaded."""

    tokenizer: "Tokenizer"  # the backend of a fast tokenizer: truncation and padding off, special tokens added
    max_length: int  # the most ids in one context, special tokens included
    mask_id: int
    n_ids: int  # how many ids the model knows, at least
    unknown_id: int | None  # the id for text that the tokenizer does not know; None if it knows everything
    prompts: bool = False  # whether it uses classifier-free guidance: a second row has masks in place of what is before
    rows: PassLimits
    groups: PassLimits | None = None  # the same of passes with groups, once the model was tried with them
    ids_at_once: int = 2**16  # how many ids are read, about, before the docs that they belong to are handed on
    on_gpu: bool = False  # it works while the host prepares the next docs, and other processes cannot use it


@runtime_checkable
class LanguageModel(Protocol):
    """A model that gives the log-probability of a piece at a position. It is loaded on first use."""

    def describe(self) -> Description:
        """Which model it is, for messages and records. Does not load it."""

    def check_metrics(self, metrics: Sequence[str]) -> int | None:
        """Check that the model can compute some metrics, by their names. Does not load it.

        RETURNS (Optional[int]): How many of the pieces that follow a piece its score depends on, under the metrics
            together; None: all of them.
        RAISES (ValueError): The model cannot compute one of them.
        """

    def load(self, groups: bool = False) -> Loaded:
        """Load tokenizer and weights; with `groups`, also try passes with groups, for `mask_margin`. Each is done once.

        RAISES (OSError): There is no such model.
        RAISES (ValueError): The model cannot be used to score text, or not with groups; the message says why.
        """

    def submit(self, batches: Iterable[Batch]) -> PendingPredictions:
        """Run forward passes without waiting for their results. Loads the model, unless that is done."""

    def to_bytes(self) -> bytes: ...
    def from_bytes(self, bytes_data: bytes) -> Any: ...
    def to_disk(self, path: str | Path) -> None: ...
    def from_disk(self, path: str | Path) -> Any: ...
