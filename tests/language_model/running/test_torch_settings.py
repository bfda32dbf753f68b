"""What PyTorch's settings are in a pass, and that they are afterwards what they were."""

import os
import subprocess
import sys
import threading

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from spacy_pll import make_pipeline
from spacy_pll.language_model.running.forward import Forward
from spacy_pll.language_model.running.torch_settings import (
    Shared,
    in_evaluation_mode,
    rounded_products,
    usual_tensors,
    without_cudnn_attention,
)

from ...conftest import build_transformer, get_tokenizer

BACKENDS = torch.backends
has_new_names = hasattr(BACKENDS, "fp32_precision")  # since PyTorch 2.9
# What a program may set, in its names, with what sets it.
OLD = {
    "matmul precision": (torch.set_float32_matmul_precision, ["highest", "high", "medium"]),
    "cudnn.allow_tf32": (lambda value: setattr(BACKENDS.cudnn, "allow_tf32", value), [False, True]),
    "cuda.matmul.allow_tf32": (lambda value: setattr(BACKENDS.cuda.matmul, "allow_tf32", value), [False, True]),
}
LEVELS = {
    "all": BACKENDS,
    "cudnn": BACKENDS.cudnn,
    "cuda.matmul": BACKENDS.cuda.matmul,
    "cudnn.conv": BACKENDS.cudnn.conv,
    "cudnn.rnn": BACKENDS.cudnn.rnn,
    "mkldnn.matmul": BACKENDS.mkldnn.matmul,
    "mkldnn.conv": BACKENDS.mkldnn.conv,
} if has_new_names else {}  # fmt: skip
NEW = {
    name: (lambda value, level=level: setattr(level, "fp32_precision", value), ["none", "ieee", "tf32"])
    for name, level in LEVELS.items()
}
ON_GPU, ON_CPU = torch.device("cuda", 0), torch.device("cpu")


def reading(read):
    try:
        return read()
    except RuntimeError:  # old and new names were mixed
        return "refused"


def state():
    """All settings, as the program reads them."""
    return {
        "matmul precision": reading(torch.get_float32_matmul_precision),
        "cudnn.allow_tf32": reading(lambda: BACKENDS.cudnn.allow_tf32),
        "cuda.matmul.allow_tf32": reading(lambda: BACKENDS.cuda.matmul.allow_tf32),
        **{name: level.fp32_precision for name, level in LEVELS.items()},
    }


def factors(device):
    """How factors are rounded in products and convolutions on a device."""
    if has_new_names:
        names = (
            ["cuda.matmul", "cudnn.conv", "cudnn.rnn"] if device.type == "cuda" else ["mkldnn.matmul", "mkldnn.conv"]
        )
        values = {LEVELS[name].fp32_precision for name in names}
    else:
        values = {torch.get_float32_matmul_precision(), BACKENDS.cudnn.allow_tf32}
    return {SAME.get(value, value) for value in values}


SAME = {"none": "ieee", "highest": "ieee", False: "ieee", "high": "tf32", True: "tf32"}
ROUNDED = {False: {"ieee"}, True: {"tf32"}}


@pytest.fixture
def usual_settings():
    def reset():
        for name in LEVELS:
            NEW[name][0]("none")
        torch.set_float32_matmul_precision("highest")
        for name in ("cuda.matmul", "mkldnn.matmul") if has_new_names else ():
            NEW[name][0]("none")
        BACKENDS.cudnn.allow_tf32 = True

    yield reset
    reset()


def changes(names):
    return st.lists(
        st.sampled_from([(name, value) for name, (_, values) in names.items() for value in values]), max_size=4
    )


@pytest.mark.core
@given(made=changes(OLD) | (changes(NEW) if NEW else changes(OLD)), then=changes(NEW), to_tf32=st.booleans())
@example(made=[("matmul precision", "medium")], then=[], to_tf32=False)
@example(made=[("matmul precision", "medium")], then=[], to_tf32=True)
@example(made=[("cudnn.allow_tf32", True)], then=[], to_tf32=False)
@example(made=[("cudnn.allow_tf32", False)], then=[], to_tf32=True)
@pytest.mark.parametrize("device", [ON_GPU, ON_CPU])
def test_factors_are_rounded_as_the_precision_says_whatever_the_program_has_set(
    usual_settings, device, made, then, to_tf32
):
    """And what the program sets later has the effect that it would have had."""

    def run(with_pass):
        usual_settings()
        for name, value in made:
            {**OLD, **NEW}[name][0](value)
        before = state()
        if with_pass:
            with rounded_products(device, to_tf32):
                assert factors(device) == ROUNDED[to_tf32]
                with rounded_products(device, to_tf32):
                    pass
                assert factors(device) == ROUNDED[to_tf32]
            assert state() == before
        out = []
        for name, value in then:
            NEW[name][0](value)
            out.append(state())
        return out

    assert run(True) == run(False)


@pytest.mark.core
@given(made=changes({**OLD, **NEW}), to_tf32=st.booleans(), device=st.sampled_from([ON_GPU, ON_CPU]))
def test_old_and_new_names_may_be_mixed(usual_settings, made, to_tf32, device):
    usual_settings()
    for name, value in made:
        {**OLD, **NEW}[name][0](value)
    before = state()
    with rounded_products(device, to_tf32):
        assert factors(device) == ROUNDED[to_tf32]
    same = {"none": "ieee"}  # products are exact under both
    assert [same.get(value, value) for value in state().values()] == [
        same.get(value, value) for value in before.values()
    ]


@pytest.mark.core
def test_compiled_models_can_read_the_old_name_in_a_pass(usual_settings):
    for setting in ("high", "highest", "medium"):
        torch.set_float32_matmul_precision(setting)
        for to_tf32 in (False, True):
            with rounded_products(ON_GPU, to_tf32):
                assert BACKENDS.cuda.matmul.allow_tf32 == to_tf32


@pytest.mark.core
def test_before_pytorch_had_new_names(usual_settings, monkeypatch):
    class Older:  # has no `fp32_precision`
        cuda, cudnn, mkldnn = BACKENDS.cuda, BACKENDS.cudnn, BACKENDS.mkldnn

    def old_state():
        return torch.get_float32_matmul_precision(), Older.cudnn.allow_tf32

    usual_settings()
    monkeypatch.setattr(torch, "backends", Older)
    for name in ("highest", "high", "medium"):
        for allowed in (False, True):
            torch.set_float32_matmul_precision(name)
            Older.cudnn.allow_tf32 = allowed
            for to_tf32, expected in ((False, ("highest", False)), (True, ("high", True))):
                with rounded_products(ON_GPU, to_tf32):
                    assert old_state() == expected
                assert old_state() == (name, allowed)


PROGRAM = """
import torch
from spacy_pll.language_model.running.torch_settings import rounded_products

def readings():
    out = []
    for value in ("ieee", "tf32", "none"):
        for level in (torch.backends, torch.backends.cudnn):
            level.fp32_precision = value
            out.append([torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision])
            level.fp32_precision = "none"
    return out, torch.backends.cudnn.allow_tf32

before = readings()
for to_tf32 in (False, True):
    with rounded_products(torch.device("cuda", 0), to_tf32):
        print(torch.backends.cudnn.conv.fp32_precision, torch.backends.cuda.matmul.fp32_precision)
    assert readings() == before, (readings(), before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not has_new_names, reason="this PyTorch has no such names")
def test_what_was_never_set_stays_so():
    """PyTorch's own value for convolutions gives way to a more general setting. One that was set does not."""
    command = [sys.executable, "-W", "error::UserWarning", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
    assert (done.stdout, done.stderr) == ("ieee ieee\ntf32 tf32\n", "")


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_the_passes_of_a_model_have_its_precision(usual_settings, monkeypatch, precision):
    """As on a GPU, for the program's settings of both kinds; also where the program is under autocast."""
    usual_settings()
    forward, seen = Forward(build_transformer("bert", get_tokenizer("wordpiece")), precision=precision), []

    def look(*_):
        seen.append((factors(ON_GPU), torch.is_autocast_enabled("cuda")))

    forward.model.register_forward_pre_hook(look)
    monkeypatch.setattr(Forward, "device", ON_GPU)
    for setting in ("highest", "high"):
        torch.set_float32_matmul_precision(setting)
        BACKENDS.cudnn.allow_tf32 = setting == "high"
        before = state()
        torch.set_autocast_enabled("cuda", True)
        try:
            forward.run(torch.full((1, 4), 5))
            assert torch.is_autocast_enabled("cuda")
        finally:
            torch.set_autocast_enabled("cuda", False)
        assert state() == before
    assert seen == [(ROUNDED[precision == "tf32"], False)] * 2


def test_a_model_is_tried_in_float32(usual_settings, monkeypatch):
    """Also in what transformers alone gives. A convolution on a GPU was refused: its scores seemed to be random."""
    seen = []
    model = build_transformer("convbert", tokenizer := get_tokenizer("wordpiece"))
    convolution = next(module for module in model.modules() if isinstance(module, torch.nn.Conv1d))
    convolution.register_forward_hook(
        lambda _, inputs, output: seen.append((torch.get_float32_matmul_precision(), output.dtype))
    )
    torch.set_float32_matmul_precision("medium")
    with torch.autocast("cpu", torch.bfloat16):
        make_pipeline((model, tokenizer))
    assert {*seen} == {("highest", torch.float32)}


@pytest.mark.core
def test_passes_of_another_precision_wait():
    """Else a pass in float32 would be rounded by one in TF32 that begins beside it."""
    shared, log, inside, leave = Shared(), [], threading.Event(), threading.Event()

    def other():
        with shared.changed("tf32") as undo:
            undo.callback(log.append, "tf32 undone")
            log.append("tf32")
            inside.set()
            leave.wait(60)

    def third():
        with shared.changed("float32"):
            log.append("float32 again")

    with shared.changed("float32") as undo:
        undo.callback(log.append, "float32 undone")
        threads = [threading.Thread(target=other), threading.Thread(target=third)]
        threads[1].start()
        threads[1].join(60)  # of the same precision: it need not wait
        threads[0].start()
        assert not inside.wait(0.05)
        with shared.changed("tf32"):  # a pass within this pass cannot wait for it
            log.append("within")
    assert inside.wait(60)
    leave.set()
    threads[0].join(60)
    assert log == ["float32 again", "within", "float32 undone", "tf32", "tf32 undone"]


@pytest.mark.core
def test_a_gpu_does_not_use_cudnns_attention(monkeypatch):
    with without_cudnn_attention():
        with without_cudnn_attention():  # as by another thread
            pass
        assert not BACKENDS.cuda.cudnn_sdp_enabled()
    assert BACKENDS.cuda.cudnn_sdp_enabled()
    forward, used = Forward(build_transformer("bert", get_tokenizer("wordpiece"))), []
    forward.model.register_forward_pre_hook(lambda *_: used.append(BACKENDS.cuda.cudnn_sdp_enabled()))
    forward.run(ids := torch.full((1, 4), 5))
    monkeypatch.setattr(Forward, "device", ON_GPU)
    forward.run(ids)
    assert used == [True, False] and BACKENDS.cuda.cudnn_sdp_enabled()


class Stopping(torch.nn.Linear):
    """Ctrl-C comes right after the mode was changed."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        if name == "training" and not value:
            raise KeyboardInterrupt


def interrupted(original):
    def change(value):
        original(value)
        if value in (False, "highest"):  # not where it is undone
            raise KeyboardInterrupt

    return change


@pytest.mark.core
@pytest.mark.parametrize("what", ["mode", "attention", "factors"])
def test_what_is_changed_when_an_interruption_comes_is_undone(monkeypatch, usual_settings, what):
    usual_settings()
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), Stopping(1, 1)).train()

    def reading():
        modes = [module.training for module in model.modules()]
        return modes, BACKENDS.cuda.cudnn_sdp_enabled(), state()

    context = {
        "mode": lambda: in_evaluation_mode(model),
        "attention": without_cudnn_attention,
        "factors": lambda: rounded_products(ON_CPU, False),
    }[what]
    torch.set_float32_matmul_precision("medium")
    before = reading()
    for owner, name in ((BACKENDS.cuda, "enable_cudnn_sdp"), (torch, "set_float32_matmul_precision")):
        monkeypatch.setattr(owner, name, interrupted(getattr(owner, name)))
    with pytest.raises(KeyboardInterrupt), context():
        pytest.fail("it was interrupted before")
    assert reading() == before
    monkeypatch.undo()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.core
def test_a_process_that_is_forked_in_a_pass_has_the_programs_settings():
    model, read, write = torch.nn.Linear(1, 1).train(), *os.pipe()
    inside, leave = threading.Event(), threading.Event()

    def run():
        with in_evaluation_mode(model):
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait(60)
    if not os.fork():
        before = model.training
        with in_evaluation_mode(model):
            pass
        os.write(write, bytes([before, model.training]))
        os._exit(0)
    found = list(os.read(read, 2))
    assert not model.training  # the parent's pass goes on
    leave.set()
    thread.join(60)
    assert found == [True, True] and model.training


@pytest.mark.core
def test_what_is_loaded_is_on_the_cpu_and_of_use_outside_the_inference_mode():
    with torch.device("meta"), torch.inference_mode(), usual_tensors():
        made = torch.zeros(1)
    assert made.device.type == "cpu" and not made.is_inference()
