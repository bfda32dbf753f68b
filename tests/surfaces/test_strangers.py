"""A pipeline folder, or a model folder, that a stranger made: loading it runs no code that it holds."""

import json
import os
import pickle

import pytest
import spacy
import srsly
import torch
import transformers
from safetensors.torch import load_file
from spacy.util import load_config

from ..conftest import SENTENCES, masked_model

# torch says so of a plain pickle, before it refuses it.
pytestmark = pytest.mark.filterwarnings("ignore:Detected pickle protocol:UserWarning")


@pytest.fixture
def marker(tmp_path):
    """A folder that exists once planted code was run."""
    return tmp_path / "ran"


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (str(self.marker),)


@pytest.fixture
def folder(make_nlp, tmp_path):
    """A saved pipeline, as one would send it to others."""
    make_nlp("bert").to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_the_payload_works(marker):
    """So that the tests below cannot pass for want of one."""
    pickle.loads(pickle.dumps(Payload(marker)))
    assert marker.exists()


def weights(kind, tensors, marker, path):
    if kind == "plain pickle":
        path.write_bytes(pickle.dumps(Payload(marker)))
    else:
        torch.save({**tensors, "x": Payload(marker)}, path, _use_new_zipfile_serialization=kind == "zip")


@pytest.mark.parametrize("kind", ["zip", "legacy", "plain pickle"])
def test_pickled_weights_run_nothing(folder, marker, kind):
    model = folder / "pll" / "model"
    tensors = load_file(model / "model.safetensors")
    # Beside safetensors they are not even read.
    weights(kind, tensors, marker, model / "pytorch_model.bin")
    expected = spacy.load(folder)(SENTENCES[0])._.pll
    assert not marker.exists() and expected < 0
    (model / "model.safetensors").unlink()
    with pytest.raises(OSError, match="weights of .*pytorch_model.bin"):
        spacy.load(folder)
    assert not marker.exists()
    # Pickled weights that are nothing but weights are read.
    torch.save(tensors, model / "pytorch_model.bin")
    assert spacy.load(folder)(SENTENCES[0])._.pll == expected


KERNEL = "someone/kernel"


@pytest.fixture
def nothing_is_loaded(folder, monkeypatch):
    """Such a setting is found before transformers makes anything of it."""
    monkeypatch.setattr("spacy_pll.language_model.reading.checkpoint.AutoConfig", None)


@pytest.mark.usefixtures("nothing_is_loaded")
@pytest.mark.parametrize(
    "entries",
    [
        {"attn_implementation": KERNEL},
        {"_attn_implementation": KERNEL},
        {"_attn_implementation_internal": KERNEL},
        {"attn_implementation": "flash_attention_2"},  # from the hub, where the package flash_attn is not there
        {"attn_implementation": {"": "sdpa", "text_config": KERNEL}},
        {"experts_implementation": "deepgemm"},
        {"text_config": {"attn_implementation": KERNEL}},
        {"parts": [{"text_config": {"_attn_implementation": KERNEL}}]},
        {"attribute_map": {"hidden": "_attn_implementation"}, "hidden": KERNEL},
        {"quantization_config": {"quant_method": "mxfp4"}},
    ],
)
def test_code_on_the_hub_is_not_named(folder, entries):
    model = folder / "pll" / "model"
    change(model / "config.json", **entries)
    message = "^`(_?attn_.*|exp.*|quant.*|attribute_map)`.*config.json of .*([Rr]emove|Choose)"
    with pytest.raises(ValueError, match=message):
        spacy.load(folder)
    files = {file.name: file.read_bytes() for file in model.iterdir()}
    with pytest.raises(ValueError, match=message):
        masked_model(None).from_bytes(srsly.msgpack_dumps(files))


@pytest.mark.usefixtures("nothing_is_loaded")
def test_code_on_the_hub_is_not_named_in_a_config(folder):
    config = load_config(folder / "config.cfg")
    config["components"]["pll"]["model"]["transformer_config"] = {"attn_implementation": KERNEL}
    config.to_disk(folder / "config.cfg")
    with pytest.raises(ValueError, match="'someone/kernel' in transformer_config.*one of eager, sdpa"):
        spacy.load(folder)


def plant(folder, marker):
    """A module whose import is seen, in every place from which one might be imported."""
    for place in (folder, folder / "pll", folder / "pll" / "model"):
        for name in ("evil.py", "__init__.py"):
            (place / name).write_text(
                f"open({str(marker)!r}, 'w')\nclass Config: pass\nclass Model: pass\nclass T: pass"
            )


def change(path, **entries):
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def test_code_beside_a_known_architecture_is_not_imported(folder, marker, monkeypatch):
    monkeypatch.chdir(folder)
    plant(folder, marker)
    model = folder / "pll" / "model"
    change(model / "config.json", auto_map={"AutoConfig": "evil.Config", "AutoModelForMaskedLM": "evil.Model"})
    change(model / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.T", "evil.T"]})
    assert spacy.load(folder)(SENTENCES[0])._.pll < 0
    assert not marker.exists()


@pytest.mark.parametrize(
    ("file", "entries"),
    [
        ("config.json", {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config"}}),
        ("tokenizer_config.json", {"tokenizer_class": "T", "auto_map": {"AutoTokenizer": ["evil.T", "evil.T"]}}),
    ],
)
def test_an_architecture_that_brings_its_code_is_refused(folder, marker, file, entries):
    plant(folder, marker)
    change(folder / "pll" / "model" / file, **entries)
    if file == "tokenizer_config.json" and transformers.__version__.startswith("5."):
        # There a tokenizer.json is read by the same class whatever the name of the tokenizer's own.
        assert spacy.load(folder)(SENTENCES[0])._.pll < 0
    else:
        with pytest.raises(ValueError, match="needs code .*not run here unasked.*as `code`"):
            spacy.load(folder)
    assert not marker.exists()


@pytest.mark.parametrize("setting", ["transformer_config", "tokenizer_config"])
def test_a_config_cannot_allow_code(folder, marker, setting):
    plant(folder, marker)
    config = load_config(folder / "config.cfg")
    config["components"]["pll"]["model"][setting] = {"trust_remote_code": True}
    config.to_disk(folder / "config.cfg")
    with pytest.raises(ValueError, match="trust_remote_code.*never run"):
        spacy.load(folder)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('@architectures = "spacy-pll.MaskedLM.v1"', '@architectures = "evil.Model"'),
        ('"spacy-pll.doc_spans.v1"', '"evil"'),
        ('metrics = ["word_l2r"]', 'metrics = ["evil.Model"]'),
        ('factory = "pll"', 'factory = "evil"'),
        ("before_creation = null", 'before_creation = {"@callbacks":"evil.Model"}'),
    ],
)
def test_a_config_names_registered_functions_only(folder, marker, monkeypatch, old, new):
    """Names in a config are looked up in registries, never imported: what is not installed cannot be run."""
    monkeypatch.chdir(folder)
    plant(folder, marker)
    config = (folder / "config.cfg").read_text()
    assert old in config
    (folder / "config.cfg").write_text(config.replace(old, new, 1))
    with pytest.raises(ValueError, match="evil"):
        spacy.load(folder)
    assert not marker.exists()


def test_bytes_of_a_stranger_run_nothing(folder, marker, make_nlp):
    """`from_bytes` takes files by name only into a folder of its own, and reads them as `from_disk` does."""
    nlp = spacy.load(folder)
    files = srsly.msgpack_loads(nlp.get_pipe("pll").model.to_bytes())
    files = {name: content for name, content in files.items() if name != "model.safetensors"}
    files["pytorch_model.bin"] = pickle.dumps(Payload(marker))
    with pytest.raises(OSError, match="weights"):
        nlp.get_pipe("pll").model.from_bytes(srsly.msgpack_dumps(files))
    assert not marker.exists()


def test_transformers_own_attention_is_no_foreign_code(folder):
    model = folder / "pll" / "model"
    expected = spacy.load(folder)(SENTENCES[0])._.pll
    change(model / "config.json", _attn_implementation="eager", _attn_implementation_autoset=True)
    assert spacy.load(folder)(SENTENCES[0])._.pll == pytest.approx(expected, abs=1e-4)
