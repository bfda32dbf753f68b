"""What a GPU does: texts per second, from strings to attributes, beside the bare encoder and minicons.

    python benchmarks/gpu.py --gpu [--data FOLDER] [--size bert-base] [--tokenizer NAME] [--seconds 2]
        [--sentences 67000] [--lines 4000] [--paragraphs 400] [--no-model]

First, what a new process has on sentences of BLiMP that it has not seen. Then exact scores and those with `mask_margin`
0, in float32, TF32 and bfloat16, on sentences of BLiMP, lines of 33 pieces and paragraphs of 260; then sentences of
BLiMP through `nlp.pipe`, `score`, `pll score` and `pll pairs`; then minicons on sentences of BLiMP, in float32 and
bfloat16, if it is installed. A line is printed as soon as it is known, so a run that is cut off says something, too.
Each figure is taken over so many seconds of work, with as many of the texts as that takes, after a run on a few of
them. All of it takes some five minutes on an H100.

"Bare" is what the encoder and its head take for the same passes, whose ids lie on the device: the limit. The host's
time is that of planning the passes of these texts, tokenizing included. nvidia-smi reports ten times per second for
which share of the time the GPU was busy. The weights are random; the time does not depend on them. Loading is not
counted. minicons takes the best of three batch sizes. At last, scores under the built-in model are compared with those
on the CPU, in each precision. Without `--gpu`, the CPU is measured, in float32 alone.

With `--no-model`, there are no forward passes, and only the ways of sentences of BLiMP are compared, by the time of the
processor: what the host does. Set TOKENIZERS_PARALLELISM=false for one thread, and some ten `--seconds`.
"""

import gc
import itertools
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

# Every pass has another shape. Without this, the first run of a size is a tenth to a quarter slower. It is read when
# torch is imported.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import spacy
import torch
import typer.testing
from linear import TargetLogProbs, zeros
from models import SIZES, TOKENIZERS, save_random
from one_pass import cut
from spacy.language import Language
from speed import make_minicons, processor, seconds
from texts import blimp_sentences, brown_paragraphs, brown_sentences, count_anew, find_tokenizer, make_parser
from transformers import AutoTokenizer

import spacy_pll
from spacy_pll import get_scorer, make_pipeline
from spacy_pll.cli import app
from spacy_pll.prediction.batches import batches_of

EVERY_MS = 100
MARGINS = {"exact": None, "margin 0": 0}
PRECISIONS = ("float32", "tf32", "bfloat16")
FIRST = 20_000  # texts of the run in a new process
SAMPLE = 64  # texts of the run that says how many are measured


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


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Bare:
    """Runs the passes of some docs as they are planned, and measures what the encoder and its head take for them."""

    def __init__(self, nlp: Language):
        scorer = get_scorer(make_pipeline(nlp))  # with the same model, and counts of its own
        self.predictor = scorer.predictor
        self.log_probs = scorer.model.load().log_probs  # type: ignore[attr-defined]  # of `LoadedModel`
        self.seconds, self.nlp = 0.0, nlp

    def __call__(self, texts: Sequence[str]) -> float:
        forward, before = self.log_probs.forward, self.log_probs.forward._run
        self.seconds = 0.0

        def timed(ids, arguments):
            wait()
            began = time.perf_counter()
            logits = before(ids, arguments)
            if logits.dim() == 3:  # the head's part of the work
                logits[0].float().logsumexp(dim=1)
            wait()
            self.seconds += time.perf_counter() - began
            return logits

        forward._run = timed
        # Rows as they are, with the masks that transformers makes.
        with forward.trying(replace(forward.capabilities, filler=None)):
            try:
                ends_batch = self.predictor.ends_of_batches(self.nlp.batch_size)
                for batch in batches_of(map(self.nlp.make_doc, texts), ends_batch):
                    self.predictor.submit(batch)
            finally:
                del forward._run
        return self.seconds


def host_seconds(nlp: Language, texts: Sequence[str]) -> float:
    """The time in which some texts are tokenized and their passes planned, without a pass."""
    scorer = get_scorer(nlp)
    predictor, loaded = scorer.predictor, scorer.model.load(groups=scorer.settings.mask_margin is not None)

    def plan() -> None:
        for batch in batches_of(map(nlp.make_doc, texts), predictor.ends_of_batches(nlp.batch_size)):
            for batches, _ in predictor.asking.plans(predictor.tokenize(batch).contexts, loaded):
                list(batches)

    return seconds(plan)


def score(nlp: Language, texts: Sequence[str]) -> None:
    deque(nlp.pipe(texts), maxlen=0)  # the docs are not kept


def evenly(texts: list[str], n: float) -> list[str]:
    """So many of some texts, but at least `SAMPLE`, from all parts of the list."""
    n = max(SAMPLE, int(n))
    return texts[:: max(1, len(texts) // n)][:n]


def measure_first(folder: Path, texts: list[str], precision: str) -> None:
    """Sentences in a new process, the same again, and both by a new pipeline, which has none of the words: what a later
    reading gains is what the process had to do once, such as finding memory, or what the pipeline did, such as storing
    words.
    """
    some = evenly(texts, FIRST)
    for name, margin in MARGINS.items():
        shown = []
        for way in ("first", "by a new pipeline"):
            nlp = make_pipeline(str(folder), words="tokenizer", precision=precision, mask_margin=margin)
            nlp(some[0])
            rates = [len(some) / seconds(lambda: score(nlp, some)) for _ in range(2)]  # noqa: B023
            shown.append(f"{way} {rates[0]:,.0f} texts/s, again {rates[1]:,.0f}")
        print(f"BLiMP, {name}, {precision}, {len(some):,} texts: {'; '.join(shown)}", flush=True)


def measure(folder: Path, kind: str, name: str, texts: list[str], on_gpu: bool, precision: str, most: float) -> None:
    nlp = make_pipeline(str(folder), words="tokenizer", precision=precision, mask_margin=MARGINS[name])
    score(nlp, texts[:SAMPLE])
    gc.collect()
    gc.freeze()  # as docs/speed.md says
    rate = SAMPLE / seconds(lambda: score(nlp, texts[:SAMPLE]))
    some = evenly(texts, most * rate)
    if len(some) > SAMPLE:
        rate = len(some) / seconds(lambda: score(nlp, some))  # a large batch is faster than the sample
        some = evenly(texts, most * rate)
    counts = count_anew(nlp)
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    gpu: AbstractContextManager[list] = (
        busy_share(f"GPU-{torch.cuda.get_device_properties(0).uuid}") if on_gpu else nullcontext([])
    )
    with gpu as shares:
        taken = seconds(lambda: score(nlp, some))
    bare = Bare(nlp)(some)
    line = f"{kind}, {name}, {precision}: {len(some) / taken:,.1f} texts/s in {taken:.1f} s, {bare / taken:.0%} of the "
    line += (
        f"bare encoder; {counts.ids / taken:,.0f} ids/s; for 1,000 texts {1000 * counts.passes / len(some):.1f} passes "
    )
    line += f"and {1000 * host_seconds(nlp, some) / len(some):.2f} s of the host"
    if on_gpu and shares:
        line += f"; busy {statistics.mean(shares):.0%}, peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GB"
    print(line, flush=True)
    gc.unfreeze()


def measure_ways(folder: Path, name: str, texts: list[str], on_gpu: bool, precision: str, most: float) -> None:
    """The same texts through `nlp.pipe`, `score`, `pll score` and `pll pairs`, each with what it reads of a doc. What a
    way takes for `SAMPLE` texts is its start, and is taken away.
    """
    margin = [] if MARGINS[name] is None else ["--mask-margin", str(MARGINS[name])]
    options = ["--model", str(folder), "--words", "tokenizer", "--precision", precision, *margin]
    options += ["--gpu-id", "0"] if on_gpu else []
    nlp = make_pipeline(str(folder), words="tokenizer", precision=precision, mask_margin=MARGINS[name])

    def command(some: list[str], *command: str) -> None:
        run = typer.testing.CliRunner().invoke(app, [*command, *options])
        assert run.exit_code == 0, run.output

    def by_score(some: list[str]) -> None:
        (folder.parent / "texts.txt").write_text("".join(f"{text}\n" for text in some), encoding="utf8")
        command(some, "score", str(folder.parent / "texts.txt"), str(folder.parent / "scores.csv"), "--force")

    def by_pairs(some: list[str]) -> None:
        rows = (f"{json.dumps({'good': good, 'bad': bad})}\n" for good, bad in zip(some[::2], some[1::2]))
        (folder.parent / "pairs.jsonl").write_text("".join(rows), encoding="utf8")
        command(some, "pairs", str(folder.parent / "pairs.jsonl"))

    ways: dict[str, Callable[[list[str]], object]] = {
        "nlp.pipe": lambda some: [(doc.text, doc._.pll, doc._.pll_pieces, doc._.pppl) for doc in nlp.pipe(some)],
        "score": lambda some: [(one.text, one.score, one.pieces, one.pppl) for one in spacy_pll.score(some, nlp)],
        "pll score": by_score,
        "pll pairs": by_pairs,
    }
    few, some = texts[:SAMPLE], evenly(texts, most * SAMPLE / seconds(lambda: score(nlp, texts[:SAMPLE])))
    rates, clock = {}, time.process_time if TargetLogProbs.__call__ is zeros else time.perf_counter
    for way, run in ways.items():
        run(few)
        start = seconds(lambda: run(few), clock)  # noqa: B023
        rates[way] = (len(some) - len(few)) / (seconds(lambda: run(some), clock) - start)  # noqa: B023
    shown = "; ".join(f"{way} {rate:,.0f} texts/s ({rate / rates['nlp.pipe']:.0%})" for way, rate in rates.items())
    print(f"BLiMP, {name}, {precision}, {len(some):,} texts: {shown}", flush=True)


def measure_minicons(folder: Path, texts: list[str], device: str, precisions: Sequence[str], most: float) -> None:
    for precision in precisions:
        try:
            run, batch = make_minicons(folder, texts[:SAMPLE], device, getattr(torch, precision))
        except ImportError as error:
            print(f"{error}. Type: pip install --no-deps minicons tenacity wonderwords accelerate")
            return
        some = evenly(texts, most * SAMPLE / seconds(run))
        run, batch = make_minicons(folder, some, device, getattr(torch, precision))
        taken = seconds(run)
        print(
            f"BLiMP, minicons, {precision}: {len(some) / taken:,.1f} texts/s in {taken:.1f} s, in batches of {batch}",
            flush=True,
        )


def difference_from_cpu(texts: list[str], margin: int | None, precision: str) -> tuple[float, float]:
    """The largest and the mean difference between scores of texts on the CPU, in float32, and on the GPU."""
    scores = []
    for choose_device, of in ((spacy.require_cpu, "float32"), (spacy.require_gpu, precision)):
        choose_device()
        scores.append([doc._.pll for doc in make_pipeline(mask_margin=margin, precision=of).pipe(texts)])
    differences = [abs(one - other) for one, other in zip(*scores, strict=True)]
    return max(differences), statistics.mean(differences)


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--size", choices=SIZES, default="bert-base")
    parser.add_argument("--tokenizer", help="Folder, or name of one in DATA/tokenizers. Default: that of the size")
    parser.add_argument("--seconds", type=float, default=2.0, help="Of work for each figure")
    parser.add_argument("--sentences", type=int, default=67_000, help="At most; so are the other two")
    parser.add_argument("--lines", type=int, default=4000)
    parser.add_argument("--paragraphs", type=int, default=400)
    parser.add_argument("--no-model", action="store_true", help="The time of the host in each way, without passes")
    args = parser.parse_args()
    device = "cuda" if args.gpu else "cpu"
    name = torch.cuda.get_device_name() if args.gpu else processor()
    print(name, f"PyTorch {torch.__version__}", flush=True)
    source = find_tokenizer(args.data, args.tokenizer or TOKENIZERS[args.size])
    tokenizer = AutoTokenizer.from_pretrained(source)
    texts = {
        "BLiMP": blimp_sentences(args.data, args.sentences),
        "lines": cut(brown_sentences(args.data, 4 * args.lines), tokenizer, 33)[: args.lines],
        "paragraphs": cut(brown_paragraphs(args.data, args.paragraphs, tokenizer.backend_tokenizer), tokenizer, 260),
    }
    precisions = PRECISIONS if args.gpu else PRECISIONS[:1]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / args.size
        save_random(args.size, source, folder)
        if args.no_model:
            TargetLogProbs.__call__ = zeros  # type: ignore[method-assign]
            for margin in MARGINS:
                measure_ways(folder, margin, texts["BLiMP"], args.gpu, precisions[0], args.seconds)
            return
        measure_first(folder, texts["BLiMP"], precisions[-1])
        for precision, (kind, of_kind), margin in itertools.product(precisions, texts.items(), MARGINS):
            measure(folder, kind, margin, of_kind, args.gpu, precision, args.seconds)
        for precision, margin in itertools.product(dict.fromkeys((precisions[0], precisions[-1])), MARGINS):
            measure_ways(folder, margin, texts["BLiMP"], args.gpu, precision, args.seconds)
        measure_minicons(folder, texts["BLiMP"], device, [p for p in precisions if p != "tf32"], args.seconds)
    compared = blimp_sentences(args.data, 134) + brown_sentences(args.data, 20)
    for precision, (name, margin) in itertools.product(precisions, MARGINS.items()) if args.gpu else ():
        largest, mean = difference_from_cpu(compared, margin, precision)
        print(
            f"{name}, {precision}: {largest:.1e} nats per text from the CPU at most, {mean:.1e} on average", flush=True
        )


if __name__ == "__main__":
    main()
