"""The training script, in miniature: what it writes, and that a stopped run goes on as if it had not been stopped."""

import importlib.util
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer

from .conftest import SENTENCES

SCRIPT = Path(__file__).parents[1] / "scripts" / "train_builtin.py"
TINY = "--vocab-size 200 --layers 1 --width 64 --mlp 64 --batch-pieces 200 --warmup 2 --save-every 3 --device cpu"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("train_builtin", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = [f"{sentence} Line {i} of them." for i in range(300) for sentence in SENTENCES[:4]]
    (folder / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return folder


def run(script, monkeypatch, corpus, output, *more):
    arguments = [str(SCRIPT), str(corpus), str(output), *TINY.split(), "--steps", "6", *more]
    monkeypatch.setattr(sys, "argv", arguments)
    script.main()


def test_a_resumed_run_ends_where_an_uninterrupted_one_does(script, monkeypatch, corpus, tmp_path):
    run(script, monkeypatch, corpus, tmp_path / "whole")
    # The vocabulary is taken over: the tokenizers library breaks ties between candidates at random.
    shutil.copytree(tmp_path / "whole" / "tokenizer", tmp_path / "parts" / "tokenizer")
    run(script, monkeypatch, corpus, tmp_path / "parts", "--stop-after", "3")
    assert (tmp_path / "parts" / "checkpoint" / "state.json").exists()
    run(script, monkeypatch, corpus, tmp_path / "parts")
    whole, parts = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
    assert {tensor.dtype for tensor in whole.values()} == {torch.float16}
    logs = [(tmp_path / name / "log.csv").read_text().splitlines() for name in ("whole", "parts")]
    without_seconds = [[line.rsplit(",", 1)[0] for line in log] for log in logs]
    assert without_seconds[0] == without_seconds[1] and len(logs[0]) == 3
    assert all(path.stat().st_size <= 15_000_000 for path in (tmp_path / "whole" / "checkpoint").iterdir())
    AutoModelForMaskedLM.from_pretrained(tmp_path / "whole" / "model")
    assert AutoTokenizer.from_pretrained(tmp_path / "whole" / "model").mask_token == "[MASK]"


def test_held_out_lines_are_few_and_always_the_same(script):
    lines = [f"line {i}" for i in range(100_000)]
    held_out = [line for line in lines if script.is_held_out(line)]
    assert 60 < len(held_out) < 140
    assert held_out == [line for line in lines if script.is_held_out(line)]


def test_batches_hold_every_line_once(script):
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    offsets = np.cumsum([0, *lengths])
    batches = script.epoch_batches(offsets, 256, (0, 0))
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert all(lengths[batch].max() * len(batch) <= 256 for batch in batches)


def test_learning_rate_rises_stays_and_falls(script):
    factors = [script.learning_rate_factor(step, 100, 10, 0.5) for step in range(100)]
    assert factors[0] == 0.1 and factors[9:50] == [1.0] * 41
    assert factors[50:] == sorted(factors[50:], reverse=True) and factors[-1] == pytest.approx(0.02)


def test_no_corpus(script, tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SystemExit, match="No .txt or .txt.xz file"):
            list(script.read_lines(folder))
