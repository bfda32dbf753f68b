"""All of BLiMP on a GPU, from strings to attributes: how long, how busy the device, how much faster than minicons.

    python benchmarks/gpu.py BLIMP_FOLDER TOKENIZER_FOLDER [--size bert-base] [--mixed-precision] [--sentences 134000]
        [--minicons 2680] [--output gpu.json] [--cpu]

Random weights, on which the time does not depend. nvidia-smi asks the device ten times a second for the share of time
in which it ran something; the loading of the model is not counted. minicons gets fewer sentences, spread over the
paradigms alike, and the best of three batch sizes. `--cpu` tries the script where there is no GPU.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import spacy
import torch
from models import SIZES, save_random
from speed import make_minicons, make_pipeline, processor, seconds
from texts import blimp_sentences

EVERY_MS = 100


@contextmanager
def busy_share(device: str):
    """Yields a list that holds, afterwards, the device's utilisation at each of the times it was asked, 0 to 1."""
    query = ["nvidia-smi", f"--id={device}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    process = subprocess.Popen([*query, f"--loop-ms={EVERY_MS}"], stdout=subprocess.PIPE, text=True)
    shares = []
    try:
        yield shares
    finally:
        process.terminate()
        shares += [float(line) / 100 for line in process.communicate()[0].splitlines() if line.strip().isdigit()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--size", choices=SIZES, default="bert-base")
    parser.add_argument("--mixed-precision", action="store_true")
    parser.add_argument("--sentences", type=int, default=134_000)
    parser.add_argument("--minicons", type=int, default=2680)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    if not args.cpu:
        spacy.require_gpu()
    device = "cpu" if args.cpu else "cuda"
    texts, fewer = (blimp_sentences(args.blimp, n) for n in (args.sentences, args.minicons))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.size
        save_random(args.size, args.tokenizer, folder)
        nlp = make_pipeline(folder, ["word_l2r"], mixed_precision=args.mixed_precision)
        list(nlp.pipe(fewer[:: max(1, len(fewer) // 100)]))
        theirs, batch = make_minicons(folder, fewer, device)
        result = {"device": processor() if args.cpu else torch.cuda.get_device_name(), "model": args.size}
        result["sentences"] = len(texts)

        def ours():
            for doc in nlp.pipe(texts):
                assert doc._.pll is not None

        if args.cpu:
            result["seconds"] = seconds(ours)
        else:
            with busy_share(f"GPU-{torch.cuda.get_device_properties(0).uuid}") as shares:
                result["seconds"] = seconds(ours)
            result["busy"] = statistics.mean(shares)
            result["peak_gb"] = torch.cuda.max_memory_allocated() / 2**30
        result["sentences_per_second"] = len(texts) / result["seconds"]
        result["minicons_batch"] = batch
        result["minicons_sentences_per_second"] = len(fewer) / seconds(theirs)
        result["times_minicons"] = result["sentences_per_second"] / result["minicons_sentences_per_second"]
    print(json.dumps(result, indent=1))
    if args.output:
        args.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
