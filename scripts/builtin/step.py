"""One training step: the loss of the head, the gradients of a batch, the optimizers, and the average of the weights.

Needs only torch.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

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
    def forward(ctx, hidden, weight, bias, target, size=None):
        """Compute the loss. With autocast, the products are in its data type, and all sums in float32.

        hidden (float tensor, shape (targets, width)): What the output matrix is multiplied with.
        weight (float tensor, shape (vocabulary, width)): The output matrix.
        bias (Optional[float tensor, shape (vocabulary,)])
        target (int tensor, shape (targets,)): The true ids.
        size (Optional[int]): The number of targets in a part. Default: what fits into the cache of a CPU core, or on a
            GPU what takes 0.7 GB with the built-in model's vocabulary.
        """
        device = hidden.device.type
        size = size or (256 if device == "cpu" else 16_384)
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


class Gradients:
    """Computes the gradients of a batch. If `torch.distributed` has several processes, each reads other parts of it.

    The matrices of a small model are too small to share: with both cores of a CPU in each operation, the built-in model
    trained at 4,700 pieces/s, and with half of the rows on each core at 5,600. Processes share better than threads,
    because compiled layers come back to Python often: with `--compile` and batches of 16,384 pieces, one core trains at
    9,200 pieces/s, two threads at 12,800 and two processes at 16,400.

    loss (Callable): Takes the model and a part, and returns the sum of the losses at its targets, and their number.
    """

    def __init__(self, model, device: str, loss):
        self.model, self.device, self.loss = model, device, loss
        parameters = [p for p in model.parameters() if p.requires_grad]
        # Two sums and all gradients, in one buffer, so that one message adds those of all processes.
        self.sums = torch.zeros(2 + sum(p.numel() for p in parameters), device=device)
        for p, gradient in zip(parameters, self.sums[2:].split([p.numel() for p in parameters])):
            p.grad = gradient.view_as(p)

    def __call__(self, parts: Iterable) -> torch.Tensor:
        """Set `grad` of each weight, in all processes.

        parts (Iterable): What this process reads of the batch, on the device.
        RETURNS (float tensor, shape ()): The mean loss over the batch.
        """
        self.sums.zero_()
        for part in parts:
            with torch.autocast(self.device, torch.bfloat16):
                loss, count = self.loss(self.model, part)
            loss.backward()  # adds to `grad`, which is in `sums`
            self.sums[0] += loss.detach()
            self.sums[1] += count
        if dist.is_initialized():
            dist.all_reduce(self.sums)
        self.sums /= self.sums[1].clamp(min=1)  # `clamp` makes a copy
        return self.sums[0].clone()


class Optimizers:
    """Muon for the matrices inside the layers, AdamW for embeddings, head and norms, with the same schedule.

    Each process makes all updates: for the built-in model they take 0.065 s on one core with AMX.
    """

    def __init__(self, model, lr: float, muon_lr: float, weight_decay: float, use_muon: bool):
        self.named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        inner = [p for n, p in self.named.items() if use_muon and ".layers." in n and p.ndim == 2]
        decay = [p for p in self.named.values() if p.ndim == 2 and all(p is not q for q in inner)]
        plain = [p for p in self.named.values() if p.ndim != 2]
        adamw = torch.optim.AdamW(
            [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}],
            lr=lr,
            betas=(0.9, 0.98),
            eps=1e-8,
        )
        self.peaks: dict[torch.optim.Optimizer, float] = {adamw: lr}
        if inner:
            muon = torch.optim.Muon(inner, lr=muon_lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
            self.peaks[muon] = muon_lr

    def step(self, factor: float):
        for optimizer, peak in self.peaks.items():
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
            optimizer.step()

    def tensors(self) -> dict[str, torch.Tensor]:
        """The state, named by the weights."""
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
