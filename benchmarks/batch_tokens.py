"""How the size of a forward pass changes speed: sentences a second for several values of `max_batch_tokens`.

    python benchmarks/batch_tokens.py BLIMP_FOLDER [--model FOLDER] [--sentences 1000] [--sizes 512 1024 2048 4096]

Without --model, the built-in model. `--bert-base TOKENIZER_FOLDER` measures a model of BERT-base size with random
weights and that vocabulary: the time does not depend on the weights.
"""

import argparse
import tempfile
import time
from pathlib import Path

import spacy
from models import save_random
from texts import blimp_sentences


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--bert-base", metavar="TOKENIZER_FOLDER")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048, 4096])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.bert_base:
            save_random("bert-base", args.bert_base, Path(folder))
            args.model = folder
        nlp = spacy.blank("en")
        scorer = nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": args.model}})
        began = time.perf_counter()
        nlp.initialize()
        print(f"loaded in {time.perf_counter() - began:.2f} s")
    texts = blimp_sentences(args.blimp, args.sentences)
    list(nlp.pipe(texts[:50]))
    seconds = {size: [] for size in args.sizes}
    for _ in range(args.rounds):  # interleaved, so that a slow minute of the machine hits all sizes alike
        for size in args.sizes:
            scorer.max_batch_tokens = size
            scorer.counts.clear()
            began = time.perf_counter()
            list(nlp.pipe(texts))
            seconds[size].append(time.perf_counter() - began)
    print(f"{len(texts)} sentences, {scorer.counts['targets']} targets, {scorer.counts['rows']} forward rows")
    print("| max_batch_tokens | sentences/s, median | slowest | fastest |\n| ---: | ---: | ---: | ---: |")
    for size, times in seconds.items():
        rates = sorted(len(texts) / t for t in times)
        print(f"| {size:,} | {rates[len(rates) // 2]:.1f} | {rates[0]:.1f} | {rates[-1]:.1f} |")


if __name__ == "__main__":
    main()
