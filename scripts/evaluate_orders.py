"""How much a score under `sentence_any_order` depends on the draw of the orders (docs/metrics.md).

    python scripts/evaluate_orders.py BLIMP_FOLDER

BLIMP_FOLDER holds BLiMP's data files. The first seven good sentences of three of them are scored, with six draws for
each number of orders.
"""

import argparse
from pathlib import Path

import numpy as np
from markdown_tables import print_table

from spacy_pll import make_pipeline, read_pairs, register_metric
from spacy_pll.metrics import MaskRows, some_orders

PARADIGMS = ["adjunct_island", "passive_1", "wh_island"]
N_DRAWS = 6


def metric(seed: int, n_pairs: int) -> str:
    """Register a metric with another draw of orders and their reverses. RETURNS: Its name."""

    def orders(word: np.ndarray) -> MaskRows:
        draw = np.random.RandomState(1000 * seed + len(word))
        rank = np.array([draw.permutation(len(word)) for _ in range(n_pairs)])
        return some_orders(np.concatenate([rank, -rank]))

    name = f"orders_{seed}_{n_pairs}"
    register_metric(name, within_words=False)(orders)
    return name


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    args = parser.parse_args()
    texts = [pair.good for name in PARADIGMS for pair in read_pairs(str(args.blimp / f"{name}.jsonl"))[:7]]
    table = []
    for n_pairs in (1, 4, 8):
        names = [metric(seed, n_pairs) for seed in range(N_DRAWS)]
        docs = make_pipeline(None, names).pipe(texts)
        scores = np.array([[doc._.get(f"pll_{name}") for name in names] for doc in docs])
        spread = scores.std(axis=1, ddof=1).mean()
        table.append({"orders": 2 * n_pairs, "mean score": f"{scores.mean():.2f}", "between draws": f"{spread:.2f}"})
    print_table(f"{len(texts)} sentences, {N_DRAWS} draws: mean score, standard deviation between draws (nats)", table)


if __name__ == "__main__":
    main()
