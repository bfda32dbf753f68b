"""Print the numbers of the built-in model's card: held-out pseudo-perplexity and BLiMP accuracy.

    python scripts/evaluate_builtin.py CORPUS_FOLDER BLIMP_FOLDER [--pairs 100] [--model FOLDER] [--output FILE.json]

The held-out lines are those that `train_builtin.py` does not train on. `--pairs` pairs of each of BLiMP's 67 paradigms
are drawn with a fixed seed. A pair counts as right when the grammatical sentence has the higher pseudo-log-likelihood,
and as half right on a tie.
"""

import argparse
import json
from pathlib import Path

import spacy
from spacy.language import Language
from training_data import is_held_out, read_lines

from spacy_pll.evaluation.minimal_pairs import Pair, accuracies, read_pairs, sample_pairs, wins
from spacy_pll.evaluation.perplexity import perplexity
from spacy_pll.evaluation.scoring import score_distinct
from spacy_pll.pipelines import PipelineSettings, get_scorer, make_pipeline

METRICS = ["word_l2r", "original", "whole_word", "sentence_l2r"]


def blimp_table(nlp: Language, pairs: list[Pair]) -> dict[str, dict[str, float]]:
    """Accuracy in percent by metric, then by phenomenon. "overall" is the mean over all pairs."""
    # Sentences of one paradigm share many masked contexts, so they are scored together.
    sentences = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    scores = score_distinct(nlp, get_scorer(nlp).names, sentences)
    return {
        metric: {
            result.name or result.level: round(100 * result.accuracy, 1)
            for result in accuracies(pairs, won)
            if result.level in ("overall", "phenomenon")
        }
        for metric, won in wins(pairs, scores, METRICS)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder of the training text")
    parser.add_argument("blimp", type=Path, help="folder of BLiMP's data files")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each paradigm (default: 100)")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--output", type=Path, help="write the numbers to this .json file")
    args = parser.parse_args()
    spacy.prefer_gpu()

    pairs = sample_pairs(read_pairs(str(args.blimp)), args.pairs)
    blimp = blimp_table(make_pipeline(PipelineSettings(args.model, METRICS)), pairs)
    print(f"BLiMP, {len(pairs)} pairs, accuracy in percent")
    print("| phenomenon | " + " | ".join(METRICS) + " |")
    print("| --- |" + " ---: |" * len(METRICS))
    for name in sorted(blimp["word_l2r"], key=lambda name: (name != "overall", name)):
        print(f"| {name} | " + " | ".join(f"{blimp[metric][name]:.1f}" for metric in METRICS) + " |", flush=True)

    held_out = [line for line in read_lines(args.corpus) if is_held_out(line)]
    docs = list(make_pipeline(PipelineSettings(args.model, ["original"])).pipe(held_out, batch_size=128))
    pieces = sum(doc._.pll_pieces for doc in docs)
    pppl = perplexity(sum(doc._.pll for doc in docs), pieces)
    print(f"Held-out lines: {len(docs)}, {pieces} pieces, pseudo-perplexity (original) {pppl:.1f}")
    if args.output:
        result = {"blimp": blimp, "blimp_pairs": len(pairs), "held_out_pieces": pieces, "held_out_pppl": pppl}
        args.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
