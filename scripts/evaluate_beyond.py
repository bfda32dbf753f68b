"""The numbers of docs/experiments.md: costs and savings, and a comparison of the word metrics.

    python scripts/evaluate_beyond.py BROWN.zip BLIMP_FOLDER EVENTSADAPT.csv [--paragraphs 100] [--pairs 100]
        [--model FOLDER] [--only cost|spacing|metrics|orders] [--output FILE.json] [--write docs/PAGE.md]

BROWN.zip is NLTK's archive of the Brown corpus. BLIMP_FOLDER holds BLiMP's 67 data files. EVENTSADAPT.csv is the set of
sentences of Kauf et al. (2022). Needs the group `project`. Prints Markdown tables; --write also puts them into a page
(see `replace_tables`). FILE.json is updated after each result; parts of it that are not measured again are kept.
"""

import argparse
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from markdown_tables import print_table, replace_tables
from paper.correlation import pearson, pearson_difference
from paper.data import CONTEXTS, lower_case_words
from paper.published_texts import brown_paragraphs, eventsadapt_items, read_brown
from spacy.language import Language
from spacy.tokens import Doc

from spacy_pll.component import get_scorer
from spacy_pll.evaluation.accuracies import outcomes_of
from spacy_pll.evaluation.intervals import Estimate, paired_difference, proportion
from spacy_pll.evaluation.items import Pair, sample_items
from spacy_pll.evaluation.pair_readers import read_pairs
from spacy_pll.language_model.protocol import Loaded
from spacy_pll.metrics import MAX_EXACT, ORDER_PAIRS, all_orders, get_metric, in_each_word, pll_metrics, some_orders
from spacy_pll.pipelines import make_pipeline
from spacy_pll.scoring.plan import plan_passes
from spacy_pll.scoring.windows import Contexts, read_spans
from spacy_pll.scoring.wordpieces import get_wordpieces

SPACINGS = [4, 8, 16, 32]
METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r", "word_r2l", "word_any_order"]
CONTEXT = CONTEXTS["my word"]


def read_pairs_sample(args: argparse.Namespace) -> tuple[list[Pair], list[str]]:
    """A sample of BLiMP, the same each time: its pairs, and their sentences, each good one before its bad one."""
    pairs = sample_items(read_pairs(str(args.blimp)), args.pairs)
    return pairs, [sentence for pair in pairs for sentence in (pair.good, pair.bad)]


# Statistics


def correlation(x, y) -> float:
    """Pearson's r."""
    return pearson(x, y)["r"]


def shown(row: dict[str, float], sign: str = "") -> str:
    """A value of `paper.correlation` with its 95 % interval."""
    value, low, high, _ = row.values()
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"


def percent(estimate: Estimate, sign: str = "") -> str:
    """An accuracy, or a difference of accuracies, in percent with its 95 % interval."""
    value, low, high = (f"{100 * number:{sign}.1f}" for number in estimate)
    return f"{value} [{low}, {high}]"


def pair_outcomes(docs: list[Doc], metric: str | None = None) -> np.ndarray:
    """The outcome of each pair: 1 where the good sentence scores higher, 0.5 on a tie, 0 otherwise.

    docs (list[Doc]): Good and bad sentences in turns.
    """
    scores = [doc._.get(f"pll_{metric}" if metric else "pll") for doc in docs]
    return outcomes_of(np.reshape(scores, (-1, 2)), [0] * (len(scores) // 2))


# mask_spacing


def timed(nlp: Language, texts: list[str]) -> tuple[list[Doc], float, int]:
    """The scored docs, the seconds of CPU time that this took, and the number of pieces in the forward passes."""
    scorer = get_scorer(nlp)
    scorer.predictor.counts.clear()
    began = time.process_time()  # of this process only
    docs = list(nlp.pipe(texts, batch_size=64))
    return docs, time.process_time() - began, scorer.predictor.counts.ids


def planned_pieces(contexts: Contexts, metric: str, loaded: Loaded, spacing: int | None) -> int:
    """The number of pieces in all forward passes that a metric needs."""
    plans = plan_passes(contexts, [get_metric(metric)], loaded.mask_id, loaded.rows, mask_spacing=spacing)
    return sum(batch.n_ids for batches, _ in plans for batch in batches)


def cost_tables(args: argparse.Namespace) -> Iterator[dict]:
    """Count what the spacings save, for contexts of two lengths and the tokenizer's words."""
    nlp = make_pipeline(args.model, METRICS)
    loaded = get_scorer(nlp).model.load()
    docs = [nlp.make_doc(text) for text in brown_paragraphs(read_brown(args.brown), args.paragraphs, loaded.tokenizer)]
    table = []
    for max_length in (256, 512):
        contexts = Contexts.of(
            [one for doc in docs for one in read_spans([doc[:]], loaded.tokenizer, "tokenizer", max_length)]
        )
        for metric in ("word_l2r", "word_any_order"):
            exact = planned_pieces(contexts, metric, loaded, None)
            row = {"contexts of": max_length, "metric": metric, "exact": f"{exact:,}"}
            for spacing in SPACINGS:
                row[f"mask_spacing {spacing}"] = f"÷ {exact / planned_pieces(contexts, metric, loaded, spacing):.1f}"
            table.append(row)
    n_pieces = len(get_wordpieces([doc[:] for doc in docs], loaded.tokenizer, "tokenizer")) / len(docs)
    print_table(f"Forward pieces for {len(docs)} Brown paragraphs of {n_pieces:.0f} pieces", table)
    yield {"pieces_per_text": n_pieces, "tables": {"forward pieces": table}}


def units(docs: list[Doc]) -> dict[str, np.ndarray]:
    """The scores by piece, by word (spaCy's tokens that have pieces) and by text."""
    return {
        "piece": np.concatenate([doc._.pll_data["scores"]["word_l2r"] for doc in docs]),
        "word": np.array([token._.pll for doc in docs for token in doc if token._.pll_pieces]),
        "text": np.array([doc._.pll for doc in docs]),
    }


def spacing_tables(args: argparse.Namespace) -> Iterator[dict]:
    """Compare the scores and the cost of the spacings with exact scores, on Brown and on BLiMP."""
    exact_nlp = make_pipeline(args.model, ["word_l2r"], keep_pieces=True)
    tokenizer = get_scorer(exact_nlp).model.load().tokenizer
    paragraphs = brown_paragraphs(read_brown(args.brown), args.paragraphs, tokenizer)
    pairs, sentences = read_pairs_sample(args)
    list(exact_nlp.pipe(paragraphs[:1]))  # the first text takes longer
    exact, exact_time, exact_ids = timed(exact_nlp, paragraphs)
    exact_units = units(exact)
    exact_blimp, blimp_time, blimp_ids = timed(exact_nlp, sentences)
    n_pieces = len(exact_units["piece"]) / len(paragraphs)
    accuracy = 100 * pair_outcomes(exact_blimp).mean()
    agreement: list[dict] = [
        {
            "mask_spacing": "exact",
            **{f"r by {unit}": "1" for unit in exact_units},
            "by text, per piece": "1",
            **{f"mean difference by {unit}": "" for unit in exact_units},
            "forward pieces": f"{exact_ids:,}",
            "CPU time": f"{exact_time:.0f} s",
        }
    ]
    blimp: list[dict] = [
        {
            "mask_spacing": "exact",
            "r by sentence": "1",
            "accuracy": f"{accuracy:.1f}",
            "change": "",
            "forward pieces": f"{blimp_ids:,}",
            "CPU time": f"{blimp_time:.0f} s",
        }
    ]
    figures = {
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
        found = units(docs)
        mean_of_text, exact_mean = ([doc._.pll / doc._.pll_pieces for doc in some] for some in (docs, exact))
        agreement.append(
            {
                "mask_spacing": spacing,
                **{f"r by {unit}": f"{correlation(found[unit], exact_units[unit]):.5f}" for unit in found},
                "by text, per piece": f"{correlation(mean_of_text, exact_mean):.5f}",
                **{f"mean difference by {unit}": f"{(found[unit] - exact_units[unit]).mean():+.4f}" for unit in found},
                "forward pieces": f"÷ {exact_ids / ids:.1f}",
                "CPU time": f"÷ {exact_time / seconds:.1f}",
            }
        )
        docs, seconds, ids = timed(nlp, sentences)
        change = pair_outcomes(docs) - pair_outcomes(exact_blimp)
        blimp.append(
            {
                "mask_spacing": spacing,
                "r by sentence": f"{correlation([d._.pll for d in docs], [d._.pll for d in exact_blimp]):.5f}",
                "accuracy": f"{100 * pair_outcomes(docs).mean():.1f}",
                "change": percent(paired_difference(change), "+"),
                "forward pieces": f"÷ {blimp_ids / ids:.1f}",
                "CPU time": f"÷ {blimp_time / seconds:.1f}",
            }
        )
        yield {"exact": figures, "tables": {"spacing, texts": agreement, "spacing, BLiMP": blimp}}
    about = f"{len(paragraphs)} Brown paragraphs of {n_pieces:.0f} pieces"
    print_table(f"{about}, word_l2r: agreement with exact scores (nats), and cost", agreement)
    print_table(f"BLiMP, {len(pairs):,} pairs, word_l2r", blimp)


# The metrics compared


def log_frequencies(sentences: list[str]) -> dict[str, float]:
    """The lower-case words of some sentences whose frequency is known, and its logarithm."""
    import wordfreq

    words = sorted({word for sentence in sentences for word in lower_case_words(sentence)})
    frequency = {word: wordfreq.word_frequency(word, "en") for word in words}
    return {word: math.log(value) for word, value in frequency.items() if value}


def metric_tables(args: argparse.Namespace) -> Iterator[dict]:
    """Compare the metrics: accuracy on BLiMP, and correlations with word frequency and sentence length."""
    nlp = make_pipeline(args.model, METRICS)
    pairs, pair_sentences = read_pairs_sample(args)
    docs = list(nlp.pipe(pair_sentences, batch_size=256))
    right = {metric: pair_outcomes(docs, metric) for metric in METRICS}
    groups = defaultdict(list)
    for i, pair in enumerate(pairs):
        groups["overall"].append(i)
        groups[pair.phenomenon].append(i)
    blimp = []
    for name in sorted(groups, key=lambda name: (name != "overall", name)):
        mine = {metric: right[metric][groups[name]] for metric in METRICS}
        cells = {metric: percent(proportion(values)) for metric, values in mine.items()}
        change = mine["word_any_order"] - mine["word_l2r"]
        against = percent(paired_difference(change), "+")
        blimp.append({"phenomenon": name, **cells, "any order − l2r": against})
    print_table(f"BLiMP accuracy in percent, {len(pairs):,} pairs", blimp)
    tables = {
        "BLiMP": blimp[:1]
    }  # the page has no room for the phenomena; those of four metrics are on the model's card
    yield {"tables": tables}

    events = eventsadapt_items(args.eventsadapt)
    sentences, items = list(events), list(events.values())
    frequencies = log_frequencies(sentences)
    words = list(frequencies)
    in_context = list(nlp.pipe([CONTEXT.format(word) for word in words], batch_size=256))
    position = CONTEXT.split().index("{}.")
    tokens = [doc[position] for doc in in_context]
    log_frequency = np.array(list(frequencies.values()))
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
                "frequency, all words": shown(pearson(log_frequency, values)),
                "minus word_l2r's": shown(pearson_difference(log_frequency, values, score["word_l2r"]), "+")
                if metric != "word_l2r"
                else "",
                "frequency, words of several pieces": shown(pearson(log_frequency[several], values[several])),
                "length": shown(pearson(length, negative, items)),
            }
        )
        normalised.append(
            {
                "metric": metric,
                "score": shown(pearson(log_frequency, values)),
                "/ √pieces": shown(pearson(log_frequency, values / np.sqrt(n_pieces))),
                "/ pieces": shown(pearson(log_frequency, values / n_pieces)),
                "/ characters": shown(pearson(log_frequency, values / np.array([len(word) for word in words]))),
                "/ pieces, words of several pieces": shown(
                    pearson(log_frequency[several], (values / n_pieces)[several])
                ),
            }
        )
    in_words = f"{len(words):,} words ({several.sum()} of several pieces) in {CONTEXT.format('_')!r}"
    print_table(
        f"Pearson's r of log frequency and the score of {in_words}; of the length in pieces and the negative score of "
        f"{len(sentences):,} sentences of EventsAdapt",
        correlations,
    )
    print_table(f"Pearson's r of log frequency and the length-normalised score of {in_words}", normalised)
    yield {"tables": tables | {"correlations": correlations, "length-normalised": normalised}}


# Sampled orders


def order_tables(args: argparse.Namespace, n_draws: int = 20, n_words: int = 12) -> Iterator[dict]:
    """The error of averages over sampled orders, for words that are just short enough to average over all orders."""

    def single(seed, k):
        return some_orders(np.random.RandomState(1000 + seed).permutation(k)[None])

    def pairs(seed, k):
        draw = np.random.RandomState(2000 + seed)
        rank = np.array([draw.permutation(k) for _ in range(ORDER_PAIRS)])
        return some_orders(np.concatenate([rank, k - 1 - rank]))

    rows_of: dict[str, Any] = {"all_orders": all_orders}
    for seed in range(n_draws):
        rows_of[f"single_{seed}"] = lambda k, seed=seed: single(seed, k)
        rows_of[f"pairs_{seed}"] = lambda k, seed=seed: pairs(seed, k)
    for name, function in rows_of.items():
        pll_metrics.register(name, func=lambda word, function=function: in_each_word(word, function))
    nlp, names = spacy.blank("en"), [*rows_of, "word_any_order"]
    architecture = {"@architectures": "spacy-pll.MaskedLM.v1", "name": args.model}
    settings = {"metrics": names, "targets": "word", "words": "whitespace", "attr": "orders"}
    nlp.add_pipe("pll", config={"model": architecture, **settings})
    model = get_scorer(nlp).model
    nlp.initialize()
    long_words = {word.lower() for file in read_brown(args.brown) for sentence in file for word in sentence}
    by_length = defaultdict(set)
    for word in long_words:
        if word.isalpha() and len(word) > MAX_EXACT:
            by_length[len(model.load().tokenizer.encode(f" {word}").ids) - 2].add(word)
    table = []
    for k in (MAX_EXACT + 1, MAX_EXACT + 2):
        words = sorted(by_length[k])
        docs = [
            nlp.make_doc(f"My word is {word} .") for word in random.Random(k).sample(words, min(n_words, len(words)))
        ]
        for doc in docs:
            doc.spans["word"] = [doc[3:4]]
        docs = [doc for doc in nlp.pipe(docs) if doc[3]._.orders_pieces == k]
        score = {name: np.array([doc[3]._.get(f"orders_{name}") for doc in docs]) for name in names}
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
    yield {"tables": {"sampled orders": table}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brown", type=Path, help="NLTK's archive of the Brown corpus")
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    parser.add_argument("eventsadapt", type=Path, help="EventsAdapt's sentence set, .csv")
    parser.add_argument("--paragraphs", type=int, default=100, help="number of paragraphs of Brown (default: 100)")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each of BLiMP's paradigms (default: 100)")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--only", choices=["cost", "spacing", "metrics", "orders"], help="measure this part only")
    parser.add_argument("--output", type=Path, help="write all numbers to this .json file")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
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
            if args.write:
                replace_tables(args.write, results[name]["tables"])


if __name__ == "__main__":
    main()
