"""Folders of models that cannot be read: each message says what is there, and what to do."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from .test_checkpoint import load


@pytest.fixture
def folder(model_folder, tmp_path):
    return shutil.copytree(model_folder("bert"), tmp_path / "model")


def without(folder, *names):
    for name in names:
        (folder / name).unlink()


def with_file(name, content=b"x"):
    def write(folder):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return write


def as_checkpoints(folder):
    for step in (500, 1000):
        shutil.copytree(folder, folder.parent / f"checkpoint-{step}")
    for path in folder.iterdir():
        path.unlink()
    for step in (500, 1000):
        shutil.move(folder.parent / f"checkpoint-{step}", folder / f"checkpoint-{step}")
    (folder / "runs").mkdir()


def as_sentence_transformer(folder):
    """Its language model is in a folder inside."""
    (folder / "0_Transformer").mkdir()
    for path in [*folder.iterdir()]:
        if path.is_file():
            path.rename(folder / "0_Transformer" / path.name)
    (folder / "modules.json").write_text("[]")


def as_sentence_transformer_without_head(folder):
    (folder / "modules.json").write_text("[]")
    weights = load_file(folder / "model.safetensors")
    body = {name: weight for name, weight in weights.items() if not name.startswith("cls.")}
    save_file(body, folder / "model.safetensors", {"format": "pt"})


def as_adapter(folder):
    settings = {"base_model_name_or_path": "bert-base-cased", "peft_type": "LORA"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))


def with_entry(**entries):
    def change(folder):
        settings = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**settings, **entries}))

    return change


def with_embeddings_in(dtype):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        name = "bert.embeddings.word_embeddings.weight"
        save_file({**weights, name: weights[name].to(dtype)}, folder / "model.safetensors", {"format": "pt"})

    return change


FOLDERS = {
    "checkpoints of a training": (
        [as_checkpoints],
        "no config.json.*checkpoint-500, checkpoint-1000.*/checkpoint-1000.",
    ),
    "sentence-transformers": ([as_sentence_transformer], "no config.json.*0_Transformer. Give one of them"),
    "sentence-transformers without a head": (
        [as_sentence_transformer_without_head],
        "no trained weights for cls.* It is a model of sentence-transformers.* Choose the language model from which",
    ),
    "sentence-transformers without a language model": (
        [lambda folder: without(folder, "config.json"), with_file("modules.json")],
        "no config.json.*a model of sentence-transformers without a language model.*Choose another one",
    ),
    "adapter": (
        [as_adapter, lambda folder: without(folder, "config.json", "model.safetensors")],
        "an adapter .*Merge it into its model, 'bert-base-cased': peft.PeftModel.*merge_and_unload",
    ),
    "model and adapter": ([as_adapter], "an adapter .*if that is what this folder has, remove the file"),
    "ONNX without config.json": (
        [lambda folder: without(folder, "config.json", "model.safetensors"), with_file("model.onnx")],
        r"no config.json.*weights for ONNX \(model.onnx\). Give the folder",
    ),
    **{
        name: (
            [lambda folder: without(folder, "model.safetensors"), with_file(file)],
            rf"no model.safetensors or pytorch_model.bin, but weights for {program} \({file}\). Get such a file",
        )
        for name, file, program in (
            ("ONNX", "onnx/model.onnx", "ONNX"),
            ("TensorFlow 2", "tf_model.h5", "TensorFlow"),
            ("TensorFlow 1", "bert_model.ckpt.index", "TensorFlow"),
            ("Flax", "flax_model.msgpack", "Flax"),
        )
    },
    "pointer of Git": (
        [with_file("model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n")],
        "a pointer in their place. Get them with git lfs pull",
    ),
    "no JSON": ([with_file("config.json", b"{")], "config.json' is no valid JSON: .*Correct it, or get it again"),
    "a list": ([with_file("config.json", b"[]")], "config.json' must hold an object of JSON"),
    "vocab_size": ([with_entry(vocab_size=50)], r" size.* by config.json .*50.* entry .*vocab_size \(50\)"),
    "hidden_size": ([with_entry(hidden_size=64)], r"by config.json .*64.* entry hidden_size \(64\), or get"),
    "hidden_act": ([with_entry(hidden_act="gelo")], r"config.json .* says: .*Correct the entry hidden_act \('gelo'\)"),
    "num_attention_heads": ([with_entry(num_attention_heads=5)], r"config.json .* says: .*num_attention_heads \(5\)"),
    "another type": (
        [with_entry(model_type="roberta")],
        "Not only the head lacks.*correct config.json: its model_type",
    ),
    "more layers": (
        [with_entry(num_hidden_layers=3)],
        "Not only the head lacks.*correct config.json:.*number of layers",
    ),
    "head of its own": ([with_entry(tie_word_embeddings=False)], "set tie_word_embeddings in config.json to true"),
    **{
        str(dtype): (
            [with_embeddings_in(dtype)],
            "whole numbers .*word_embeddings.weight. Quantized weights are not read",
        )
        for dtype in (torch.int8, torch.int64, torch.bool)
    },
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_there_and_what_to_do(folder, kind):
    changes, said = FOLDERS[kind]
    for change in changes:
        change(folder)
    with pytest.raises((ValueError, OSError), match=f"(?s){said}") as caught:
        load(folder)
    assert str(folder) in str(caught.value) and len(str(caught.value)) < 800


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_embeddings_in_another_dtype_are_read(folder, dtype):
    with_embeddings_in(dtype)(folder)
    load(folder)


def test_an_empty_folder(tmp_path):
    with pytest.raises(ValueError, match="no config.json.*It has no file.*model.save_pretrained"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"It has .*\.py.*Give the folder"):
        load(Path(__file__).parent)
