"""A run from start to finish: the folder, its card, and what is refused."""

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

from scripts.tuning import training
from scripts.tuning.runs import training_folder, tune
from scripts.tuning.settings import TuningSettings
from spacy_pll import InputError, make_pipeline

from ..conftest import SENTENCES


@pytest.fixture
def output(tmp_path):
    return tmp_path / "tuned"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_tuned_model_is_an_ordinary_checkpoint(make_settings, output):
    settings = make_settings()
    rows = tune(settings, output)
    assert not training_folder(output).exists()
    model, report = AutoModelForMaskedLM.from_pretrained(output, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    before = AutoModelForMaskedLM.from_pretrained(settings.model)
    ids = AutoTokenizer.from_pretrained(output)(SENTENCES[0], return_tensors="pt")
    with torch.no_grad():
        difference = (model(**ids).logits - before(**ids).logits).abs().max()
    assert 1e-4 < difference
    for margin in (None, 0):
        nlp = make_pipeline(str(output), mask_margin=margin)
        assert nlp(SENTENCES[0])._.pll < 0
    card = (output / "README.md").read_text()
    assert "--mask-margin 0" in card and '"mask_margin": 0' in card and "- steps: 4\n" in card
    of_texts = [row for row in rows if row["on"] == "texts"]
    assert [(row["mask_margin"], row["model"]) for row in of_texts] == [
        (0, "before"), (0, "after"), (1, "before"), (1, "after"), (None, "after")
    ]  # fmt: skip
    for row in rows:
        assert 0 < row["r"] < 1 and f"{row['r']:.4f}" in card


def test_the_weights_keep_the_data_type_that_they_had_on_file(make_settings, output, tmp_path):
    settings = make_settings()
    half = tmp_path / "half"
    AutoModelForMaskedLM.from_pretrained(settings.model).half().save_pretrained(half)
    AutoTokenizer.from_pretrained(settings.model).save_pretrained(half)
    tune(make_settings(model=str(half)), output)
    size = (output / "model.safetensors").stat().st_size
    assert size < 1.1 * (half / "model.safetensors").stat().st_size


def test_a_resumed_run_writes_the_same_files(make_settings, output, tmp_path, monkeypatch):
    settings = make_settings()
    tune(settings, output)
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0)
    other = tmp_path / "other" / output.name

    def stop(progress):
        if progress.step == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(settings, other, watch=stop)
    with pytest.raises(ValueError, match="cannot be resumed.*seed: it was 0, and is now 1"):
        tune(make_settings(seed=1), other)
    steps = []
    tune(settings, other, watch=lambda progress: steps.append(progress.step))
    assert steps == [3, 4] and files(other) == files(output)
    with pytest.raises(FileExistsError, match="tuned exists already"):
        tune(settings, other)


def test_texts_to_measure_on(make_settings, output, tmp_path):
    dev = tmp_path / "dev.txt"
    dev.write_text("\n\n".join(SENTENCES))
    rows = tune(make_settings(dev_texts=str(dev), margins=[2], metrics=["original"]), output)
    assert {row["on"] for row in rows} == {"texts"}  # none has a neighbour
    assert {row["mask_margin"] for row in rows} == {2, None}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (dict(texts="nowhere"), InputError, "There is no file or folder 'nowhere'"),
        (dict(dev_texts="-"), InputError, "There is no file or folder '-'"),
        (dict(model="nowhere"), OSError, "The model 'nowhere' was not found"),
    ],
)
def test_what_is_not_there(make_settings, output, settings, error, message):
    with pytest.raises(error, match=message):
        tune(make_settings(**settings), output)
    assert not output.exists() and not training_folder(output).exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            dict(metrics=["sentence_l2r"]),
            "cannot be tuned for the metric 'sentence_l2r'.*original.*whole_word",
        ),
        (dict(metrics=["word_any_order"]), "cannot be tuned for the metric 'word_any_order'"),
        (dict(metrics=["nonsense"]), "Unknown PLL metric 'nonsense'"),
        (dict(metrics=[]), "`metrics` must name at least one metric"),
        (dict(margins=[1, 1]), r"`margins` must be numbers from 0, each only once. They are \[1, 1\]"),
        (dict(margins=[0, -1]), r"`margins` must be numbers from 0, each only once. They are \[0, -1\]"),
        (dict(words="syllables"), "`words` must be .*'syllables'"),
        (dict(precision="float8"), "`precision` must be float32 or bfloat16. It is 'float8'"),
        (dict(steps=0), "`steps` must be more than 0. It is 0"),
        (dict(learning_rate=-1.0), "`learning_rate` must be more than 0"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        TuningSettings(None, "texts.txt", **settings)


def test_models_that_cannot_be_tuned(make_settings, model_folder, output):
    with pytest.raises(ValueError, match="left-to-right model.*Choose a masked language model"):
        tune(make_settings(model=str(model_folder("bert", is_decoder=True))), output)
    with pytest.raises(ValueError, match="cannot read all masks .*`mask_margin`"):
        tune(make_settings(model=str(model_folder("fnet"))), output)
    assert not output.exists() and not training_folder(output).exists()


def test_the_learning_rate_of_wider_models_is_lower(make_settings, language_model):
    narrow = language_model("bert")
    assert TuningSettings(None, "").highest_rate(narrow) == 3e-4
    assert TuningSettings(None, "", learning_rate=1e-5).highest_rate(narrow) == 1e-5
    np.testing.assert_allclose(make_settings().learning_rate, 1e-3)
