"""The numbers of the built-in model's card: learning curve, held-out scores by length of line, pseudo-perplexity, BLiMP
accuracy and one pass.

    python -m scripts.builtin.evaluate CORPUS_FOLDER BLIMP_FOLDER [--pairs 100] [--every 4] [--model FOLDER] [--brief]
        [--log log.csv ...] [--output FILE.json] [--write FILE.md]

`--brief` makes only the table by length, which has what a model must be as good in as the one before: the scores of
lines of each length, *r* by piece of scores in one pass, and BLiMP.

The held-out lines are those that `train.py` does not train on, one in `--every`. `--pairs` pairs of each of
BLiMP's 67 paradigms are drawn with a fixed seed. A pair counts as right when the grammatical sentence has the higher
pseudo-log-likelihood, and as half right on a tie. `--log` takes the learning curves of the runs of `train.py`,
in order. Prints Markdown tables; `--write` also puts them into a page (see `replace_tables`), such as the model's card.
"""

import argparse
import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy

from scripts.builtin.data import is_held_out, read_lines
from scripts.builtin.held_out import by_length
from scripts.docs_site.markdown_tables import Rows, print_table, replace_tables
from scripts.paper.published_texts import PHENOMENON, sample_pairs
from spacy_pll import Pair, PipelineSettings, compare_margins, make_pipeline, minimal_pairs, perplexity, read_pairs

METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r"]
MARGINS = (0, 1)  # values of `mask_margin`
BRIEF = METRICS[:2]
CURVE_ROWS = 12  # of each run


def length_table(model: str | None, texts: list[str], accuracy: dict[str, dict[str, float]]) -> Rows:
    """Minus the mean score of a piece, in nats, by the length of its line; *r* by piece of each margin with the exact
    scores; and the accuracy on BLiMP, which is measured with margins under `word_l2r` alone.
    """
    scores, accuracies, r = {}, {}, {}
    for margin in (None, *MARGINS):
        docs = list(make_pipeline(model, BRIEF, keep_pieces=True, mask_margin=margin).pipe(texts))
        for metric in BRIEF:
            name = metric if margin is None else f"{metric}, margin {margin}"
            scores[name] = np.concatenate([doc._.pll_data["scores"][metric] for doc in docs])
            accuracies[name] = accuracy.get(name.removeprefix("word_l2r, "))
            r[name] = "" if margin is None else f"{np.corrcoef(scores[metric], scores[name])[0, 1]:.4f}"
    scores = {name: scores[name] for metric in BRIEF for name in scores if name.startswith(metric)}
    lengths = np.array([doc._.pll_pieces for doc in docs])
    n_lines = {name: len(some) for name, some in by_length(lengths, lengths).items()}
    places = by_length(np.arange(lengths.sum()), np.repeat(lengths, lengths))
    rows = [
        {"pieces of the line": name, "lines": f"{n:,}"}
        | {scorer: f"{-values[places[name]].mean():.3f}" for scorer, values in scores.items()}
        for name, n in n_lines.items()
    ]
    whole = {scorer: f"{-values.mean():.3f}" for scorer, values in scores.items()}
    overall = {scorer: f"{found['overall']:.1f}" if (found := accuracies[scorer]) else "" for scorer in scores}
    return [
        *rows,
        {"pieces of the line": "all", "lines": f"{len(lengths):,}", **whole},
        {"pieces of the line": "*r* by piece", "lines": "", **{scorer: r[scorer] for scorer in scores}},
        {"pieces of the line": "BLiMP", "lines": "", **overall},
    ]


def blimp_accuracies(
    model: str | None, pairs: list[Pair], metrics: Sequence[str] = METRICS
) -> dict[str, dict[str, float]]:
    """Accuracy in percent by metric or margin, then by phenomenon. "overall" is the mean over all pairs."""
    margins = {f"margin {margin}": PipelineSettings(model, ["word_l2r"], mask_margin=margin) for margin in MARGINS}
    found: dict[str, dict[str, float]] = {}
    for margin, settings in {"": PipelineSettings(model, metrics), **margins}.items():
        for result in minimal_pairs(make_pipeline(settings), pairs).measurements():
            if result.level in ("overall", PHENOMENON):
                of_scorer = found.setdefault(margin or result.scorer, {})
                of_scorer[result.name or result.level] = round(100 * result.estimate.value, 1)
    return found


def blimp_table(accuracy: dict[str, dict[str, float]]) -> Rows:
    names = sorted(accuracy[METRICS[0]], key=lambda name: (name != "overall", name))
    return [{"phenomenon": name, **{scorer: f"{one[name]:.1f}" for scorer, one in accuracy.items()}} for name in names]


def one_pass_table(model: str | None, texts: list[str], accuracy: dict[str, dict[str, float]]) -> Rows:
    """How close the scores with each margin are to the exact ones of the same weights, under `word_l2r`. In nats."""

    def shown(level: Any) -> list[str]:
        """*r* with its interval, and the mean absolute difference."""
        low, high = level.r_interval
        return [f"{level.r:.4f} [{low:.4f}, {high:.4f}]", f"{level.mean_absolute_difference:.2f}"]

    agreement = compare_margins(make_pipeline(model, ["word_l2r"]), texts, MARGINS)
    columns = ["*r* by piece", "difference by piece", "*r* by word", "difference by word"]
    found = [[*shown(one.piece), *shown(one.word)] for one in agreement.comparisons]
    scorers = {"exact": "word_l2r", **{f"`mask_margin = {margin}`": f"margin {margin}" for margin in MARGINS}}
    return [
        {"scores": name, **dict(zip(columns, row)), "BLiMP": f"{accuracy[scorer]['overall']:.1f}"}
        for (name, scorer), row in zip(scorers.items(), [["1", "", "1", ""], *found])
    ]


def learning_curve(logs: list[Path]) -> Rows:
    """Some rows of each run's log, evenly spaced, with its last one. Pieces are counted from the first run on."""
    rows, before = [], 0
    for run, path in enumerate(logs, 1):
        with path.open(newline="") as file:
            log = list(csv.DictReader(file))
        if not log:
            raise SystemExit(f"{path} has no rows: no held-out loss was measured yet.")
        every = math.ceil(len(log) / CURVE_ROWS)
        for row in log[(len(log) - 1) % every :: every]:
            pieces, loss = before + int(row["pieces"]), float(row["held_out_loss"])
            rows.append(
                {
                    "run": f"{run}",
                    "step": f"{int(row['step']):,}",
                    "million pieces seen": f"{pieces / 1e6:.1f}",
                    "held-out masked loss": f"{loss:.2f}",
                    "perplexity": f"{math.exp(loss):.1f}",
                }
            )
        before = pieces
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of the training text")
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each paradigm (default: 100)")
    parser.add_argument(
        "--every", type=int, default=4, help="score every so many of the held-out lines; each metric costs minutes"
    )
    parser.add_argument("--brief", action="store_true", help="only the table by length, with *r* and BLiMP")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--log", type=Path, nargs="+", default=[], metavar="LOG.csv", help="logs of the training runs")
    parser.add_argument("--output", type=Path, help="write the numbers to this .json file")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    spacy.prefer_gpu()

    tables = {}
    if missing := [str(path) for path in args.log if not path.exists()]:
        print(f"\nNo learning curve, because these logs are missing: {', '.join(missing)}")
    elif args.log:
        tables["learning curve"] = learning_curve(args.log)
        print_table("Learning curve (15 % of the pieces masked; nats per piece)", tables["learning curve"])
    pairs = sample_pairs(read_pairs(str(args.blimp)), args.pairs)
    blimp = blimp_accuracies(args.model, pairs, BRIEF if args.brief else METRICS)
    held_out = [line for line in read_lines(args.corpus) if is_held_out(line)][:: args.every]
    tables["by length"] = length_table(args.model, held_out, blimp)
    print_table(f"Nats per piece; *r* by piece; BLiMP, {len(pairs)} pairs, in percent", tables["by length"])
    if not args.brief:
        tables["blimp"] = blimp_table(blimp)
        print_table(f"BLiMP, {len(pairs)} pairs, accuracy in percent", tables["blimp"])
        corpus = perplexity(make_pipeline(args.model, METRICS), held_out)
        tables["held-out"] = [
            {
                "held-out lines": f"{corpus.texts:,}",
                "pieces": f"{corpus.pieces:,}",
                **{metric: f"{corpus.per_piece[metric]:.1f}" for metric in METRICS},
            }
        ]
        print_table("Held-out lines, pseudo-perplexity per piece", tables["held-out"])
        tables["one pass"] = one_pass_table(args.model, held_out, blimp)
        print_table("One pass, `word_l2r`, held-out lines and BLiMP", tables["one pass"])
    if args.output:
        result = {"blimp": blimp, "blimp_pairs": len(pairs), "tables": tables}
        args.output.write_text(json.dumps(result, indent=2) + "\n")
    if args.write:
        replace_tables(args.write, tables)


if __name__ == "__main__":
    main()
