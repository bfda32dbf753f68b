"""How large a forward pass may be, and how much is read at once."""

import torch

# The most ids in one forward pass. More brings no gain: measured on CPUs (benchmarks/README.md), not yet on GPUs.
MAX_IDS = {"cpu": 2048, "cuda": 65_536}
# The same with groups (`mask_margin`). Their rows differ more in length, so a smaller pass has less padding.
MAX_IDS_WITH_GROUPS = {**MAX_IDS, "cpu": 1024}
# The work of the passes after which docs leave `nlp.pipe`, in multiplications: ids times parameters, without those of
# embeddings. On a CPU it takes two or three seconds. A GPU is taken to be 60 times as fast: not measured.
WORK = {"cpu": 2**38, "cuda": 2**44}
# The most logits in one forward pass, over all targets: 128 MB in float32 on a CPU, 2 GB on a GPU.
MAX_LOGITS = {"cpu": 2**25, "cuda": 2**29}


def limit(limits: dict[str, int], device: torch.device) -> int:
    """One of these limits on a device."""
    return limits.get(device.type, limits["cpu"])


def ids_at_once(model: torch.nn.Module, max_tokens: int) -> int:
    """How many ids a model reads before docs are handed on. In so many, rows of like length are found for passes.

    max_tokens (int): Of a pass. At least two are read at once, and at most 32.
    """
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    size = sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in embeddings)
    device = next(model.parameters()).device
    return min(max(2 * max_tokens, limit(WORK, device) // max(1, size)), 32 * max_tokens)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a forward pass failed because memory ran out."""
    said = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)
    )
