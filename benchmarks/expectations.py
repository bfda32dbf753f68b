"""How much CPU time the settings `alternatives` and `distribution` add, on sentences of BLiMP with the built-in model.

    python benchmarks/expectations.py [--data FOLDER] [--sentences 500] [--alternatives 5] [--rounds 15]

Runs with and without them take turns, on one thread. The CPU time of the process is measured, so that other processes
on the machine matter less.
"""

import statistics
import time

import numpy as np
import torch
from texts import blimp_sentences, make_parser

from spacy_pll.pipelines import PipelineSettings, get_scorer, make_pipeline


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--sentences", type=int, default=500, help="Number of sentences of BLiMP")
    parser.add_argument("--alternatives", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    torch.set_num_threads(1)
    variants = {
        "neither": PipelineSettings(),
        "distribution": PipelineSettings(distribution=True),
        f"alternatives={args.alternatives}": PipelineSettings(alternatives=args.alternatives),
        "both": PipelineSettings(alternatives=args.alternatives, distribution=True),
    }
    pipelines = {name: make_pipeline(settings) for name, settings in variants.items()}
    docs = list(pipelines["neither"].tokenizer.pipe(blimp_sentences(args.data, args.sentences)))
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(args.rounds + 1):
        for name, nlp in pipelines.items():
            began = time.process_time()
            list(get_scorer(nlp).pipe(docs, batch_size=len(docs)))
            if number:  # the first round warms up
                seconds[name].append(time.process_time() - began)
    print(f"{len(docs)} sentences, {args.rounds} rounds, {statistics.median(seconds['neither']):.2f} s without them\n")
    print("| setting | times the CPU time, median | middle half |\n| --- | ---: | ---: |")
    for name, values in list(seconds.items())[1:]:
        low, middle, high = np.percentile(np.divide(values, seconds["neither"]), [25, 50, 75])
        print(f"| {name} | {middle:.3f} | {low:.3f}-{high:.3f} |")


if __name__ == "__main__":
    main()
