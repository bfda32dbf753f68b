"""One training step: the loss of the head, the gradients of a batch, the optimizers, and the average of the weights.

Needs only torch.
"""

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch

# On a CPU, PyTorch and oneDNN each keep the last 1,024 products that they prepared for bfloat16, one for each size of a
# matrix. Nearly every part of a batch has another number of rows, so memory grew with the steps: with two layers and
# parts of 1,024 ids, from 0.88 GB after 20 steps to 1.37 GB after 100. With 64 it is 0.67 GB after 50, 100 and 300
# steps. A part needs some 30. Both read these variables at the first product.
for variable in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
    os.environ.setdefault(variable, "64")


class HeadLoss(torch.autograd.Function):
    """The sum of the cross-entropies at the targets, and its gradients, computed together, part by part.

    The logits of one part fit into the cache of a CPU core. They are never in memory as a whole, and neither are their
    gradients: of PyTorch's own functions, `log_softmax` and its gradient alone take a tenth of a step on a CPU.
    The built-in model trained at 3,070 pieces/s with it, and at 2,860 without (one core, batches of 8,192 pieces).
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, target, size=256):
        """Compute the loss. With autocast, the products are in its data type, and all sums in float32.

        hidden (float tensor, shape (targets, width)): What the output matrix is multiplied with.
        weight (float tensor, shape (vocabulary, width)): The output matrix.
        bias (Optional[float tensor, shape (vocabulary,)])
        target (int tensor, shape (targets,)): The true ids.
        size (int): The number of targets in a part.
        """
        device = hidden.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        low_hidden, low_weight = hidden.to(dtype), weight.to(dtype)
        hidden_gradient, weight_gradient = torch.empty_like(low_hidden), torch.zeros_like(weight)
        bias_gradient = weight.new_zeros(len(weight))
        total = hidden.new_zeros((), dtype=torch.float32)
        for start in range(0, len(hidden), size):
            part = slice(start, start + size)
            logits = (low_hidden[part] @ low_weight.T).float()
            if bias is not None:
                logits += bias
            log_probs = logits.log_softmax(dim=1)
            total -= log_probs.gather(1, target[part, None]).sum()
            gradient = log_probs.exp_().scatter_add_(1, target[part, None], -torch.ones_like(log_probs[:, :1]))
            bias_gradient += gradient.sum(dim=0)
            low_gradient = gradient.to(dtype)
            hidden_gradient[part] = low_gradient @ low_weight
            weight_gradient += low_gradient.T @ low_hidden[part]
        ctx.save_for_backward(hidden_gradient.to(hidden.dtype), weight_gradient, bias_gradient)
        ctx.has_bias = bias is not None
        return total

    @staticmethod
    def backward(ctx, gradient):
        of_hidden, of_weight, of_bias = (gradient * saved for saved in ctx.saved_tensors)
        return of_hidden, of_weight, of_bias if ctx.has_bias else None, None, None


def worker_threads(workers: int) -> ThreadPoolExecutor:
    """Threads of one core each. One worker alone uses as many cores as torch does."""
    return ThreadPoolExecutor(workers, initializer=(lambda: torch.set_num_threads(1)) if workers > 1 else None)


# The number of ids that a worker reads at once on a CPU. Small parts stay in the cache, but each part has a cost: with
# two workers, the gradients of a batch of 7,800 ids took 1.54 s in halves, 1.19 s in parts of 2,000 ids, and 1.37 s in
# parts of 1,000. When less was going on in the shared cache, halves took 1.25 s and parts of 2,000 ids 1.15 to 1.22 s.
# A CPU with AMX is faster with larger products. There, one worker trained at 5,700 pieces/s in parts of 2,000 ids and
# at 6,100 with a batch of 8,192 at once (`--part-ids`); with `--compile`, at 7,100 and at 8,600.
CPU_IDS = 2048


class Gradients:
    """Computes the gradients of a batch with `workers` threads of one core each, which share the rows of the batch.

    The matrices of a small model are too small to share: on two CPU cores, the built-in model trained at 5,600 pieces/s
    this way, and at 4,700 pieces/s with both cores in each operation. On a CPU, the rows are read in parts of about
    `part_ids` ids, padding included.
    """

    def __init__(self, model, workers: int, device: str, loss, mask_id: int, part_ids: int = CPU_IDS):
        self.model, self.device, self.loss, self.mask_id = model, device, loss, mask_id
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.workers, self.pool, self.part_ids = workers, worker_threads(workers), part_ids

    def __call__(self, batch, real, targets) -> float:
        """Set `grad` of each weight. RETURNS: The mean loss over the batch."""
        rounds = math.ceil(batch.numel() / (self.part_ids * self.workers)) if self.device == "cpu" else 1
        n_parts = min(rounds * self.workers, len(batch))
        parts = [[x[i::n_parts] for x in (batch, real, targets)] for i in range(n_parts)]
        total, count, sums = 0.0, 0, None
        for loss, n_targets, gradients in self.pool.map(self._part, parts):
            total, count = total + loss, count + n_targets
            sums = [one.add_(other) for one, other in zip(sums, gradients)] if sums else gradients
        for parameter, gradient in zip(self.parameters, sums or ()):
            parameter.grad = gradient.div_(max(1, count))
        return total / max(1, count)

    def _part(self, part):
        with torch.autocast(self.device, torch.bfloat16):
            loss, count = self.loss(self.model, *part, self.mask_id)
        return loss.item(), count, torch.autograd.grad(loss, self.parameters)


class Optimizers:
    """Muon for the matrices inside the layers, AdamW for embeddings, head and norms, with the same schedule.

    The matrices are shared among `workers` threads of one core each, as the rows of a batch are. Each matrix has its
    own update, so that the number of workers changes nothing but rounding. For the built-in model, a step of Muon takes
    0.17 s with one worker and 0.11 s with two.
    """

    def __init__(self, model, lr: float, muon_lr: float, weight_decay: float, use_muon: bool, workers: int = 1):
        self.named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        inner = [p for n, p in self.named.items() if use_muon and ".layers." in n and p.ndim == 2]
        inner.sort(key=lambda p: -p.numel())  # so that each worker gets matrices of the same sizes
        decay = [p for p in self.named.values() if p.ndim == 2 and all(p is not q for q in inner)]
        plain = [p for p in self.named.values() if p.ndim != 2]
        adamw = torch.optim.AdamW(
            [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=lr,
            betas=(0.9, 0.98),
            eps=1e-8,
        )
        muons = [
            torch.optim.Muon(inner[i::workers], lr=muon_lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
            for i in range(min(workers, len(inner)))
        ]
        self.peaks = {optimizer: muon_lr for optimizer in muons} | {adamw: lr}
        self.pool = worker_threads(workers)

    def step(self, factor: float):
        for optimizer, peak in self.peaks.items():
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
        list(self.pool.map(lambda optimizer: optimizer.step(), self.peaks))
        for p in self.named.values():
            p.grad = None

    def tensors(self) -> dict[str, torch.Tensor]:
        """The state, named by the weights, so that it can be loaded with any number of workers."""
        return {
            f"optimizer.{name}.{key}": value
            for name, p in self.named.items()
            for optimizer in self.peaks
            for key, value in optimizer.state.get(p, {}).items()
        }

    def load_tensors(self, tensors: dict[str, torch.Tensor]):
        owners = {p: optimizer for optimizer in self.peaks for g in optimizer.param_groups for p in g["params"]}
        for full_name, value in tensors.items():
            name, key = full_name.removeprefix("optimizer.").rsplit(".", 1)
            if name not in self.named:
                raise ValueError(
                    f"The checkpoint is of another model or script: {name!r} is no weight. Remove its folder."
                )
            p = self.named[name]
            # AdamW keeps its count of steps on the CPU.
            owners[p].state[p][key] = value if key == "step" else value.to(p.device)


class Average:
    """The exponential moving average of the weights, which is what is measured and exported.

    It does what a fall of the learning rate does, nearly as well, and at any time of the run: training goes on from the
    weights themselves, at the full rate (Hägele et al. 2024, "Scaling Laws and Compute-Optimal Training Beyond Fixed
    Training Durations"). With a decay of 0 it is equal to the weights.
    """

    def __init__(self, model, decay: float):
        self.decay, self.parameters = decay, dict(model.named_parameters())
        self.weights = {name: p.detach().clone() for name, p in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int):
        """Add the present weights. In the first steps of a run, earlier ones count less."""
        decay = min(self.decay, step / (step + 10))
        for name, p in self.parameters.items():
            self.weights[name].lerp_(p, 1 - decay)

    @contextmanager
    def in_model(self) -> Iterator[None]:
        """Give the model these weights for a while."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self):
        for name, p in self.parameters.items():
            p.data, self.weights[name] = self.weights[name], p.data
