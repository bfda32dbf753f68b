"""The speed of spacy-pll, compared with minicons and with the model alone, on the same texts with the same weights.

    python benchmarks/speed.py [--data FOLDER] [--bert-base [TOKENIZER]] [--roberta-large [TOKENIZER]] [--no-builtin]
        [--kinds BLiMP Brown paragraphs] [--sentences 268] [--paragraphs 2] [--rounds 5] [--gpu]
        [--output speed.json] [--table speed.md]

Measures the built-in model and, with --bert-base and --roberta-large, models of these sizes. Their weights are random;
the time does not depend on them. The contestants take turns, so that a slow minute of the machine affects all of them,
and ratios are taken within a round. The peak of memory (on a CPU: Linux only) is measured before the first round.

`bare` is the work that no scorer can leave out: it runs the distinct masked contexts, already tokenised, sorted and on
the device, through `model.base_model`, and the head at the targets, with PyTorch's own operations.

Needs minicons: pip install --no-deps minicons tenacity wonderwords accelerate.
"""

import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from memory import peak_above
from models import add_size_option, save_random
from spacy.language import Language
from texts import blimp_sentences, brown_paragraphs, brown_sentences, count_anew, find_tokenizer, make_parser
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from scripts.paper.names import BUILTIN_FOLDER
from scripts.paper.passes import plan, read
from spacy_pll import get_scorer, make_pipeline
from spacy_pll.language_model.running.forward import Capabilities, Forward
from spacy_pll.language_model.running.onednn import is_faster_here

MINICONS_BATCHES = [1, 4, 16]  # in sentences; the fastest of them on a sample is used
THREE = ["word_l2r", "original", "whole_word"]


def load(folder: Path, metrics: list[str], precision: str | None = None) -> Language:
    """A pipeline whose words are those of the tokenizer, like minicons'."""
    return make_pipeline(str(folder), metrics, words="tokenizer", precision=precision)


def make_bare(nlp: Language, texts: list[str]) -> tuple[Callable, int]:
    """A function that runs the forward passes of some texts, and the number of pieces in them without padding."""
    loaded: Any = get_scorer(nlp).model.load()
    forward = Forward(loaded.checkpoint.transformer)
    forward.use(Capabilities(narrowing="before_head"))
    docs = map(nlp.make_doc, texts)
    contexts = [one for doc in docs for one in read(doc, loaded.tokenizer, "tokenizer", loaded.max_length)]
    passes = []
    for batches, _ in plan(contexts, "word_l2r", loaded):
        for batch in batches:
            ids = torch.from_numpy(batch.ids).to(forward.device).long()
            passes.append([ids, *forward.upload(batch.lengths, batch.row, batch.position, batch.target)])

    @torch.inference_mode()
    def run():
        for ids, lengths, row, position, target in passes:
            mask = (torch.arange(ids.shape[1], device=ids.device)[None] < lengths[:, None]).long()
            with forward.narrowing.at(row, position):
                logits = forward.model(input_ids=ids, attention_mask=mask).logits[0]
            answers = logits.gather(1, target[:, None])[:, 0] - logits.logsumexp(dim=1)
        return answers.cpu()

    return run, sum(int(lengths.sum()) for _, lengths, *_ in passes)


def make_minicons(
    folder: Path, texts: list[str], device: str, dtype: torch.dtype = torch.float32
) -> tuple[Callable, int]:
    """A function that scores some texts with minicons, and the batch size that it uses."""
    from minicons.scorer import MaskedLMScorer

    if not hasattr(PreTrainedTokenizerBase, "batch_encode_plus"):  # transformers 5, for which minicons was not written
        vars_of: Any = PreTrainedTokenizerBase
        vars_of.batch_encode_plus = PreTrainedTokenizerBase.__call__
    scorer = MaskedLMScorer(str(folder), device)
    scorer.model.to(dtype)

    def run(size, texts=texts):
        for start in range(0, len(texts), size):
            scorer.sequence_score(
                texts[start : start + size], PLL_metric="within_word_l2r", reduction=lambda x: x.sum(0).item()
            )

    sizes = MINICONS_BATCHES if len(texts) > max(MINICONS_BATCHES) else MINICONS_BATCHES[:1]
    some = texts[:: max(1, len(texts) // 32)]
    best = min(sizes, key=lambda size: seconds(lambda: run(size, some))) if len(sizes) > 1 else sizes[0]
    return lambda: run(best), best


def free_bytes(device: str) -> int:
    """The free memory of a device."""
    if device == "cuda":
        return torch.cuda.mem_get_info()[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def seconds(function: Callable, clock: Callable[[], float] = time.perf_counter) -> float:
    """The time that a function takes."""
    began = clock()
    function()
    return clock() - began


def product_rate(device: torch.device, width: int, onednn: bool, repeats: int = 10) -> float:
    """Floating-point operations per second in the products of a feed-forward layer, on 2,048 pieces: the best run."""
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
    """Measure all contestants on some texts."""
    from scipy.stats import spearmanr  # of the extra `reading`; without it, the options are shown all the same

    nlp = load(folder, ["word_l2r"])
    three = load(folder, THREE)
    rounded = load(folder, ["word_l2r"], "bfloat16")
    bare, pieces = make_bare(nlp, texts)
    contestants = {
        "spacy-pll": lambda: list(nlp.pipe(texts)),
        "bare": bare,
        "three metrics": lambda: list(three.pipe(texts)),
        "mixed precision": lambda: list(rounded.pipe(texts)),
    }
    batch = None
    # minicons reads a text in one pass and keeps all its float32 logits, twice while it normalises them.
    longest = max(doc._.pll_pieces for doc in nlp.pipe(texts))
    needed = 8 * longest**2 * get_scorer(nlp).model.load().tokenizer.get_vocab_size()
    if needed < free_bytes(device) and longest < get_scorer(nlp).model.load().max_length:
        contestants["minicons"], batch = make_minicons(folder, texts, device)
    some = texts[: max(1, len(texts) // 10)]
    for warm in (nlp, three, rounded):
        list(warm.pipe(some))
    # Not during the rounds: returning freed memory before a contestant starts would cost it time.
    memory = {contestant: peak_above(run, device) for contestant, run in contestants.items()}
    times = {contestant: [] for contestant in contestants}
    for _ in range(rounds):
        for contestant, run in contestants.items():
            times[contestant].append(seconds(run))
    counts = count_anew(nlp)
    exact = [doc._.pll for doc in nlp.pipe(texts)]
    rough = [doc._.pll for doc in rounded.pipe(texts)]
    with FlopCounterMode(display=False) as flops:
        bare()
    loaded: Any = get_scorer(nlp).model.load()
    width = loaded.checkpoint.transformer.config.hidden_size
    rates = {how: product_rate(loaded.forward.device, width, how == "oneDNN") for how in products(device)}
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
        "padded_share": counts.padding / (counts.ids + counts.padding),
        "rows_three_metrics": count_rows(three, texts) / counts.rows,
        "operations": operations,
        "products_per_second": rates,
        "share_of_products": {how: operations / medians["spacy-pll"] / rate for how, rate in rates.items()},
        "rounding": {
            "mean_absolute_difference": float(np.mean(np.abs(np.subtract(exact, rough)))),
            "rank_correlation": float(spearmanr(exact, rough).statistic),
        },
    }


def count_rows(nlp: Language, texts: list[str]) -> int:
    """The number of rows in the forward passes."""
    counts = count_anew(nlp)
    list(nlp.pipe(texts))
    return counts.rows


def products(device: str) -> list[str]:
    """The libraries whose matrix products are timed."""
    return ["PyTorch", "oneDNN"] if device == "cpu" and is_faster_here() else ["PyTorch"]


def ratio(result: dict, numerator: str, denominator: str) -> str:
    """The ratio of two contestants' times: the median over the rounds, with the least and the most."""
    if numerator not in result["seconds"]:
        return "not run"
    pairs = zip(result["seconds"][numerator], result["seconds"][denominator])
    values = sorted(a / b for a, b in pairs)
    return f"{statistics.median(values):.2f} ({values[0]:.2f}-{values[-1]:.2f})"


def as_table(results: list[dict], machine: dict) -> str:
    header = [
        "model", "texts", "sentences/s", "pieces/s", "minicons / ours", "minicons / ours, mixed precision",
        "bare / ours", "three metrics / one", "padding", "share of product rate", "rounding: difference, rank r",
        "peak MB above what was used before",
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
    parser = make_parser(__doc__)
    add_size_option(parser, "bert-base")
    add_size_option(parser, "roberta-large")
    parser.add_argument("--no-builtin", action="store_true", help="Leave out the built-in model")
    parser.add_argument("--kinds", nargs="+", default=["BLiMP", "Brown", "paragraphs"], help="Kinds of texts")
    parser.add_argument("--sentences", type=int, default=268, help="Number of sentences of BLiMP, and half of Brown")
    parser.add_argument("--paragraphs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="Write all results to this .json file")
    parser.add_argument("--table", type=Path, help="Write the table to this .md file")
    args = parser.parse_args()
    device = "cuda" if args.gpu else "cpu"
    machine = {
        "processor": torch.cuda.get_device_name() if args.gpu else processor(),
        "threads": torch.get_num_threads(),
        **{package: version(package) for package in ("torch", "transformers", "minicons")},
    }
    with tempfile.TemporaryDirectory() as scratch:
        models = {} if args.no_builtin else {"built in": BUILTIN_FOLDER}
        for size, tokenizer in (("bert-base", args.bert_base), ("roberta-large", args.roberta_large)):
            if tokenizer:
                models[f"{size} size"] = Path(scratch) / size
                save_random(size, find_tokenizer(args.data, tokenizer), models[f"{size} size"])
        results = []
        for name, folder in models.items():
            tokenizer = AutoTokenizer.from_pretrained(folder).backend_tokenizer
            tokenizer.no_truncation()  # or paragraphs would be counted as 256 pieces at most
            texts: dict[str, Callable[[], list[str]]] = {
                "BLiMP": lambda: blimp_sentences(args.data, args.sentences),
                "Brown": lambda: brown_sentences(args.data, args.sentences // 2),
                "paragraphs": partial(brown_paragraphs, args.data, args.paragraphs, tokenizer),
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
