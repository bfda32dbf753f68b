"""Models on the Hugging Face hub, without a network: what is in the cache is read, and what is not fails at once."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub.utils import get_session
from transformers import AutoConfig, GPT2Config, GPT2LMHeadModel

from spacy_pll import PLLError, make_pipeline
from spacy_pll.language_model.reading import checkpoint, hub

from ...conftest import get_tokenizer, masked_model


@pytest.fixture
def asked(monkeypatch):
    """asked(error): the hub fails with this error, or answers. Returns the list of what it is asked."""

    def make(error=None):
        urls = []

        def head(url, timeout):
            urls.append(url)
            if error:
                raise error

        monkeypatch.setattr(hub, "get_session", lambda: SimpleNamespace(head=head))
        monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", False)
        return urls

    return make


def error_of(module, name):
    return type(name, (type("ConnectionError", (OSError,), {}),), {"__module__": module})


def test_a_hub_that_answers_is_asked_once(asked):
    urls = asked()
    assert hub.connection_error("no-such/model", "main") is None
    (url,) = urls
    assert url.endswith("/no-such/model/resolve/main/config.json")


def test_without_a_connection_the_error_says_why(asked):
    error = error_of("requests", "ConnectionError")("Max retries exceeded")
    error.__context__ = OSError(-2, "Name or service not known")
    urls = asked(error)
    assert hub.connection_error("no-such/model", "main") is error.__context__ and len(urls) == 1


@pytest.mark.parametrize("error", [error_of("requests", "ConnectTimeout")(), TimeoutError(), ValueError("a proxy's")])
def test_what_may_be_a_slow_connection_is_left_to_transformers(asked, error):
    urls = asked(error)
    assert hub.connection_error("no-such/model", "main") is None and len(urls) == 1


def test_the_hub_is_not_asked_where_it_is_not_needed(asked, tmp_path, monkeypatch):
    urls = asked(ConnectionError())
    assert hub.connection_error(str(tmp_path), None) is None
    assert hub.connection_error("no/such/folder", "main") is None
    monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", True)
    assert hub.connection_error("no-such/model", "main") is None
    assert urls == []


@pytest.fixture
def cached(model_folder, tmp_path):
    """cached(name): the folder of a model in a cache, and the model."""
    commit = "c0ffee" * 6 + "c0ff"

    def make(name):
        folder = tmp_path / f"models--{name.replace('/', '--')}"
        shutil.copytree(model_folder("bert"), folder / "snapshots" / commit)
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text(commit)
        cache = {"cache_dir": str(tmp_path)}
        return folder / "snapshots" / commit, masked_model(name, "main", cache, cache)

    return make


def test_models_in_the_cache_are_refused_as_those_in_folders_are(cached):
    folder, model = cached("in-the/cache")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "attn_implementation": "someone/kernel"}))
    with pytest.raises(ValueError, match="'someone/kernel' in config.json of 'in-the/cache'"):
        model.load()
    folder, model = cached("without/tokenizer")
    for file in folder.glob("*token*"):
        file.unlink()
    with pytest.raises(
        (ValueError, OSError), match="'without/tokenizer' (knows no text.*vocab.txt|was not found|cannot be)"
    ):
        model.load()


def test_the_weights_are_of_the_cache_that_the_configuration_is_of(model_folder, hub_cache, tmp_path):
    """Another cache has another model of that name."""
    folder = tmp_path / "another" / "models--team--baby"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("c" * 40)
    other = shutil.copytree(model_folder("electra"), folder / "snapshots" / ("c" * 40))
    model = masked_model("team/baby", transformer_config={"cache_dir": str(tmp_path / "another")})
    weights = model.load().checkpoint.transformer.state_dict()
    expected = masked_model(str(other)).load().checkpoint.transformer.state_dict()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert model.describe().commit == "c" * 40


@pytest.mark.parametrize("entry", [{"subfolder": "checkpoint-2"}, {"revision": "v2"}, {"gguf_file": "model.gguf"}])
def test_a_configuration_from_another_place_than_the_weights(model_folder, tmp_path, entry):
    folder = shutil.copytree(model_folder("bert"), tmp_path / "model")
    shutil.copytree(folder, folder / "checkpoint-2")
    with pytest.raises(ValueError, match=rf"transformer_config has '{[*entry][0]}' .*not for the weights.* `revision`"):
        masked_model(str(folder), transformer_config=entry).load()


# In a process of its own, because transformers and huggingface_hub look up HF_HUB_OFFLINE when they are imported. Names
# are not resolved, and one connection is refused.
WITHOUT_NETWORK = """
import json, socket, sys

lookups = []

def getaddrinfo(host, *args, **kwargs):
    lookups.append(str(host))
    if host == "127.0.0.1":
        return original(host, *args, **kwargs)
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

original, socket.getaddrinfo = socket.getaddrinfo, getaddrinfo

import spacy
from spacy_pll.language_model.reading import hub
from spacy_pll.language_model.architectures import MaskedLanguageModel

errors = []
try:
    MaskedLanguageModel("no-such/model").load()
except OSError as error:
    errors.append(str(error))
n_lookups = len(lookups)
nlp = spacy.blank("en")
nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": "in-the/cache"}})
score, commit = nlp("The traveler lost the souvenir.")._.pll, nlp.get_pipe("pll").model.describe().commit
with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
hub.hf_hub_url = lambda *args, **kwargs: f"http://127.0.0.1:{port}/"
refused = hub.connection_error("no-such/model", "main")
print(json.dumps([errors, n_lookups, score, commit, isinstance(refused, ConnectionRefusedError)]))
"""


@pytest.mark.slow
def test_a_hub_name_without_a_network(model_folder, make_nlp, tmp_path):
    """A model is looked for once. (huggingface_hub 2 also asks once what agent it runs in.)"""
    commit = "c0ffee" * 6 + "c0ff"
    cached = tmp_path / "hub" / "models--in-the--cache"
    shutil.copytree(model_folder("bert"), cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(commit)
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment.update(HF_HUB_OFFLINE="0", HF_HOME=str(tmp_path))
    out = subprocess.run(
        [sys.executable, "-c", WITHOUT_NETWORK], capture_output=True, text=True, env=environment, check=True
    )
    (error,), n_lookups, score, found, refused = json.loads(out.stdout)
    assert "'no-such/model' was not found" in error and "cannot be reached (" in error and "not known)" in error
    assert n_lookups <= 2
    assert score == pytest.approx(make_nlp("bert")("The traveler lost the souvenir.")._.pll) and found == commit
    assert refused and "etrying" not in out.stderr
    assert callable(get_session().head)  # the method that is asked, in each version of huggingface_hub


def test_a_revision_is_chosen_by_its_name(model_folder, hub_cache):
    text = "The traveler lost the souvenir."
    for name, revision in (("bert", None), ("electra", "chck_1M")):
        expected = make_pipeline(str(model_folder(name)))(text)._.pll
        assert make_pipeline("team/baby", revision=revision)(text)._.pll == expected


@pytest.mark.parametrize("model", [None, "bert"])
def test_a_revision_of_what_is_not_on_the_hub(model_folder, model):
    with pytest.raises(PLLError, match="is no model on the .*hub. Leave out `revision`"):
        make_pipeline(model and str(model_folder(model)), revision="chck_1M")


def test_a_model_in_the_cache_is_looked_for_once_without_a_connection(asked, hub_cache, monkeypatch):
    """Also to find out whether it is a left-to-right one. transformers is never asked to look at the hub."""
    urls, local, read = asked(error_of("requests", "ConnectionError")("no network")), [], AutoConfig.from_pretrained

    def from_pretrained(*args, **settings):
        local.append(settings["local_files_only"])
        return read(*args, **settings)

    monkeypatch.setattr(checkpoint.AutoConfig, "from_pretrained", from_pretrained)
    assert make_pipeline("team/baby").get_pipe("pll").model.describe().commit == "a" * 40
    assert len(urls) == 1 and local and all(local)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_left_to_right_model_in_a_cache_of_its_own(by_name, tmp_path):
    """As with `token`, for a private model: the settings in the block hold for each file that is read."""
    folder = tmp_path / "models--team--left"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text("a" * 40)
    tokenizer = get_tokenizer("wordpiece")
    snapshot = folder / "snapshots" / ("a" * 40)
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2)).save_pretrained(snapshot)
    tokenizer.save_pretrained(snapshot)
    cache = {"cache_dir": str(tmp_path)}
    block = {"name": "team/left", "transformer_config": cache, "tokenizer_config": cache}
    nlp = make_pipeline(block if by_name else str(snapshot))
    assert nlp.get_pipe("pll").settings.metrics == ("causal",)
