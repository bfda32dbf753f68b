"""What goes wrong in mid-work, on purpose: nothing is lost or scored twice, and the next text is none the worse."""

import json
import shutil

import numpy as np
import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from spacy_pll.language_model.running.forward import Forward

from ..conftest import SENTENCES, build_transformer, get_tokenizer, masked_model, scores

TEXTS = [*SENTENCES, "I a.", "", "The souvenir travels."]


@pytest.fixture(scope="module")
def expected(model_folder):
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(model_folder())}})
    return {text: scores(nlp(text)) for text in TEXTS}


class Failing:
    """A function that fails at some of its calls."""

    def __init__(self, original, at, error=None):
        self.original, self.at, self.calls = original, at, 0
        self.error = error or RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def __call__(self, *args):
        self.calls += 1
        if self.calls in self.at:
            raise self.error
        return self.original(*args)


def test_forward_passes_that_fail_at_random(make_nlp, expected):
    """As with a GPU that runs out of memory: docs that can be scored are, once each, in order; the others are named."""
    nlp = make_nlp(max_batch_tokens=100)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    original, total = model.log_probabilities, {"failures": 0, "blamed": 0}

    @settings(max_examples=15)
    @given(at=st.sets(st.integers(1, 40)), batch_size=st.integers(1, len(TEXTS)))
    def check(at, batch_size):
        blamed = []
        nlp.set_error_handler(lambda name, scorer, docs, error: blamed.extend((doc.text, str(error)) for doc in docs))
        model.log_probabilities = failing = Failing(original, at)
        found = list(nlp.pipe(TEXTS, batch_size=batch_size))
        assert sorted([doc.text for doc in found] + [text for text, _ in blamed]) == sorted(TEXTS)
        assert [doc.text for doc in found] == [text for text in TEXTS if text not in dict(blamed)]
        assert all("out of memory" in error for _, error in blamed)
        for doc in found:
            np.testing.assert_allclose(scores(doc), expected[doc.text], atol=1e-5)
        total["failures"] += sum(call in at for call in range(1, failing.calls + 1))
        total["blamed"] += len(blamed)

    try:
        check()
    finally:
        del model.log_probabilities
    assert total["failures"] > total["blamed"] > 0


def test_interrupted_and_used_again(make_nlp, expected):
    nlp = make_nlp(max_batch_tokens=100)
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    forward = model.loaded.forward.run
    nlp.set_error_handler(lambda *args: pytest.fail("an interruption is no error of a doc"))
    model.loaded.forward.run = counting = Failing(forward, set())
    list(nlp.pipe(TEXTS, batch_size=1))
    model.loaded.forward.run = Failing(forward, {counting.calls // 2}, KeyboardInterrupt())
    stream = nlp.pipe(TEXTS, batch_size=1)
    done = []
    with pytest.raises(KeyboardInterrupt):
        for doc in stream:
            done.append(doc.text)
    assert 0 < len(done) < len(TEXTS) and done == TEXTS[: len(done)]
    model.loaded.forward.run = forward
    for doc in nlp.pipe(TEXTS):
        np.testing.assert_allclose(scores(doc), expected[doc.text], atol=1e-5)


def test_interrupted_while_it_is_loaded(model_folder, monkeypatch):
    model = masked_model(str(model_folder("bert")), mixed_precision=True)
    before = dict(vars(model))
    monkeypatch.setattr(Forward, "run", Failing(None, {1}, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        model.load()
    assert not model.loaded and vars(model) == before
    monkeypatch.undo()
    model.load()
    assert model.loaded and model.loaded.forward.precision == "bfloat16" and model.load().rows.pads


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_log_probabilities_that_are_not_finite_are_never_stored(make_nlp, expected, value):
    """They reach the error handler with their own doc; its neighbours are scored."""
    nlp = make_nlp()
    nlp.initialize()
    model = nlp.get_pipe("pll").model
    original, bad = model.log_probabilities, model.load().tokenizer.encode("hooligans").ids[1]

    def sometimes(batch):
        log_probs = original(batch)[0].clone()
        log_probs[batch.target == bad] = value
        return (log_probs,)

    model.log_probabilities = sometimes
    blamed, docs = {}, [nlp.make_doc(text) for text in TEXTS]
    nlp.set_error_handler(lambda name, scorer, failed, error: blamed.update((doc.text, str(error)) for doc in failed))
    found = {doc.text for doc in nlp.pipe(docs)}
    assert SENTENCES[1] in blamed and "not finite" in blamed[SENTENCES[1]] and SENTENCES[1][:30] in blamed[SENTENCES[1]]
    assert found | {*blamed} == {*TEXTS} and not found & {*blamed}
    for doc in docs:
        values = [token._.pll for token in doc]
        if doc.text in blamed:
            assert values == [None] * len(doc)
        else:
            np.testing.assert_allclose(values, expected[doc.text], atol=1e-5)


# Files


@pytest.fixture
def folder(make_nlp, tmp_path):
    make_nlp("bert").to_disk(tmp_path / "pipeline")
    return tmp_path / "pipeline"


def test_a_missing_or_truncated_file_of_a_saved_pipeline_is_named(folder):
    weights = folder / "pll" / "model" / "model.safetensors"
    whole = weights.read_bytes()
    for content in (whole[:-1000], b""):
        weights.write_bytes(content)
        with pytest.raises(OSError, match="weights of '.*model.safetensors' cannot be read.*again"):
            spacy.load(folder)
    weights.unlink()
    with pytest.raises(OSError, match="(?s)weights of .* cannot be read.*model.safetensors"):
        spacy.load(folder)
    weights.write_bytes(whole)
    spacy.load(folder)


def test_a_damaged_file_of_a_hugging_face_folder_is_named(folder, make_nlp, tmp_path):
    source = folder / "pll" / "model"

    def load(name):
        nlp = spacy.blank("en")
        nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(name)}})
        nlp.initialize()

    weights = source / "model.safetensors"
    whole = weights.read_bytes()
    for content in (whole[:-1000], b"", b"x" * 100):
        weights.write_bytes(content)
        with pytest.raises(OSError, match="weights of '.*model.safetensors' cannot be read.*again"):
            load(source)
    weights.unlink()
    with pytest.raises(OSError, match="(?s)weights of .* cannot be read.*model.safetensors"):
        load(source)
    # in several files, of which one is gone
    sharded = tmp_path / "sharded"
    build_transformer("bert", get_tokenizer("wordpiece")).save_pretrained(sharded, max_shard_size="20KB")
    get_tokenizer("wordpiece").save_pretrained(sharded)
    load(sharded)
    shard = sorted(sharded.glob("model-*.safetensors"))[1]
    shard.unlink()
    with pytest.raises(OSError, match=shard.name):
        load(sharded)


def test_weights_that_lack_a_tensor_are_refused(folder):
    weights = folder / "pll" / "model" / "model.safetensors"
    tensors = load_file(weights)
    del tensors["bert.encoder.layer.1.output.dense.weight"]
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ValueError, match="no trained weights for bert.encoder.layer.1.output.dense.weight"):
        spacy.load(folder)


def test_a_pipeline_of_which_the_model_is_gone(folder):
    """Its config names where the model came from; that is what is loaded, or what the error names."""
    config = (folder / "config.cfg").read_text()
    name = json.loads(next(line for line in config.splitlines() if line.startswith("name = ")).split(" = ")[1])
    (folder / "config.cfg").write_text(config.replace(name, "no-such/model"))
    shutil.rmtree(folder / "pll" / "model")
    nlp = spacy.load(folder)
    with pytest.raises(OSError, match="'no-such/model' was not found"):
        nlp("A text.")
