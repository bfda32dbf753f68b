"""Matrix products by oneDNN: in bfloat16 always, in float32 on processors where PyTorch's own choice is slow.

PyTorch hands float32 matrix products on x86 to Intel's MKL, which leaves AVX-512 unused on
processors of other makers. There oneDNN, which is part of PyTorch and which it uses for bfloat16,
is 1.3 to 1.8 times as fast (benchmarks/README.md). Both add in float32; sums differ in the last digits.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import linear, pad
from torch.overrides import TorchFunctionMode

from ...user_warnings import warn_user

# oneDNN compiles a kernel for each size and keeps a thousand of them: some 300 MB if every pass has another number of
# targets. So the number of rows is rounded up to a multiple of this.
ROWS = 32

CPU_INFO = Path("/proc/cpuinfo")  # Linux; elsewhere PyTorch's choice is kept


@lru_cache(maxsize=1)
def is_faster_here() -> bool:
    """Whether this processor is one on which oneDNN was found to be faster: AMD, with AVX-512.

    Decided by the kind of processor and not by timing, so that a machine gives the same digits every time.
    """
    if not torch.backends.mkldnn.is_available() or torch.backends.cpu.get_cpu_capability() != "AVX512":
        return False
    return CPU_INFO.exists() and "AuthenticAMD" in CPU_INFO.read_text()


def bfloat16_is_emulated() -> bool:
    """Whether this processor has no instructions for bfloat16. Then it is far slower than float32."""
    return torch.backends.mkldnn.is_available() and not torch.ops.mkldnn._is_mkldnn_bf16_supported()


def warn_if_emulated(device: torch.device) -> None:
    if device.type == "cpu" and bfloat16_is_emulated():
        warn_user(
            "bfloat16 (`precision`, in a config `mixed_precision`) is much slower than float32 on this CPU: PyTorch "
            f"reports {torch.backends.cpu.get_cpu_capability()}, and no instructions for bfloat16. Leave it out, or "
            "use a GPU, or a CPU with AVX512-BF16 or AMX."
        )


def in_whole_rows(x: torch.Tensor, product: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """A product of x (shape (..., width)), computed for a number of rows that is a multiple of `ROWS`."""
    flat = x.reshape(-1, x.shape[-1])
    y = product(pad(flat, (0, 0, 0, -len(flat) % ROWS)))
    return y[: len(flat)].view(*x.shape[:-1], -1)


class RoundedLinear(TorchFunctionMode):
    """While this context lasts, linear layers compute a number of rows that is a multiple of `ROWS`.

    For bfloat16, which PyTorch hands to oneDNN on a CPU.
    """

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is linear and args and args[0].numel():
            return in_whole_rows(args[0], lambda rows: linear(rows, *args[1:], **(kwargs or {})))
        return function(*args, **(kwargs or {}))


class OneDNNLinear(TorchFunctionMode):
    """While this context lasts, oneDNN computes the products with the weights of a model's linear layers.

    The model is not changed. The weights are copied into oneDNN's layout, which takes as much memory again.
    """

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        with torch.no_grad():
            linear_layers = [module for module in model.modules() if isinstance(module, torch.nn.Linear)]
            weights = [layer.weight for layer in linear_layers if layer.weight.dtype == torch.float32]
            self._copies = {weight: weight.detach().to_mkldnn() for weight in weights}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is linear and len(args) == 3 and args[1] in self._copies and args[0].numel():
            weight, bias = self._copies[args[1]], args[2]
            # Unlike `mkldnn_linear`, it needs no copies of the rows into oneDNN's layout and back.
            return in_whole_rows(
                args[0], lambda rows: torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
            )
        return function(*args, **(kwargs or {}))
