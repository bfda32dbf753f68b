"""The memory that a long text takes above what is there once the model is loaded (Linux).

    python benchmarks/memory.py spacy-pll|minicons TOKENIZER_FOLDER BROWN.zip [--words 5000] [--passes N]
        [--mask-spacing N]

A model of BERT-base size with random weights, and the vocabulary of the tokenizer. A long text takes hours
when it is scored exactly: with --passes it ends after so many forward passes, all of which are planned and of one size.
"""

import argparse
import ctypes
import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import spacy
import torch
from models import save_random
from texts import brown_files


class Enough(Exception):
    pass


def status(field: str) -> float:
    """A figure of /proc/self/status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def with_minicons(folder: str, text: str, args) -> tuple[float, str]:
    from minicons.scorer import MaskedLMScorer

    scorer = MaskedLMScorer(folder, "cpu")
    before = start_counting()
    scorer.sequence_score([text], PLL_metric="within_word_l2r", reduction=lambda x: x.sum(0).item())
    return before, "one pass"


def with_spacy_pll(folder: str, text: str, args) -> tuple[float, str]:
    nlp = spacy.blank("en")
    model = {"@architectures": "spacy-pll.MaskedLM.v1", "name": folder}
    scorer = nlp.add_pipe("pll", config={"model": model, "mask_spacing": args.mask_spacing})
    nlp.initialize()
    nlp("Everything is there once this is scored.")
    before = start_counting()
    passes, run = [], scorer.model.loaded.forward.run

    def counted(ids, lengths):
        if len(passes) == args.passes:
            raise Enough
        passes.append(ids.numel())
        return run(ids, lengths)

    scorer.model.loaded.forward.run = counted
    try:
        nlp(text)
    except Enough:
        return before, f"the first {len(passes)} passes of at most {max(passes):,} ids"
    return before, f"all of its {len(passes)} passes"


def start_counting() -> float:
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    return status("VmRSS")


def peak_above(function: Callable[[], object], device: str) -> float:
    """MB that the function takes at its peak, on the device, above what was there when it was called."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    ctypes.CDLL("libc.so.6").malloc_trim(0)  # what was freed before is given back, or it would hide what is taken now
    before = start_counting()
    function()
    return status("VmHWM") - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scorer", choices=["spacy-pll", "minicons"])
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("brown", type=Path)
    parser.add_argument("--words", type=int, default=5000)
    parser.add_argument("--passes", type=int)
    parser.add_argument("--mask-spacing", type=int)
    args = parser.parse_args()
    words = [word for file in brown_files(args.brown) for sentence in file for word in sentence.split()]
    with tempfile.TemporaryDirectory() as folder:
        made = get_context("spawn").Process(target=save_random, args=("bert-base", args.tokenizer, Path(folder)))
        made.start()  # in a process of its own, which takes its memory with it
        made.join()
        score = with_minicons if args.scorer == "minicons" else with_spacy_pll
        before, what = score(folder, " ".join(words[: args.words]), args)
    print(f"{args.scorer}, {args.words} words, {what}: {before:.0f} MB before, {status('VmHWM') - before:.0f} MB more")


if __name__ == "__main__":
    main()
