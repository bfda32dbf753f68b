"""Print the numbers of the built-in model's card: held-out pseudo-perplexity and BLiMP accuracy.

    python scripts/evaluate_builtin.py CORPUS_FOLDER BLIMP_FOLDER [--pairs 100] [--model FOLDER] [--output FILE.json]

The held-out lines are those that `train_builtin.py` keeps from training. Of each of BLiMP's
67 paradigms, `--pairs` pairs are drawn with a fixed seed. A pair counts as right when the
grammatical sentence has the higher pseudo-log-likelihood, as half right on a tie.
"""

import argparse
import json
import math
import random
from collections import defaultdict
from pathlib import Path

import spacy
from train_builtin import is_held_out, read_lines

METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r"]


def make_pipeline(model: str | None, metrics: list[str]):
    nlp = spacy.blank("en")
    settings = {"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": model}, "metrics": metrics}
    nlp.add_pipe("pll", config=settings)
    return nlp


def sample_blimp(folder: Path, per_paradigm: int) -> list[dict]:
    """The same pairs each time: drawn per paradigm with a seed that is the paradigm's name."""
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise SystemExit(f"No .jsonl file in {folder}: give the folder that holds BLiMP's data files.")
    pairs = []
    for path in paths:
        with path.open(encoding="utf8") as file:
            rows = [json.loads(line) for line in file]
        pairs += random.Random(path.stem).sample(rows, min(per_paradigm, len(rows)))
    return pairs


def accuracy(good: list[float], bad: list[float]) -> float:
    return sum((g > b) + 0.5 * (g == b) for g, b in zip(good, bad)) / len(good)


def blimp_table(nlp, pairs: list[dict]) -> dict[str, dict[str, float]]:
    """Accuracy by metric, then by phenomenon, with "overall" the mean over all pairs."""
    # Sentences of one paradigm share many masked contexts, so they are scored together.
    docs = list(nlp.pipe([pair[f"sentence_{side}"] for pair in pairs for side in ("good", "bad")], batch_size=512))
    table = {}
    for metric in METRICS:
        scores = [doc._.get(f"pll_{metric}") for doc in docs]
        groups = defaultdict(list)
        for pair, good, bad in zip(pairs, scores[::2], scores[1::2]):
            groups["overall"].append((good, bad))
            groups[pair["linguistics_term"]].append((good, bad))
        table[metric] = {name: round(100 * accuracy(*zip(*group)), 1) for name, group in groups.items()}
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--model", default=None)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    spacy.prefer_gpu()

    pairs = sample_blimp(args.blimp, args.pairs)
    blimp = blimp_table(make_pipeline(args.model, METRICS), pairs)
    print(f"BLiMP, {len(pairs)} pairs, accuracy in percent")
    print("| phenomenon | " + " | ".join(METRICS) + " |")
    print("| --- |" + " ---: |" * len(METRICS))
    for name in sorted(blimp["word_l2r"], key=lambda name: (name != "overall", name)):
        print(f"| {name} | " + " | ".join(f"{blimp[metric][name]:.1f}" for metric in METRICS) + " |", flush=True)

    held_out = [line for line in read_lines(args.corpus) if is_held_out(line)]
    docs = list(make_pipeline(args.model, ["original"]).pipe(held_out, batch_size=128))
    pieces = sum(doc._.pll_pieces for doc in docs)
    perplexity = math.exp(-sum(doc._.pll for doc in docs) / pieces)
    print(f"Held-out lines: {len(docs)}, {pieces} pieces, pseudo-perplexity (original) {perplexity:.1f}")
    if args.output:
        result = {"blimp": blimp, "blimp_pairs": len(pairs), "held_out_pieces": pieces, "held_out_pppl": perplexity}
        args.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
