"""Training of tiny models: the loss, the schedule, checkpoints."""

import resource

import numpy as np
import pytest
import spacy
import torch

from scripts.tuning.examples import draw_parts
from scripts.tuning.runs import load_model
from scripts.tuning.texts import ContextMaker, sample_passages
from scripts.tuning.training import Trainer, divergence, rate_factor

from ..corpus.reading import read_records


@pytest.fixture
def make_trainer(make_settings, tmp_path):
    def make(architecture="bert", identity=None, **settings):
        settings = make_settings(architecture, **settings)
        frozen, tuned = load_model(settings), load_model(settings)
        loaded = frozen.load()
        passages = sample_passages(read_records(settings.texts), loaded.tokenizer, 0).train
        make_contexts = ContextMaker(spacy.blank("en"), loaded.tokenizer, "spacy", loaded.max_length)
        return Trainer(settings, frozen, tuned, passages, make_contexts, identity or {}, tmp_path / "c.pt")

    return make


def weights(trainer):
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters()}


def test_divergence():
    p, q = torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[0.25, 0.75], [0.5, 0.5]])
    expected = [0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75), np.log(2)]
    found = divergence(p.clamp(min=1e-30).log(), q.log() + 3)  # logits need not be normalised
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert torch.allclose(divergence(q.log(), q.log()), torch.zeros(2), atol=1e-6)


def test_the_schedule():
    factors = [rate_factor(step, 1000) for step in range(1000)]
    assert factors[0] == pytest.approx(1 / 20) and max(factors) == factors[19] == pytest.approx(0.981)
    assert factors[19:] == sorted(factors[19:], reverse=True) and 0 < factors[-1] < 0.002
    assert rate_factor(0, 1) == 1


def test_the_loss_decreases(make_trainer):
    trainer = make_trainer(targets=60)
    parts = draw_parts(trainer.passages, trainer.make_contexts, trainer.settings, np.random.default_rng(0))
    losses = [trainer.step(parts, np.random.default_rng(0))[0] for _ in range(25)]
    assert losses[0] > 0.05 and losses[-1] < 0.7 * losses[0]


def test_exact_scores_are_kept(make_trainer):
    """The term on exactly masked rows is 0 at first, and its gradient holds the exact scores where they were."""
    trainer = make_trainer(targets=60)
    parts = draw_parts(trainer.passages, trainer.make_contexts, trainer.settings, np.random.default_rng(0))
    in_groups, exactly = trainer.step(parts, np.random.default_rng(0))
    assert in_groups > 1e-5 and abs(exactly) < 1e-6
    assert trainer.step(parts, np.random.default_rng(0))[1] > 1e-9


def test_the_frozen_model_does_not_change(make_trainer):
    trainer = make_trainer()
    before = {name: value.clone() for name, value in trainer.frozen.load().checkpoint.transformer.state_dict().items()}
    trainer.train()
    after = trainer.frozen.load().checkpoint.transformer.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    tuned = trainer.model.state_dict()
    assert not all(torch.equal(before[name], tuned[name]) for name in before)


def test_a_resumed_run_is_the_same(make_trainer):
    whole = make_trainer(steps=5)
    whole.train()
    whole.path.unlink()
    stopped = make_trainer(steps=5)

    def stop(progress):
        if progress.step == 2:
            stopped.save()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.train(stop)
    resumed = make_trainer(steps=5)
    assert resumed.resume() and resumed.progress.step == 2
    resumed.train()
    expected, found = weights(whole), weights(resumed)
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert whole.progress == resumed.progress


def test_a_full_disk_keeps_the_checkpoint_before(make_trainer):
    trainer = make_trainer()
    trainer.save()
    before = trainer.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(OSError, match="c.pt cannot be written: File too large"):
            trainer.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert trainer.path.read_bytes() == before


def test_another_run_is_not_resumed(make_trainer):
    trainer = make_trainer(identity={"seed": 0})
    assert not trainer.resume()
    trainer.save()
    with pytest.raises(ValueError, match="cannot be resumed.*seed: it was 0, and is now 1"):
        make_trainer(identity={"seed": 1}).resume()
    trainer.path.write_bytes(trainer.path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="is damaged. Delete its folder"):
        trainer.resume()


def test_a_loss_that_is_not_finite_stops_the_run(make_trainer):
    trainer = make_trainer(steps=2)
    next(trainer.model.parameters()).data.fill_(torch.nan)
    with pytest.raises(ValueError, match="The loss is nan at step 1.*no checkpoint yet.*lower --learning-rate"):
        trainer.train()
