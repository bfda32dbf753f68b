"""How large a forward pass may be, from the device's free memory and the sizes of model and vocabulary."""

import os

import torch
from transformers import PreTrainedModel

from .checks import embeddings_of

# The most ids in one forward pass. More brings no gain: measured on CPUs (benchmarks/README.md), not yet on GPUs.
MAX_IDS = {"cpu": 2048, "cuda": 65_536}
# The same with groups (`mask_margin`). Their rows differ more in length, so a smaller pass has less padding.
MAX_IDS_WITH_GROUPS = {**MAX_IDS, "cpu": 1024}
# The most logits in one forward pass, over all targets: 128 MB in float32 on a CPU, 2 GB on a GPU.
MAX_LOGITS = {"cpu": 2**25, "cuda": 2**29}
# The shares of the free memory that a pass may use. They are below 1 because allocators leave gaps.
SHARE_OF_IDS, SHARE_OF_TARGETS = 0.5, 0.25
FLOAT32 = 4


def batch_limits(
    model: PreTrainedModel, device: torch.device, max_length: int, max_ids: dict[str, int] = MAX_IDS
) -> tuple[int, int]:
    """The most ids, and the most targets, in one forward pass of a model on its device.

    max_length (int): The most ids in one row.
    max_ids (dict[str, int]): The most ids of a pass by the type of the device, whatever the memory.
    RETURNS (tuple[int, int]): Both at least 1, so that a row can always be tried.
    """
    vocabulary = embeddings_of(model).num_embeddings
    ids = max_ids.get(device.type, max_ids["cpu"])
    targets = MAX_LOGITS.get(device.type, MAX_LOGITS["cpu"]) // vocabulary
    free = free_bytes(device)
    if free is not None:
        ids = min(ids, int(SHARE_OF_IDS * free) // bytes_per_id(model, max_length))
        targets = min(targets, int(SHARE_OF_TARGETS * free) // bytes_per_target(vocabulary))
    return max(1, ids), max(1, targets)


def bytes_per_id(model: PreTrainedModel, max_length: int) -> int:
    """The memory of one id's hidden states at the widest point of a layer, its feed-forward part.

    Attention that is not fused also keeps its probabilities, twice, for each head and each id of the row.
    """
    linear = [module for module in model.base_model.modules() if isinstance(module, torch.nn.Linear)]
    width = embeddings_of(model).embedding_dim
    widest = max([width, *(max(module.in_features, module.out_features) for module in linear)])
    values = 2 * widest + 4 * width
    if getattr(model.config, "_attn_implementation", "eager") == "eager":
        values += 2 * getattr(model.config, "num_attention_heads", 1) * max_length
    return FLOAT32 * values


def bytes_per_target(vocabulary: int) -> int:
    """The memory of one target's logits, their exponentials for the normalisation, and a copy if they were rounded."""
    return FLOAT32 * 3 * vocabulary


def free_bytes(device: torch.device) -> int | None:
    """The free memory of a device; None if the system does not say."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows, macOS
        return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a forward pass failed because memory ran out."""
    said = str(error).lower()
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or (
        isinstance(error, RuntimeError) and ("out of memory" in said or "can't allocate memory" in said)
    )
