"""The training script, in miniature: what it writes, and that a stopped run goes on as if it had not been stopped."""

import copy
import csv
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import spacy
import torch
import transformers
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

from scripts.builtin import batches, data, one_pass, train
from spacy_pll import make_pipeline

from ..conftest import BUILTIN, SENTENCES

ROOT = Path(__file__).parents[2]
TINY = (
    "--vocab-size 200 --layers 1 --width 64 --mlp 64 --batch-pieces 200 --warmup 2 --save-every 3 --steps 6"
    " --device cpu --workers 1"
)
NEEDS_TRANSFORMERS_5 = pytest.mark.skipif(
    transformers.__version__.startswith("4."),
    reason="a mask for each row, as training for one pass reads it, needs transformers 5",
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    lines = [f"{sentence} Line {i} of them." for i in range(300) for sentence in SENTENCES[:4]]
    (folder / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
    return folder


def skip_without_muon():
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("Muon, the optimizer of the training script, needs PyTorch 2.9 or later")


def run(monkeypatch, corpus, output, *more):
    skip_without_muon()
    arguments = ["train.py", str(corpus), str(output), *TINY.split(), *more]
    monkeypatch.setattr(sys, "argv", arguments)
    train.main()


def test_a_new_tokenizer_reads_text_as_the_built_in_one_does():
    made, builtin = (
        json.loads(tokenizer.backend_tokenizer.to_str())
        for tokenizer in (data.train_tokenizer(SENTENCES, 200), AutoTokenizer.from_pretrained(BUILTIN))
    )
    assert made["normalizer"] == builtin["normalizer"] and made["pre_tokenizer"] == builtin["pre_tokenizer"]


@pytest.mark.parametrize("average", ["0", "0.5"])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(monkeypatch, corpus, tmp_path, average):
    more = ("--average", average)
    run(monkeypatch, corpus, tmp_path / "whole", *more)
    # The vocabulary is taken over: the tokenizers library breaks ties between candidates at random.
    shutil.copytree(tmp_path / "whole" / "tokenizer", tmp_path / "parts" / "tokenizer")
    run(monkeypatch, corpus, tmp_path / "parts", *more, "--stop-after", "3")
    assert (tmp_path / "parts" / "checkpoint" / "state.json").exists()
    run(monkeypatch, corpus, tmp_path / "parts", *more)
    whole, parts = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
    assert {tensor.dtype for tensor in whole.values()} == {torch.float16}
    logs = [(tmp_path / name / "log.csv").read_text().splitlines() for name in ("whole", "parts")]
    without_seconds = [[line.rsplit(",", 1)[0] for line in log] for log in logs]
    assert without_seconds[0] == without_seconds[1] and len(logs[0]) == 3
    assert all(path.stat().st_size <= 15_000_000 for path in (tmp_path / "whole" / "checkpoint").iterdir())
    assert AutoModelForMaskedLM.from_pretrained(tmp_path / "whole" / "model").dtype == torch.float32
    assert AutoTokenizer.from_pretrained(tmp_path / "whole" / "model").mask_token == "[MASK]"


def check_alike(one: Path, other: Path):
    """Check that two runs gave the same weights and losses, but for the rounding of bfloat16."""
    weights = [load_file(run / "model" / "model.safetensors") for run in (one, other)]
    assert weights[0].keys() == weights[1].keys()
    far = {key: float((weights[0][key] - weights[1][key]).norm() / weights[0][key].norm()) for key in weights[0]}
    assert max(far.values()) < 0.05, far
    logs = [np.loadtxt(run / "log.csv", delimiter=",", skiprows=1) for run in (one, other)]
    np.testing.assert_allclose(logs[0][:, 2:4], logs[1][:, 2:4], rtol=1e-3)  # losses


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="there is no C++ compiler")
@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() in ("AVX2", "DEFAULT"),
    reason="PyTorch 2.13 compiles layers there whose losses are NaN, or that are not valid C++",
)
@pytest.mark.filterwarnings("default")  # the compiler of PyTorch warns about what it does itself
def test_compiled_layers_give_the_same_model(monkeypatch, corpus, tmp_path):
    run(monkeypatch, corpus, tmp_path / "plain")
    shutil.copytree(tmp_path / "plain" / "tokenizer", tmp_path / "compiled" / "tokenizer")
    run(monkeypatch, corpus, tmp_path / "compiled", "--compile")
    assert torch._dynamo.utils.counters["frames"]["ok"] > 0
    check_alike(tmp_path / "plain", tmp_path / "compiled")


@pytest.mark.slow
def test_processes_that_share_each_batch_give_the_same_model(monkeypatch, corpus, tmp_path):
    """Also if they go on from a checkpoint of one process, which a stop left between two moves."""
    run(monkeypatch, corpus, tmp_path / "alone")
    shutil.copytree(tmp_path / "alone" / "tokenizer", tmp_path / "shared" / "tokenizer")
    run(monkeypatch, corpus, tmp_path / "shared", "--stop-after", "3")
    (tmp_path / "shared" / "checkpoint").rename(tmp_path / "shared" / "checkpoint.old")
    command = [sys.executable, "-m", train.__name__, corpus, tmp_path / "shared", *TINY.split(), "--workers", "2"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert printed.count("held-out loss") == 1  # only the first process measures, and only step 6 is left
    check_alike(tmp_path / "alone", tmp_path / "shared")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_processes_end_with_the_first(corpus, tmp_path):
    """Also in a background job of a shell, which ignores the signal that they get."""
    skip_without_muon()
    more = ["--workers", "2", "--steps", "1000000", "--log-every", "1"]
    command = [sys.executable, "-m", train.__name__, corpus, tmp_path, *TINY.split(), *more]
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, ignored)
    while not next(process.stdout).startswith("step 2"):
        pass
    process.kill()
    process.communicate(timeout=60)  # ends when no process can write any more


def test_a_pytorch_without_muon(monkeypatch, corpus, tmp_path, capsys):
    """Nothing is written, and the message says what to type. AdamW needs nothing newer than the package does."""
    monkeypatch.delattr(torch.optim, "Muon", raising=False)
    arguments = ["train.py", str(corpus), str(tmp_path / "new"), *TINY.split(), "--stop-after", "1"]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        train.main()
    message = capsys.readouterr().err
    assert "needs PyTorch 2.9 or later" in message and torch.__version__ in message
    assert "pip install --upgrade torch" in message and not (tmp_path / "new").exists()
    monkeypatch.setattr(sys, "argv", [*arguments, "--optimizer", "adamw"])
    train.main()
    assert (tmp_path / "new" / "model" / "model.safetensors").is_file()


def test_one_pass_with_an_older_transformers(monkeypatch, corpus, tmp_path, capsys):
    monkeypatch.setattr(train.transformers, "__version__", "4.57.1")
    with pytest.raises(SystemExit):
        run(monkeypatch, corpus, tmp_path / "new", "--one-pass", "1")
    assert "--one-pass needs transformers 5, and this is 4.57.1" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_held_out_lines_are_few_and_always_the_same():
    lines = [f"line {i}" for i in range(100_000)]
    held_out = [line for line in lines if data.is_held_out(line)]
    assert 60 < len(held_out) < 140
    assert held_out == [line for line in lines if data.is_held_out(line)]


def test_batches_hold_every_line_once():
    lengths = np.random.default_rng(0).integers(3, 60, 500)
    offsets = np.cumsum([0, *lengths])
    batches = data.epoch_batches(offsets, 256, (0, 0))
    assert sorted(np.concatenate(batches)) == list(range(500))
    assert all(lengths[batch].max() * len(batch) <= 256 for batch in batches)


def test_words_are_masked_as_word_l2r_masks_them():
    words = [[5], [6, 10, 11], [7, 12], [8]] * 25  # pieces from 10 on continue a word
    ids = torch.tensor([[0, *(piece for word in words for piece in word), 1, 2]] * 40)
    begins_word = torch.arange(13) < 10
    found = data.choose_targets(ids, 5, 0.2, 0, begins_word, 1.0)
    assert not found[ids < 5].any()
    masked = []
    for row in found:
        parts = row[1:-2].split([len(word) for word in words])
        assert all((part.int().diff() >= 0).all() for part in parts)  # behind a masked piece, the rest is masked
        masked += [(len(part), int(part.sum())) for part in parts]
    counts = {pair: masked.count(pair) / 1000 for pair in set(masked)}  # 1,000 words of each of the four kinds
    expected = {(1, 0): 1.6, (1, 1): 0.4, (2, 0): 0.8, (3, 0): 0.8}
    expected |= {(2, n): 0.1 for n in (1, 2)} | {(3, n): 0.2 / 3 for n in (1, 2, 3)}
    assert counts == pytest.approx(expected, abs=0.04)
    pieces = data.choose_targets(ids, 5, 0.2, 0, begins_word)
    mixed = data.choose_targets(ids, 5, 0.2, 0, begins_word, 0.5)
    from_words = (mixed == found).all(dim=1)
    assert torch.equal(mixed[~from_words], pieces[~from_words]) and 8 < from_words.sum() < 32


@pytest.mark.parametrize("by_word", [0.0, 1.0])
def test_lines_with_few_masks(by_word):
    words = [[5], [6, 10, 11], [7, 12], [8]] * 10
    ids = torch.tensor([[0, *(piece for word in words for piece in word), 1, 2]] * 2000 + [[0, 5, 1, *[2] * 70]])
    begins_word = torch.arange(13) < 10
    found = data.choose_targets(ids, 5, 0.2, 3, begins_word, by_word, few_share=1.0)
    assert not found[ids < 5].any()
    assert found.any(dim=1).all()  # also in the line of one piece
    word = begins_word[ids].cumsum(dim=1)
    n_words = torch.tensor([len(line[hidden].unique()) for line, hidden in zip(word, found)])
    n = n_words if by_word else found.sum(dim=1)
    assert 0.2 < (n == 1).float().mean() < 0.6  # of 40 words, or 70 pieces
    assert n.max() > 8  # the rate goes up to 0.3
    of_words = data.choose_targets(ids, 5, 0.2, 3, begins_word, by_word)
    mixed = data.choose_targets(ids, 5, 0.2, 3, begins_word, by_word, few_share=0.4)
    few = (mixed != of_words).any(dim=1)
    assert torch.equal(mixed[few], found[few]) and 0.3 < few.float().mean() < 0.42


def test_learning_rate_rises_stays_and_falls():
    factors = [train.learning_rate_factor(step, 100, 10, 0.5) for step in range(100)]
    assert factors[0] == 0.1 and factors[9:50] == [1.0] * 41
    assert factors[50:] == sorted(factors[50:], reverse=True) and factors[-1] == pytest.approx(0.02)


@pytest.mark.parametrize("has_bias", [True, False])
def test_loss_and_gradients_of_the_head_are_those_of_cross_entropy(has_bias):
    generator = torch.Generator().manual_seed(0)
    hidden, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((70, 8), (50, 8), (50,)))
    target = torch.randint(50, (70,), generator=generator)
    inputs = [x.requires_grad_() for x in ((hidden, weight, bias) if has_bias else (hidden, weight))]
    expected = torch.nn.functional.cross_entropy(hidden @ weight.T + (bias if has_bias else 0), target, reduction="sum")
    found = train.HeadLoss.apply(hidden, weight, bias if has_bias else None, target, 16)
    torch.testing.assert_close(found, expected)
    for one, other in zip(torch.autograd.grad(3 * found, inputs), torch.autograd.grad(3 * expected, inputs)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    nothing = train.HeadLoss.apply(hidden[:0], weight, bias if has_bias else None, target[:0])  # a part of no targets
    assert nothing == 0 and not any(x.any() for x in torch.autograd.grad(nothing, inputs, allow_unused=True)[1:])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = train.HeadLoss.apply(hidden, weight, bias if has_bias else None, target)
    assert rounded.item() != expected.item() and rounded.item() == pytest.approx(expected.item(), rel=0.01)


def test_the_average_of_the_weights():
    model = torch.nn.Linear(1, 1, bias=False)
    values, average = [3.0, 5.0, 1.0], None
    for step, value in enumerate(values, start=20):
        torch.nn.init.constant_(model.weight, value)
        average = average or train.Average(model, 0.5)
        average.update(step)
    expected = 0.5 * 1 + 0.25 * 5 + 0.25 * 3
    with average.in_model():
        assert model.weight.item() == expected
    assert model.weight.item() == 1.0 and average.weights["weight"].item() == expected
    without = train.Average(model, 0.0)
    torch.nn.init.constant_(model.weight, 7.0)
    without.update(1)
    assert without.weights["weight"].item() == 7.0


def test_targets_in_one_pass():
    begins_word = torch.arange(13) < 10  # pieces from 10 on continue a word
    line = [0, 5, 6, 10, 11, 7, 12, 8, 1]
    ids = torch.tensor([line] * 400 + [[0, 5, 1, *[2] * 6]] * 4)
    drawn = one_pass.draw(ids, 5, begins_word, 0, most_ids=9 * 2 * 200)
    counts = drawn.target.sum(dim=1)
    assert set(counts.tolist()) == {0, 1, 2} and 190 <= (counts > 0).sum() <= 204  # 2 of 7 pieces, 1 of 1
    assert not drawn.target[ids < 5].any()
    row, column = drawn.target.nonzero(as_tuple=True)
    ends = torch.tensor([0, 1, 4, 4, 4, 6, 6, 7, 8])
    to_the_end, alone = (drawn.last[row, column] == x for x in (ends[column], column))
    assert (to_the_end | alone).all() and 0.3 < to_the_end[column == 2].float().mean() < 0.7
    for share, all_ends in ((0.0, column), (1.0, ends[column])):  # the same targets
        again = one_pass.draw(ids, 5, begins_word, 0, most_ids=9 * 2 * 200, word_l2r=share)
        assert torch.equal(drawn.target, again.target) and torch.equal(again.last[row, column], all_ends)
    assert one_pass.draw(ids, 5, begins_word, 0, per_line=1).target.sum(dim=1).tolist() == [1] * 404


@NEEDS_TRANSFORMERS_5
@pytest.mark.parametrize("metric", ["word_l2r", "original"])
@pytest.mark.parametrize("margin", [None, 0, 1])
def test_what_training_reads_gives_the_scores_of_the_component(metric, margin):
    folder = ROOT / "spacy_pll" / "language_model" / "builtin"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).float()
    texts = [SENTENCES[0], "Unbelievable circumnavigations, he wrote, stand here: with several words.", "Yes."]
    encoded = tokenizer(texts, return_tensors="pt", padding=True)
    ids, real = encoded.input_ids, encoded.attention_mask.bool()
    begins_word = torch.tensor([not p.startswith("##") for p in tokenizer.convert_ids_to_tokens([*range(10_000)])])
    last = one_pass.draw(ids, 5, begins_word, 0, word_l2r=float(metric == "word_l2r")).last
    every = one_pass.Drawn(ids >= 5, last)
    if margin is None:
        rows = one_pass.masked_rows(ids, real, every, tokenizer.mask_token_id)
    else:  # with another margin beside it
        rows = one_pass.group_rows(ids, real, every, tokenizer.mask_token_id, (margin, 2))
    row, column = every.target.nonzero(as_tuple=True)
    with torch.inference_mode():
        scores = one_pass.log_probs(model, rows).gather(1, rows.target[:, None]).view(len(row), -1)[:, 0]
    found = torch.zeros(len(texts)).index_add_(0, row, scores)
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"metrics": [metric], "mask_margin": margin})
    assert found.tolist() == pytest.approx([doc._.pll for doc in nlp.pipe(texts)], rel=1e-5)


@NEEDS_TRANSFORMERS_5
def test_what_is_measured_on_held_out_lines_is_what_the_component_gives(monkeypatch):
    """With all pieces of each line in place of some."""
    monkeypatch.setattr(batches, "SCORED_PER_LINE", 1000)
    monkeypatch.setattr(one_pass, "ONE_PIECE_IN", 1)
    folder = ROOT / "spacy_pll" / "language_model" / "builtin"
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).float()
    long = "Unbelievable circumnavigations, he wrote, stand here: with several words, and unforgettable afterthoughts."
    texts = ["Yes.", SENTENCES[0], long]
    rows = [tokenizer(text).input_ids for text in texts]
    lines = np.concatenate(rows), np.cumsum([0, *map(len, rows)])
    args = SimpleNamespace(one_pass=1.0, part_ids=60)
    found = train.scoring_figures(model, batches.Batches(lines, tokenizer, 5, args), "cpu")
    pieces = {}
    for metric in ("original", "word_l2r"):
        for margin in (None, 0, 1):
            nlp = make_pipeline(metrics=[metric], mask_margin=margin, keep_pieces=True)
            pieces[metric, margin] = [doc._.pll_data["scores"][metric] for doc in nlp.pipe(texts)]
    lengths = ["1 to 14 pieces"] * 2 + ["30 to 59 pieces"]
    expected = {}
    for name, scores in (
        ("original", pieces["original", None]),
        ("word_l2r", pieces["word_l2r", None]),
        ("margin 0", pieces["word_l2r", 0]),
        ("margin 1", pieces["word_l2r", 1]),
    ):
        for length in dict.fromkeys(lengths):
            own = np.concatenate([some for some, of in zip(scores, lengths) if of == length])
            expected[f"{name}, {length}"] = -own.mean()
    exact = np.concatenate(pieces["word_l2r", None])
    expected |= {f"r, margin {m}": np.corrcoef(exact, np.concatenate(pieces["word_l2r", m]))[0, 1] for m in (0, 1)}
    assert found == pytest.approx(expected, rel=1e-5)
    args.one_pass = 0.0
    without = train.scoring_figures(model, batches.Batches(lines, tokenizer, 5, args), "cpu")
    assert without == pytest.approx({name: x for name, x in expected.items() if "margin" not in name}, rel=1e-5)


@pytest.fixture(scope="module")
def scored():
    """The built-in model, the part of some lines, and which of their pieces are scored."""
    folder = ROOT / "spacy_pll" / "language_model" / "builtin"
    model = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager").float()
    encoded = AutoTokenizer.from_pretrained(folder)(SENTENCES[:3], return_tensors="pt", padding=True)
    ids, real = encoded.input_ids, encoded.attention_mask.bool()
    begins_word = torch.ones(10_000, dtype=torch.bool)
    drawn = one_pass.draw(ids, 5, begins_word, 0, most_ids=10_000)
    targets = data.choose_targets(ids, 5, 0.3, 0, begins_word)
    per_drawn = targets.sum() / drawn.target.sum()
    return model, batches.masked_part(ids, real, targets, *drawn, mask_id=4, per_drawn=per_drawn), drawn


@NEEDS_TRANSFORMERS_5
def test_the_loss_of_scoring_and_of_one_pass(scored):
    """Against plain sums: exact scores have gradients where they are predicted, and none where they teach."""
    model, part, drawn = scored
    n = int(drawn.target.sum())
    model.zero_grad()
    found = one_pass.one_pass_losses(model, part.exact, part.groups)
    p, q = (one_pass.log_probs(model, rows) for rows in (part.exact, part.groups))
    true = part.exact.target
    assert part.groups.target.tolist() == true.repeat_interleave(2).tolist()
    exact = divergence = difference = torch.zeros(())
    for i, piece in enumerate(true):
        exact = exact - p[i, piece]
        for of_margin in q[2 * i : 2 * i + 2]:
            divergence = divergence + (p[i].detach().exp() * (p[i].detach() - of_margin)).sum() / 2
            difference = difference + (p[i, piece].detach() - of_margin[piece]) ** 2 / 2
    for one, expected in zip(found, (exact, divergence, difference), strict=True):
        torch.testing.assert_close(one, expected)
        gradients = (torch.autograd.grad(x, model.model.parameters(), retain_graph=True) for x in (one, expected))
        for gradient, same in zip(*gradients):
            torch.testing.assert_close(gradient, same, rtol=1e-3, atol=1e-4)
            assert gradient.any()
    with torch.inference_mode():
        masked, count = train.prediction_loss(model, part)
        whole, same_count = train.one_pass_loss(model, part, weight=2.0, difference_weight=3.0)
    assert count == same_count
    mean = (exact + 2 * divergence + 3 * difference) / n
    assert (whole / count).item() == pytest.approx((masked / count + mean).item(), rel=1e-5)


@NEEDS_TRANSFORMERS_5
def test_the_loss_that_keeps_the_scores_of_a_teacher(scored):
    model, part, drawn = scored
    torch.manual_seed(0)
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in moved.parameters():
            parameter += 0.01 * parameter.std(correction=0) * torch.randn_like(parameter)
    with torch.inference_mode():
        aim, p = (one_pass.log_probs(one, part.exact) for one in (model, moved))
        q = one_pass.log_probs(moved, part.groups).unflatten(0, (-1, 2))
    at = torch.arange(len(aim)), part.exact.target
    kept = torch.nn.functional.kl_div(p, aim, reduction="sum", log_target=True)
    divergence = sum(torch.nn.functional.kl_div(q[:, i], aim, reduction="sum", log_target=True) for i in (0, 1)) / 2
    difference = sum((aim[at] - q[:, i][at]).square().sum() for i in (0, 1)) / 2
    loss, count = train.keeping_loss(moved, part, weight=2.0, difference_weight=3.0, teacher=model)
    assert count == int(drawn.target.sum()) and kept > 0
    torch.testing.assert_close(loss.detach(), 2 * (kept + divergence) + 3 * difference, rtol=1e-4, atol=1e-4)
    model.zero_grad()
    loss.backward()
    assert all(p.grad is None for p in model.parameters())
    of_itself = one_pass.one_pass_losses(model, part.exact, part.groups, model).exact
    gradients = torch.autograd.grad(of_itself, model.model.parameters())
    largest = max(gradient.abs().max() for gradient in gradients)  # it is rounding, and differs by processor
    assert largest < 1e-2 * moved.decoder.bias.grad.abs().max()
    empty = [rows._replace(**{f: getattr(rows, f)[:0] for f in ("row", "column", "target")}) for rows in part[4:6]]
    nothing, none = train.keeping_loss(moved, part._replace(exact=empty[0], groups=empty[1]), 2.0, 3.0, model)
    nothing.backward()
    assert nothing == none == 0


@NEEDS_TRANSFORMERS_5
def test_a_run_that_keeps_scores(monkeypatch, corpus, tmp_path, capsys):
    run(monkeypatch, corpus, tmp_path / "first", "--layers", "2")
    first, teacher = (str(tmp_path / name / "model") for name in ("first", "teacher"))
    run(monkeypatch, corpus, tmp_path / "teacher", "--init", first, "--lr", "0.1")
    more = ("--init", first, "--keep", teacher, "--one-pass", "4", "--one-pass-difference", "1", "--lr", "0.01")
    # The first steps do not show it each time: the vocabulary differs from run to run, and so do the batches.
    run(monkeypatch, corpus, tmp_path / "second", *more, "--steps", "24", "--save-every", "12")
    with (tmp_path / "second" / "log.csv").open(newline="") as file:
        before, after = (float(row["train_loss"]) for row in csv.DictReader(file))
    assert 0 < after < before / 2
    with pytest.raises(SystemExit):
        run(monkeypatch, corpus, tmp_path / "third", "--keep", first)
    assert "--keep is for scores in one pass" in capsys.readouterr().err


@NEEDS_TRANSFORMERS_5
@pytest.mark.parametrize("term", ["divergence", "difference"])
def test_training_for_one_pass_lowers_its_distance(scored, term):
    model = copy.deepcopy(scored[0])
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    found = []
    for _ in range(8):
        loss = getattr(one_pass.one_pass_losses(model, scored[1].exact, scored[1].groups), term)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert 0 < found[-1] < found[0] / 3


@NEEDS_TRANSFORMERS_5
def test_what_training_for_scoring_reads_and_measures(monkeypatch, corpus, tmp_path, capsys):
    """In a few steps, the model sees lines with one mask, and the exact scores of some pieces have gradients."""
    n_masks, exact_gradients = [], []
    losses = train.one_pass_losses

    def record(model, masked, groups):
        found = losses(model, masked, groups)
        if torch.is_grad_enabled() and len(masked.row):
            n_masks.extend((masked.ids == 4).sum(dim=1).tolist())
            gradient = torch.autograd.grad(found.exact, model.model.embeddings.tok_embeddings.weight, retain_graph=True)
            exact_gradients.append(gradient[0].abs().sum().item())
        return found

    in_lines, predict = [], train.prediction_loss

    def record_lines(model, part):
        if torch.is_grad_enabled():
            in_lines.extend((part.ids == 4).sum(dim=1).tolist())
        return predict(model, part)

    monkeypatch.setattr(train, "one_pass_losses", record)
    monkeypatch.setattr(train, "prediction_loss", record_lines)
    options = ("--one-pass", "4", "--one-pass-difference", "1", "--layers", "2", "--mask-rate", "0.9")
    run(monkeypatch, corpus, tmp_path, *options, "--final-mask-rate", "0.9", "--few-masks", "0.5")
    share = np.mean(np.array(in_lines) == 1)
    assert 0.2 < share < 0.5  # at a rate of 0.9 alone, next to none
    assert n_masks.count(1) and max(n_masks) < 10  # of one piece, or of the end of one word
    assert len(exact_gradients) >= 6 and min(exact_gradients) > 0
    printed = capsys.readouterr().out
    with (tmp_path / "log.csv").open(newline="") as file:
        log = list(csv.DictReader(file))
    assert [row["step"] for row in log] == ["3", "6"]
    lengths = ["1 to 14 pieces", "15 to 29 pieces", "30 to 59 pieces"]
    names = [f"{scorer}, {n}" for scorer in ("original", "word_l2r", "margin 0", "margin 1") for n in lengths]
    names = [name for name in names if name in log[0]]
    assert len(names) >= 4
    for name in [*names, "r, margin 0", "r, margin 1"]:
        assert f"{name} {log[1][name]}" in printed
    with pytest.raises(SystemExit):
        run(monkeypatch, corpus, tmp_path, "--one-pass", "1", "--objective", "causal")


def test_no_corpus(tmp_path):
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(SystemExit, match="No .txt or .txt.xz file"):
            list(data.read_lines(folder))


def test_a_new_run_begins_with_the_weights_of_an_earlier_one(monkeypatch, corpus, tmp_path):
    run(monkeypatch, corpus, tmp_path / "first")
    first = tmp_path / "first" / "model"
    run(monkeypatch, corpus, tmp_path / "second", "--init", str(first), "--stop-after", "0")
    again = load_file(tmp_path / "second" / "model" / "model.safetensors")
    before = load_file(first / "model.safetensors")
    assert all(torch.equal(before[key], again[key]) for key in before)
    vocabularies = [AutoTokenizer.from_pretrained(tmp_path / name / "model").vocab for name in ("first", "second")]
    assert vocabularies[0] == vocabularies[1]


def test_a_vocabulary_can_be_given(monkeypatch, corpus, tmp_path, capsys):
    builtin = str(ROOT / "spacy_pll" / "language_model" / "builtin")
    run(monkeypatch, corpus, tmp_path, "--objective", "causal", "--tokenizer", builtin)
    assert AutoTokenizer.from_pretrained(tmp_path / "model").vocab == AutoTokenizer.from_pretrained(builtin).vocab
    with pytest.raises(SystemExit):
        run(monkeypatch, corpus, tmp_path, "--init", builtin, "--tokenizer", builtin)
    assert "--init has a vocabulary" in capsys.readouterr().err


def test_the_left_to_right_twin_is_a_model_for_the_metric_causal(monkeypatch, corpus, tmp_path):
    run(monkeypatch, corpus, tmp_path / "twin", "--objective", "causal")
    folder = tmp_path / "twin" / "model"
    assert type(AutoModelForCausalLM.from_pretrained(folder)).__name__ == "LlamaForCausalLM"
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.CausalLM.v1", "name": str(folder)}
    nlp.add_pipe("pll", config={"model": model, "metrics": ["causal"], "attr": "causal"})
    doc = nlp(SENTENCES[0])
    # The loss of training is the scores' mean, but for [SEP], which is no piece of the text.
    tokenizer, twin = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder).float().eval()
    ids = tokenizer(SENTENCES[0], return_tensors="pt").input_ids
    real = torch.ones_like(ids, dtype=torch.bool)
    with torch.inference_mode():
        total, count = train.prediction_loss(twin, batches.causal_part(ids, real))
        without_end, fewer = train.prediction_loss(twin, batches.causal_part(ids[:, :-1], real[:, :-1]))
    assert count == fewer + 1 == doc._.causal_pieces + 1 and total > without_end
    assert doc._.causal == pytest.approx(-without_end.item(), abs=1e-4)


@pytest.mark.parametrize(("arguments", "expected"), [([], "eager"), (["--attention", "sdpa"], "sdpa")])
@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_the_attention_is_chosen_and_not_exported(monkeypatch, corpus, tmp_path, objective, arguments, expected):
    models, build = [], train.build_model
    monkeypatch.setattr(train, "build_model", lambda *args: models.append(build(*args)) or models[0])
    run(monkeypatch, corpus, tmp_path, "--objective", objective, "--stop-after", "0", *arguments)
    assert models[0].config._attn_implementation == expected
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert not [key for key in config if "attn_implementation" in key]


def make_batches(folder, share=slice(None), **more):
    corpus, output = folder
    tokenizer, lines, _ = data.prepare(corpus, output, 200)
    options = dict(batch_pieces=200, seed=1, mask_rate=0.3, final_mask_rate=0.1, steps=300, word_masking=0.5)
    options |= dict(few_masks=0.4, one_pass=1.0, one_pass_ids=400, objective="masked", device="cpu", part_ids=10_000)
    return batches.Batches(lines, tokenizer, 5, SimpleNamespace(**options | more), share)


def test_processes_prepare_the_same_batches_for_a_gpu(monkeypatch, corpus, tmp_path):
    monkeypatch.setattr(batches, "PREPARERS", 2)
    prepared = make_batches((corpus, tmp_path), device="cuda")
    first = prepared[0]
    of_first_epoch = prepared.lines
    steps = range(len(prepared.lines) - 5, len(prepared.lines) + 10)
    expected = [prepared[step] for step in steps]  # of more than one epoch
    assert prepared.epoch == 1 and any(map(np.array_equal, prepared.lines, of_first_epoch)) is False
    for (parts, n), (same_parts, same_n) in zip(expected, batches.iterate(prepared, steps), strict=True):
        assert n == same_n and len(parts) == len(same_parts) == 1
        for one, other in zip(flat(parts[0]), flat(batches.to_device(same_parts[0], "cpu")), strict=True):
            assert torch.equal(one, other)
    (before,), n = prepared[0]  # an earlier epoch again
    assert n == first[1] and all(map(torch.equal, flat(before), flat(first[0][0])))


@pytest.mark.parametrize("objective", ["masked", "causal"])
def test_the_parts_of_all_processes_are_the_batch(corpus, tmp_path, objective):
    folder, more = (corpus, tmp_path), {"objective": objective}
    (whole,), n = make_batches(folder, **more)[3]
    shared = [make_batches(folder, slice(rank, None, 2), part_ids=40, **more) for rank in range(2)]
    parts = [part for one in shared for part in one[3][0]]
    assert len(parts) > 4 and {one[3][1] for one in shared} == {n} == {int(whole.real.sum())}

    def lines(parts):
        return sorted(line for part in parts for line in torch.cat([part.ids, part.real], dim=1).tolist())

    assert lines(parts) == lines([whole])
    assert sorted(torch.cat([part.target for part in parts])) == sorted(whole.target)
    if objective == "masked":
        assert sum(len(part.exact.row) for part in parts) == len(whole.exact.row) == len(whole.groups.row) / 2 > 0
        assert {part.per_drawn.item() for part in parts} == {whole.per_drawn.item()}
        assert whole.per_drawn.item() == pytest.approx(len(whole.target) / len(whole.exact.row))
        assert all((part.ids.flatten()[part.at] == 4).all() for part in parts)


def test_what_a_left_to_right_model_predicts():
    ids = torch.tensor([[2, 7, 8, 3], [2, 9, 3, 0]])
    part = batches.causal_part(ids, ids > 0)
    assert part.target.tolist() == [7, 8, 3, 9, 3] and part.at.tolist() == [0, 1, 2, 4, 5]


@pytest.mark.parametrize(("stop", "step"), [("9", 6), ("2", 3)])
def test_a_run_stops_at_its_last_step_and_does_not_go_back(monkeypatch, corpus, tmp_path, stop, step):
    run(monkeypatch, corpus, tmp_path, "--stop-after", "3")
    run(monkeypatch, corpus, tmp_path, "--stop-after", stop)
    assert json.loads((tmp_path / "checkpoint" / "state.json").read_text())["step"] == step


def flat(part):
    return [tensor for field in part for tensor in (flat(field) if isinstance(field, tuple) else [field])]


def test_packed_contexts_hold_whole_lines():
    lengths = np.array([5, 4, 3, 9, 2, 12, 1])
    offsets = np.cumsum([0, *lengths])
    packed = data.pack(np.zeros(offsets[-1]), offsets, 10)
    assert packed.tolist() == [0, 9, 12, 21, 23, 35, 36] and set(packed) <= set(offsets)


def test_a_batch_that_is_read_in_parts_has_the_same_gradient():
    torch.manual_seed(0)
    config = BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    ids, targets = torch.randint(5, 50, (5, 7)), torch.rand(5, 7) < 0.4

    def loss(model, part):
        ids, targets = part
        logits = model(input_ids=ids.masked_fill(targets, 4)).logits[targets]
        return torch.nn.functional.cross_entropy(logits.float(), ids[targets], reduction="sum"), len(logits)

    results = []
    for n_parts in (1, 2, 5):
        torch.manual_seed(1)
        model = BertForMaskedLM(config).eval()
        gradients = train.Gradients(model, "cpu", loss)
        parts = [(ids[i::n_parts], targets[i::n_parts]) for i in range(n_parts)]
        values = [gradients(parts).item() for _ in range(2)]  # the second does not add to the first
        assert values[0] == values[1]
        results.append([values[0], *(p.grad for p in model.parameters())])
    for in_parts in results[1:]:
        assert in_parts[0] == pytest.approx(results[0][0], rel=1e-2)
        for alone, gradient in zip(results[0][1:], in_parts[1:]):
            torch.testing.assert_close(gradient, alone, atol=2e-3, rtol=2e-2)  # bfloat16 autocast


@pytest.mark.parametrize("use_muon", [True, False])
def test_the_state_of_the_optimizers_is_named_by_the_weights(use_muon):
    if use_muon:
        skip_without_muon()
    results = []
    for stops in (False, True):
        torch.manual_seed(0)
        model = torch.nn.ModuleDict({"layers": torch.nn.Sequential(*[torch.nn.Linear(6, size) for size in (6, 4, 6)])})
        inside = torch.nn.ModuleDict({"inside": model, "head": torch.nn.Linear(3, 5)})
        optimizers = train.Optimizers(inside, 0.1, 0.2, 0.05, use_muon=use_muon)
        for step in range(4):
            if stops and step == 2:
                state = {name: value.clone() for name, value in optimizers.tensors().items()}
                optimizers = train.Optimizers(inside, 0.1, 0.2, 0.05, use_muon=use_muon)
                optimizers.load_tensors(state)
            for i, p in enumerate(inside.parameters()):
                p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(10 * step + i))
            optimizers.step(0.5)
        state = optimizers.tensors()
        of_muon = {"momentum_buffer"} if use_muon else set()
        assert {name.rsplit(".", 1)[1] for name in state} == {"step", "exp_avg", "exp_avg_sq"} | of_muon
        results.append({**state, **dict(inside.named_parameters())})
    assert results[0].keys() == results[1].keys()
    assert all(torch.equal(results[0][key], results[1][key]) for key in results[0])
    with pytest.raises(ValueError, match="'0.3' is no weight"):
        optimizers.load_tensors({"optimizer.0.3.exp_avg": torch.zeros(1)})


# 120 numbers of rows, forward and backward.
MANY_SIZES = """
import scripts.builtin.step, torch
def size():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
torch.set_num_threads(1)
weight = torch.randn(768, 256, dtype=torch.bfloat16, requires_grad=True)
for step in range(120):
    rows = 1024 + 77 * step % 240
    x = torch.randn(rows, 256, dtype=torch.bfloat16, requires_grad=True)
    torch.autograd.grad((x @ weight.T).float().sum(), [x, weight])
    if step == 60:
        start = size()
print(size() - start)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is read from /proc")
def test_memory_does_not_grow_with_the_sizes_of_batches():
    command = [sys.executable, "-c", MANY_SIZES]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert float(found) < 40  # MB; 144 if 1,024 products are kept, 8 if 64 are
