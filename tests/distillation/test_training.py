"""Students of tiny random teachers: that they learn, and that a run that was stopped ends as if it had not been."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from spacy_pll.corpus.readers import InputError
from spacy_pll.distillation import training
from spacy_pll.distillation.labels import make_examples
from spacy_pll.distillation.runs import distill, load_teacher, make_trainer, training_folder
from spacy_pll.distillation.settings import DistillationSettings
from spacy_pll.distillation.training import Trainer, TrainingError, distillation_loss, rate_factor
from spacy_pll.language_model.card import card_languages
from spacy_pll.language_model.student_card import read_card
from spacy_pll.pipelines import PipelineSettings, make_pipeline

from ..conftest import SENTENCES
from ..reference import load_model


def nothing(settings, student, held_out):
    """In place of the last measurement, which takes longer than the training here."""
    return {}


def weights(folder):
    return load_file(folder / "model.safetensors")


def same(first, second):
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


class Stopped(Exception):
    pass


def stop_at(step):
    def watch(progress, share):
        if progress.step == step:
            raise Stopped

    return watch


def without_time(curve):
    return [{key: value for key, value in one.items() if key != "seconds"} for one in curve]


def test_a_student_learns_the_exact_scores(make_settings, tmp_path):
    card = distill(make_settings(steps=150, batch_tokens=512, eval_every=50), tmp_path / "student")
    curve = card.training["curve"]
    assert [one["step"] for one in curve] == [0, 50, 100, 150]
    # Before the training the student is the teacher, which was not made to read its targets.
    assert curve[0]["r"] < 0.8 and curve[-1]["r"] > 0.97
    assert curve[-1]["mean_absolute_difference"] < curve[0]["mean_absolute_difference"] / 3
    levels = card.agreement["levels"]
    assert levels["piece"]["r"] > 0.97 and levels["text mean per piece"]["r"] > 0.9
    assert read_card(str(tmp_path / "student")) == card
    assert (
        "r" in (tmp_path / "student" / "README.md").read_text() and not training_folder(tmp_path / "student").exists()
    )
    assert {tensor.dtype for tensor in weights(tmp_path / "student").values()} == {torch.float16}
    doc = make_pipeline(PipelineSettings(str(tmp_path / "student"), one_pass=True))(SENTENCES[0])
    assert doc._.pll < 0


def test_a_few_pass_student_learns_what_other_masks_take_away(make_settings, tmp_path):
    settings = make_settings(steps=150, batch_tokens=512, eval_every=150, mask_spacing=2)
    card = distill(settings, tmp_path / "student", measure=nothing)
    before, after = card.training["curve"]
    assert card.mask_spacing == 2
    assert after["r"] > before["r"] and after["mean_absolute_difference"] < 0.8 * before["mean_absolute_difference"]


@pytest.mark.parametrize("mask_spacing", [None, 3])
def test_a_resumed_run_is_the_same_to_the_last_bit(make_settings, tmp_path, mask_spacing):
    settings = make_settings(mask_spacing=mask_spacing, steps=8)
    whole = distill(settings, tmp_path / "whole", measure=nothing)
    for step in (4, 7):
        with pytest.raises(Stopped):
            distill(settings, tmp_path / "parts", resume=step > 4, measure=nothing, watch=stop_at(step))
        assert not (tmp_path / "parts").exists()
    parts = distill(settings, tmp_path / "parts", resume=True, measure=nothing)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert without_time(parts.training["curve"]) == without_time(whole.training["curve"])
    assert parts.training["pieces"] == whole.training["pieces"] and parts.steps == 8
    other = distill(replace(settings, seed=1), tmp_path / "other", measure=nothing)
    assert not same(weights(tmp_path / "whole"), weights(tmp_path / "other")) and other.steps == 8


KILLED = """
import sys
from pathlib import Path
import torch
from spacy_pll.distillation.runs import distill
from spacy_pll.distillation.settings import DistillationSettings
torch.set_num_threads(1)
settings = DistillationSettings(sys.argv[1], corpus=sys.argv[2], steps=40, batch_tokens=128, eval_every=3, lr=2e-3)
def watch(progress, share):
    print(progress.step, flush=True)
distill(settings, Path(sys.argv[3]), resume=True, watch=watch, measure=lambda *arguments: {})
"""


@pytest.mark.slow
def test_a_killed_run_resumes(make_settings, tmp_path):
    settings = make_settings(steps=40)
    distill(settings, tmp_path / "whole", measure=nothing)
    command = [sys.executable, "-c", KILLED, settings.teacher, settings.corpus, str(tmp_path / "killed")]
    for seen in ("7", "20"):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        while process.stdout.readline().strip() != seen:
            time.sleep(0)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (tmp_path / "killed").exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert same(weights(tmp_path / "whole"), weights(tmp_path / "killed"))


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert", "deberta-v2", "distilbert", "fnet"])
def test_gradients_are_those_of_all_logits(make_settings, tmp_path, architecture):
    """The head runs at the targets only, which changes neither the loss nor a gradient."""
    settings = make_settings(architecture)
    distill(settings, tmp_path / "student", measure=nothing, watch=lambda progress, share: None)
    teacher = load_teacher(settings)
    texts = [teacher.tokenizer.encode(text) for text in SENTENCES[:1]]
    context = _context(texts[0])
    examples = make_examples([context], "word_l2r", None, distance=4, passes=2, max_targets=100,
                             mask_id=teacher.mask_id, pad_id=teacher.pad_id, rng=np.random.default_rng(0))  # fmt: skip
    results = []
    for narrowing in (teacher.loaded.forward.narrowing, None):
        trainer = Trainer(settings, teacher, _Texts(), {}, tmp_path)
        trainer.forward.narrowing = narrowing
        logits = trainer.forward.logits(
            examples.student_ids, examples.student_lengths, examples.student_row, examples.position
        )[0]
        loss = distillation_loss(logits, logits.detach().flip(0), torch.from_numpy(examples.target), 0.25, 0.1)
        loss.backward()
        results.append((loss.item(), {name: p.grad for name, p in trainer.model.named_parameters()}))
    (narrow, gradients), (full, expected) = results
    assert narrow == pytest.approx(full, rel=1e-4)
    for name, gradient in expected.items():
        if gradient is not None:
            torch.testing.assert_close(gradients[name], gradient, atol=1e-4, rtol=1e-3, msg=name)
    assert sum(gradient is not None for gradient in gradients.values()) > 5


def _context(encoding):
    from spacy_pll.scoring.windows import Context

    special = np.array(encoding.special_tokens_mask, dtype=bool)
    own = np.flatnonzero(~special)
    word = np.array([i for i in encoding.word_ids if i is not None])
    return Context(np.array(encoding.ids, dtype=np.int32), own[0], word, np.ones(len(own), dtype=bool), 0, 0)


class _Texts:
    """No texts at all."""

    held_out = train = np.zeros(0, dtype=int)

    def lengths(self, contexts):
        return np.zeros(0, dtype=int)


@pytest.mark.parametrize("normalisation", [0.0, 0.1])
def test_the_loss_is_what_the_docs_say(normalisation):
    generator = torch.Generator().manual_seed(0)
    given, wanted = (3 * torch.randn(4, 9, generator=generator) for _ in range(2))
    target = torch.tensor([0, 3, 8, 1])
    total = 0.0
    for row in range(4):
        p, q = wanted[row].softmax(0), given[row].softmax(0)
        log_z = math.log(given[row].exp().sum())
        divergence = sum(p[i] * (math.log(p[i]) - math.log(q[i])) for i in range(9))
        score = float(given[row, target[row]]) if normalisation else math.log(q[target[row]])
        error = abs(math.log(p[target[row]]) - score)
        total += divergence + 0.25 * (error**2 / 2 if error < 1 else error - 0.5) + normalisation * log_z**2
    assert distillation_loss(given, wanted, target, 0.25, normalisation).item() == pytest.approx(
        float(total) / 4, rel=1e-5
    )
    normal = wanted.log_softmax(1)
    assert distillation_loss(normal, wanted, target, 0.25, normalisation).item() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("normalisation", [0.0, 0.1])
def test_self_normalised_scores_are_close_to_normalised_ones(make_settings, tmp_path, normalisation):
    settings = make_settings(steps=60, batch_tokens=512, eval_every=60, normalisation=normalisation)
    card = distill(settings, tmp_path / "student", measure=nothing)
    assert card.self_normalised == (normalisation > 0) and card.training["curve"][-1]["r"] > 0.9
    nlp = make_pipeline(PipelineSettings(str(tmp_path / "student"), one_pass=True, keep_pieces=True))
    model, tokenizer = load_model(str(tmp_path / "student"))
    ids = tokenizer(SENTENCES[0], return_tensors="pt").input_ids
    with torch.inference_mode():
        logits = model.float()(input_ids=ids).logits[0]
    found = nlp(SENTENCES[0])._.pll_data["scores"]["word_l2r"]
    true = logits.gather(1, ids[0, :, None])[1:-1, 0]
    log_z = logits.logsumexp(1)[1:-1]
    np.testing.assert_allclose(found, true if normalisation else true - log_z, atol=2e-5)
    assert not normalisation or log_z.abs().mean() < 0.2


def test_the_learning_rate_rises_and_falls():
    factors = [rate_factor(step, step / 50, 50) for step in range(50)]
    assert factors[0] == pytest.approx(0.2) and factors[4:] == sorted(factors[4:], reverse=True)
    assert factors[-1] == pytest.approx(0.02)
    assert rate_factor(9, 0.0, None) == pytest.approx(0.1) and rate_factor(500, 0.5, None) == 0.5


def test_minutes_end_a_run(make_settings, tmp_path):
    card = distill(make_settings(steps=None, minutes=1e-4), tmp_path / "student", measure=nothing)
    assert 1 <= card.steps < 50 and card.training["steps"] is None


def test_bfloat16_trains_as_well(make_settings, tmp_path):
    settings = make_settings(steps=60, batch_tokens=512, eval_every=60, precision="bfloat16")
    before, after = distill(settings, tmp_path / "student", measure=nothing).training["curve"]
    assert after["r"] > 0.9 > before["r"]


def test_a_loss_that_is_not_finite_stops_and_keeps_the_checkpoint(make_settings, tmp_path, monkeypatch):
    real, calls = training.distillation_loss, []

    def loss(*arguments):
        calls.append(1)
        return real(*arguments) * (float("nan") if len(calls) == 5 else 1)

    monkeypatch.setattr(training, "distillation_loss", loss)
    settings = make_settings()
    with pytest.raises(TrainingError, match="loss is nan at step 5, so.*last good checkpoint is kept: .*lower --lr"):
        distill(settings, tmp_path / "student", measure=nothing)
    assert not (tmp_path / "student").exists()
    card = distill(settings, tmp_path / "student", resume=True, measure=nothing)
    monkeypatch.setattr(training, "distillation_loss", real)
    distill(settings, tmp_path / "whole", measure=nothing)
    assert card.steps == 6 and same(weights(tmp_path / "student"), weights(tmp_path / "whole"))


def test_too_little_memory(make_settings, tmp_path, monkeypatch):
    def fail(*arguments):
        raise torch.OutOfMemoryError("out of memory: tried to allocate 80 GiB")

    monkeypatch.setattr(training, "distillation_loss", fail)
    with pytest.raises(TrainingError, match="128 wordpieces does not fit into the memory of cpu.*--batch-tokens"):
        distill(make_settings(), tmp_path / "student", measure=nothing)


def test_another_run_is_not_continued(make_settings, tmp_path, corpus):
    with pytest.raises(Stopped):
        distill(make_settings(), tmp_path / "student", measure=nothing, watch=stop_at(3))
    with pytest.raises(FileExistsError, match="student.training contains an unfinished run. Continue it with --resume"):
        distill(make_settings(), tmp_path / "student", measure=nothing)
    with pytest.raises(TrainingError, match="cannot be resumed, because this has changed: seed: it was 0, and"):
        distill(make_settings(seed=1), tmp_path / "student", resume=True, measure=nothing)
    checkpoint = training_folder(tmp_path / "student") / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    with pytest.raises(OSError, match="checkpoint.safetensors is damaged"):
        distill(make_settings(), tmp_path / "student", resume=True, measure=nothing)


def test_what_cannot_be_trained(make_settings, tmp_path, model_folder, monkeypatch):
    (tmp_path / "there").mkdir()
    with pytest.raises(FileExistsError, match="there exists already. Give another folder, or remove it"):
        distill(make_settings(), tmp_path / "there")
    with pytest.raises(InputError, match="There is no file or folder 'nowhere'"):
        distill(make_settings(corpus="nowhere"), tmp_path / "student")
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(InputError, match="nothing to train on"):
        distill(make_settings(corpus=str(tmp_path / "empty.txt")), tmp_path / "student")
    assert not training_folder(tmp_path / "student").exists()
    with pytest.raises(ValueError, match="'sentence_l2r' cannot be distilled"):
        make_settings(metric="sentence_l2r")
    for name in ("steps", "batch_tokens", "lr"):
        with pytest.raises(ValueError, match=f"`{name}` must be more than 0. It is 0"):
            make_settings(**{name: 0})
    with pytest.raises(ValueError, match="Unknown unit of words 'words'"):
        make_settings(words="words")
    with pytest.raises(OSError, match="nowhere"):
        distill(DistillationSettings(str(tmp_path / "nowhere"), make_settings().corpus), tmp_path / "student")


def test_a_teacher_that_is_not_masked(make_settings, tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    from ..conftest import get_tokenizer

    tokenizer = get_tokenizer("wordpiece")
    sizes = dict(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=2, n_positions=64)
    GPT2LMHeadModel(GPT2Config(**sizes)).save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    settings = DistillationSettings(str(tmp_path / "gpt2"), make_settings().corpus)
    with pytest.raises(ValueError, match="transformers has no masked language model"):
        distill(settings, tmp_path / "student")
    assert json.loads((tmp_path / "gpt2" / "config.json").read_text())["model_type"] == "gpt2"


def test_the_card_names_the_languages_of_the_teacher(make_settings, model_folder, tmp_path):
    teacher = shutil.copytree(model_folder("bert"), tmp_path / "teacher")
    (teacher / "README.md").write_text("---\nlanguage: [de, fr]\n---\n# A model\n")
    distill(replace(make_settings(), teacher=str(teacher)), tmp_path / "student", measure=nothing)
    assert card_languages(str(tmp_path / "student"), None) == {"de", "fr"}
    distill(make_settings(), tmp_path / "other", measure=nothing)
    assert card_languages(str(tmp_path / "other"), None) == frozenset()


def test_the_training_of_a_student_goes_on(make_settings, model_folder, tmp_path):
    first = distill(make_settings(steps=60, eval_every=60), tmp_path / "first", measure=nothing)
    settings = make_settings(steps=20, eval_every=20, init=str(tmp_path / "first"))
    second = distill(settings, tmp_path / "second", measure=nothing)
    before, after = first.training["curve"], second.training["curve"]
    assert after[0]["r"] == pytest.approx(before[-1]["r"], abs=0.002)  # the weights are stored in float16
    assert after[0]["r"] > before[0]["r"] + 0.1
    assert second.training["init"]["folder"] == str(tmp_path / "first") and "init" not in first.training
    with pytest.raises(ValueError, match="its metric is 'word_l2r', and that of this run is 'original'"):
        distill(replace(settings, metric="original"), tmp_path / "third")
    assert not training_folder(tmp_path / "third").exists()
    with pytest.raises(ValueError, match="its mask_spacing is None, and that of this run is 4"):
        distill(replace(settings, mask_spacing=4), tmp_path / "fourth")
    with pytest.raises(OSError, match="has no one_pass.json"):
        distill(replace(settings, init=str(model_folder("bert"))), tmp_path / "fifth")


def test_a_student_is_moved_to_another_teacher(make_settings, model_folder, tmp_path):
    """It begins with teacher + (student - its teacher), and agrees better than a copy of the teacher."""
    first, student = tmp_path / "teacher", tmp_path / "student"
    shutil.copytree(model_folder("bert"), first)
    distill(replace(make_settings(steps=60, eval_every=60), teacher=str(first)), student, measure=nothing)
    second = shutil.copytree(first, tmp_path / "second")
    rng = torch.Generator().manual_seed(0)
    tuned = {name: weight + 0.01 * torch.randn(weight.shape, generator=rng) for name, weight in weights(first).items()}
    save_file(tuned, second / "model.safetensors", {"format": "pt"})

    settings = make_settings(steps=1, init=str(student), init_teacher=str(first))
    settings = replace(settings, teacher=str(second))
    trainer = make_trainer(settings, load_teacher(settings), tmp_path / "run")
    parameters = dict(trainer.model.named_parameters())
    for name, before in weights(first).items():
        wanted = tuned[name] + weights(student)[name].float() - before
        torch.testing.assert_close(parameters[name].data, wanted)
    card = distill(settings, tmp_path / "moved", measure=nothing)
    plain = distill(replace(settings, init=None, init_teacher=None), tmp_path / "plain", measure=nothing)
    assert card.training["curve"][0]["r"] > plain.training["curve"][0]["r"] + 0.1
    assert card.training["init_teacher"]["folder"] == str(first) and card.teacher["folder"] == str(second)

    with pytest.raises(ValueError, match="was trained from another teacher than .*second.*: its card has the digest"):
        distill(replace(settings, init_teacher=str(second)), tmp_path / "other")
    with pytest.warns(UserWarning, match="was trained from another teacher .* the digest .* with --init-teacher"):
        make_trainer(replace(settings, init_teacher=None), load_teacher(settings), tmp_path / "warned")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*another teacher")
        own = replace(settings, teacher=str(first), init_teacher=None)
        make_trainer(own, load_teacher(own), tmp_path / "own")
    with pytest.raises(ValueError, match="`init_teacher` is .*, but there is no `init`"):
        replace(settings, init=None)
    small = BertForMaskedLM(BertConfig.from_pretrained(first, num_hidden_layers=1))
    small.save_pretrained(shutil.copytree(first, tmp_path / "small"))
    with pytest.raises(ValueError, match="the same layers, widths and vocabulary"):
        distill(replace(settings, teacher=str(tmp_path / "small")), tmp_path / "other")
    assert not training_folder(tmp_path / "other").exists()
