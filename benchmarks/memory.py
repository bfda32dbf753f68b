"""The memory that a long text needs, in addition to the loaded model (Linux).

    python benchmarks/memory.py spacy-pll|minicons [--data FOLDER] [--tokenizer bert-base-cased] [--words 5000]
        [--passes N] [--mask-spacing N]

The model has the size of BERT-base and random weights. Scoring a long text exactly takes hours. With --passes the run
ends after that many forward passes; by then all passes are planned, and all have about the same size.
"""

import argparse
import ctypes
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from models import TOKENIZERS, save_random
from texts import brown_sentences, find_tokenizer, make_parser

from spacy_pll import get_scorer, make_pipeline


class Enough(Exception):
    """Ends a run after `--passes` forward passes."""


def status(field: str) -> float:
    """A value of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def with_minicons(folder: str, text: str, args: argparse.Namespace) -> tuple[float, str]:
    """Score a text with minicons. RETURNS: The memory before, in MB, and what was run."""
    from minicons.scorer import MaskedLMScorer

    scorer = MaskedLMScorer(folder, "cpu")
    before = start_counting()
    scorer.sequence_score([text], PLL_metric="within_word_l2r", reduction=lambda x: x.sum(0).item())
    return before, "one pass"


def with_spacy_pll(folder: str, text: str, args: argparse.Namespace) -> tuple[float, str]:
    """The same with spacy-pll."""
    nlp = make_pipeline(folder, mask_spacing=args.mask_spacing)
    scorer = get_scorer(nlp)
    nlp("The first text allocates what later texts use again.")
    before = start_counting()
    model: Any = scorer.model
    forward = model.load().forward
    passes, run = [], forward.run

    def counted(ids, lengths):
        if len(passes) == args.passes:
            raise Enough
        passes.append(ids.numel())
        return run(ids, lengths)

    forward.run = counted
    try:
        nlp(text)
    except Enough:
        return before, f"the first {len(passes)} passes of at most {max(passes):,} ids"
    return before, f"all of its {len(passes)} passes"


def start_counting() -> float:
    """Reset the peak of this process's memory. RETURNS: The memory it uses now, in MB."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    return status("VmRSS")


def peak_above(function: Callable[[], object], device: str) -> float:
    """The peak memory of a function on the device, in MB above what was used before the call."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # returns freed memory to the system: reusing it would not count
    at_start = start_counting()
    function()
    return status("VmHWM") - at_start


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("scorer", choices=["spacy-pll", "minicons"])
    parser.add_argument("--tokenizer", default=TOKENIZERS["bert-base"], help="Folder, or name in DATA/tokenizers")
    parser.add_argument("--words", type=int, default=5000, help="Length of the text")
    parser.add_argument("--passes", type=int, help="End after this many forward passes")
    parser.add_argument("--mask-spacing", type=int, help="Setting of spacy-pll")
    args = parser.parse_args()
    words = " ".join(brown_sentences(args.data)).split()
    tokenizer = find_tokenizer(args.data, args.tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        made = get_context("spawn").Process(target=save_random, args=("bert-base", tokenizer, Path(folder)))
        made.start()  # in a process of its own, so that its memory does not count
        made.join()
        score = with_minicons if args.scorer == "minicons" else with_spacy_pll
        before, what = score(folder, " ".join(words[: args.words]), args)
    print(f"{args.scorer}, {args.words} words, {what}: {before:.0f} MB before, {status('VmHWM') - before:.0f} MB more")


if __name__ == "__main__":
    main()
