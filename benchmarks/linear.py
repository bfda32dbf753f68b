"""Whether time and memory grow in proportion: a small model on 1,000, 10,000 and 100,000 sentences of BLiMP (Linux).

    python benchmarks/linear.py [--data FOLDER] [--tokenizer bert-base-cased] [--sizes 1000 10000 100000] [--no-model]
        [--mask-margin M] [--freeze]

Each size runs in a process of its own. Loading is not counted. With `--no-model`, there are no forward passes: each
score is 0, and the rest of the work is measured, on one core. (TOKENIZERS_PARALLELISM=true in the environment gives the
model's tokenizer all cores. All the rest has one thread in any case.) The last column compares it with what spaCy's and
the model's tokenizer take for the same texts in the same run. Both are the best of three runs. With `--freeze`,
Python's garbage collector leaves alone what is there once the model is loaded.
"""

import gc
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch
from memory import start_counting, status
from models import TOKENIZERS, save_random
from texts import blimp_sentences, find_tokenizer, make_parser

from spacy_pll import get_scorer, make_pipeline
from spacy_pll.language_model.running.log_probs import TargetLogProbs


def zeros(self, batch) -> tuple[torch.Tensor]:
    return (torch.zeros(batch.n_targets),)


def score(
    folder: str, data: Path, n: int, no_model: bool, margin: int | None, freeze: bool
) -> tuple[float, float, int, float]:
    """Seconds, peak memory in MB above what was used before, number of wordpieces, and seconds of tokenizing."""
    nlp = make_pipeline(folder, mask_margin=margin)
    texts = blimp_sentences(data, n)
    if no_model:
        nlp(texts[0])  # so that the model is loaded, and was tried
        TargetLogProbs.__call__ = zeros  # type: ignore[method-assign]
    list(nlp.pipe(texts[:: n // 500]))
    for text in texts:
        nlp.make_doc(text)  # so that spaCy knows the words in both of the following
    tokenizer = get_scorer(nlp).model.load().tokenizer
    if freeze:
        gc.collect()
        gc.freeze()
    before, taken, tokenizing = start_counting(), list[float](), list[float]()
    for _ in range(3 if no_model else 1):
        began = time.perf_counter()
        pieces = sum(doc._.pll_pieces for doc in nlp.pipe(texts))
        taken.append(time.perf_counter() - began)
        began = time.perf_counter()
        for text in texts:
            nlp.make_doc(text)
        tokenizer.encode_batch_fast(texts)
        tokenizing.append(time.perf_counter() - began)
    return min(taken), status("VmHWM") - before, pieces, min(tokenizing)


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("--tokenizer", default=TOKENIZERS["small"], help="Folder, or name of one in DATA/tokenizers")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000], help="Numbers of sentences")
    parser.add_argument("--no-model", action="store_true", help="Measure all but the forward passes")
    parser.add_argument("--mask-margin", type=int, help="Read all masks of a sentence in one pass")
    parser.add_argument("--freeze", action="store_true", help="Call gc.freeze() before the measurement")
    args = parser.parse_args()
    tokenizer = find_tokenizer(args.data, args.tokenizer)
    if args.no_model:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # in the processes that measure
    print(
        "| sentences | pieces | ms per sentence | peak MB above what was used before | times the tokenizers |\n"
        "| ---: | ---: | ---: | ---: | ---: |"
    )
    with tempfile.TemporaryDirectory() as folder:
        for n in args.sizes:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                if n == args.sizes[0]:
                    process.submit(save_random, "small", tokenizer, Path(folder)).result()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                arguments = folder, args.data, n, args.no_model, args.mask_margin, args.freeze
                seconds, memory, pieces, tokenizing = process.submit(score, *arguments).result()
            times = f"{seconds / tokenizing:.1f}"
            print(f"| {n:,} | {pieces:,} | {1000 * seconds / n:.3f} | {memory:.0f} | {times} |", flush=True)


if __name__ == "__main__":
    main()
