"""How the size of a forward pass changes speed: sentences per second for several values of `max_batch_tokens`.

    python benchmarks/batch_tokens.py [--data FOLDER] [--model FOLDER] [--bert-base [TOKENIZER]] [--sentences 1000]
        [--sizes 512 1024 2048 4096] [--rounds 3]

The model is the built-in one, unless --model names another. --bert-base measures a model of BERT-base size with random
weights, on which the time does not depend.
"""

import tempfile
import time
from pathlib import Path

from models import add_size_option, save_random
from texts import blimp_sentences, find_tokenizer, make_parser

from spacy_pll.component import get_scorer
from spacy_pll.pipelines import make_pipeline


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--model", help="Folder or hub name")
    add_size_option(parser, "bert-base")
    parser.add_argument("--sentences", type=int, default=1000, help="Number of sentences of BLiMP")
    parser.add_argument("--sizes", type=int, nargs="+", default=[512, 1024, 2048, 4096], help="Values to compare")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.bert_base:
            save_random("bert-base", find_tokenizer(args.data, args.bert_base), Path(folder))
            args.model = folder
        began = time.perf_counter()
        nlp = make_pipeline(args.model)
        print(f"loaded in {time.perf_counter() - began:.2f} s")
    texts = blimp_sentences(args.data, args.sentences)
    list(nlp.pipe(texts[:50]))
    seconds = {size: [] for size in args.sizes}
    for _ in range(args.rounds):  # in turns: a slow minute of the machine affects all sizes
        for size in args.sizes:
            of_size = make_pipeline(nlp, max_batch_tokens=size)  # with the same model
            counts = get_scorer(of_size).predictor.counts
            began = time.perf_counter()
            list(of_size.pipe(texts))
            seconds[size].append(time.perf_counter() - began)
    print(f"{len(texts)} sentences, {counts.targets} targets, {counts.rows} forward rows")
    print("| max_batch_tokens | sentences/s, median | slowest | fastest |\n| ---: | ---: | ---: | ---: |")
    for size, times in seconds.items():
        rates = sorted(len(texts) / t for t in times)
        print(f"| {size:,} | {rates[len(rates) // 2]:.1f} | {rates[0]:.1f} | {rates[-1]:.1f} |")


if __name__ == "__main__":
    main()
