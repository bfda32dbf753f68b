"""Train the built-in English masked language model, from scratch or from the weights of an earlier one.

    python -m scripts.builtin.train CORPUS_FOLDER training/builtin --steps 9000
    python -m scripts.builtin.train CORPUS_FOLDER training/longer --steps 6000 --init spacy_pll/language_model/builtin
    python -m scripts.builtin.train CORPUS_FOLDER training/causal --steps 2500 --objective causal \
        --tokenizer spacy_pll/language_model/builtin

CORPUS_FOLDER holds text files (`*.txt` or `*.txt.xz`), one sentence or short paragraph per line. The output folder gets

    tokenizer.json          cased WordPiece, trained on the same lines
    pieces.npz              the corpus as ids of wordpieces, so that a resumed run starts at once
    checkpoint/             weights, their average, optimizer state and step, in files of at most 15 MB
    log.csv                 the learning curve
    model/                  the model: config.json, model.safetensors (float16), tokenizer

A run depends only on the corpus, the vocabulary, the arguments and the number of processes: the order of the batches
follows from the seed and the epoch, the masks from the seed and the step. So a run that was stopped continues from its
checkpoint with the same results as if it had not been stopped. (The vocabulary may differ between runs by a few pieces,
because the tokenizers library breaks ties at random. `--tokenizer` keeps that of another model.)

The learning rate warms up, stays constant, and falls to zero over the last part of `--steps`. A checkpoint from before
the fall can be continued to another number of steps. After the fall, `--init` starts a new run, with its own warm-up,
order and masks, from the weights and the vocabulary of a model folder. With `--average`, the model is a moving average
of the weights, which needs no fall: a run can be exported at any step, with `--stop-after`, and then go on.

`--objective causal` trains a left-to-right twin with Llama's classes. They are built as ModernBERT's (pre-norm, rotary
positions, gated MLP), with a causal mask. Width, depth and vocabulary are the same. [CLS] is the beginning-of-sequence
piece.

Scoring masks one piece or word of a line. With `--few-masks`, a share of the lines has so few masks; without it, a long
line never has. With `--one-pass`, some pieces are read just as scoring reads them, and the model also learns to give
the same scores in one pass (one_pass.py). The loss on masked text, with a share of the pieces masked, does not
show whether scores get worse: look at the scores of held-out lines by length, and at *r* by piece, which stand beside
it in what is printed and in log.csv (held_out.py). `--keep` is for a last run: the model keeps the exact
scores of a trained model, mostly the one of `--init`, and only brings its scores in one pass nearer to them.

The choices (the model card, spacy_pll/language_model/builtin/README.md, has the experiments): ModernBERT's classes stop
predicting mere piece frequencies many times sooner than BERT's. One line is one sequence, because people score
sentences; `--contexts packed` fills each context with consecutive lines instead. Every piece to predict is replaced by
[MASK], because scoring needs nothing else. Muon optimises the matrices, AdamW the rest.

Attention is `eager` on a CPU: on one core of an AMD EPYC, with 4,096 pieces per batch, training ran at 1,950 pieces/s
with `sdpa` and at 2,770 with `eager`. For such short rows the backward pass of flash attention takes 22 % of a step
there. On a GPU the default is `sdpa`.

Needs torch (2.9 or later for Muon), transformers (5 for `--one-pass`), tokenizers and numpy, but not spaCy: it runs
where only those are installed.
"""

import argparse
import csv
import json
import math
import shutil
import signal
import tempfile
import time
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
import transformers
from huggingface_hub import save_torch_state_dict
from safetensors.torch import load_file
from transformers import (
    AutoModelForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
)

from scripts.builtin.batches import CPU_IDS, Batches, Part, iterate, to_device
from scripts.builtin.data import MAX_PIECES, SPECIAL, pack, prepare
from scripts.builtin.held_out import scoring_figures
from scripts.builtin.one_pass import one_pass_losses
from scripts.builtin.step import Average, Gradients, HeadLoss, Optimizers


def prediction_loss(model, part: Part) -> tuple[torch.Tensor, int]:
    """The sum of the cross-entropies at the targets, and the number of targets. The head runs at the targets only."""
    causal = isinstance(model, LlamaForCausalLM)
    options = {"use_cache": False} if causal else {}
    hidden = model.model(input_ids=part.ids, attention_mask=part.real.long(), **options).last_hidden_state
    hidden = hidden.flatten(0, 1)[part.at]
    if causal:
        return HeadLoss.apply(hidden, model.lm_head.weight, None, part.target), len(part.at)
    return HeadLoss.apply(model.head(hidden), model.decoder.weight, model.decoder.bias, part.target), len(part.at)


def one_pass_loss(model, part: Part, weight: float, difference_weight: float) -> tuple[torch.Tensor, int]:
    """As `prediction_loss`, but the means of `one_pass_losses` are added to the mean loss: the exact scores' own loss,
    `weight` times the divergence, and `difference_weight` times the squared difference of the scores.
    """
    loss, count = prediction_loss(model, part)
    assert part.exact and part.groups and part.per_drawn is not None
    exact, divergence, difference = one_pass_losses(model, part.exact, part.groups)
    return loss + part.per_drawn * (exact + weight * divergence + difference_weight * difference), count


def keeping_loss(model, part: Part, weight: float, difference_weight: float, teacher) -> tuple[torch.Tensor, int]:
    """Without true pieces: the model keeps the teacher's distributions behind masks, and learns them in one pass.
    Masked text is not read. RETURNS: The sum of the losses at the drawn targets, and the number of these.
    """
    assert part.exact and part.groups
    kept, divergence, difference = one_pass_losses(model, part.exact, part.groups, teacher)
    return weight * (kept + divergence) + difference_weight * difference, len(part.exact.row)


def save_checkpoint(folder: Path, model, optimizers, average, progress: dict):
    """Write a checkpoint to a folder next to its location, then move it there: no checkpoint is ever incomplete."""
    new, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    # The output matrix is tied to the embedding matrix, so it is stored once.
    weights = {f"model.{n}": p.detach() for n, p in model.named_parameters()}
    averages = {f"average.{n}": p for n, p in average.weights.items()}
    save_torch_state_dict({**weights, **averages, **optimizers.tensors()}, new, max_shard_size="15MB")
    (new / "state.json").write_text(json.dumps(progress))
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: Path, model, optimizers, average) -> dict | None:
    """Restore weights, their average and optimizer states. RETURNS: The progress of the run, None if there is none."""
    if not folder.exists():
        return None
    tensors = {}
    for path in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(path))
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(tensors[f"model.{name}"])
            average.weights[name].copy_(tensors[f"average.{name}"])
    optimizers.load_tensors({k: v for k, v in tensors.items() if k.startswith("optimizer.")})
    return json.loads((folder / "state.json").read_text())


@torch.no_grad()
def held_out_figures(model, batches: Batches, device: str) -> dict[str, float]:
    """What is known of the model from lines that it is not trained on: first the mean cross-entropy of masked pieces,
    then, for a masked language model, its scores (`scoring_figures`).
    """
    total, count = 0.0, 0
    for part in (to_device(part, device) for parts in batches.held_out() for part in parts):
        with torch.autocast(device, torch.bfloat16):
            loss, n = prediction_loss(model, part)
        total, count = total + loss.item(), count + n
    scores = {} if batches.args.objective == "causal" else scoring_figures(model, batches, device)
    return {"held_out_loss": total / count, **scores}


def append_row(path: Path, row: dict):
    """Add a row to a .csv file. The first one brings the header."""
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def learning_rate_factor(step: int, steps: int, warmup: int, decay: float) -> float:
    """The share of the peak rate: linear warm-up, then 1, then linear fall to 0 over the share `decay` of the steps."""
    fall = max(1, int(steps * decay))
    return min(1.0, (step + 1) / warmup, (steps - step) / fall)


def build_model(tokenizer, args) -> ModernBertForMaskedLM | LlamaForCausalLM:
    torch.manual_seed(args.seed)
    if args.init:
        return load_model(args.init, args)
    if args.objective == "causal":
        return build_causal_model(tokenizer, args)
    ids = {f"{name}_id": getattr(tokenizer, f"{name}_token_id") for name in ("pad", "cls", "sep")}
    config = ModernBertConfig(  # type: ignore[call-arg]  # more options than its annotations have
        vocab_size=len(tokenizer),
        hidden_size=args.width,
        intermediate_size=args.mlp,
        num_hidden_layers=args.layers,
        num_attention_heads=args.width // 64,
        max_position_embeddings=MAX_PIECES,
        global_attn_every_n_layers=1,
        pad_token_id=ids["pad_id"],
        cls_token_id=ids["cls_id"],
        sep_token_id=ids["sep_id"],
        bos_token_id=ids["cls_id"],
        eos_token_id=ids["sep_id"],
        attention_dropout=0.0,
        embedding_dropout=0.0,
        mlp_dropout=0.0,
        reference_compile=False,
        attn_implementation=args.attention,
    )
    return ModernBertForMaskedLM(config)


def load_model(folder: Path, args) -> ModernBertForMaskedLM:
    return AutoModelForMaskedLM.from_pretrained(folder, attn_implementation=args.attention).float()


def build_causal_model(tokenizer, args) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(  # type: ignore[call-arg]  # as above
            vocab_size=len(tokenizer),
            hidden_size=args.width,
            intermediate_size=args.mlp,
            num_hidden_layers=args.layers,
            num_attention_heads=args.width // 64,
            max_position_embeddings=MAX_PIECES,
            tie_word_embeddings=True,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.cls_token_id,
            eos_token_id=tokenizer.sep_token_id,
            attn_implementation=args.attention,
        )
    )


def export(model, tokenizer, folder: Path):
    """Save the model folder, with float16 weights. The config has float32, which they are computed in: transformers 5
    would otherwise compute in float16.
    """
    if isinstance(model, LlamaForCausalLM):
        tokenizer.bos_token, tokenizer.eos_token = tokenizer.cls_token, tokenizer.sep_token
    shutil.rmtree(folder, ignore_errors=True)
    half = type(model)(model.config).half()
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    settings = json.loads((folder / "config.json").read_text(encoding="utf8"))
    settings.update((key, "float32") for key in ("dtype", "torch_dtype") if key in settings)
    (folder / "config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n", encoding="utf8")
    tokenizer.save_pretrained(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of .txt or .txt.xz files")
    parser.add_argument("output", type=Path, help="folder for the results")
    parser.add_argument("--objective", choices=["masked", "causal"], default="masked")
    parser.add_argument("--init", type=Path, help="masked-LM folder: start with its weights and vocabulary")
    parser.add_argument("--tokenizer", type=Path, help="model folder: use its vocabulary (default: train a new one)")
    parser.add_argument("--contexts", choices=["line", "packed"], default="line", help="what one sequence is")
    parser.add_argument("--steps", type=int, default=9000)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--decay", type=float, default=0.4, help="share of the steps over which the rate falls")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--muon-lr", type=float, default=2e-3)
    parser.add_argument("--weight-decay", type=float, default=0.05)
    parser.add_argument("--average", type=float, default=0.0, help="decay of the moving average of the weights")
    parser.add_argument("--optimizer", choices=["muon", "adamw"], default="muon")
    parser.add_argument("--batch-pieces", type=int, default=4096)
    parser.add_argument("--mask-rate", type=float, default=0.3, help="share of the pieces to predict, at the start")
    parser.add_argument("--final-mask-rate", type=float, default=0.15, help="the same at the end; linear in between")
    parser.add_argument(
        "--word-masking", type=float, default=0.0, help="share of the lines in which words are masked, as by word_l2r"
    )
    parser.add_argument(
        "--few-masks", type=float, default=0.0, help="share of the lines with few masks, one piece or word at least"
    )
    parser.add_argument(
        "--one-pass", type=float, default=0.0, help="weight of the divergence of scores in one pass; 0: not trained"
    )
    parser.add_argument(
        "--one-pass-difference", type=float, default=0.0, help="weight of the squared difference of scores in one pass"
    )
    parser.add_argument(
        "--keep",
        type=Path,
        help="masked-LM folder: keep its scores, and learn them in one pass, in place of predicting text",
    )
    parser.add_argument(
        "--one-pass-ids",
        type=int,
        default=16_384,
        help="ids that are read in each step for exact scores to compare with",
    )
    parser.add_argument("--vocab-size", type=int, default=10_000)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--mlp", type=int, default=384)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--attention",
        choices=["eager", "sdpa"],
        help="implementation of attention (default: eager on a CPU, else sdpa)",
    )
    parser.add_argument(
        "--workers", type=int, help="processes that share each batch (default: one per core; always 1 on a GPU)"
    )
    parser.add_argument(
        "--part-ids", type=int, default=CPU_IDS, help="ids, padding included, that a process on a CPU reads at once"
    )
    parser.add_argument(
        "--compile",
        action="store_true",
        help="compile the layers (on a CPU: needs a C++ compiler, and AVX-512: with AVX2, the losses were NaN)",
    )
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--stop-after", type=int, help="stop at this step, as if interrupted")
    args = parser.parse_args()
    if args.optimizer == "muon" and not hasattr(torch.optim, "Muon"):
        parser.error(
            f"--optimizer muon needs PyTorch 2.9 or later, and this is {torch.__version__}. "
            "Type: pip install --upgrade torch. Or train with --optimizer adamw."
        )
    if args.one_pass and int(transformers.__version__.partition(".")[0]) < 5:
        parser.error(
            f"--one-pass needs transformers 5, and this is {transformers.__version__}. "
            "Type: pip install --upgrade transformers"
        )
    if args.keep and not args.one_pass:
        parser.error("--keep is for scores in one pass; give their weight with --one-pass too")
    args.attention = args.attention or ("eager" if args.device == "cpu" else "sdpa")
    args.workers = (args.workers or torch.get_num_threads()) if args.device == "cpu" else 1
    if args.one_pass and args.objective == "causal":
        parser.error("--one-pass is for a masked language model; leave it out with --objective causal")
    if args.init and args.objective == "causal":
        parser.error("--init takes a masked language model; leave it out with --objective causal")
    args.output.mkdir(parents=True, exist_ok=True)
    if args.init and args.tokenizer:
        parser.error("--init has a vocabulary; leave --tokenizer out")
    given = args.init or args.tokenizer
    if given and not (args.output / "tokenizer").exists():
        PreTrainedTokenizerFast.from_pretrained(given).save_pretrained(args.output / "tokenizer")

    checkpoint = args.output / "checkpoint"
    old = checkpoint.with_name("checkpoint.old")
    if old.exists() and not checkpoint.exists():  # stopped between the two moves of `save_checkpoint`
        old.rename(checkpoint)
    prepare(args.corpus, args.output, args.vocab_size)  # once: the processes then read its files
    if args.workers == 1:
        train(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train_in_process, (args, f"{folder}/store"), args.workers)


def train_in_process(rank: int, args, store: str):
    """Train as one of `args.workers` processes of one core each, which find each other by the file `store`."""
    # PyTorch sends this signal when the first process ends. In a background job of a shell, it would be ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{store}", rank=rank, world_size=args.workers)
    train(args)
    dist.destroy_process_group()


def train(args):
    """Train, or continue from the checkpoint. All processes make the same updates. The first prints and writes."""
    # cuDNN's attention makes a plan for each new shape, and nearly every batch has one: on an H200, a step took 360 ms
    # instead of some 50.
    torch.backends.cuda.enable_cudnn_sdp(False)
    rank, n_processes = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    first = rank == 0
    tokenizer, (ids, offsets), held_out = prepare(args.corpus, args.output, args.vocab_size)
    if args.contexts == "packed":
        offsets = pack(ids, offsets, MAX_PIECES)
    batches = Batches((ids, offsets), tokenizer, len(SPECIAL), args, slice(rank, None, n_processes))
    held_out_batches = Batches(held_out, tokenizer, len(SPECIAL), args)
    model = build_model(tokenizer, args).to(args.device)
    if first:
        print(f"{len(offsets) - 1:,} contexts, {len(ids):,} pieces; held out: {len(held_out[1]) - 1:,} lines")
        print(f"{sum(p.numel() for p in model.parameters()):,} weights", flush=True)
    if args.compile:
        torch._dynamo.config.recompile_limit = 64  # each layer is compiled, for training and for the held-out loss
        for layer in model.model.layers:
            layer.compile(dynamic=True)
    optimizers = Optimizers(model, args.lr, args.muon_lr, args.weight_decay, use_muon=args.optimizer == "muon")
    average = Average(model, args.average)
    checkpoint, log_path = args.output / "checkpoint", args.output / "log.csv"
    progress = load_checkpoint(checkpoint, model, optimizers, average)
    if progress is None:
        progress = {"step": 0, "pieces": 0, "seconds": 0.0}
        if first:
            log_path.unlink(missing_ok=True)

    loss = prediction_loss
    if args.one_pass:
        weights = {"weight": args.one_pass, "difference_weight": args.one_pass_difference}
        loss = partial(one_pass_loss, **weights)
        if args.keep:
            loss = partial(keeping_loss, **weights, teacher=load_model(args.keep, args).to(args.device).eval())
    gradients = Gradients(model, args.device, loss)
    step, seen = progress["step"], progress["pieces"]
    losses: list[torch.Tensor] = []  # on the device: to read one, the CPU would wait for all that is under way there
    began, seen_before = time.time() - progress["seconds"], seen
    model.train()
    end = args.steps if args.stop_after is None else min(args.steps, args.stop_after)
    for parts, n_pieces in iterate(batches, range(step, end)):
        seen += n_pieces
        losses.append(gradients(to_device(part, args.device) for part in parts))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizers.step(learning_rate_factor(step, args.steps, args.warmup, args.decay))
        step += 1
        average.update(step)
        if not first:
            continue
        if step % args.log_every == 0:
            mean = torch.stack(losses).mean().item()
            rate = (seen - seen_before) / (time.time() - began - progress["seconds"])
            print(f"step {step} loss {mean:.3f} pieces/s {rate:.0f}", flush=True)
        if step % args.save_every == 0 or step == end:
            model.eval()
            with average.in_model():
                figures = held_out_figures(model, held_out_batches, args.device)
            model.train()
            score = figures["held_out_loss"]
            print(f"step {step} held-out loss {score:.4f} perplexity {math.exp(score):.1f}")
            print(*(f"    {name} {value:.4f}\n" for name, value in figures.items()), sep="", end="", flush=True)
            mean = torch.stack(losses).mean().item()
            row = {"train_loss": mean, **figures, "seconds": time.time() - began}
            append_row(log_path, {"step": step, "pieces": seen} | {k: f"{v:.4f}" for k, v in row.items()})
            losses = []
            now = {"step": step, "pieces": seen, "seconds": time.time() - began}
            save_checkpoint(checkpoint, model, optimizers, average, now)
    if not first:
        return
    with average.in_model():
        export(model.eval(), tokenizer, args.output / "model")


if __name__ == "__main__":
    main()
