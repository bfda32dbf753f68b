"""From contexts and metrics to forward passes and scores: the one place where tests say how passes are planned."""

from dataclasses import dataclass

import numpy as np

from spacy_pll.metrics import get_metric
from spacy_pll.scoring.groups import group_passes
from spacy_pll.scoring.masks import masked_rows
from spacy_pll.scoring.passes import Batch, PassLimits
from spacy_pll.scoring.plan import plan_passes
from spacy_pll.scoring.scores import WeightedSums
from spacy_pll.scoring.windows import Context, Contexts

MASK = 99


def make_limits(max_tokens, max_targets, **more):
    return PassLimits(max_tokens, max_targets, pad_id=0, **more)


LIMITS = make_limits(max_tokens=100, max_targets=100)


@dataclass
class Plan:
    """All passes of one plan, and how they make up scores."""

    batches: list[Batch]
    sums: WeightedSums

    @property
    def kind(self) -> type[Batch]:
        """`Batch`, or `GroupBatch`."""
        (kind,) = set(map(type, self.batches))
        return kind

    @property
    def n_rows(self) -> int:
        return sum(batch.n_rows for batch in self.batches)

    @property
    def n_ids(self) -> int:
        """Without padding."""
        return sum(batch.n_ids for batch in self.batches)

    @property
    def n_targets(self) -> int:
        return sum(batch.n_targets for batch in self.batches)

    def scores(self, answer):
        """The scores of the pieces of all contexts. float, shape (metrics, pieces).

        answer (function): Of a batch: the log-probabilities of its targets.
        """
        log_probs = np.concatenate([answer(batch) for batch in self.batches])
        # Each is asked for once, and none in vain.
        assert np.unique(self.sums.target).tolist() == list(range(len(log_probs))) and len(log_probs) == self.n_targets
        return self.sums.scores(log_probs)


def together(contexts):
    return contexts if isinstance(contexts, Contexts) else Contexts.of(contexts)


def metrics_of(names):
    """Metrics from their names. Those that are made for a test have none."""
    return [get_metric(one) if isinstance(one, str) else one for one in names]


def plans_of(contexts, metrics, limits=LIMITS, of_groups=None, mask_id=MASK, **settings):
    """The plans for some contexts.

    metrics: Their names, or metrics.
    of_groups (PassLimits): As `limits`, for passes with groups; None: the same.
    """
    planned = plan_passes(together(contexts), metrics_of(metrics), mask_id, limits, of_groups or limits, **settings)
    return [Plan(list(batches), sums) for batches, sums in planned]


def plan_of(contexts, metrics, limits=LIMITS, **settings):
    """The only plan for some contexts."""
    (plan,) = plans_of(contexts, metrics, limits, **settings)
    return plan


def plan_of_groups(contexts, metrics, margin, limits, mask_id=MASK, reach=None):
    """The plan that has all masks in groups, also those that are the whole context."""
    contexts = together(contexts)
    rows = masked_rows(contexts, metrics_of(metrics), None, mask_id, reach)
    batches, sums = group_passes(contexts, rows, len(metrics), mask_id, margin, limits)
    return Plan(list(batches), sums)


def batches_of_docs(predictor, docs, loaded=None):
    """The passes in which a component scores some docs. loaded (Loaded): In the place of its own."""
    planned = predictor.asking.plans(predictor.tokenize(docs).contexts, loaded or predictor.prepare())
    return [batch for batches, _ in planned for batch in batches]


def log_probs_of(predictor, contexts, ids):
    """The log-probabilities of some ids at the scored pieces of contexts."""
    return predictor.asking.submit_ids(together(contexts), predictor.prepare(), ids).result()


def make_context(ids, word, scored=None):
    """A context whose first and last id stand for special tokens."""
    ids = np.array([1, *ids, 2], dtype=np.int32)
    scored = np.ones(len(word), dtype=bool) if scored is None else np.array(scored, dtype=bool)
    return Context(ids, 1, np.array(word), scored)


def make_batch(rows, asked, pad_id=0):
    """A pass that reads these ids, row by row. asked: Of each target its row, its position, and its id."""
    lengths = np.array([len(own) for own in rows])
    ids = np.full((len(rows), lengths.max()), pad_id, dtype=np.int32)
    for row, own in zip(ids, rows):
        row[: len(own)] = own
    return Batch.of(ids, lengths, *np.array(asked).T)


def fake_model(ids, position, target):
    """An answer that depends on the whole masked context, the position and the target."""
    return -float((np.arange(1, len(ids) + 1) * ids).sum() * 31 + position * 7 + target) / 1000


def fake_answers(batch):
    """What `fake_model` says at the targets of a pass."""
    asked = zip(batch.row, batch.position, batch.target, strict=True)
    return [fake_model(batch.ids[row, : batch.lengths[row]], position, target) for row, position, target in asked]


def scores_of(plans, contexts, n_metrics):
    """Under `fake_model`, for each context: float, shape (metrics, pieces)."""
    lengths = [len(context.word) for context in contexts]
    total = sum((plan.scores(fake_answers) for plan in plans), np.zeros((n_metrics, sum(lengths))))
    return np.split(total, np.cumsum(lengths), axis=1)[:-1]
