"""Train a student: the loop, its schedule, and what it writes."""

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from thinc.api import get_torch_default_device
from torch.nn.functional import huber_loss

from ..language_model.checks import embeddings_of
from ..language_model.forward import Forward
from ..language_model.masked import MaskedLanguageModel
from ..language_model.memory import MAX_LOGITS, is_out_of_memory
from ..language_model.student_card import StudentCard
from ..language_model.student_scores import StudentScores, output_matrix
from ..metrics import FloatArray, IntArray, get_metric
from ..scoring.plan import make_plans
from .checkpoints import load_checkpoint, read_state, save_checkpoint
from .labels import Examples, make_examples
from .settings import DistillationSettings
from .texts import TrainingTexts, endless_batches

# The learning rate rises over so many steps, or the first tenth of the run if that is shorter, and then falls to 0.
WARM_UP = 100
# The most held-out pieces on which the agreement is measured during training.
HELD_OUT_PIECES = 5000
# Seconds after which a checkpoint is written, if no measurement is due.
CHECKPOINT_SECONDS = 300


class TrainingError(ValueError):
    """Training stopped. The message says why, and what to do."""


@dataclass
class Progress:
    """Where a run is. All of it is kept in the checkpoint."""

    step: int = 0
    pieces: int = 0  # that the student has read
    seconds: float = 0.0
    loss_sum: float = 0.0  # since the last measurement
    loss_count: int = 0
    curve: list[dict[str, float]] = field(default_factory=list)  # one entry per measurement

    @property
    def loss(self) -> float:
        """The mean loss since the last measurement."""
        return self.loss_sum / max(1, self.loss_count)


class TrainedForward(Forward):
    """Forward passes with gradients, which oneDNN's products do not have."""

    def _arithmetic(self) -> AbstractContextManager:
        return super()._arithmetic() if self.mixed_precision else nullcontext()


class Trainer:
    """Trains a student, a copy of the teacher.

    settings (DistillationSettings): How.
    teacher (MaskedLanguageModel): Loaded.
    texts (TrainingTexts): Of the corpus.
    identity (dict): What the run depends on, for the checkpoint. A run is only resumed if it is the same.
    folder (Path): Gets the checkpoint.
    """

    def __init__(
        self,
        settings: DistillationSettings,
        teacher: MaskedLanguageModel,
        texts: TrainingTexts,
        identity: dict[str, Any],
        folder: Path,
    ):
        loaded = teacher.load()
        self.settings, self.teacher, self.texts, self.identity = settings, teacher, texts, identity
        self.path = folder / "checkpoint.safetensors"
        # In evaluation mode, as it will be used: the teacher's labels have no noise that dropout would even out.
        self.model = copy.deepcopy(loaded.checkpoint.transformer).eval().requires_grad_(True)
        self.forward = TrainedForward(self.model)
        self.forward.narrowing = loaded.forward.narrowing
        self.forward.set_arithmetic(settings.precision == "bfloat16")
        self.lr = settings.learning_rate(teacher)
        self.optimizer = make_optimizer(self.model, self.lr)
        self.progress = Progress()
        self._max_targets = max(1, MAX_LOGITS.get(loaded.device.type, MAX_LOGITS["cpu"]) // self._vocabulary)
        self._held_out = self._sample_held_out()
        self._exact: FloatArray | None = None

    @property
    def _vocabulary(self) -> int:
        return embeddings_of(self.model).num_embeddings

    def resume(self) -> bool:
        """Continue from the checkpoint, if there is one.

        RAISES (TrainingError): It is that of another run.
        """
        state = read_state(self.path)
        if state is None:
            return False
        before = state["run"]
        changed = [key for key in {**before, **self.identity} if before.get(key) != self.identity.get(key)]
        if changed:
            lines = [f"{key}: it was {before.get(key)!r}, and is now {self.identity.get(key)!r}" for key in changed]
            raise TrainingError(
                f"The run in {self.path.parent} cannot be resumed, because this has changed: {'; '.join(lines)}. "
                "Change it back, or delete that folder to start again."
            )
        load_checkpoint(self.path, self.model, self.optimizer)
        self.progress = Progress(**state["progress"])
        return True

    def save(self) -> None:
        """Write a checkpoint."""
        save_checkpoint(
            self.path, self.model, self.optimizer, {"run": self.identity, "progress": asdict(self.progress)}
        )

    def train(self, watch: Callable[[Progress, float], None] = lambda progress, share: None) -> None:
        """Train until the steps or the time are up.

        watch (Callable[[Progress, float], None]): Called after each step, with the share of the run that is done.
        RAISES (TrainingError): The loss is not finite, or memory is too small.
        """
        loaded, settings = self.teacher.load(), self.settings
        before, began = self.progress.seconds, time.monotonic()
        saved = began
        lengths = self.texts.lengths(self.texts.train)
        batches = endless_batches(lengths, settings.batch_tokens, settings.seed, loaded.pads, self.progress.step)
        if not self.progress.curve:
            if settings.normalisation:
                self._centre()
            self._measure()
        while self.share < 1:
            contexts = [self.texts[i] for i in self.texts.train[next(batches)].tolist()]
            examples = make_examples(
                contexts,
                settings.metric,
                settings.mask_spacing,
                distance=settings.distance,
                passes=settings.teacher_passes,
                max_targets=self._max_targets,
                mask_id=self.teacher.mask_id,
                pad_id=loaded.pad_id,
                rng=np.random.default_rng((settings.seed, self.progress.step)),
            )
            with self._memory():
                loss = self._step(examples)
            progress = self.progress
            progress.step += 1
            progress.pieces += int(examples.student_lengths.sum())
            progress.loss_sum += loss
            progress.loss_count += 1
            progress.seconds = before + time.monotonic() - began
            if progress.step % settings.eval_every == 0 or self.share >= 1:
                self._measure()
            elif time.monotonic() - saved < CHECKPOINT_SECONDS:
                watch(progress, self.share)
                continue
            self.save()
            saved = time.monotonic()
            watch(progress, self.share)

    @property
    def share(self) -> float:
        """The share of the run that is done."""
        steps, minutes = self.settings.last_step, self.settings.minutes
        of_steps = self.progress.step / steps if steps else 0.0
        of_time = self.progress.seconds / (60 * minutes) if minutes else 0.0
        return min(1.0, max(of_steps, of_time))

    def _step(self, examples: Examples) -> float:
        """One step of the optimizer. RETURNS: The loss before it."""
        teacher = self.teacher.load().forward
        with torch.no_grad():
            wanted, target = teacher.logits(
                examples.teacher_ids,
                examples.teacher_lengths,
                examples.teacher_row,
                examples.position,
                examples.target,
            )
        given = self.forward.logits(
            examples.student_ids, examples.student_lengths, examples.student_row, examples.position
        )[0]
        loss = distillation_loss(given, wanted, target, self.settings.huber, self.settings.normalisation)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        value = loss.item()
        if not np.isfinite([value, norm.item()]).all():
            kept = (
                f"The last good checkpoint is kept: {self.path}" if self.path.exists() else "There is no checkpoint yet"
            )
            raise TrainingError(
                f"The loss is {value} at step {self.progress.step + 1}, so training stopped. {kept}. Start again, to "
                f"another folder, with a lower --lr (it was {self.lr:g}), or without --precision bfloat16."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * rate_factor(self.progress.step, self.share, self.settings.last_step)
        self.optimizer.step()
        return value

    @torch.no_grad()
    def _centre(self) -> None:
        """Make log Z 0 on average, by a constant that is taken off all logits. No probability changes."""
        layer = output_matrix(self.model)
        if layer is None or layer.bias is None:
            return
        total, count = 0.0, 0
        for i in self._held_out.tolist():
            context = self.texts[i]
            n = len(context)
            row, position = np.zeros(n, dtype=np.int64), np.arange(n)
            logits = self.forward.logits(context.ids[None], np.array([n]), row, position)[0]
            total, count = total + float(logits.logsumexp(dim=1).sum()), count + n
        layer.bias.sub_(total / max(1, count))

    @contextmanager
    def _memory(self) -> Iterator[None]:
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise TrainingError(
                f"A step of {self.settings.batch_tokens} wordpieces does not fit into the memory of "
                f"{get_torch_default_device()} ({error}). Start again with a smaller --batch-tokens."
            ) from error

    def _sample_held_out(self) -> IntArray:
        """Some of the held-out contexts, the same each time."""
        order = np.random.default_rng(0).permutation(self.texts.held_out)
        enough = np.searchsorted(np.cumsum(self.texts.lengths(order)), HELD_OUT_PIECES) + 1
        return order[:enough]

    def _measure(self) -> None:
        """Compare the student's scores of held-out pieces with the teacher's exact ones, and add that to the curve."""
        contexts = [self.texts[i] for i in self._held_out.tolist()]
        metric = get_metric(self.settings.metric)

        def scores(log_probs: Callable, metrics: list, mask_spacing: int | None) -> FloatArray:
            loaded, out = self.teacher.load(), [np.zeros(len(context.word)) for context in contexts]
            for plan in make_plans(contexts, metrics, self.teacher.mask_id, mask_spacing):
                batches = plan.batches(loaded.max_batch_tokens, self._max_targets, loaded.pad_id, loaded.pads)
                parts = [log_probs(batch).cpu().numpy() for batch in batches]
                for total, part in zip(out, plan.scores(np.concatenate(parts)[None]), strict=True):
                    total += part[0]
            return np.concatenate(out)

        with torch.inference_mode():
            if self._exact is None:
                self._exact = scores(self.teacher.log_probabilities, [metric], None)
            is_self_normalised = self.settings.normalisation > 0
            student = StudentScores(self.forward, self.teacher.shift, is_self_normalised, at_output=False)
            found = scores(student, *self.card().masking([metric]))
        difference = found - self._exact
        progress = self.progress
        progress.curve.append(
            {
                "step": progress.step,
                "pieces": progress.pieces,
                "seconds": round(progress.seconds),
                "loss": round(progress.loss, 4),
                "r": round(float(np.corrcoef(found, self._exact)[0, 1]), 5),
                "mean_difference": round(float(difference.mean()), 4),
                "mean_absolute_difference": round(float(np.abs(difference).mean()), 4),
            }
        )
        progress.loss_sum, progress.loss_count = 0.0, 0

    def card(self) -> StudentCard:
        """What the student was trained for so far."""
        values = dict(self.identity)
        own = {key: values.pop(key) for key in ("teacher", "metric", "words", "mask_spacing", "vocabulary")}
        progress = self.progress
        work = {"pieces": progress.pieces, "seconds": round(progress.seconds), "curve": progress.curve}
        own["self_normalised"] = self.settings.normalisation > 0
        return StudentCard(**own, steps=progress.step, training={**values, "lr": self.lr, **work})


def make_optimizer(model: torch.nn.Module, lr: float) -> torch.optim.AdamW:
    """AdamW, with weight decay for matrices alone."""
    decayed = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.98))


def rate_factor(step: int, share: float, steps: int | None) -> float:
    """The share of the highest learning rate at a step: it rises linearly, and falls linearly to 0 at the end.

    share (float): The share of the run that is done.
    steps (Optional[int]): The number of steps, if it is known.
    """
    warm_up = WARM_UP if steps is None else max(1, min(WARM_UP, steps // 10))
    return min(1.0, (step + 1) / warm_up) * (1 - share)


def distillation_loss(
    given: torch.Tensor, wanted: torch.Tensor, target: torch.Tensor, huber: float, normalisation: float
) -> torch.Tensor:
    """KL(teacher || student) of the distributions over the vocabulary, plus `huber` times the Huber loss of the true
    piece's score, plus `normalisation` times the square of the student's log Z; the mean over the targets.

    given, wanted (float32, shape (targets, vocabulary)): Logits of the student and of the teacher.
    target (int64, shape (targets,)): The ids of the true pieces.
    huber (float): The score is the log-probability or, with `normalisation`, the logit.
    """
    log_z = given.logsumexp(dim=1, keepdim=True)
    student, teacher = given - log_z, wanted.log_softmax(dim=1)
    divergence = torch.nn.functional.kl_div(student, teacher, log_target=True, reduction="none").sum(dim=1)
    true = target[:, None]
    score = (given if normalisation else student).gather(1, true)
    regression = huber_loss(score, teacher.gather(1, true), reduction="none")[:, 0]
    return (divergence + huber * regression + normalisation * log_z[:, 0].square()).mean()
