import warnings

import numpy as np
import pytest
import torch

from spacy_pll.language_model.running import onednn

from ...conftest import SENTENCES, masked_model, scores

pytestmark = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN")


@pytest.fixture
def decided(monkeypatch, tmp_path):
    """decided(vendor, capability): what would be decided on such a processor."""

    def decide(info, capability):
        (tmp_path / "cpuinfo").write_text(info)
        monkeypatch.setattr(onednn, "CPU_INFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
        return onednn.is_faster_here.__wrapped__()

    return decide


@pytest.mark.parametrize(
    ("vendor", "capability", "expected"),
    [("AuthenticAMD", "AVX512", True), ("AuthenticAMD", "AVX2", False), ("GenuineIntel", "AVX512", False)],
)
def test_where_it_is_used(decided, vendor, capability, expected):
    assert decided(f"processor : 0\nvendor_id : {vendor}\n", capability) is expected


def test_systems_that_do_not_say_what_processor_they_have(monkeypatch, tmp_path):
    monkeypatch.setattr(onednn, "CPU_INFO", tmp_path / "none")
    assert onednn.is_faster_here.__wrapped__() is False


@torch.inference_mode()
def test_products_are_those_of_pytorch():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(70, 300), torch.nn.GELU(), torch.nn.Linear(300, 11, bias=False))
    x = torch.randn(5, 7, 70)
    expected = model(x)
    with onednn.OneDNNLinear(model) as mode:
        found = model(x)
        assert model(x[:0]).shape == (0, 7, 11)
        other = torch.nn.Linear(70, 3)
        assert other(x).shape == (5, 7, 3)  # a layer of another model
    assert len(mode._copies) == 2
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    with onednn.OneDNNLinear(model):  # as many rows as are not rounded up, and one more
        for n in (onednn.ROWS, onednn.ROWS + 1):
            torch.testing.assert_close(model(x.repeat(n, 1, 1)[0, :1].repeat(n, 1)), expected[0, :1].repeat(n, 1))
    assert found is not expected and torch.equal(model(x), expected)


@pytest.mark.cpu
@pytest.mark.parametrize("architecture", ["bert", "modernbert", "deberta-v2"])
def test_scores_are_the_same(make_nlp, monkeypatch, architecture):
    found = {}
    for used in (True, False):
        monkeypatch.setattr("spacy_pll.language_model.running.forward.is_faster_here", lambda used=used: used)
        nlp = make_nlp(architecture)
        found[used] = [scores(doc) for doc in nlp.pipe(SENTENCES)]
        assert (nlp.get_pipe("pll").model.loaded.forward._onednn is not None) == used
    for with_it, without in zip(found[True], found[False]):
        np.testing.assert_allclose(with_it, without, atol=1e-5)


def test_bfloat16_on_another_device_is_not_warned_of(model_folder, monkeypatch):
    """The weights are on the CPU until the model has been tried."""
    monkeypatch.setattr("spacy_pll.language_model.running.onednn.bfloat16_is_emulated", lambda: True)
    monkeypatch.setattr("spacy_pll.language_model.running.forward.Forward.keep_weights_in", lambda *settings: None)
    model = masked_model(str(model_folder("bert")), precision="bfloat16")
    checkpoint = model._read(model.name, "main", {}, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.use(checkpoint, model.name, move_to=torch.device("cuda"))
    with pytest.warns(UserWarning, match="much slower than float32 on this CPU"):
        model.use(checkpoint, model.name)


@pytest.mark.parametrize(("mixed_precision", "is_emulated"), [(True, True), (True, False), (False, True)])
def test_bfloat16_that_is_only_emulated_is_warned_of_once(make_nlp, monkeypatch, mixed_precision, is_emulated):
    monkeypatch.setattr("spacy_pll.language_model.running.onednn.bfloat16_is_emulated", lambda: is_emulated)
    nlp = make_nlp("bert")
    nlp.get_pipe("pll").model.precision = "bfloat16" if mixed_precision else "float32"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(nlp.pipe(["the cat"] * 3, batch_size=1))
    shown = [warning for warning in caught if "much slower than float32 on this CPU" in str(warning.message)]
    assert len(shown) == (mixed_precision and is_emulated) and all(warning.filename == __file__ for warning in shown)
    assert onednn.bfloat16_is_emulated() in (True, False)


def test_linear_layers_are_given_whole_rows_of_kernels(monkeypatch):
    """Each other number of rows would be another kernel that oneDNN compiles and keeps."""
    layer, x, seen = torch.nn.Linear(8, 5), torch.randn(3, 17, 8), []
    expected, in_whole_rows = layer(x), onednn.in_whole_rows

    def recorded(x, product):
        return in_whole_rows(x, lambda rows: (seen.append(len(rows)), product(rows))[1])

    monkeypatch.setattr(onednn, "in_whole_rows", recorded)
    with onednn.RoundedLinear():
        found = layer(x)
    torch.testing.assert_close(found, expected)
    assert seen == [64] and 64 % onednn.ROWS == 0
