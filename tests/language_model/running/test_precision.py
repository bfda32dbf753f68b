"""How a model computes: weights in half precision, and back; what a device does not have."""

import shutil

import pytest
import torch

from spacy_pll.language_model.running import forward as forward_module

from ...conftest import build_transformer, get_tokenizer, masked_model
from ...scoring.planned import make_batch

CPU = torch.device("cpu")


def batch_of(*texts, tokenizer):
    rows = [tokenizer(text)["input_ids"] for text in texts]
    return make_batch(rows, [(number, 1, ids[1]) for number, ids in enumerate(rows)], tokenizer.pad_token_id)


@pytest.mark.parametrize("architecture, tokenizer", [("bert", "wordpiece"), ("eurobert", "byte-level")])
def test_weights_in_half_precision_and_back(architecture, tokenizer):
    """For a trial they are raised to float32, which changes none. Angles and other buffers are never rounded."""
    tokenizer = get_tokenizer(tokenizer)
    model = build_transformer(architecture, tokenizer)
    batch = batch_of("The traveler lost it.", "I a.", tokenizer=tokenizer)
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    rounded = {name: weight.detach().bfloat16() for name, weight in model.named_parameters()}
    with torch.inference_mode():
        exact = forward_module.Forward(model).logits(batch)[0]
        forward = forward_module.Forward(model, precision="bfloat16")
        forward.keep_weights_in(torch.bfloat16, CPU)
        half = forward.logits(batch)[0]
        with forward.in_float32():
            assert {weight.dtype for weight in model.parameters()} == {torch.float32}
            assert forward.precision == "float32"
            trial = forward.logits(batch)[0]
        assert forward.precision == "bfloat16"
        again = forward.logits(batch)[0]
    assert {name: weight.dtype for name, weight in model.named_parameters()} == dict.fromkeys(rounded, torch.bfloat16)
    assert all(torch.equal(weight, rounded[name]) for name, weight in model.named_parameters())
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in model.named_buffers())
    assert half.dtype == torch.float32 and torch.equal(half, again)
    # The trial is of the rounded weights, in exact arithmetic: it differs from both.
    error = (half - exact).abs().max()
    assert 1e-4 < error < 0.3
    assert 1e-5 < (trial - exact).abs().max() and 1e-5 < (trial - half).abs().max()


def test_a_model_that_is_moved_once_it_was_tried_keeps_its_weights_in_half_precision(model_folder):
    """As a GPU is given it; here it stays on the CPU."""
    model = masked_model(str(model_folder("bert")), precision="bfloat16")
    checkpoint = masked_model(str(model_folder("bert"))).load().checkpoint
    loaded = model.use(checkpoint, "bert", move_to=CPU)
    assert {weight.dtype for weight in loaded.checkpoint.transformer.parameters()} == {torch.bfloat16}
    assert loaded.forward.precision == "bfloat16"


@pytest.mark.cpu
@pytest.mark.filterwarnings("ignore:bfloat16")
def test_rounded_weights_are_saved_as_they_are_on_file(model_folder, tmp_path):
    """As a GPU is given them; here they stay on the CPU."""
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")

    def weights_of(model):
        return {name: weight.clone() for name, weight in model.load().checkpoint.transformer.state_dict().items()}

    def load_rounded():
        model = masked_model(str(folder), precision="bfloat16")
        own = weights_of(model)
        model.use(model.loaded.checkpoint, str(folder), move_to=CPU)
        return model, own

    model, own = load_rounded()
    assert not all(torch.equal(weight, own[name]) for name, weight in weights_of(model).items())
    model.to_disk(tmp_path / "saved")
    for saved in (
        masked_model(str(tmp_path / "saved")),
        masked_model(str(folder)).from_bytes(model.to_bytes()),
    ):
        assert all(torch.equal(weight, own[name]) for name, weight in weights_of(saved).items())
    build_transformer("bert", get_tokenizer("wordpiece"), hidden_size=64).save_pretrained(folder)
    with pytest.raises(ValueError, match="have changed since they were read.*`precision='float32'`, and save that"):
        model.to_disk(tmp_path / "saved")
    # What half precision holds is not rounded, and needs no file.
    build_transformer("bert", get_tokenizer("wordpiece")).bfloat16().save_pretrained(folder)
    exact, own = load_rounded()
    shutil.rmtree(folder)
    assert all(torch.equal(weight, own[name]) for name, weight in weights_of(exact).items())
    exact.to_disk(tmp_path / "exact")
    saved = masked_model(str(tmp_path / "exact"))
    assert all(torch.equal(weight, own[name]) for name, weight in weights_of(saved).items())
    with pytest.raises(ValueError, match="cannot be read again.*`precision='float32'`"):
        model.to_bytes()


def test_a_trial_of_groups_leaves_weights_in_half_precision(model_folder):
    model = masked_model(str(model_folder("bert")), precision="bfloat16")
    loaded = model.load()
    loaded.forward.keep_weights_in(torch.bfloat16, CPU)
    assert not model.load(groups=True).groups.one_row
    weights = loaded.checkpoint.transformer.parameters()
    assert {weight.dtype for weight in weights} == {torch.bfloat16}
    assert loaded.forward.precision == "bfloat16"


def test_a_trial_that_fails_leaves_the_precision_as_it_was():
    forward = forward_module.Forward(build_transformer("bert", get_tokenizer("wordpiece")), precision="bfloat16")
    forward.keep_weights_in(torch.bfloat16, CPU)
    with pytest.raises(ZeroDivisionError), forward.in_float32():
        raise ZeroDivisionError
    assert forward.precision == "bfloat16"
    assert {weight.dtype for weight in forward.model.parameters()} == {torch.bfloat16}


def test_a_trial_that_is_stopped_while_weights_are_raised_leaves_them_as_they_were(monkeypatch):
    forward = forward_module.Forward(build_transformer("bert", get_tokenizer("wordpiece")), precision="bfloat16")
    forward.keep_weights_in(torch.bfloat16, CPU)

    def stopped(model, device, dtype):
        move(model, device, dtype)
        if dtype == torch.float32:
            raise KeyboardInterrupt

    move = forward_module._move_weights
    monkeypatch.setattr(forward_module, "_move_weights", stopped)
    with pytest.raises(KeyboardInterrupt), forward.in_float32():
        pytest.fail("it was stopped before")
    assert forward.precision == "bfloat16"
    assert {weight.dtype for weight in forward.model.parameters()} == {torch.bfloat16}


@pytest.mark.parametrize("precision", ["tf32", "float16"])
def test_what_a_cpu_does_not_have_is_refused(model_folder, precision):
    if torch.cuda.is_available():
        pytest.skip("models are on the GPU")
    with pytest.raises(ValueError, match=f"{precision}.*(CPU|cpu)"):
        masked_model(str(model_folder("bert")), precision=precision).load()


@pytest.mark.cpu
def test_mixed_precision_is_bfloat16(model_folder):
    model = masked_model(str(model_folder("bert")), mixed_precision=True)
    assert model.precision == "bfloat16"
    kinds = []
    forward = model.load().forward
    forward.model.register_forward_pre_hook(
        lambda *args: kinds.append(torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu"))
    )
    forward.run(torch.full((1, 4), 5))
    assert kinds == [torch.bfloat16] and forward.precision == "bfloat16"
