"""What is worth knowing about a GPU, from strings to attributes: texts per second, and how busy the GPU was.

    python benchmarks/gpu.py --gpu [--data FOLDER] [--size bert-base] [--tokenizer NAME] [--sentences 13400]
        [--lines 400] [--paragraphs 12] [--minicons 536]

Exact scores and those with `mask_margin` 0 and 1, in float32 and then in bfloat16, on sentences of BLiMP, lines of 33
pieces and paragraphs of 260, and minicons on sentences of BLiMP, if it is installed. A line is printed as soon as it is
known, the most important ones first, so a run that is cut off says something, too. The weights are random; the time
does not depend on them. nvidia-smi reports ten times per second for which share of the time the GPU was busy. Loading
is not counted. minicons takes the best of three batch sizes. At last, scores under the built-in model are compared with
those on the CPU. Without `--gpu`, all but that runs on the CPU.
"""

import statistics
import subprocess
import tempfile
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import spacy
import torch
from models import SIZES, TOKENIZERS, save_random
from one_pass import cut
from speed import make_minicons, processor, seconds
from texts import blimp_sentences, brown_paragraphs, brown_sentences, find_tokenizer, make_parser
from transformers import AutoTokenizer

from spacy_pll.component import get_scorer
from spacy_pll.pipelines import make_pipeline
from spacy_pll.prediction import WorkDone

EVERY_MS = 100
MARGINS = {"exact": None, "margin 0": 0, "margin 1": 1}


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


def measure(folder: Path, kind: str, name: str, texts: list[str], on_gpu: bool, precision: str | None):
    nlp = make_pipeline(str(folder), words="tokenizer", precision=precision, mask_margin=MARGINS[name])
    list(nlp.pipe(texts[::20]))
    predictor = get_scorer(nlp).predictor
    predictor.counts = WorkDone()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    gpu: AbstractContextManager[list] = (
        busy_share(f"GPU-{torch.cuda.get_device_properties(0).uuid}") if on_gpu else nullcontext([])
    )
    with gpu as shares:
        time = seconds(lambda: list(nlp.pipe(texts)))
    line = f"{kind}, {name}, {precision or 'float32'}: {len(texts) / time:,.1f} texts/s in {time:.1f} s, "
    line += f"{predictor.counts.ids / time:,.0f} ids/s"
    if on_gpu and shares:
        line += f", busy {statistics.mean(shares):.0%}, peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GB"
    print(line, flush=True)


def difference_from_cpu(texts: list[str], margin: int | None) -> float:
    """The largest difference between scores of words on the CPU and on the GPU, under the built-in model."""
    scores = []
    for choose_device in (spacy.require_cpu, spacy.require_gpu):
        choose_device()
        docs = make_pipeline(mask_margin=margin).pipe(texts)
        scores.append([token._.pll for doc in docs for token in doc])
    return max(abs(one - other) for one, other in zip(*scores, strict=True))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="bert-base")
    parser.add_argument("--tokenizer", help="Folder, or name of one in DATA/tokenizers. Default: that of the size")
    parser.add_argument("--sentences", type=int, default=13_400)
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--paragraphs", type=int, default=12)
    parser.add_argument("--minicons", type=int, default=536, help="sentences that it scores")
    args = parser.parse_args()
    device = "cuda" if args.gpu else "cpu"
    print(torch.cuda.get_device_name() if args.gpu else processor(), f"PyTorch {torch.__version__}", flush=True)
    source = find_tokenizer(args.data, args.tokenizer or TOKENIZERS[args.size])
    tokenizer = AutoTokenizer.from_pretrained(source)
    blimp = blimp_sentences(args.data, args.sentences)
    texts = {
        "BLiMP": blimp,
        "lines": cut(brown_sentences(args.data, 4 * args.lines), tokenizer, 33)[: args.lines],
        "paragraphs": cut(brown_paragraphs(args.data, args.paragraphs, tokenizer.backend_tokenizer), tokenizer, 260),
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.size
        save_random(args.size, source, folder)
        for precision in (None, "bfloat16"):
            for kind, of_kind in texts.items():
                for name in MARGINS:
                    measure(folder, kind, name, of_kind, args.gpu, precision)
        fewer = blimp_sentences(args.data, args.minicons)  # of all paradigms, too
        try:
            run, batch = make_minicons(folder, fewer, device)
        except ImportError as error:
            print(f"{error}. Type: pip install --no-deps minicons tenacity wonderwords accelerate")
        else:
            rate = len(fewer) / seconds(run)
            print(f"BLiMP, minicons, float32: {rate:,.1f} texts/s, in batches of {batch}")
    for name, margin in MARGINS.items() if args.gpu else ():
        compared = blimp_sentences(args.data, 134) + brown_sentences(args.data, 20)
        print(f"{name}: at most {difference_from_cpu(compared, margin):.1e} nats per word from the CPU", flush=True)


if __name__ == "__main__":
    main()
