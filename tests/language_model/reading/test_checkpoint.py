"""Checkpoints that are read, and those that cannot be."""

import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import spacy
import torch
import transformers as hf
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

from spacy_pll import make_pipeline

from ...conftest import ARCHITECTURES, SENTENCES, build_transformer, get_tokenizer, masked_model, scores
from ...reference import score


def test_half_precision_weights_are_raised_to_float32(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).half().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = masked_model(str(tmp_path))
    model.load()
    assert {parameter.dtype for parameter in model.load().checkpoint.transformer.parameters()} == {torch.float32}
    assert not model.load().checkpoint.transformer.training


@pytest.mark.parametrize("download_bars", [True, False])
def test_nothing_is_printed_when_a_model_is_loaded_and_saved(tmp_path, capfd, download_bars):
    """No progress bars: transformers 5 shows one for each model, and 4 one for each model in several files."""
    build_transformer("bert", get_tokenizer("wordpiece")).save_pretrained(tmp_path / "model", max_shard_size="20KB")
    get_tokenizer("wordpiece").save_pretrained(tmp_path / "model")
    (enable_progress_bars if download_bars else disable_progress_bars)()
    capfd.readouterr()
    try:
        masked_model(str(tmp_path / "model")).to_disk(tmp_path / "saved")
        assert capfd.readouterr() == ("", "")
        assert hf.utils.logging.is_progress_bar_enabled() and are_progress_bars_disabled() != download_bars
    finally:
        enable_progress_bars()


def load(name, **settings):
    masked_model(str(name), **settings).load()


def test_model_not_found_while_offline():
    with pytest.raises(OSError, match="'no-such/model' was not found.*hf download no-such/model.*built-in") as error:
        load("no-such/model")
    assert error.value.__suppress_context__  # `spacy assemble` shows the whole traceback


@pytest.mark.parametrize("name", ["./nowhere", "/no/such/folder", "a/b/c", "C:\\models\\bert", "two words"])
def test_what_can_be_no_name_on_the_hub_is_not_downloaded(name):
    with pytest.raises(OSError, match="was not found: no folder of that name .* Give such a folder, or the ") as error:
        load(name)
    assert "hf download" not in str(error.value)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_a_file_in_the_place_of_a_folder(model_folder, name):
    path = str(model_folder("bert") / name)
    with pytest.raises(OSError, match="vocab.txt|is a file.* folder that has its conf"):
        load(path)


def test_a_tokenizer_that_needs_a_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)  # whether it is installed or not
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text('{"model_type": "roformer", "tokenizer_class": "RoFormerTokenizer"}')
    with pytest.raises(ValueError, match="cannot be read. It needs a package .*(rjieba|protobuf)"):
        load(tmp_path)


def test_truncated_weights(tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(OSError, match="weights of .* cannot be read"):
        load(tmp_path)
    weights.unlink()
    with pytest.raises(OSError, match="weights of .* cannot be read.*model.safetensors"):
        load(tmp_path)


def test_damaged_or_unfitting_files(model_folder, tmp_path):
    tokenizer = get_tokenizer("wordpiece")
    build_transformer("bert", tokenizer).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(OSError, match="(?s)weights of .* cannot be read.*size"):
        load(tmp_path, transformer_config={"hidden_size": 64})
    with pytest.raises(ValueError, match="reads at most 2 wordpieces.*model_max_length"):
        load(tmp_path, tokenizer_config={"model_max_length": 2})
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match="(?s)tokenizer of .* cannot be read.*tokenizer.json"):
        load(tmp_path)


def test_a_model_that_fails_to_load_leaves_the_one_before(model_folder, monkeypatch):
    model = masked_model(str(model_folder("bert")))
    monkeypatch.setattr(hf.BertForMaskedLM, "forward", lambda *args, **named: torch.zeros(()).reshape(2))
    with pytest.raises(ValueError, match="BertForMaskedLM. cannot read a short text"):
        model.load()
    assert not model.loaded
    monkeypatch.undo()
    model.load()
    with pytest.raises(ValueError):
        model.from_disk(Path(__file__).parent)
    assert model.loaded and model.load().rows.pads


@pytest.mark.parametrize(
    ("architecture", "tokenizer", "files"),
    [
        ("bert", "BertTokenizer", "vocab.txt"),
        ("roberta", "RobertaTokenizer", "vocab.json and merges.txt"),
        ("albert", "AlbertTokenizer", "spiece.model"),
    ],
)
def test_a_folder_without_the_files_of_a_tokenizer(model_folder, tmp_path, architecture, tokenizer, files):
    """transformers 5 makes a tokenizer up, which knows no text. transformers 4 has an error of its own."""
    folder = shutil.copytree(model_folder(architecture), tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    for named in ("a class", "none", "no settings"):
        if named == "a class":
            (folder / "tokenizer.json").unlink()
            (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "tokenizer_class": tokenizer}))
        elif named == "none":
            del settings["tokenizer_class"]
            (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        else:
            (folder / "tokenizer_config.json").unlink()
        with pytest.raises((ValueError, OSError), match=f"files are missing: tokenizer.json, or {files}|was not found"):
            load(folder)


@pytest.mark.cpu
@pytest.mark.parametrize("architecture", ["deberta", "deberta-v2"])
def test_the_head_of_debertas_authors(architecture, tmp_path):
    """Its weights have other names than those of transformers' own."""
    if hf.__version__.startswith("4."):
        pytest.skip("transformers 4 ties that head to the embeddings")
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    transformer = build_transformer(architecture, tokenizer, legacy=False)
    for saved in (transformer, tokenizer):
        saved.save_pretrained(tmp_path / "theirs")
    settings = json.loads((tmp_path / "theirs" / "config.json").read_text())
    del settings["legacy"]  # published checkpoints do not name it
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"no trained weights for cls\..*'transformer_config': {'legacy': False}"):
        load(tmp_path / "theirs")
    pipeline = spacy.blank("en")
    model = {"name": str(tmp_path / "theirs"), "transformer_config": {"legacy": False}}
    pipeline.add_pipe("pll", config={"model": model, "keep_pieces": True})
    doc = pipeline(SENTENCES[0])
    expected, _ = score(doc, transformer, tokenizer, "word_l2r", "spacy")
    np.testing.assert_allclose(doc._.pll_data["scores"]["word_l2r"], expected, atol=1e-5)
    pipeline.to_disk(tmp_path / "saved")
    assert spacy.load(tmp_path / "saved")(SENTENCES[0])._.pll == doc._.pll


def test_a_tokenizer_that_divides_a_text_anew_each_time(tmp_path):
    """BPE's dropout, which is for training."""
    tokenizer = deepcopy(get_tokenizer("byte-level"))
    transformer = build_transformer("roberta", tokenizer)
    expected = make_pipeline(deepcopy((transformer, tokenizer)))(SENTENCES[1])._.pll
    tokenizer.backend_tokenizer.model.dropout = 0.5
    for saved in (transformer, tokenizer):
        saved.save_pretrained(tmp_path)
    for model in (str(tmp_path), (transformer, tokenizer)):
        nlp = make_pipeline(model)
        assert [nlp(SENTENCES[1])._.pll for _ in range(4)] == pytest.approx([expected] * 4, abs=1e-5)
    assert tokenizer.backend_tokenizer.model.dropout == 0.5


def test_settings_of_transformers_that_a_config_does_not_have(model_folder):
    with pytest.raises(ValueError, match="transformer_config has 'num_hidden_layer',.* Similar: num_hidden_layers"):
        load(model_folder("bert"), transformer_config={"num_hidden_layer": 2})
    for precision in ("tf32", "float32"):
        with pytest.raises(ValueError, match=f"`precision` is '{precision}', and `mixed_precision` asks for bfloat16"):
            load(model_folder("bert"), precision=precision, mixed_precision=True)


def test_a_folder_without_a_model_does_not_list_all_architectures(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="The configuration or tokenizer of .* cannot be read") as raised:
        masked_model(str(tmp_path)).load()
    assert len(str(raised.value)) < 600 and "albert" not in str(raised.value)


def test_a_maximum_length_that_is_no_whole_number(model_folder, tmp_path):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "model_max_length": 12.7}))
    model = masked_model(str(folder))
    model.load()
    assert model.load().max_length == 12 and type(model.load().max_length) is int


@pytest.mark.parametrize("architecture", ["bert", "roberta", "albert"])
def test_the_bias_of_a_head_of_its_own(tmp_path, architecture):
    """transformers 4 has it under two names, and saves it under one; so does PEFT, where it trains a head."""
    tokenizer = get_tokenizer(ARCHITECTURES[architecture][3])
    model = build_transformer(architecture, tokenizer, tie_word_embeddings=False)
    head = model.get_submodule({"bert": "cls.predictions", "roberta": "lm_head", "albert": "predictions"}[architecture])
    head.decoder.bias = head.bias
    torch.nn.init.normal_(head.bias)
    expected = make_pipeline((model, tokenizer))(SENTENCES[0])
    for saved in (model, tokenizer):
        saved.save_pretrained(tmp_path)
    assert scores(make_pipeline(str(tmp_path))(SENTENCES[0])) == pytest.approx(scores(expected), abs=1e-5)


def test_a_folder_from_before_transformers_wrote_the_kind_of_a_model(model_folder, tmp_path):
    """As those of 2019: config.json without `model_type`, and vocab.txt alone."""
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    vocab = get_tokenizer("wordpiece").get_vocab()
    (folder / "vocab.txt").write_text("\n".join(sorted(vocab, key=vocab.get)))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    config = json.loads((folder / "config.json").read_text())
    without = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    (folder / "config.json").write_text(json.dumps(without))
    with pytest.raises(ValueError, match='does not say which kind of model .*"model_type": "bert"'):
        load(folder)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **without}))
    text = SENTENCES[0].lower()  # vocab.txt does not say that the model knows capital letters
    expected = make_pipeline(str(model_folder("bert")))(text)._.pll
    assert make_pipeline(str(folder))(text)._.pll == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_python_without_docstrings_is_named(model_folder):
    """transformers reads docstrings when it makes a model; config.json is not to blame."""
    code = f"from spacy_pll import make_pipeline; make_pipeline({str(model_folder('bert'))!r})"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0 or "without docstrings, which `python -OO` leaves out" in done.stderr
    assert "config.json" not in done.stderr
