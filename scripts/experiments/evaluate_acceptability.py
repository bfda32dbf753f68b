"""The numbers of docs/normalised-scores.md: which normalised score agrees best with judgments of acceptability.

    python -m scripts.experiments.evaluate_acceptability assets/acceptability [--model FOLDER] [--unigrams FILE.json]
        [--seed 0] [--output FILE.json] [--write docs/normalised-scores.md]

The folder has the development sets of CoLA (Warstadt, Singh & Bowman 2019) and the ratings of Lau et al. (2020), as
`python -m spacy project assets --extra` downloads them. Prints Markdown tables: the area under the ROC curve on CoLA,
and Pearson's r with the mean ratings. --write also puts them into a page (see `replace_tables`).
"""

import argparse
import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import spacy
from spacy.language import Language

from scripts.docs_site.markdown_tables import print_table, replace_tables
from scripts.experiments.find_replaced_words import N_RESAMPLES, interval, pooled_area
from spacy_pll import Unigrams, load_unigrams, make_pipeline, normalise

NORMALISATIONS = ["mean_lp", "pen_lp", "norm_lp", "slor", "per_word", "per_character"]
METRICS = ["word_l2r", "original"]
RAW = "raw"
COLA = {"CoLA in-domain": "cola_in_domain_dev.tsv", "CoLA out-of-domain": "cola_out_of_domain_dev.tsv"}
RATINGS = {"ratings": "context-none-ratings.csv"}
# A statistic of judgments and values, in which each sentence counts as often as its weight says.
Statistic = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def read_cola(path: Path) -> tuple[list[str], np.ndarray]:
    """Sentences, and whether they are acceptable."""
    with path.open(newline="", encoding="utf8") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row[3] for row in rows], np.array([row[1] == "1" for row in rows])


def read_ratings(path: Path) -> tuple[list[str], np.ndarray]:
    """Sentences, and their mean ratings, from 1 to 4."""
    with path.open(newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    return [row["sentence"] for row in rows], np.array([float(row["mean-ratings"]) for row in rows])


def score(nlp: Language, sentences: list[str], unigrams: Unigrams) -> dict[str, dict[str, np.ndarray]]:
    """The scores of sentences, by metric and by normalisation."""
    docs = list(nlp.pipe(sentences, batch_size=256))
    return {
        metric: {
            RAW: np.array([doc._.get(f"pll_{metric}") for doc in docs]),
            **{
                method: np.array([normalise(doc, method, unigrams, metric=metric) for doc in docs])
                for method in NORMALISATIONS
            },
        }
        for metric in METRICS
    }


def area(acceptable: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """The share of pairs of an acceptable and an unacceptable sentence in which the acceptable one scores higher."""
    order = np.argsort(values)
    return pooled_area(values[order], acceptable[order], weights[order])


def correlation(ratings: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """Pearson's r."""
    covariance = np.cov(ratings, values, aweights=weights, ddof=0)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


def cells(judged: np.ndarray, values: dict[str, np.ndarray], statistic: Statistic, seed: int) -> dict[str, list[str]]:
    """By normalisation: the statistic, and its difference from that of the raw score. With 95 % percentile bootstrap
    intervals over the sentences, the same samples for all.
    """
    n, rng = len(judged), np.random.default_rng(seed)
    weights = [np.ones(n), *(np.bincount(rng.integers(0, n, n), minlength=n).astype(float) for _ in range(N_RESAMPLES))]
    found = {name: np.array([statistic(judged, own, weight) for weight in weights]) for name, own in values.items()}
    shown = {}
    for name, own in found.items():
        change = own - found[RAW]
        difference = "" if name == RAW else f"{change[0]:+.3f} {interval(change[1:], 3, '+')}"
        shown[name] = [f"{own[0]:.3f} {interval(own[1:], 3)}", difference]
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the judgments")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--unigrams", type=Path, help="what `pll unigrams` wrote (default: the built-in table)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--output", type=Path, help="write the tables to this .json file")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    spacy.prefer_gpu()
    nlp = make_pipeline(args.model, METRICS, keep_pieces=True)
    unigrams = load_unigrams(nlp, args.unigrams)
    columns: dict[str, tuple[np.ndarray, dict, Statistic]] = {}  # judgments, values by metric and normalisation
    for heading, name in COLA.items():
        sentences, judged = read_cola(args.folder / name)
        columns[heading] = judged, score(nlp, sentences, unigrams), area
    for heading, name in RATINGS.items():
        sentences, judged = read_ratings(args.folder / name)
        columns[heading] = judged, score(nlp, sentences, unigrams), correlation
    tables = {}
    for metric in METRICS:
        rows = {name: {"score": name} for name in (RAW, *NORMALISATIONS)}
        differences = {name: {"score": name} for name in NORMALISATIONS}
        for heading, (judged, values, statistic) in columns.items():
            for name, (value, difference) in cells(judged, values[metric], statistic, args.seed).items():
                rows[name][heading] = value
                if difference:
                    differences[name][heading] = difference
        tables[metric] = list(rows.values())
        tables[f"minus raw by {metric}"] = list(differences.values())
    for name, table in tables.items():
        print_table(name, table)
    print(f"\nSentences: {', '.join(f'{heading} {len(judged)}' for heading, (judged, *_) in columns.items())}")
    if args.output:
        args.output.write_text(json.dumps(tables, indent=2, ensure_ascii=False) + "\n", encoding="utf8")
    if args.write:
        replace_tables(args.write, tables)


if __name__ == "__main__":
    main()
