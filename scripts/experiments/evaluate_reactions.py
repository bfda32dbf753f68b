"""The table of chemical reactions in docs/one-pass.md: one forward pass in the place of one per piece of SMILES.

    python -m scripts.experiments.evaluate_reactions PAIRS.jsonl --model FOLDER [--write docs/one-pass.md]

Each line of PAIRS.jsonl has a reaction, and the same reaction with a wrong product: {"good": ..., "bad": ...}.
"""

import argparse
from pathlib import Path

import numpy as np

from scripts.docs_site.markdown_tables import print_table, replace_tables
from spacy_pll import Pair, compare_margins, make_pipeline, minimal_pairs, read_pairs

MARGINS = (0, 1, 2, 4)
ROUNDS = 3


def compare(pairs: list[Pair], model: str) -> list[dict]:
    exact = make_pipeline(model, metrics=["original"], words="piece")
    reactions = [pair.good for pair in pairs]
    rounds = [compare_margins(exact, reactions, MARGINS).comparisons for _ in range(ROUNDS)]
    first = rounds[0]
    runs = [first[0].scorers[0], *(one.scorers[1] for one in first)]
    seconds = [[one[0].scorers[0].seconds, *(each.scorers[1].seconds for each in one)] for one in rounds]
    faster = np.median([times[0] / np.array(times) for times in seconds], axis=0)
    table = []
    for number, (margin, run) in enumerate(zip((None, *MARGINS), runs)):
        [accuracy] = minimal_pairs(make_pipeline(exact, mask_margin=margin), pairs).measurements()
        row = {"setting": "exact", "*r* by piece": "1", "*r* of reaction means": "1", "mean absolute difference": ""}
        if margin is not None:
            close = first[number - 1]
            assert close.piece  # both have the same pieces
            row = {
                "setting": f"`mask_margin = {margin}`",
                "*r* by piece": f"{close.piece.r:.4f}",
                "*r* of reaction means": f"{close.text_mean.r:.4f}",
                "mean absolute difference": f"{close.piece.mean_absolute_difference:.2f}",
            }
        row["right products"] = f"{accuracy.estimate.value * len(pairs):.0f} of {len(pairs)}"
        row["ids per piece"] = f"{run.forward_pieces / run.scored_pieces:.1f}"
        table.append({**row, "times as fast": f"{faster[number]:.1f}"})
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, help="a file with one reaction and its wrong product per line")
    parser.add_argument("--model", required=True, help="folder or hub name")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the table there")
    args = parser.parse_args()
    table = compare(read_pairs(args.pairs), args.model)
    print_table("Agreement with exact scores (differences in nats)", table)
    if args.write:
        replace_tables(args.write, {"reactions": table})


if __name__ == "__main__":
    main()
