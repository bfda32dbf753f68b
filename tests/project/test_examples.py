"""The Python files of examples/ that belong to other libraries: gpt_bert.py is tested in surfaces/test_code.py."""

import importlib.util
from copy import deepcopy
from pathlib import Path

import pytest
import torch
import transformers

from spacy_pll import make_pipeline, minimal_pairs

from ..conftest import SENTENCES, build_transformer, get_tokenizer

ROOT = Path(__file__).parents[2]
PAIRS = [("The traveler lost the souvenir.", "The traveler lost the souvenirs."), ("It lost.", "It losts.")]
EVERY, STEPS = 2, 6


@pytest.fixture
def example():
    path = ROOT / "examples" / "pairs_in_training.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Accuracies(transformers.TrainerCallback):
    """What a copy of the model gives for the pairs, and what the model is after each step, behind the example."""

    def __init__(self):
        self.expected, self.modes, self.weights, self.random = [], [], [], []

    def on_step_end(self, args, state, control, *, model, processing_class, **others):
        self.modes.append([module.training for module in model.modules()])
        self.weights.append(torch.cat([weight.detach().flatten() for weight in model.parameters()]))
        self.random.append(torch.get_rng_state())
        copy = type(model)(model.config)
        copy.load_state_dict(model.state_dict())
        torch.set_rng_state(self.random[-1])
        (one,) = minimal_pairs(make_pipeline((copy.eval(), processing_class)), PAIRS).measurements()
        self.expected.append(one.value)


def by_trainer(model, tokenizer, rows, callbacks, folder):
    pytest.importorskip("accelerate", reason="accelerate is not installed: pip install . --group test-all")
    options = {"max_steps": STEPS, "logging_steps": 1, "learning_rate": 0.05, "per_device_train_batch_size": 2}
    arguments = transformers.TrainingArguments(
        str(folder), **options, report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True
    )
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, processing_class=tokenizer)
    for callback in callbacks:
        trainer.add_callback(callback)
    trainer.train()
    return trainer.state.log_history, [one["loss"] for one in trainer.state.log_history if "loss" in one]


def by_hand(model, tokenizer, rows, callbacks, folder):
    """A loop that calls the callbacks as `Trainer` does, which needs accelerate."""
    torch.manual_seed(42)
    state = transformers.TrainerState()
    optimizer = torch.optim.AdamW(model.train().parameters(), lr=0.05)
    losses = []
    for state.global_step in range(1, STEPS + 1):
        row = rows[state.global_step % len(rows)]
        loss = model(**{name: torch.tensor([values]) for name, values in row.items()}).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        for callback in callbacks:
            callback.on_step_end(None, state, None, model=model, processing_class=tokenizer, optimizer=optimizer)
    return state.log_history, losses


@pytest.mark.parametrize("train", [by_hand, by_trainer])
def test_pairs_in_training_change_no_loss_and_no_weight(train, example, tmp_path, capsys):
    tokenizer = deepcopy(get_tokenizer("wordpiece"))  # other tests use the same one, and a call is remembered
    rows = [dict(tokenizer(text, padding="max_length", max_length=24, truncation=True)) for text in SENTENCES[:4]]
    rows = [{**row, "labels": row["input_ids"]} for row in rows]
    found = []
    for callbacks in ([example.PairsInTraining(PAIRS, EVERY)], []):
        model = build_transformer("bert", tokenizer, hidden_dropout_prob=0.3)  # the state of dropout counts, too
        after = Accuracies()
        log, losses = train(model, tokenizer, rows, [*callbacks, after], tmp_path)
        found.append((losses, after, [one for one in log if "pairs_word_l2r" in one]))
    (losses, after, scored), (losses_without, without, none) = found
    assert losses == losses_without and len(set(losses)) == STEPS
    assert all(map(torch.equal, after.weights, without.weights))
    assert all(map(torch.equal, after.random, without.random))
    assert after.modes == without.modes and all(map(all, after.modes))
    assert not none and [one["step"] for one in scored] == [2, 4, 6]
    assert [one["pairs_word_l2r"] for one in scored] == after.expected[EVERY - 1 :: EVERY]
    assert capsys.readouterr().out.count("'pairs_word_l2r'") == len(scored)
