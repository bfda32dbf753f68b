"""What is learned from in one step: texts, the pieces to predict in them, and how they are read.

In each text only a few pieces are predicted, because the exact distribution of each takes the frozen model a pass over
the text of its own. The pieces of a passage are so far apart that several can share a pass (`mask_spacing`), which
changes these distributions hardly at all. A text is read with one metric and one margin, both drawn.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from scripts.paper.passes import Batch, Context, PassLimits, plan
from spacy_pll.language_model.architectures import MaskedLanguageModel
from spacy_pll.language_model.running.forward import Forward

from .settings import TuningSettings
from .texts import Passage

# The share of the pieces to predict that is drawn from whole passages. Those of single texts are cheaper.
IN_PASSAGES = 1 / 6
# In a single text, one piece in so many is predicted, and at most so many.
ONE_PIECE_IN, MAX_PER_TEXT = 4, 10
# In a passage, pieces at least so far apart are predicted. With this `mask_spacing` every second one can share a pass,
# although a mask may go on to the end of a word.
APART, SPACING = 20, 32
# Passes are smaller than for scoring by this factor. They hold few texts, of different lengths, so a large one would be
# mostly padding; and those with gradients keep the hidden states of all layers.
SMALLER = 4


class Part(NamedTuple):
    """Texts that are read in the same way. `Context.scored` says which of their pieces are predicted."""

    metric: str
    margin: int
    contexts: list[Context]

    @property
    def n_targets(self) -> int:
        return sum(int(context.scored.sum()) for context in self.contexts)


def draw_parts(
    passages: Sequence[Passage],
    make_contexts: Callable[[str], list[Context]],
    settings: TuningSettings,
    rng: np.random.Generator,
) -> list[Part]:
    """Draw what is learned from in one step."""
    share = 0.5 ** np.arange(len(settings.margins))
    drawn = defaultdict(list)
    in_passages = round(settings.targets * IN_PASSAGES)
    for quota, whole in ((in_passages, True), (settings.targets - in_passages, False)):
        while quota > 0:
            passage = passages[int(rng.integers(len(passages)))]
            windows = make_contexts(" ".join(passage) if whole else passage[rng.integers(len(passage))])
            quota -= 1 if not windows else 0  # such a text counts, so that the loop ends
            if windows:
                context = choose_pieces(windows[rng.integers(len(windows))], whole, quota, rng)
                quota -= int(context.scored.sum())
                way = int(rng.integers(len(settings.metrics))), int(rng.choice(len(share), p=share / share.sum()))
                drawn[way].append(context)
    return [
        Part(settings.metrics[metric], settings.margins[margin], contexts)
        for (metric, margin), contexts in sorted(drawn.items())
    ]


def choose_pieces(context: Context, apart: bool, most: int, rng: np.random.Generator) -> Context:
    """The context, with some of its pieces to predict: at random, or evenly with `APART` pieces between them."""
    n = len(context.word)
    if apart:
        k = min(max(1, n // APART), most)
        chosen = (rng.integers(n) + np.arange(k) * n // k) % n
    else:
        chosen = rng.choice(n, min(-(-n // ONE_PIECE_IN), MAX_PER_TEXT, most), replace=False)
    return replace(context, scored=np.isin(np.arange(n), chosen))


def planned_passes(
    model: MaskedLanguageModel,
    contexts: Sequence[Context],
    metric: str,
    margin: int | None,
    spacing: int | None = None,
    smaller: int = 1,
) -> Iterator[tuple[Any, list[Batch]]]:
    """The forward passes for the pieces to predict, planned as for scoring, and how they make up scores.

    margin, spacing (Optional[int]): The `mask_margin` and `mask_spacing`; None for both: exactly.
    smaller (int): The most ids in a pass, exactly, are fewer than for scoring by this factor.
    """
    loaded = model.load(groups=margin is not None)
    most = loaded.rows.max_tokens // smaller

    def bounded(limits: PassLimits) -> PassLimits:
        return limits._replace(max_tokens=min(most, limits.max_tokens))

    limits = bounded(loaded.rows), loaded.groups and bounded(loaded.groups)
    for batches, sums in plan(contexts, metric, loaded, limits, spacing, margin):
        yield sums, list(batches)


def predictions(
    model: MaskedLanguageModel,
    forward: Forward,
    part: Part,
    margin: int | None,
) -> Iterator[tuple[torch.Tensor, np.ndarray]]:
    """What is predicted at the pieces to predict, pass by pass.

    forward (Forward): Runs the model that says how texts are read, or its copy that is trained.
    margin (Optional[int]): The `mask_margin`. None: read exactly, but for `SPACING`.
    YIELDS: Logits, float32, shape (targets, vocabulary); and int, shape (targets,), the piece that each is for: its
        number among the pieces of all contexts. For pieces of equal contexts that are read once, one of them.
    """
    spacing = SPACING if margin is None else None
    for sums, batches in planned_passes(model, part.contexts, part.metric, margin, spacing, SMALLER):
        # The "scores" are the numbers of the targets, from 1, as each piece has one target, of weight 1.
        n_targets = sum(batch.n_targets for batch in batches)
        number = sums.scores(np.arange(1.0, n_targets + 1))[0].astype(int)
        piece = np.zeros(n_targets, dtype=np.int64)
        piece[number[number > 0] - 1] = np.flatnonzero(number)
        done = 0
        for batch in batches:
            end = done + batch.n_targets
            logits = forward.logits(batch)[0]
            yield logits, piece[done:end]
            done = end
