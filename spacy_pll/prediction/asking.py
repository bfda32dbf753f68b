"""What a model is asked: contexts in, forward passes out, and what its answers sum up to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import FloatArray, lazy
from ..errors import PLLError
from ..language_model.protocol import LanguageModel, Loaded, PendingPredictions
from ..metrics import Metric, get_metric
from ..scoring.passes import Batch, PassLimits, PlannedPasses
from ..scoring.plan import plan_passes
from ..scoring.scores import Distributions, Wanted, WeightedSums
from ..scoring.windows import Context, Contexts

# Forward passes that have been submitted, plan by plan: what the model says, and how that makes up scores.
Passes = list[tuple[WeightedSums, PendingPredictions]]


@dataclass
class WorkDone:
    """The work of a predictor."""

    passes: int = 0
    rows: int = 0  # of forward passes
    ids: int = 0  # that were read, without padding
    padding: int = 0
    targets: int = 0  # whose log-probabilities were computed

    def add(self, batch: Batch) -> Batch:
        """Count a forward pass that begins, and pass it on."""
        ids = batch.n_ids
        self.rows += batch.n_rows
        self.ids += ids
        self.padding += batch.size - ids
        self.targets += batch.n_targets
        self.passes += 1
        return batch


@dataclass(frozen=True)
class PendingScores:
    """The scores of contexts whose forward passes have been submitted. A GPU may be working on them."""

    passes: Passes
    n_metrics: int
    n_pieces: int  # of all contexts
    n_alternatives: int | None

    def result(self) -> tuple[FloatArray, Distributions | None]:
        """Wait for the scores of the pieces of all contexts, and for what was expected there, under the first metric.

        RETURNS (Tuple[FloatArray, Optional[Distributions]]): float64, shape (metrics, pieces), natural log, 0.0 where
            nothing was scored; and None if no distributions were asked for.
        """
        scores, n = np.zeros((self.n_metrics, self.n_pieces)), self.n_alternatives
        expected = None if n is None else Distributions.empty(n, self.n_pieces)
        for sums, answers in self.passes:
            answer = answers.result()
            scores += sums.scores(answer.log_probs)  # each target is in one plan
            for into, values in zip(expected or (), answer.wanted):
                sums.fill(into, values)
        return scores, expected


@dataclass(frozen=True)
class Asking:
    """Asks a model about contexts.

    metrics (Sequence[Union[str, Metric]]): What is masked. Names are looked up when they are used: what is pickled has
        the names, and one registered anew is the new one.
    max_batch_tokens, mask_spacing, mask_margin (Optional[int]): See `ScoringSettings`.
    counts (WorkDone): The work that was done.
    """

    model: LanguageModel
    metrics: Sequence[str | Metric]
    max_batch_tokens: int | None = None
    mask_spacing: int | None = None
    mask_margin: int | None = None
    counts: WorkDone = field(default_factory=WorkDone)

    def looked_up(self) -> list[Metric]:
        """The metrics."""
        return [get_metric(one) if isinstance(one, str) else one for one in self.metrics]

    @lazy
    def n_added_masks(self) -> int:
        """How many masks a row may have behind the last piece, for which a window leaves room."""
        return max(one.n_added_masks for one in self.looked_up())

    @lazy
    def masks(self) -> bool:
        """Whether anything is masked."""
        return any(one.masks for one in self.looked_up())

    @lazy
    def of_words(self) -> list[str]:
        """The names of the metrics to which it matters which pieces are one word."""
        named = zip(self.metrics, self.looked_up())
        return [name if isinstance(name, str) else one.name for name, one in named if one.looks_at_words]

    def prepare(self) -> Loaded:
        """Load the model, unless that is done. RAISES (ValueError): It cannot be used, or not with these settings."""
        return self.model.load(groups=self.mask_margin is not None)

    def plans(self, contexts: Contexts, loaded: Loaded, wanted: Wanted = None) -> Iterator[PlannedPasses]:
        """The forward passes for some contexts, in plans of bounded size."""

        def bounded(limits: PassLimits) -> PassLimits:
            return limits._replace(max_tokens=self.max_batch_tokens or limits.max_tokens)

        return plan_passes(
            contexts,
            self.looked_up(),
            loaded.mask_id,
            bounded(loaded.rows),
            loaded.groups and bounded(loaded.groups),
            self.mask_spacing,
            self.mask_margin,
            wanted,
            loaded.prompts,
        )

    def submit(self, contexts: Contexts, loaded: Loaded, n_alternatives: int | None = None) -> PendingScores:
        """Start the forward passes for some contexts.

        n_alternatives (Optional[int]): How many of the most probable pieces to give, with the distributions. None: No
            distributions.
        """
        passes = self._run(contexts, loaded, n_alternatives)
        return PendingScores(passes, len(self.metrics), len(contexts.word), n_alternatives)

    def log_probs(self, contexts: Sequence[Context], ids: Sequence[int]) -> FloatArray:
        """The log-probabilities of some ids at the scored pieces, one context after the other, where the first metric
        first masks for them. float64, shape (ids, scored pieces).
        """
        together = Contexts.of(contexts)
        found = np.zeros((len(ids), len(together.word)))
        for sums, answers in self._run(together, self.prepare(), ids):
            sums.fill(found, *answers.result().wanted)
        return found[:, together.scored]

    def _run(self, contexts: Contexts, loaded: Loaded, wanted: Wanted) -> Passes:
        """Submit the forward passes for some contexts. Plans are large: each is gone before the next is made."""
        plans = self.plans(contexts, loaded, wanted)
        return [(sums, self.model.submit(map(self.counts.add, batches))) for batches, sums in plans]

    def check_finite(self, scores: FloatArray, where: str = "", advice: str = "") -> None:
        """RAISES (ValueError): A score is not finite. where, advice (str): For the message."""
        if not np.isfinite(scores).all():
            raise PLLError(
                f"Under {self.model.describe().title}, some log-probabilities are not finite{where}.",
                advice or "Give `precision='float32'`, or another `model`.",
            )
