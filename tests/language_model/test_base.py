import numpy as np
import pytest
import torch

from spacy_pll.language_model.base import is_out_of_memory

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
        (ValueError("out of memory"), False),
    ],
)
def test_which_errors_are_for_lack_of_memory(error, expected):
    assert is_out_of_memory(error) is expected


def test_the_allocator_of_the_cpu_is_recognised():
    with pytest.raises(RuntimeError) as caught:
        torch.from_numpy(np.zeros(1)).expand(2**50).contiguous()
    assert is_out_of_memory(caught.value)
