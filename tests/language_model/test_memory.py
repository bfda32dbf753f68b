import numpy as np
import pytest
import torch
import transformers as hf

from spacy_pll.language_model import memory
from spacy_pll.language_model.memory import batch_limits, bytes_per_id, bytes_per_target, is_out_of_memory

pytestmark = pytest.mark.core

GIB = 2**30


def model_of(vocabulary=1000, **more):
    settings = dict(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=256)
    with torch.device("meta"):
        return hf.BertForMaskedLM(hf.BertConfig(vocab_size=vocabulary, **settings, **more))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("vocabulary", [29_000, 250_000])
@pytest.mark.parametrize("free", [GIB // 4, 2 * GIB, 80 * GIB])
def test_a_pass_fits_into_what_is_free(monkeypatch, device, vocabulary, free):
    monkeypatch.setattr(memory, "free_bytes", lambda device: free)
    model = model_of(vocabulary)
    ids, targets = batch_limits(model, torch.device(device), 512)
    assert ids * bytes_per_id(model, 512) + targets * bytes_per_target(vocabulary) <= free
    assert ids <= memory.MAX_IDS[device] and targets * vocabulary <= memory.MAX_LOGITS[device]
    assert ids > 100 and targets > 10


def test_something_can_always_be_tried(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda device: 0)
    assert batch_limits(model_of(), torch.device("cpu"), 512) == (1, 1)
    monkeypatch.setattr(memory, "free_bytes", lambda device: None)  # the system does not say
    assert batch_limits(model_of(), torch.device("cpu"), 512) == (2048, memory.MAX_LOGITS["cpu"] // 1000)


def test_unfused_attention_keeps_its_probabilities(monkeypatch):
    fused, plain = model_of(), model_of(attn_implementation="eager")
    assert bytes_per_id(plain, 512) - bytes_per_id(fused, 512) == 4 * 2 * 2 * 512


def test_the_widest_point_of_a_layer_counts():
    assert bytes_per_id(model_of(), 512) == 4 * (2 * 256 + 4 * 64)


def test_free_memory_is_known_here_or_not_at_all():
    free = memory.free_bytes(torch.device("cpu"))
    assert free is None or 0 < free < 2**50


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
