"""How good the bound of `log_probability_bounds` is (docs/metrics.md): its error by the draw, against all orders, and
beside other metrics and a left-to-right model.

    python scripts/evaluate_orders.py BLIMP_FOLDER [--twin training/causal/model] [--texts TEXTS]

BLIMP_FOLDER holds BLiMP's data files. `spacy project run train-causal` trains the left-to-right model.
"""

import argparse
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from markdown_tables import print_table

from spacy_pll import get_scorer, log_probability_bounds, make_pipeline, minimal_pairs, read_pairs, register_metric
from spacy_pll.analysis.any_order import score_draws
from spacy_pll.evaluation.items import sample_items
from spacy_pll.metrics import MaskRows, Metric, draw_orders, some_orders

PARADIGMS = ["adjunct_island", "passive_1", "wh_island"]
N_DRAWS = 8
METRICS = ["word_l2r", "sentence_l2r"]


def by_number(nlp, texts: list[str]) -> list[dict]:
    """The standard error, and how much the score of a text differs between draws, for each number of orders."""
    table = []
    for n_pairs in (2, 4, 8, 16):
        draws = [log_probability_bounds(nlp, texts, n_pairs=n_pairs, seed=seed) for seed in range(N_DRAWS)]
        scores, errors = np.moveaxis(np.array(draws), -1, 0)  # each of shape (draws, texts)
        table.append(
            {
                "orders": 2 * n_pairs,
                "mean score": f"{scores.mean():.2f}",
                "standard error": f"{np.sqrt((errors**2).mean()):.2f}",
                "standard deviation between draws": f"{np.sqrt(scores.var(axis=0, ddof=1).mean()):.2f}",
            }
        )
    return table


def by_passes(nlp, places: list[tuple[str, str, str]], n_pieces: int) -> list[dict]:
    """The standard error of a bound for each number of forward passes, by ladders and by chains of orders."""
    table = []
    for n_passes in (64, 128, 256, 400, 800):
        row: dict[str, Any] = {"passes": n_passes}
        ways: dict[str, dict[str, Any]] = {
            "ladder": {"n_passes": n_passes},
            "orders": {"n_pairs": n_passes // (2 * n_pieces)},
        }
        for name, how in ways.items():
            if how.get("n_pairs", 2) >= 2:
                bounds = [log_probability_bounds(nlp, places, seed=seed, **how) for seed in range(2)]
                scores, errors = np.moveaxis(np.array(bounds), -1, 0)
                row[f"mean, {name}"] = f"{scores.mean():.2f}"
                row[f"standard error, {name}"] = f"{np.sqrt((errors**2).mean()):.2f}"
        table.append({name: row.get(name, "") for name in (*row, "mean, orders", "standard error, orders")})
    return table


def answers(nlp, texts: list[str], n_pieces: int, number: int) -> list[tuple[str, str, str]]:
    """Texts of so many wordpieces, of whole words, each after 20 words of its line."""
    tokenizer, found = get_scorer(nlp).model.load().tokenizer, []
    for text in texts:
        words = text.split()
        for end in range(21, len(words) + 1):
            answer = " " + " ".join(words[20:end])
            if len(tokenizer.encode(answer, add_special_tokens=False)) == n_pieces:
                found.append((answer, " ".join(words[:20]), ""))
                break
    return found[:number]


def drawn(seed: int, n_pairs: int) -> str:
    """Register a metric that draws orders, even where all could be taken. RETURNS: Its name."""

    def orders(word: np.ndarray) -> MaskRows:
        rank = draw_orders(len(word), n_pairs, seed)
        return some_orders(np.concatenate([rank, -rank]))

    name = f"orders_{seed}_{n_pairs}"
    register_metric(name, within_words=False)(orders)
    return name


def against_all(texts: list[str]) -> list[dict]:
    """How far random orders of short texts are from all orders."""
    table = []
    for n_pairs in (2, 4, 8, 16):
        names = [drawn(seed, n_pairs) for seed in range(N_DRAWS)]
        docs = list(make_pipeline(None, ["sentence_any_order", *names]).pipe(texts))
        exact, *scores = np.array(
            [[doc._.get(f"pll_{name}") for doc in docs] for name in ["sentence_any_order", *names]]
        )
        off = np.array(scores) - exact
        spread = {"mean difference": f"{off.mean():+.2f}", "root of the mean square": f"{np.sqrt((off**2).mean()):.2f}"}
        table.append({"orders": 2 * n_pairs, "all orders": f"{exact.mean():.2f}", **spread})
    return table


def one_order(word: np.ndarray, *, order: tuple[int, ...]) -> MaskRows:
    """Reveal the pieces in this order. (A metric is also tried on a context of another length.)"""
    rank = np.argsort(order) if len(word) == len(order) else np.arange(len(word))
    return some_orders(rank[None])


def under_the_mixture(nlp, texts: list[str], n_pieces: int) -> dict:
    """The bound by all orders, and the log-probability that it bounds: of the mean of the orders' probabilities."""
    orders = [Metric(partial(one_order, order=order)) for order in permutations(range(n_pieces))]
    sums = np.array([np.sum(scores.scores, axis=1) for _, scores, _ in score_draws(nlp, texts, orders)])
    highest = sums.max(axis=1)
    exact = highest + np.log(np.exp(sums - highest[:, None]).mean(axis=1))
    gap = exact - sums.mean(axis=1)
    means = {"bound by all orders": sums.mean(), "log-probability": exact.mean(), "difference": gap.mean()}
    row = {name: f"{mean:.2f}" for name, mean in means.items()}
    return {"sentences": len(texts), **row, "largest difference": f"{gap.max():.2f}"}


def beside_others(nlp, pairs: list, twin: str | None) -> list[dict]:
    """Accuracy and mean score on minimal pairs, and Pearson's r with the left-to-right model."""
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    by_name = {}
    for unit in ("piece", "word"):
        bounds = log_probability_bounds(nlp, texts, unit=unit)
        by_name[f"bound, by {unit}"] = np.array([bound.score for bound in bounds if bound])
    for name, of_pairs in minimal_pairs(make_pipeline(nlp, METRICS), pairs).scores.items():
        by_name[name] = np.ravel(of_pairs)
    if twin:
        (of_pairs,) = minimal_pairs(make_pipeline(twin), pairs).scores.values()
        by_name["left-to-right model"] = np.ravel(of_pairs)
    table = []
    for name, scores in by_name.items():
        good, bad = scores.reshape(-1, 2).T
        right = np.mean((good > bad) + (good == bad) / 2)
        row = {"score": name, "mean": f"{scores.mean():.1f}", "accuracy in %": f"{100 * right:.1f}"}
        if twin:
            row["r with the left-to-right model"] = f"{np.corrcoef(scores, by_name['left-to-right model'])[0, 1]:.3f}"
        table.append(row)
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    parser.add_argument("--twin", help="a left-to-right model to compare with")
    parser.add_argument("--texts", type=Path, help="a file of texts, one per line, for bounds by the number of passes")
    args = parser.parse_args()
    nlp = make_pipeline(None, ["original"])
    some = [pair for name in PARADIGMS for pair in read_pairs(str(args.blimp / f"{name}.jsonl"))[:7]]
    print_table("by the number of orders", by_number(nlp, [pair.good for pair in some]))
    pairs = read_pairs(str(args.blimp))
    if args.texts:
        lines = args.texts.read_text(encoding="utf8").splitlines()
        for n_pieces in (16, 100):
            table = by_passes(nlp, answers(nlp, lines, n_pieces, 10), n_pieces)
            print_table(f"answers of {n_pieces} wordpieces, by the number of passes", table)
    docs = nlp.pipe(dict.fromkeys(pair.good for pair in sample_items(pairs, 20)))
    pieces = {doc.text: doc._.pll_pieces for doc in docs}
    short = [text for text, n in pieces.items() if n in (5, 6)]
    print_table(f"{len(short)} sentences of 5 or 6 wordpieces, random orders and all", against_all(short))
    five = [text for text in short if pieces[text] == 5]
    print_table("of 5 wordpieces: the bound, and what it bounds", [under_the_mixture(nlp, five, 5)])
    pairs = sample_items(pairs, 10)
    print_table(f"{len(pairs)} pairs of BLiMP", beside_others(nlp, pairs, args.twin))


if __name__ == "__main__":
    main()
