"""How fast spacy-pll is, beside minicons and beside the model alone, on the same sentences with the same weights.

    python benchmarks/speed.py BLIMP_FOLDER BROWN.zip [--bert-base TOKENIZER_FOLDER] [--roberta-large TOKENIZER_FOLDER]
        [--sentences 268] [--paragraphs 2] [--rounds 5] [--gpu] [--output speed.json] [--table speed.md]

The built-in model, and those of BERT-base's and RoBERTa-large's size for which a tokenizer folder is given: their
weights are random, on which the time does not depend. The contestants take turns, so that a slow minute of the machine
hits all of them alike, and ratios are taken within a round; the peak of memory (on a CPU: Linux) is that of a run
before the first. `bare` is what no scorer can leave out: the distinct masked contexts, already tokenised, sorted and on
the device, through `model.base_model`, and the head at the targets, as PyTorch computes it by itself. Needs minicons:
pip install "spacy-pll[test]".
"""

import argparse
import json
import math
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
import spacy
import torch
from memory import peak_above
from minicons.scorer import MaskedLMScorer
from models import save_random
from scipy.stats import spearmanr
from texts import blimp_sentences, brown_paragraphs, brown_sentences
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer

from spacy_pll.language_model import BUILTIN
from spacy_pll.language_model.forward import Forward
from spacy_pll.language_model.memory import free_bytes
from spacy_pll.language_model.onednn import is_faster_here
from spacy_pll.metrics import get_metric
from spacy_pll.scoring.plan import make_plans
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import get_wordpieces

MINICONS_BATCHES = [1, 4, 16]  # sentences; the fastest of them on some of the sentences is taken
THREE = ["word_l2r", "original", "whole_word"]


def make_pipeline(folder: Path, metrics: list[str], **settings):
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": str(folder), **settings}
    # minicons' words are those of the tokenizer.
    nlp.add_pipe("pll", config={"model": model, "metrics": metrics, "words": "tokenizer"})
    nlp.initialize()
    return nlp


def make_bare(nlp, texts: list[str]):
    """The forward passes of a text, ready to run; and how many pieces they hold, padding apart."""
    model = nlp.get_pipe("pll").model
    forward = Forward(model.transformer)
    contexts = []
    for doc in nlp.tokenizer.pipe(texts):
        pieces = get_wordpieces(doc[:], model.tokenizer, "tokenizer")
        contexts += get_contexts([doc[:]], [pieces], None, model.max_length)[0]
    passes = []
    for plan in make_plans(contexts, [get_metric("word_l2r")], model.mask_id):
        for batch in plan.batches(model.max_batch_tokens, model.max_batch_targets, model.pad_id, model.pads):
            passes.append(forward._upload(batch.ids, batch.lengths, batch.row, batch.position, batch.target))

    @torch.inference_mode()
    def run():
        for ids, lengths, row, position, target in passes:
            mask = (torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]).long()
            with forward.before_head(row, position):
                logits = forward.model(input_ids=ids, attention_mask=mask).logits[0]
            answers = logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(dim=1)
        return answers.cpu()

    return run, sum(int(lengths.sum()) for _, lengths, *_ in passes)


def make_minicons(folder: Path, texts: list[str], device: str):
    scorer = MaskedLMScorer(str(folder), device)

    def run(size, texts=texts):
        for start in range(0, len(texts), size):
            scorer.sequence_score(
                texts[start : start + size], PLL_metric="within_word_l2r", reduction=lambda x: x.sum(0).item()
            )

    sizes = MINICONS_BATCHES if len(texts) > max(MINICONS_BATCHES) else MINICONS_BATCHES[:1]
    some = texts[:: max(1, len(texts) // 32)]
    best = min(sizes, key=lambda size: seconds(lambda: run(size, some))) if len(sizes) > 1 else sizes[0]
    return lambda: run(best), best


def seconds(function: Callable) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def product_rate(device: torch.device, width: int, onednn: bool, repeats: int = 10) -> float:
    """Floating-point operations a second in the products of a feed-forward layer, on 2,048 pieces: the best of some."""
    layer = torch.nn.Linear(width, 4 * width, device=device)
    x = torch.randn(2048, width, device=device)
    weight, bias = (p.detach().to_mkldnn() if onednn else p for p in (layer.weight, layer.bias))

    @torch.no_grad()
    def run():
        if onednn:
            torch._C._nn.mkldnn_linear(x.to_mkldnn(), weight, bias)
        else:
            layer(x)
        if device.type == "cuda":
            torch.cuda.synchronize()

    run()
    return 2 * x.numel() * 4 * width / min(seconds(run) for _ in range(repeats))


def measure(name: str, folder: Path, kind: str, texts: list[str], rounds: int, device: str) -> dict:
    """All contestants on some texts; medians over the rounds."""
    nlp = make_pipeline(folder, ["word_l2r"])
    three = make_pipeline(folder, THREE)
    rounded = make_pipeline(folder, ["word_l2r"], mixed_precision=True)
    bare, pieces = make_bare(nlp, texts)
    contestants = {
        "spacy-pll": lambda: list(nlp.pipe(texts)),
        "bare": bare,
        "three metrics": lambda: list(three.pipe(texts)),
        "mixed precision": lambda: list(rounded.pipe(texts)),
    }
    batch = None
    # minicons reads a text in one pass, and keeps all its logits, float32, and as many while it normalises them.
    longest = max(doc._.pll_pieces for doc in nlp.pipe(texts))
    needed = 8 * longest**2 * nlp.get_pipe("pll").model.tokenizer.get_vocab_size()
    if needed < (free_bytes(torch.device(device)) or math.inf) and longest < nlp.get_pipe("pll").model.max_length:
        contestants["minicons"], batch = make_minicons(folder, texts, device)
    some = texts[: max(1, len(texts) // 10)]
    for warm in (nlp, three, rounded):
        list(warm.pipe(some))
    # Apart from the rounds: a contestant whose memory is given back before it starts would pay for that.
    memory = {contestant: peak_above(run, device) for contestant, run in contestants.items()}
    times = {contestant: [] for contestant in contestants}
    for _ in range(rounds):
        for contestant, run in contestants.items():
            times[contestant].append(seconds(run))
    scorer = nlp.get_pipe("pll")
    scorer.counts.clear()
    exact = [doc._.pll for doc in nlp.pipe(texts)]
    counts = dict(scorer.counts)
    rough = [doc._.pll for doc in rounded.pipe(texts)]
    with FlopCounterMode(display=False) as flops:
        bare()
    width = scorer.model.transformer.config.hidden_size
    rates = {how: product_rate(scorer.model.loaded.forward.device, width, how == "oneDNN") for how in products(device)}
    operations = flops.get_total_flops()
    medians = {contestant: statistics.median(values) for contestant, values in times.items()}
    return {
        "model": name,
        "texts": kind,
        "n_texts": len(texts),
        "minicons_batch": batch,
        "seconds": times,
        "sentences_per_second": {c: len(texts) / t for c, t in medians.items()},
        "pieces_per_second": pieces / medians["spacy-pll"],
        "peak_mb": memory,
        "padded_share": counts["padding"] / (counts["ids"] + counts["padding"]),
        "rows_three_metrics": count_rows(three, texts) / counts["rows"],
        "operations": operations,
        "products_per_second": rates,
        "share_of_products": {how: operations / medians["spacy-pll"] / rate for how, rate in rates.items()},
        "rounding": {
            "mean_absolute_difference": float(np.mean(np.abs(np.subtract(exact, rough)))),
            "rank_correlation": float(spearmanr(exact, rough).statistic),
        },
    }


def count_rows(nlp, texts: list[str]) -> int:
    counts = nlp.get_pipe("pll").counts
    counts.clear()
    list(nlp.pipe(texts))
    return counts["rows"]


def products(device: str) -> list[str]:
    return ["PyTorch", "oneDNN"] if device == "cpu" and is_faster_here() else ["PyTorch"]


def ratio(result: dict, numerator: str, denominator: str) -> str:
    """Of two contestants' times: the median over the rounds, and its spread."""
    if numerator not in result["seconds"]:
        return "too long for it"
    pairs = zip(result["seconds"][numerator], result["seconds"][denominator])
    values = sorted(a / b for a, b in pairs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def as_table(results: list[dict], machine: dict) -> str:
    header = [
        "model", "texts", "sentences/s", "pieces/s", "minicons / ours", "minicons / ours, mixed precision",
        "bare / ours", "three metrics / one", "padding", "share of product rate", "rounding: difference, rank r",
        "peak MB above what was there",
    ]  # fmt: skip
    lines = [", ".join(f"{key} {value}" for key, value in machine.items()), ""]
    lines += [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}"]
    for r in results:
        cells = [
            r["model"],
            f"{r['texts']} ({r['n_texts']})",
            f"{r['sentences_per_second']['spacy-pll']:.1f}",
            f"{r['pieces_per_second']:,.0f}",
            ratio(r, "minicons", "spacy-pll"),
            ratio(r, "minicons", "mixed precision"),
            ratio(r, "bare", "spacy-pll"),
            ratio(r, "three metrics", "spacy-pll"),
            f"{r['padded_share']:.1%}",
            ", ".join(f"{how} {share:.0%}" for how, share in r["share_of_products"].items()),
            f"{r['rounding']['mean_absolute_difference']:.3f}, {r['rounding']['rank_correlation']:.4f}",
            ", ".join(f"{contestant} {mb:,.0f}" for contestant, mb in r["peak_mb"].items()),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def processor() -> str:
    try:
        info = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name")), "unknown")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("brown", type=Path)
    parser.add_argument("--bert-base", type=Path, metavar="TOKENIZER_FOLDER")
    parser.add_argument("--roberta-large", type=Path, metavar="TOKENIZER_FOLDER")
    parser.add_argument("--no-builtin", action="store_true")
    parser.add_argument("--kinds", nargs="+", default=["BLiMP", "Brown", "paragraphs"])
    parser.add_argument("--sentences", type=int, default=268)
    parser.add_argument("--paragraphs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    if args.gpu:
        spacy.require_gpu()
    device = "cuda" if args.gpu else "cpu"
    machine = {
        "processor": torch.cuda.get_device_name() if args.gpu else processor(),
        "threads": torch.get_num_threads(),
        **{package: version(package) for package in ("torch", "transformers", "minicons")},
    }
    with tempfile.TemporaryDirectory() as scratch:
        models = {} if args.no_builtin else {"built in": BUILTIN}
        for size, tokenizer in (("bert-base", args.bert_base), ("roberta-large", args.roberta_large)):
            if tokenizer:
                models[f"{size} size"] = Path(scratch) / size
                save_random(size, tokenizer, models[f"{size} size"])
        results = []
        for name, folder in models.items():
            tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
            tokenizer.no_truncation()  # the built-in one cuts at its window, and no paragraph would ever be long enough
            texts = {
                "BLiMP": lambda: blimp_sentences(args.blimp, args.sentences),
                "Brown": lambda: brown_sentences(args.brown, args.sentences // 2),
                "paragraphs": lambda tokenizer=tokenizer: brown_paragraphs(args.brown, args.paragraphs, tokenizer),
            }
            for kind in args.kinds:
                results.append(measure(name, folder, kind, texts[kind](), args.rounds, device))
                table = as_table(results, machine)
                print(table, flush=True)
                if args.output:
                    args.output.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
                if args.table:
                    args.table.write_text(table)


if __name__ == "__main__":
    main()
