"""Score all of BLiMP on a GPU, from strings to attributes: the time, how busy the GPU is, and minicons' time.

    python benchmarks/gpu.py [--data FOLDER] [--size bert-base] [--tokenizer NAME] [--mixed-precision]
        [--sentences 134000] [--minicons 2680] [--output gpu.json] --gpu

The weights are random; the time does not depend on them. nvidia-smi reports ten times per second for which share of the
time the GPU was busy. Loading the model is not counted. minicons gets fewer sentences, also spread evenly over the
paradigms, and the best of three batch sizes. Without `--gpu`, all of it runs on the CPU.
"""

import json
import statistics
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
from models import SIZES, TOKENIZERS, save_random
from speed import load, make_minicons, processor, seconds
from texts import blimp_sentences, find_tokenizer, make_parser

EVERY_MS = 100


@contextmanager
def busy_share(device: str):
    """Measure the utilisation of a GPU, 0 to 1. Afterwards the list that this yields holds one value per query."""
    query = ["nvidia-smi", f"--id={device}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    process = subprocess.Popen([*query, f"--loop-ms={EVERY_MS}"], stdout=subprocess.PIPE, text=True)
    shares = []
    try:
        yield shares
    finally:
        process.terminate()
        shares += [float(line) / 100 for line in process.communicate()[0].splitlines() if line.strip().isdigit()]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="bert-base")
    parser.add_argument("--tokenizer", help="Folder, or name of one in DATA/tokenizers. Default: that of the size")
    parser.add_argument("--mixed-precision", action="store_true")
    parser.add_argument("--sentences", type=int, default=134_000)
    parser.add_argument("--minicons", type=int, default=2680)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    device = "cuda" if args.gpu else "cpu"
    texts, fewer = (blimp_sentences(args.data, n) for n in (args.sentences, args.minicons))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.size
        save_random(args.size, find_tokenizer(args.data, args.tokenizer or TOKENIZERS[args.size]), folder)
        nlp = load(folder, ["word_l2r"], "bfloat16" if args.mixed_precision else None)
        list(nlp.pipe(fewer[:: max(1, len(fewer) // 100)]))
        theirs, batch = make_minicons(folder, fewer, device)
        result = {"device": torch.cuda.get_device_name() if args.gpu else processor(), "model": args.size}
        result["sentences"] = len(texts)

        def ours():
            for doc in nlp.pipe(texts):
                assert doc._.pll is not None

        if args.gpu:
            with busy_share(f"GPU-{torch.cuda.get_device_properties(0).uuid}") as shares:
                result["seconds"] = seconds(ours)
            result["busy"] = statistics.mean(shares)
            result["peak_gb"] = torch.cuda.max_memory_allocated() / 2**30
        else:
            result["seconds"] = seconds(ours)
        result["sentences_per_second"] = len(texts) / result["seconds"]
        result["minicons_batch"] = batch
        result["minicons_sentences_per_second"] = len(fewer) / seconds(theirs)
        result["times_minicons"] = result["sentences_per_second"] / result["minicons_sentences_per_second"]
    print(json.dumps(result, indent=1))
    if args.output:
        args.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
