"""How large a forward pass may be."""

import torch

# The most ids in one forward pass. More brings no gain: measured on CPUs (benchmarks/README.md), not yet on GPUs.
MAX_IDS = {"cpu": 2048, "cuda": 65_536}
# The same with groups (`mask_margin`). Their rows differ more in length, so a smaller pass has less padding.
MAX_IDS_WITH_GROUPS = {**MAX_IDS, "cpu": 1024}
# The most logits in one forward pass, over all targets: 128 MB in float32 on a CPU, 2 GB on a GPU.
MAX_LOGITS = {"cpu": 2**25, "cuda": 2**29}


def limit(limits: dict[str, int], device: torch.device) -> int:
    """One of these limits on a device."""
    return limits.get(device.type, limits["cpu"])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a forward pass failed because memory ran out."""
    said = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)
    )
