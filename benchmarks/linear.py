"""Whether time and memory grow in proportion: a small model on 1,000, 10,000 and 100,000 sentences of BLiMP (Linux).

    python benchmarks/linear.py [--data FOLDER] [--tokenizer bert-base-cased] [--sizes 1000 10000 100000] [--no-model]

Each size runs in a process of its own. Loading is not counted. With `--no-model`, there are no forward passes: each
score is 0, and the rest of the work is measured.
"""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from memory import start_counting, status
from models import TOKENIZERS, save_random
from texts import blimp_sentences, find_tokenizer, make_parser

from spacy_pll.language_model.log_probs import TargetLogProbs
from spacy_pll.pipelines import make_pipeline


def zeros(self, batch) -> tuple[torch.Tensor]:
    return (torch.zeros(batch.n_targets),)


def score(folder: str, data: Path, n: int, no_model: bool) -> tuple[float, float, int]:
    """Seconds, peak memory in MB above what was used before, and number of wordpieces."""
    nlp = make_pipeline(folder)
    texts = blimp_sentences(data, n)
    if no_model:
        nlp(texts[0])  # so that the model is loaded, and was tried
        TargetLogProbs.__call__ = zeros  # type: ignore[method-assign]
    list(nlp.pipe(texts[:: n // 500]))
    before, began, pieces = start_counting(), time.perf_counter(), 0
    for doc in nlp.pipe(texts):
        pieces += doc._.pll_pieces
    return time.perf_counter() - began, status("VmHWM") - before, pieces


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("--tokenizer", default=TOKENIZERS["small"], help="Folder, or name of one in DATA/tokenizers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000], help="Numbers of sentences")
    parser.add_argument("--no-model", action="store_true", help="Measure all but the forward passes")
    args = parser.parse_args()
    tokenizer = find_tokenizer(args.data, args.tokenizer)
    print(
        "| sentences | pieces | ms per sentence | peak MB above what was used before |\n| ---: | ---: | ---: | ---: |"
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in args.sizes:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                if n == args.sizes[0]:
                    process.submit(save_random, "small", tokenizer, Path(folder)).result()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                seconds, memory, pieces = process.submit(score, folder, args.data, n, args.no_model).result()
            print(f"| {n:,} | {pieces:,} | {1000 * seconds / n:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
