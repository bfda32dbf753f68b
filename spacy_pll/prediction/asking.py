"""What a model is asked: contexts in, forward passes out, and what its answers sum up to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..errors import PLLError
from ..language_model.protocol import LanguageModel, Loaded, PendingPredictions
from ..metrics import Metric, get_metric
from ..scoring.passes import Batch, PassLimits, PlannedPasses
from ..scoring.plan import plan_passes
from ..scoring.scores import Distributions, Wanted, WeightedSums
from ..scoring.windows import Contexts

# Forward passes that have been submitted, plan by plan: what the model says, and how that makes up scores.
Passes = list[tuple[WeightedSums, PendingPredictions]]


@dataclass
class WorkDone:
    """The work that a model was given."""

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

    def clear(self) -> None:
        """Begin to count anew."""
        vars(self).update(vars(WorkDone()))


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
class PendingLogProbs:
    """The log-probabilities of some ids, where the forward passes have been submitted."""

    passes: Passes
    n_ids: int
    scored: BoolArray  # bool, shape (pieces,): of all contexts

    def result(self) -> FloatArray:
        """Wait for them. float64, shape (ids, scored pieces), one context after the other: where the first metric first
        masks for each piece.
        """
        log_probs = np.zeros((self.n_ids, len(self.scored)))
        for sums, answers in self.passes:
            sums.fill(log_probs, *answers.result().wanted)
        return log_probs[:, self.scored]


@dataclass(frozen=True, eq=False)
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
    n_added_masks: int = field(init=False)  # how many masks a row may have behind the last piece
    masks: bool = field(init=False)  # whether anything is masked
    of_words: Sequence[str] = field(init=False)  # the names of the metrics to which it matters which pieces are a word

    def __post_init__(self) -> None:
        metrics = self.looked_up()  # each is tried now: if one fails, it is not the fault of a doc
        names = [given if isinstance(given, str) else given.name for given in self.metrics]
        vars(self).update(
            metrics=tuple(self.metrics),
            n_added_masks=max(metric.n_added_masks for metric in metrics),
            masks=any(metric.masks for metric in metrics),
            of_words=[name for name, metric in zip(names, metrics) if metric.depends_on_words],
        )

    def looked_up(self) -> list[Metric]:
        """The metrics."""
        return [get_metric(metric) if isinstance(metric, str) else metric for metric in self.metrics]

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

    def submit_ids(self, contexts: Contexts, loaded: Loaded, ids: Sequence[int]) -> PendingLogProbs:
        """Start the forward passes that give the log-probabilities of some ids at the scored pieces."""
        return PendingLogProbs(self._run(contexts, loaded, ids), len(ids), contexts.scored)

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
