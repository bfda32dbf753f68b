"""How much CPU time the settings `alternatives` and `distribution` add, on sentences of BLiMP with the built-in model.

    python benchmarks/expectations.py [--data FOLDER] [--sentences 500] [--alternatives 5] [--rounds 5]

Runs with and without them take turns, 50 sentences at a time, on one thread and with the same weights. The CPU time of
the process is measured. So changes of the machine's speed, and other processes, matter less.
"""

import time

import numpy as np
import torch
from texts import blimp_sentences, make_parser

from spacy_pll.component import get_scorer
from spacy_pll.pipelines import PipelineSettings, make_pipeline

PART = 50  # sentences that are scored in one turn


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=500, help="Number of sentences of BLiMP")
    parser.add_argument("--alternatives", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    variants = {
        "neither": PipelineSettings(),
        "distribution": PipelineSettings(distribution=True),
        f"alternatives={args.alternatives}": PipelineSettings(alternatives=args.alternatives),
        "both": PipelineSettings(alternatives=args.alternatives, distribution=True),
    }
    pipelines = {name: make_pipeline(settings) for name, settings in variants.items()}
    scorers = {name: get_scorer(nlp) for name, nlp in pipelines.items()}
    for scorer in scorers.values():
        scorer.model = scorers["neither"].model
    docs = [pipelines["neither"].make_doc(text) for text in blimp_sentences(args.data, args.sentences)]
    parts = [docs[i : i + PART] for i in range(0, len(docs), PART)]
    seconds = {name: np.zeros((args.rounds, len(parts))) for name in variants}
    for scorer in scorers.values():  # warms up
        list(scorer.pipe(parts[0]))
    for number in range(args.rounds):
        for i, part in enumerate(parts):
            for name in np.roll(list(variants), number + i).tolist():
                began = time.process_time()
                list(scorers[name].pipe(part, batch_size=len(part)))
                seconds[name][number, i] = time.process_time() - began
    without = seconds["neither"]
    print(f"{len(docs)} sentences, {args.rounds} rounds, {without.sum(axis=1).mean():.2f} s without them\n")
    print("| setting | times the CPU time | 95 % interval |\n| --- | ---: | ---: |")
    draws = np.random.default_rng(0).integers(without.size, size=(2000, without.size))
    for name, values in list(seconds.items())[1:]:
        ratios = values.ravel()[draws].sum(axis=1) / without.ravel()[draws].sum(axis=1)
        low, high = np.percentile(ratios, [2.5, 97.5])
        print(f"| {name} | {values.sum() / without.sum():.3f} | {low:.3f}-{high:.3f} |")


if __name__ == "__main__":
    main()
