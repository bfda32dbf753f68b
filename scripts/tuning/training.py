"""Tune a model: the loss, the loop, its schedule and its checkpoints.

The frozen model's exact distribution p at a piece, behind the metric's masks, is what the tuned model learns to give
where the piece is read in a group beside the unmasked text (`mask_margin`). At some of the pieces it is also what the
tuned model learns to give behind the masks, so that its exact scores stay what they were. The loss is the mean over the
pieces of KL(p || q), for both.
"""

import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from scripts.paper.errors import PLLError
from scripts.paper.files import write_whole
from spacy_pll.language_model.running.forward import Capabilities

from .examples import Forward, MaskedLanguageModel, Part, draw_parts, predictions
from .settings import TuningSettings
from .texts import ContextMaker, Passage

# The learning rate rises over so many steps, or the first tenth of the run if that is shorter, and then falls to 0.
WARM_UP = 20
# The share of the pieces that the tuned model also reads exactly.
EXACTLY = 0.16
# Seconds after which a checkpoint is written.
CHECKPOINT_SECONDS = 300


@dataclass
class Progress:
    """Where a run is. All of it is kept in the checkpoint."""

    step: int = 0
    loss: float = 0.0  # of pieces read in groups: a running mean over some 20 steps
    exact_loss: float = 0.0  # of pieces read exactly: the same


class TunedForward(Forward):
    """Forward passes with gradients, which oneDNN's products do not have."""

    def _arithmetic(self) -> AbstractContextManager[None]:
        return super()._arithmetic() if self._is_rounded else nullcontext()


class Trainer:
    """Tunes a model.

    frozen, tuned (MaskedLanguageModel): The same model, loaded twice. The weights of `tuned` are changed.
    identity (dict): What the run depends on. It is only resumed from a checkpoint, at `path`, that has the same.
    """

    def __init__(
        self,
        settings: TuningSettings,
        frozen: MaskedLanguageModel,
        tuned: MaskedLanguageModel,
        passages: list[Passage],
        make_contexts: ContextMaker,
        identity: dict[str, Any],
        path: Path,
    ):
        self.settings, self.frozen, self.passages, self.make_contexts = settings, frozen, passages, make_contexts
        self.identity, self.path = identity, path
        loaded = tuned.load()
        # In evaluation mode, as it will be used: dropout would only blur what is to be learned.
        self.model = loaded.checkpoint.transformer.eval().requires_grad_(True)
        self.forward = TunedForward(self.model, precision=settings.precision)
        self.forward.use(Capabilities(narrowing=loaded.forward.capabilities.narrowing))
        self.rate = settings.highest_rate(frozen)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.rate)
        self.progress = Progress()

    def resume(self) -> bool:
        """Continue from the checkpoint, if there is one.

        RAISES (ValueError): It is that of another run, or damaged.
        """
        if not self.path.exists():
            return False
        try:
            state = torch.load(self.path, "cpu", weights_only=True)
        except Exception as error:  # PyTorch raises many kinds
            raise PLLError(f"The checkpoint {self.path} is damaged. Delete its folder, and start again.") from error
        before = state["run"]
        changed = [key for key in {**before, **self.identity} if before.get(key) != self.identity.get(key)]
        if changed:
            lines = [f"{key}: it was {before.get(key)!r}, and is now {self.identity.get(key)!r}" for key in changed]
            raise PLLError(
                f"The run in {self.path.parent} cannot be resumed, because this has changed: {'; '.join(lines)}. "
                "Change it back, or delete that folder to start again."
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])
        return True

    def save(self) -> None:
        """Write a checkpoint."""
        state = {"run": self.identity, "progress": asdict(self.progress)}
        contents = io.BytesIO()  # PyTorch would hide the error of a full disk
        torch.save({**state, "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, contents)
        write_whole(self.path, contents.getvalue())

    def train(self, watch: Callable[[Progress], None] = lambda progress: None) -> None:
        """Train until all steps are done. RAISES (ValueError): The loss is not finite."""
        progress, saved = self.progress, time.monotonic()
        while progress.step < self.settings.steps:
            rng = np.random.default_rng((self.settings.seed, progress.step))
            parts = draw_parts(self.passages, self.make_contexts, self.settings, rng)
            losses = self.step(parts, rng)
            progress.step += 1
            new = max(0.05, 1 / progress.step)
            progress.loss += new * (losses[0] - progress.loss)
            progress.exact_loss += new * (losses[1] - progress.exact_loss)
            if progress.step == self.settings.steps or time.monotonic() - saved > CHECKPOINT_SECONDS:
                self.save()
                saved = time.monotonic()
            watch(progress)

    def step(self, parts: list[Part], rng: np.random.Generator) -> tuple[float, float]:
        """One step of the optimizer. RETURNS: The two losses before it, in groups and exact."""
        in_groups, exactly = 0.0, 0.0
        n = sum(part.n_targets for part in parts)
        self.optimizer.zero_grad(set_to_none=True)
        for part in parts:
            wanted, row = exact_distributions(self.frozen, part)
            also = [c if rng.random() < EXACTLY else replace(c, scored=np.zeros_like(c.scored)) for c in part.contexts]
            in_groups += self._backward(part, part.margin, wanted, row, n)
            exactly += self._backward(part._replace(contexts=also), None, wanted, row, EXACTLY * n)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if not np.isfinite([in_groups, exactly, norm.item()]).all():
            kept = f"The last checkpoint is kept: {self.path}" if self.path.exists() else "There is no checkpoint yet"
            raise PLLError(
                f"The loss is {in_groups + exactly} at step {self.progress.step + 1}, so tuning stopped. {kept}. Start "
                f"again, to another folder, with a lower --learning-rate (it was {self.rate:g}), or without "
                "--precision bfloat16."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * rate_factor(self.progress.step, self.settings.steps)
        self.optimizer.step()
        return in_groups, exactly

    def _backward(self, part: Part, margin: int | None, wanted: torch.Tensor, row: np.ndarray, n: float) -> float:
        """Add the gradient of the sum of the KL divergences over `n`, pass by pass. RETURNS: That loss."""
        total = 0.0
        for logits, piece in predictions(self.frozen, self.forward, part, margin):
            loss = divergence(wanted[torch.from_numpy(row[piece]).to(wanted.device)], logits).sum() / n
            loss.backward()
            total += loss.item()
        return total


@torch.no_grad()
def exact_distributions(model: MaskedLanguageModel, part: Part) -> tuple[torch.Tensor, np.ndarray]:
    """The model's exact distributions at the pieces to predict.

    RETURNS: Log-probabilities, float32, shape (targets, vocabulary); and int, shape (pieces of all contexts,), the row
        in which each piece has its distribution, or -1.
    """
    log_probs, pieces = [], []
    for logits, piece in predictions(model, model.load().forward, part, None):
        log_probs.append(logits.log_softmax(dim=1))
        pieces.append(piece)
    row = np.full(sum(len(context.word) for context in part.contexts), -1)
    at = np.concatenate(pieces)
    row[at] = np.arange(len(at))
    return torch.cat(log_probs), row


def divergence(wanted: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """KL(p || q) = sum over the vocabulary of p (log p - log q). Shape (targets,).

    wanted, logits (float32, shape (targets, vocabulary)): log p, and the logits of q.
    """
    return (wanted.exp() * (wanted - logits.log_softmax(dim=1))).sum(dim=1)


def rate_factor(step: int, steps: int) -> float:
    """The share of the highest learning rate at a step: it rises linearly, and falls linearly to 0 at the end."""
    warm_up = max(1, min(WARM_UP, steps // 10))
    return min(1.0, (step + 1) / warm_up) * (1 - step / steps)
