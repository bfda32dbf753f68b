from inspect import signature

import numpy as np
import pytest
import torch

from spacy_pll.language_model.architectures import CausalLM, MaskedLM
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


OF_ALL = ["name", "revision", "tokenizer_config", "transformer_config", "mixed_precision", "precision"]


class PassesOn(MaskedLM):
    def __init__(self, name, needed, more=1, **settings):
        super().__init__(name, **settings)


class Closed(MaskedLM):
    def __init__(self, name, revision="main"):
        super().__init__(name, revision)


class Same(CausalLM):
    pass


@pytest.mark.parametrize(
    ("language_model", "expected", "required"),
    [
        (MaskedLM, [*OF_ALL, "shift", "predicts_mask", "cfg"], []),
        (CausalLM, [*OF_ALL, "leading_space"], ["name"]),
        (PassesOn, ["name", "needed", *OF_ALL[1:], "more", "shift", "predicts_mask", "cfg"], ["name", "needed"]),
        (Closed, ["name", "revision"], ["name"]),
        (Same, [*OF_ALL, "leading_space"], ["name"]),
    ],
)
def test_a_signature_has_what_a_model_takes(language_model, expected, required):
    """spaCy makes the checks of a config from it, and fills in what is missing."""
    parameters = signature(language_model).parameters
    assert list(parameters) == expected
    assert [name for name, setting in parameters.items() if setting.default is setting.empty] == required
    given = {name: "x" if setting.default is setting.empty else setting.default for name, setting in parameters.items()}
    model = language_model(**given)
    assert (model.name, model.revision, model.precision) == ("x" if required else None, "main", "float32")
    with pytest.raises(TypeError, match="no_such_setting"):
        language_model(**given, no_such_setting=1)
