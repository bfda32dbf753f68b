"""How large a forward pass may be on a device, and what it costs there."""

import torch

# The most ids in one forward pass. More brings no gain: measured on CPUs and on an H100 (benchmarks/README.md).
MAX_IDS = {"cpu": 2048, "cuda": 131_072}
# The same with groups (`mask_margin`). Their rows differ more in length, so a smaller pass has less padding.
MAX_IDS_WITH_GROUPS = {"cpu": 1024, "cuda": 65_536}
# The work of the passes after which docs leave `nlp.pipe`, in multiplications: ids times parameters, without those of
# embeddings. On a CPU it takes two or three seconds (benchmarks/README.md). On a GPU it fills passes.
WORK = {"cpu": 2**38, "cuda": 2**46}
# The most logits in one forward pass, over all targets: 128 MB in float32 on a CPU, 2 GB on a GPU.
MAX_LOGITS = {"cpu": 2**25, "cuda": 2**29}

# What a pass costs besides the ids that it reads, in ids: on CPUs (benchmarks/README.md), and on an H100 for a layer of
# 7.1 million weights, as BERT-base has them. There it is the time in which the host starts the operations of a layer.
CPU_PASS_COST = 100
GPU_PASS_COST = {"float32": 2_300, "tf32": 8_500, "bfloat16": 13_000, "float16": 13_000}
LAYER = 7_100_000


def limit(limits: dict[str, int], device: torch.device) -> int:
    """One of these limits on a device."""
    return limits.get(device.type, limits["cpu"])


def pass_cost(device_type: str, precision: str, layers: int, parameters: int) -> int:
    """What a pass costs besides the ids that it reads, in ids, for a model with so many parameters, those of embeddings
    excepted. A pass starts so many layers, and an id takes the time of so many parameters.
    """
    if device_type != "cuda":
        return CPU_PASS_COST
    return round(GPU_PASS_COST[precision] * LAYER * layers / max(1, parameters))


def ids_at_once(device_type: str, parameters: int, max_tokens: int) -> int:
    """How many ids a model reads before docs are handed on. In so many, rows of like length are found for passes.

    parameters (int): Without those of embeddings.
    max_tokens (int): Of a pass. At least two are read at once, and at most 64.
    """
    return min(max(2 * max_tokens, WORK.get(device_type, WORK["cpu"]) // max(1, parameters)), 64 * max_tokens)


def n_parameters(model: torch.nn.Module) -> int:
    """How many parameters a model has without those of embeddings."""
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in embeddings)
