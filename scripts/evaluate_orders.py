"""How good the bound of `log_probability_bounds` is (docs/bound.md): its error by the draw, against all orders, and
beside other metrics and a left-to-right model.

    python scripts/evaluate_orders.py BLIMP_FOLDER [--twin training/causal/model]

BLIMP_FOLDER holds BLiMP's data files. `spacy project run train-causal` trains the left-to-right model.
"""

import argparse
from pathlib import Path

import numpy as np
from markdown_tables import print_table

from spacy_pll import log_probability_bounds, make_pipeline, minimal_pairs, read_pairs, register_metric
from spacy_pll.evaluation.groups import sample_items
from spacy_pll.metrics import MAX_EXACT, MaskRows, draw_orders, some_orders

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


def beside_others(nlp, pairs: list, twin: str | None) -> list[dict]:
    """Accuracy and mean score on minimal pairs, and Pearson's r with the left-to-right model."""
    texts = [text for pair in pairs for text in (pair.good, pair.bad)]
    by_name = {}
    for unit in ("piece", "word"):
        bounds = log_probability_bounds(nlp, texts, unit=unit)
        by_name[f"bound, by {unit}"] = np.array([bound.score for bound in bounds if bound])
    several = {"": make_pipeline(nlp, METRICS)}
    for name, of_pairs in minimal_pairs(several[""], pairs).scores.items():
        by_name[name] = np.stack([of_pairs.good, of_pairs.bad], axis=1).ravel()
    if twin:
        (of_pairs,) = minimal_pairs(make_pipeline(twin), pairs).scores.values()
        by_name["left-to-right model"] = np.stack([of_pairs.good, of_pairs.bad], axis=1).ravel()
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
    args = parser.parse_args()
    nlp = make_pipeline(None, ["original"])
    some = [pair for name in PARADIGMS for pair in read_pairs(str(args.blimp / f"{name}.jsonl"))[:7]]
    print_table("by the number of orders", by_number(nlp, [pair.good for pair in some]))
    pairs = read_pairs(str(args.blimp))
    docs = nlp.pipe(dict.fromkeys(pair.good for pair in sample_items(pairs, 20)))
    short = [doc.text for doc in docs if doc._.pll_pieces in (MAX_EXACT - 1, MAX_EXACT)]
    print_table(f"{len(short)} sentences of 5 or 6 wordpieces, random orders and all", against_all(short))
    pairs = sample_items(pairs, 10)
    print_table(f"{len(pairs)} pairs of BLiMP", beside_others(nlp, pairs, args.twin))


if __name__ == "__main__":
    main()
