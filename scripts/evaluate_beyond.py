"""The evidence of docs/metrics.md: what `mask_spacing` costs and saves, and the word metrics side by side.

    python scripts/evaluate_beyond.py BROWN.zip BLIMP_FOLDER EVENTSADAPT.csv [--paragraphs 100] [--pairs 100]
        [--model FOLDER] [--only cost|spacing|metrics|orders] [--output FILE.json]

BROWN.zip is NLTK's archive of the Brown corpus, BLIMP_FOLDER has BLiMP's 67 data files,
EVENTSADAPT.csv is Kauf et al.'s sentence set. Needs the package wordfreq. Prints Markdown tables.
FILE.json is written as the results come in; parts that it has already are kept unless they are measured anew.
"""

import argparse
import csv
import json
import math
import random
import re
import time
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import spacy
from spacy.util import registry

from spacy_pll.metrics import MAX_EXACT, ORDER_PAIRS, all_orders, any_order, in_each_word, some_orders
from spacy_pll.scoring.plan import make_plans
from spacy_pll.scoring.windows import get_contexts
from spacy_pll.scoring.wordpieces import get_wordpieces

SPACINGS = [4, 8, 16, 32]
METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r", "word_r2l", "word_any_order"]
PARAGRAPH = 400  # pieces
CONTEXT = "My word is {}."  # K&I, appendix B


def make_pipeline(model: str | None, metrics: list[str], **settings):
    nlp = spacy.blank("en")
    architecture = {"@architectures": "spacy-pll.MaskedLM.v1", "name": model}
    nlp.add_pipe("pll", config={"model": architecture, "metrics": metrics, **settings})
    nlp.initialize()
    return nlp


def print_table(title: str, rows: list[dict]):
    print(f"\n{title}\n\n| {' | '.join(rows[0])} |\n|{' --- |' * len(rows[0])}")
    for row in rows:
        print(f"| {' | '.join(str(value) for value in row.values())} |", flush=True)


# Data


def brown_files(path: Path) -> list[list[list[str]]]:
    """The Brown corpus: its files, their sentences, their words."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
        lines = [archive.read(name).decode("utf8").splitlines() for name in names]
    return [[[token.rsplit("/", 1)[0] for token in line.split()] for line in file if line.split()] for file in lines]


def brown_paragraphs(path: Path, tokenizer, n: int) -> list[str]:
    """n texts from evenly spread files: consecutive sentences, joined until they have `PARAGRAPH` pieces."""
    files = brown_files(path)
    out = []
    for i in range(min(n, len(files))):
        text, pieces = [], 0
        for words in files[i * len(files) // min(n, len(files))]:
            text.append(joined(words))
            pieces += sum(special == 0 for special in tokenizer.encode(text[-1]).special_tokens_mask)
            if pieces >= PARAGRAPH:
                out.append(" ".join(text))
                break
    return out


def joined(words: list[str]) -> str:
    """A sentence as it is written: no space before marks or inside quotes and brackets."""
    text = re.sub(r" ([,;:?!.)]|'')", r"\1", " ".join(words))
    return re.sub(r"(``|\() ", r"\1", text).replace("``", '"').replace("''", '"')


def blimp_pairs(folder: Path, per_paradigm: int) -> list[dict]:
    """The same pairs each time: drawn per paradigm with a seed that is the paradigm's name."""
    pairs = []
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf8").splitlines()]
        pairs += random.Random(path.stem).sample(rows, min(per_paradigm, len(rows)))
    if not pairs:
        raise SystemExit(f"No .jsonl file in {folder}: give the folder that holds BLiMP's data files.")
    return pairs


def eventsadapt(path: Path) -> list[str]:
    with path.open(encoding="utf8", newline="") as file:
        return [row["Sentence"] for row in csv.DictReader(file)]


# Arithmetic


def pearson(x, y) -> float:
    return float(np.corrcoef(x, y)[0, 1])


def with_interval(x, y) -> str:
    """Pearson's r with Fisher's 95 % interval."""
    z, half = math.atanh(pearson(x, y)), 1.96 / math.sqrt(len(x) - 3)
    return f"{math.tanh(z):.3f} [{math.tanh(z - half):.3f}, {math.tanh(z + half):.3f}]"


def difference_interval(x, y, other, n_samples: int = 2000) -> str:
    """r(x, y) - r(x, other), with a percentile bootstrap interval that draws the items anew."""
    values = np.array([x, y, other])
    draws = np.random.default_rng(0).integers(len(x), size=(n_samples, len(x)))
    samples = [np.corrcoef(values[:, draw])[0] for draw in draws]
    low, high = np.percentile([r[1] - r[2] for r in samples], [2.5, 97.5])
    return f"{pearson(x, y) - pearson(x, other):+.3f} [{low:+.3f}, {high:+.3f}]"


def hits(docs: list, metric: str | None = None) -> np.ndarray:
    """For each pair of good and bad: 1, 0, or 0.5 on a tie."""
    scores = np.array([doc._.get(f"pll_{metric}" if metric else "pll") for doc in docs])
    return (1 + np.sign(scores[::2] - scores[1::2])) / 2


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of a mean."""
    return 1.96 * float(np.std(values)) / math.sqrt(len(values))


# mask_spacing


def timed(nlp, texts: list[str]):
    """The docs, the seconds of CPU time that they took, and the pieces in their forward passes."""
    scorer = nlp.get_pipe("pll")
    scorer.counts.clear()
    began = time.process_time()  # of this process alone, whatever else the machine does
    docs = list(nlp.pipe(texts, batch_size=64))
    return docs, time.process_time() - began, scorer.counts["ids"]


def planned_pieces(contexts: list, metric: str, mask_id: int, spacing: int | None) -> int:
    """The pieces in all forward passes that a metric takes."""
    plans = make_plans(contexts, [registry.pll_metrics.get(metric)], mask_id, spacing)
    return sum(plan.n_ids for plan in plans)


def cost_tables(args) -> Iterator[dict]:
    """What the spacings save with models that read contexts of several lengths: counted, for the tokenizer's words."""
    nlp = make_pipeline(args.model, METRICS)
    model = nlp.get_pipe("pll").model
    docs = [nlp.make_doc(text) for text in brown_paragraphs(args.brown, model.tokenizer, args.paragraphs)]
    pieces = [get_wordpieces(doc[:], model.tokenizer, "tokenizer") for doc in docs]
    table = []
    for max_length in (256, 512):
        contexts = [c for doc, own in zip(docs, pieces) for c in get_contexts([doc[:]], [own], None, max_length)[0]]
        for metric in ("word_l2r", "word_any_order"):
            exact = planned_pieces(contexts, metric, model.mask_id, None)
            row = {"contexts of": max_length, "metric": metric, "exact": f"{exact:,}"}
            for spacing in SPACINGS:
                row[f"mask_spacing {spacing}"] = (
                    f"÷ {exact / planned_pieces(contexts, metric, model.mask_id, spacing):.1f}"
                )
            table.append(row)
    n_pieces = sum(map(len, pieces)) / len(docs)
    print_table(f"Forward pieces for {len(docs)} Brown paragraphs of {n_pieces:.0f} pieces", table)
    yield {"pieces_per_text": n_pieces, "forward_pieces": table}


def units(docs: list) -> dict[str, np.ndarray]:
    """The scores by piece, by word (spaCy's tokens that have pieces) and by text."""
    return {
        "piece": np.concatenate([doc._.pll_data["scores"]["word_l2r"] for doc in docs]),
        "word": np.array([token._.pll for doc in docs for token in doc if token._.pll_pieces]),
        "text": np.array([doc._.pll for doc in docs]),
    }


def spacing_tables(args) -> Iterator[dict]:
    exact_nlp = make_pipeline(args.model, ["word_l2r"], keep_pieces=True)
    model = exact_nlp.get_pipe("pll").model
    paragraphs = brown_paragraphs(args.brown, model.tokenizer, args.paragraphs)
    pairs = blimp_pairs(args.blimp, args.pairs)
    sentences = [pair[f"sentence_{side}"] for pair in pairs for side in ("good", "bad")]
    list(exact_nlp.pipe(paragraphs[:1]))  # the first pass is slower than the others
    exact, exact_time, exact_ids = timed(exact_nlp, paragraphs)
    exact_units = units(exact)
    exact_blimp, blimp_time, blimp_ids = timed(exact_nlp, sentences)
    n_pieces = len(exact_units["piece"]) / len(paragraphs)
    accuracy = 100 * hits(exact_blimp).mean()
    agreement, cost, blimp = [], [], []
    exact_figures = {
        "paragraphs": len(paragraphs),
        "pieces_per_paragraph": n_pieces,
        "forward_pieces": exact_ids,
        "cpu_seconds": exact_time,
        "blimp_pairs": len(pairs),
        "blimp_accuracy": accuracy,
        "blimp_forward_pieces": blimp_ids,
        "blimp_cpu_seconds": blimp_time,
    }
    for spacing in SPACINGS:
        nlp = make_pipeline(args.model, ["word_l2r"], keep_pieces=True, mask_spacing=spacing)
        docs, seconds, ids = timed(nlp, paragraphs)
        row = {"mask_spacing": spacing}
        for unit, values in units(docs).items():
            difference = (values - exact_units[unit]).mean()
            row[f"r by {unit}"] = f"{pearson(values, exact_units[unit]):.5f}"
            row[f"mean difference by {unit}"] = f"{difference:+.4f}"
        mean_of_text, exact_mean = ([doc._.pll / doc._.pll_pieces for doc in some] for some in (docs, exact))
        row["r by text, mean per piece"] = f"{pearson(mean_of_text, exact_mean):.5f}"
        agreement.append(row)
        cost.append(
            {
                "mask_spacing": spacing,
                "forward pieces": f"{exact_ids / ids:.1f} times fewer",
                "CPU time": f"{exact_time / seconds:.1f} times less",
            }
        )
        docs, seconds, ids = timed(nlp, sentences)
        change = 100 * (hits(docs) - hits(exact_blimp))
        blimp.append(
            {
                "mask_spacing": spacing,
                "r by sentence": f"{pearson([d._.pll for d in docs], [d._.pll for d in exact_blimp]):.5f}",
                "accuracy": f"{100 * hits(docs).mean():.1f}",
                "change": f"{change.mean():+.1f} ± {half_width(change):.1f}",
                "forward pieces": f"{blimp_ids / ids:.1f} times fewer",
                "CPU time": f"{blimp_time / seconds:.1f} times less",
            }
        )
        yield {"exact": exact_figures, "agreement": agreement, "cost": cost, "blimp": blimp}
    about = f"{len(paragraphs)} Brown paragraphs of {n_pieces:.0f} pieces"
    print_table(f"{about}, word_l2r: agreement with exact scores (nats)", agreement)
    print_table(f"{about}, word_l2r: cost (exact: {exact_ids:,} forward pieces, {exact_time:.0f} s of CPU time)", cost)
    print_table(
        f"BLiMP, {len(pairs):,} pairs, word_l2r (exact: {accuracy:.1f} %, {blimp_ids:,} forward pieces, "
        f"{blimp_time:.0f} s of CPU time)",
        blimp,
    )


# The metrics side by side


def metric_tables(args) -> Iterator[dict]:
    import wordfreq

    nlp = make_pipeline(args.model, METRICS)
    pairs = blimp_pairs(args.blimp, args.pairs)
    docs = list(nlp.pipe([pair[f"sentence_{side}"] for pair in pairs for side in ("good", "bad")], batch_size=256))
    right = {metric: 100 * hits(docs, metric) for metric in METRICS}
    groups = defaultdict(list)
    for i, pair in enumerate(pairs):
        groups["overall"].append(i)
        groups[pair["linguistics_term"]].append(i)
    blimp = []
    for name in sorted(groups, key=lambda name: (name != "overall", name)):
        mine = {metric: right[metric][groups[name]] for metric in METRICS}
        cells = {metric: f"{values.mean():.1f} ± {half_width(values):.1f}" for metric, values in mine.items()}
        change = mine["word_any_order"] - mine["word_l2r"]
        against = f"{change.mean():+.1f} ± {half_width(change):.1f}"
        blimp.append({"phenomenon": name, **cells, "any order minus l2r": against})
    print_table(f"BLiMP accuracy in percent, {len(pairs):,} pairs", blimp)

    yield {"blimp": blimp}

    sentences = eventsadapt(args.eventsadapt)
    words = sorted({word for text in sentences for word in text.lower().rstrip(".").split() if word.isalpha()})
    frequency = {word: wordfreq.word_frequency(word, "en") for word in words}
    words = [word for word in words if frequency[word]]
    in_context = list(nlp.pipe([CONTEXT.format(word) for word in words], batch_size=256))
    position = CONTEXT.split().index("{}.")
    tokens = [doc[position] for doc in in_context]
    log_frequency = np.array([math.log(frequency[word]) for word in words])
    n_pieces = np.array([token._.pll_pieces for token in tokens])
    several = n_pieces > 1
    scored = list(nlp.pipe(sentences, batch_size=256))
    length = [doc._.pll_pieces for doc in scored]
    score = {metric: np.array([token._.get(f"pll_{metric}") for token in tokens]) for metric in METRICS}
    correlations, normalised = [], []
    for metric, values in score.items():
        negative = [-doc._.get(f"pll_{metric}") for doc in scored]
        correlations.append(
            {
                "metric": metric,
                "word score, log frequency": with_interval(log_frequency, values),
                "minus word_l2r's": difference_interval(log_frequency, values, score["word_l2r"])
                if metric != "word_l2r"
                else "",
                "words of several pieces": with_interval(log_frequency[several], values[several]),
                "negative score, length": with_interval(length, negative),
            }
        )
        normalised.append(
            {
                "metric": metric,
                "score": with_interval(log_frequency, values),
                "/ sqrt(pieces)": with_interval(log_frequency, values / np.sqrt(n_pieces)),
                "/ pieces": with_interval(log_frequency, values / n_pieces),
                "/ characters": with_interval(log_frequency, values / np.array([len(word) for word in words])),
                "/ pieces, words of several": with_interval(log_frequency[several], (values / n_pieces)[several]),
            }
        )
    in_words = f"{len(words):,} words ({several.sum()} of several pieces) in {CONTEXT.format('_')!r}"
    print_table(
        f"Pearson's r of log frequency and the score of {in_words}; of the length in pieces and the negative score of "
        f"{len(sentences):,} sentences of EventsAdapt",
        correlations,
    )
    print_table(f"Pearson's r of log frequency and the length-normalised score of {in_words}", normalised)
    yield {"blimp": blimp, "correlations": correlations, "length_normalised": normalised}


# Sampled orders


def order_tables(args, n_draws: int = 20, n_words: int = 12) -> Iterator[dict]:
    """How far the average over some orders is from that over all, for words that are long but not too long for all."""

    def single(seed, k):
        return some_orders(np.random.RandomState(1000 + seed).permutation(k)[None])

    def pairs(seed, k):
        draw = np.random.RandomState(2000 + seed)
        rank = np.array([draw.permutation(k) for _ in range(ORDER_PAIRS)])
        return some_orders(np.concatenate([rank, k - 1 - rank]))

    rows_of = {"all_orders": all_orders, "word_any_order": any_order}
    for seed in range(n_draws):
        rows_of[f"single_{seed}"] = lambda k, seed=seed: single(seed, k)
        rows_of[f"pairs_{seed}"] = lambda k, seed=seed: pairs(seed, k)
    for name, function in rows_of.items():
        registry.pll_metrics.register(name, func=lambda word, function=function: in_each_word(word, function))
    nlp = make_pipeline(args.model, list(rows_of), targets="word", words="whitespace", attr="orders")
    model = nlp.get_pipe("pll").model
    long_words = {word.lower() for file in brown_files(args.brown) for sentence in file for word in sentence}
    by_length = defaultdict(set)
    for word in long_words:
        if word.isalpha() and len(word) > MAX_EXACT:
            by_length[len(model.tokenizer.encode(f" {word}").ids) - 2].add(word)
    table = []
    for k in (MAX_EXACT + 1, MAX_EXACT + 2):
        words = sorted(by_length[k])
        docs = [
            nlp.make_doc(f"My word is {word} .") for word in random.Random(k).sample(words, min(n_words, len(words)))
        ]
        for doc in docs:
            doc.spans["word"] = [doc[3:4]]
        docs = [doc for doc in nlp.pipe(docs) if doc[3]._.orders_pieces == k]
        score = {name: np.array([doc[3]._.get(f"orders_{name}") for doc in docs]) for name in rows_of}
        exact = score["all_orders"]
        error = {kind: np.array([score[f"{kind}_{s}"] - exact for s in range(n_draws)]) for kind in ("single", "pairs")}
        single_error, pairs_error, own_error = (
            float((values**2).mean() ** 0.5)
            for values in (error["single"], error["pairs"], score["word_any_order"] - exact)
        )
        table.append(
            {
                "pieces": k,
                "words": len(docs),
                "mean score, all orders": f"{exact.mean():.2f}",
                "standard deviation between orders": f"{single_error:.2f}",
                f"standard error, {ORDER_PAIRS} pairs": f"{pairs_error:.3f}",
                f"of {2 * ORDER_PAIRS} independent orders": f"{single_error / (2 * ORDER_PAIRS) ** 0.5:.3f}",
                "error of word_any_order, root mean square": f"{own_error:.3f}",
            }
        )
    print_table(f"Sampled orders, words of Brown in {CONTEXT.format('_')!r}, {n_draws} draws (nats)", table)
    yield {"sampled": table}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brown", type=Path)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("eventsadapt", type=Path)
    parser.add_argument("--paragraphs", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=100, help="of each of BLiMP's paradigms")
    parser.add_argument("--model")
    parser.add_argument("--only", choices=["cost", "spacing", "metrics", "orders"])
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    spacy.prefer_gpu()
    parts = {"cost": cost_tables, "spacing": spacing_tables, "metrics": metric_tables, "orders": order_tables}
    kept = args.output is not None and args.output.exists()
    results = json.loads(args.output.read_text(encoding="utf8")) if kept else {}
    for name, part in parts.items():
        if args.only in (None, name):
            for results[name] in part(args):
                if args.output:
                    args.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
