"""The table of docs/experiments.md about CrowS-Pairs (Nangia et al. 2020).

    python -m scripts.experiments.evaluate_crows_pairs CROWS_PAIRS.csv [--model FOLDER] [--write docs/experiments.md]

CROWS_PAIRS.csv is the authors' crows_pairs_anonymized.csv. Prints a Markdown table of how often the more stereotyping
sentence has the higher score; --write also puts it into a page (see `replace_tables`).
"""

import argparse
from pathlib import Path

from scripts.docs_site.markdown_tables import print_table, replace_tables
from spacy_pll import make_pipeline, read_suite, score_suite

SHARED, MEAN = "sum over shared pieces", "mean over all pieces"  # the measures
# The heading of each column, with the metric and the measure.
COLUMNS = {
    "CrowS-Pairs' score": ("original", SHARED),
    "AUL": ("unmasked", MEAN),
    "word_l2r, shared pieces": ("word_l2r", SHARED),
}
METRICS = list(dict.fromkeys(metric for metric, _ in COLUMNS.values()))


def table_of(measured: list) -> list[dict[str, str]]:
    """A row for all pairs, and for those of each direction and of each type of bias."""
    found = {(one.label, (one.scorer, one.measure)): one for one in measured}
    rows = []
    for group, n in dict.fromkeys((one.label, one.n) for one in measured if len(one.group) < 2):
        columns = {name: found[group, of] for name, of in COLUMNS.items()}
        shares = {name: f"{one.value:.1f} [{one.low:.1f}, {one.high:.1f}]" for name, one in columns.items()}
        rows.append({"pairs": group.replace("overall", "all"), "n": str(n), **shares})
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="crows_pairs_anonymized.csv")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the table there")
    args = parser.parse_args()
    nlp = make_pipeline(args.model, metrics=METRICS)
    found = score_suite(nlp, read_suite(args.pairs, "crows_pairs"))
    tables = {"CrowS-Pairs": table_of(found.measurements())}
    print_table("CrowS-Pairs, in %", tables["CrowS-Pairs"])
    if args.write:
        replace_tables(args.write, tables)


if __name__ == "__main__":
    main()
