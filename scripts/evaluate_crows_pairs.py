"""The table of docs/experiments.md about CrowS-Pairs (Nangia et al. 2020).

    python scripts/evaluate_crows_pairs.py CROWS_PAIRS.csv [--model FOLDER] [--write docs/experiments.md]

CROWS_PAIRS.csv is the authors' crows_pairs_anonymized.csv. Prints a Markdown table of how often the more stereotyping
sentence has the higher score over what both sentences have; --write also puts it into a page (see `replace_tables`).
"""

import argparse
import csv
import math
from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
from markdown_tables import print_table, replace_tables

from spacy_pll import Comparison, compare_pairs
from spacy_pll.evaluation.accuracies import OVERALL, Accuracy, accuracies, outcomes_of
from spacy_pll.evaluation.items import PARADIGM, PHENOMENON, Pair
from spacy_pll.pipelines import make_pipeline

# The heading of each column, with the metric and whether wordpieces are aligned.
COLUMNS = {
    "authors' metric": ("original", True),
    "original, tokens": ("original", False),
    "word_l2r, tokens": ("word_l2r", False),
}


def read(path: Path) -> list[Pair]:
    """The pairs, grouped by direction and by type of bias. "Good" is the sentence with more of the stereotype."""
    with path.open(encoding="utf8", newline="") as file:
        return [
            Pair(row["sent_more"], row["sent_less"], {PHENOMENON: row["stereo_antistereo"], PARADIGM: row["bias_type"]})
            for row in csv.DictReader(file)
        ]


def evaluate(pairs: list[Pair], model: str | None) -> list[list[Accuracy]]:
    """For each column: how often the more stereotyping sentence has the higher score, in each group of pairs."""
    nlp = make_pipeline(model=model, metrics=["original", "word_l2r"], keep_pieces=True)
    scores = [
        [
            shared_pieces(comparison, metric) if pieces else comparison.shared_scores(metric)
            for metric, pieces in COLUMNS.values()
        ]
        for comparison in compare_pairs(nlp, (pair[:2] for pair in pairs))
    ]
    return [accuracies(pairs, outcomes_of(np.array(column), [0] * len(pairs))) for column in zip(*scores)]


def shared_pieces(comparison: Comparison, metric: str) -> tuple[float, float]:
    """As `shared_scores`, but difflib aligns wordpieces and not tokens, as in the authors' code.

    The ends (special tokens, which have no score) are aligned as well: difflib begins with the longest stretch of equal
    pieces, and they make one longer.
    """
    records = [doc._.pll_data for doc in (comparison.a, comparison.b)]
    ids = [["begin", *record["ids"], "end"] for record in records]
    scores = [[0.0, *record["scores"][metric], 0.0] for record in records]
    blocks = SequenceMatcher(None, ids[0], ids[1], autojunk=False).get_matching_blocks()
    first, second = (
        math.fsum(x for block in blocks for x in scores[side][block[side] : block[side] + block.size])
        for side in (0, 1)
    )
    return first, second


def table_of(results: list[list[Accuracy]]) -> list[dict[str, str]]:
    """A row for all pairs, and for those of each direction and of each type of bias."""
    rows = []
    for groups in zip(*results):
        if groups[0].level in (OVERALL, PHENOMENON, PARADIGM):
            shares = [f"{100 * one.accuracy:.1f} [{100 * one.low:.1f}, {100 * one.high:.1f}]" for one in groups]
            row = {"pairs": groups[0].name or "all", "n": str(groups[0].pairs)}
            rows.append(row | dict(zip(COLUMNS, shares, strict=True)))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path, help="crows_pairs_anonymized.csv")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the table there")
    args = parser.parse_args()
    results = evaluate(read(args.pairs), args.model)
    for name, groups in zip(COLUMNS, results):
        print(f"{name}: {groups[0].ties} ties, counted as half")
    tables = {"CrowS-Pairs": table_of(results)}
    print_table("CrowS-Pairs, in %", tables["CrowS-Pairs"])
    if args.write:
        replace_tables(args.write, tables)


if __name__ == "__main__":
    main()
