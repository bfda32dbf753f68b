"""One training step: the loss of the head, the gradients of a batch, the optimizers, and the average of the weights.

Needs only torch.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import torch


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


class Gradients:
    """Computes the gradients of a batch with `workers` threads of one core each, which share the rows of the batch.

    On two CPU cores the built-in model trained at 5,600 pieces/s this way, including held-out loss and checkpoints,
    and at 4,700 pieces/s with both cores in each operation: its matrices are too small to share.
    """

    def __init__(self, model, workers: int, device: str, loss, mask_id: int):
        self.model, self.device, self.loss, self.mask_id = model, device, loss, mask_id
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.workers = workers
        one_core = (lambda: torch.set_num_threads(1)) if workers > 1 else None
        self.pool = ThreadPoolExecutor(workers, initializer=one_core)

    def __call__(self, batch, real, targets) -> float:
        """Set `grad` of each weight. RETURNS: The mean loss over the batch."""
        parts = [[x[i :: self.workers] for x in (batch, real, targets)] for i in range(min(self.workers, len(batch)))]
        losses, counts, gradients = zip(*self.pool.map(self._part, parts))
        count = max(1, sum(counts))
        for parameter, of_parts in zip(self.parameters, zip(*gradients)):
            parameter.grad = sum(of_parts) / count
        return sum(losses) / count

    def _part(self, part):
        with torch.autocast(self.device, torch.bfloat16):
            loss, count = self.loss(self.model, *part, self.mask_id)
        return loss.item(), count, torch.autograd.grad(loss, self.parameters)


class Optimizers:
    """Muon for the matrices inside the layers, AdamW for embeddings, head and norms, with the same schedule."""

    def __init__(self, model, lr: float, muon_lr: float, weight_decay: float, use_muon: bool):
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        inner = [(n, p) for n, p in named if use_muon and ".layers." in n and p.ndim == 2]
        rest = [(n, p) for n, p in named if n not in dict(inner)]
        decay = [p for _, p in rest if p.ndim == 2]
        plain = [p for _, p in rest if p.ndim != 2]
        self.all = [
            torch.optim.AdamW(
                [{"params": decay, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}],
                lr=lr,
                betas=(0.9, 0.98),
                eps=1e-8,
            )
        ]
        if inner:
            self.all.append(
                torch.optim.Muon(
                    [p for _, p in inner], lr=muon_lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"
                )
            )
        self.peaks = (lr, muon_lr)

    def step(self, factor: float):
        for optimizer, peak in zip(self.all, self.peaks):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, torch.Tensor]:
        return {
            f"optimizer.{i}.{k}.{name}": value
            for i, optimizer in enumerate(self.all)
            for k, state in optimizer.state_dict()["state"].items()
            for name, value in state.items()
        }

    def load_tensors(self, tensors: dict[str, torch.Tensor]):
        for i, optimizer in enumerate(self.all):
            state = optimizer.state_dict()
            for key, value in tensors.items():
                prefix, number, k, name = key.split(".", 3)
                if int(number) == i:
                    state["state"].setdefault(int(k), {})[name] = value
            optimizer.load_state_dict(state)


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
