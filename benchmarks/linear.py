"""Whether time and memory stay in proportion: a small model on 1,000, 10,000 and 100,000 sentences of BLiMP (Linux).

    python benchmarks/linear.py BLIMP_FOLDER TOKENIZER_FOLDER [--sizes 1000 10000 100000]

Each size is scored by a process of its own; loading is not counted.
"""

import argparse
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import spacy
from memory import start_counting, status
from models import save_random
from texts import blimp_sentences


def score(folder: str, blimp: Path, n: int) -> tuple[float, float, int]:
    """Seconds, MB at the peak above what was there before, and pieces."""
    nlp = spacy.blank("en")
    nlp.add_pipe("pll", config={"model": {"@architectures": "spacy-pll.MaskedLM.v1", "name": folder}})
    nlp.initialize()
    texts = blimp_sentences(blimp, n)
    list(nlp.pipe(texts[:: n // 500]))
    before, began, pieces = start_counting(), time.perf_counter(), 0
    for doc in nlp.pipe(texts):
        pieces += doc._.pll_pieces
    return time.perf_counter() - began, status("VmHWM") - before, pieces


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    args = parser.parse_args()
    print("| sentences | pieces | ms a sentence | MB above what was there |\n| ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for n in args.sizes:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                if n == args.sizes[0]:
                    process.submit(save_random, "small", args.tokenizer, Path(folder)).result()
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                seconds, memory, pieces = process.submit(score, folder, args.blimp, n).result()
            print(f"| {n:,} | {pieces:,} | {1000 * seconds / n:.2f} | {memory:.0f} |", flush=True)


if __name__ == "__main__":
    main()
