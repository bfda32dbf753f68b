"""Score sentences of the Brown corpus with one Ray worker, with two, and with two of which one is killed.

    python benchmarks/ray_scaling.py [--data FOLDER] [--sentences 2000] [--model FOLDER] [--rounds 1]

Each worker has one thread. Prints pieces/s with one and with two workers: measured from the first results, which leaves
out the start of the workers and the loading of models, and measured with that time. Then prints, for each run, whether
it gave every sentence once, and the largest difference of its scores from those of a single process.
"""

import os
import signal
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import ray.data
import torch
from texts import brown_sentences, make_parser

from spacy_pll import make_pipeline
from spacy_pll.distributed import annotate

BATCH = 32


def make_known(folder: str, model: str | None):
    """Make a pipeline, and write the number of this process to a folder."""
    Path(folder, str(os.getpid())).touch()
    if torch.get_num_threads() != 1:
        raise RuntimeError(f"A worker has {torch.get_num_threads()} threads.")
    return make_pipeline(model)


def run(texts: list[str], workers: int, model: str | None, kill: bool = False) -> dict:
    """Score texts with a number of workers.

    kill (bool): Kill one worker after a third of the texts.
    """
    blocks, began = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        dataset = ray.data.from_items([{"id": number, "text": text} for number, text in enumerate(texts)])
        make = partial(make_known, folder, model)
        scored = annotate(dataset, make, workers=workers, batch_size=BATCH)
        rows: Any  # a pyarrow.Table
        for rows in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
            blocks.append((time.perf_counter(), rows))
            if kill and sum(len(rows) for _, rows in blocks) > len(texts) / 3:
                kill = False
                os.kill(int(min(os.listdir(folder))), signal.SIGKILL)
        started = len(os.listdir(folder))
    pieces = [sum(rows["pll_pieces"].to_pylist()) for _, rows in blocks]
    # The time of the first batch of each worker includes loading its model.
    steady = sum(pieces[workers:]) / (blocks[-1][0] - blocks[workers - 1][0])
    return {
        "ids": [i for _, rows in blocks for i in rows["id"].to_pylist()],
        "scores": [score for _, rows in blocks for score in rows["pll_word_l2r"].to_pylist()],
        "errors": [error for _, rows in blocks for error in rows["error"].to_pylist() if error],
        "pieces/s": steady,
        "with start": sum(pieces) / (blocks[-1][0] - began),
        "started": started,
    }


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--model", help="Folder or hub name. Default: the built-in model")
    parser.add_argument("--rounds", type=int, default=1, help="Runs of each number of workers; medians are printed")
    args = parser.parse_args()
    texts = brown_sentences(args.data, args.sentences)

    torch.set_num_threads(1)
    nlp = make_pipeline(args.model)
    began, busy = time.perf_counter(), time.process_time()
    docs = list(nlp.pipe(texts, batch_size=BATCH))
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    alone, pieces = [doc._.pll for doc in docs], sum(doc._.pll_pieces for doc in docs)
    print(f"{len(texts)} sentences, {sum(map(len, docs))} tokens, {pieces} pieces")
    # The second number is closer to the speed of one core if the machine also does other things.
    print(f"single process: {pieces / seconds:.0f} pieces/s, {pieces / busy:.0f} per second of CPU time", flush=True)
    ray.init(num_cpus=3, include_dashboard=False)
    results = {1: [], 2: []}
    for _ in range(args.rounds):
        for workers, own in results.items():
            own.append(run(texts, workers, args.model))
    killed = run(texts, 2, args.model, kill=True)
    for workers, own in results.items():
        steady, whole = (median(result[key] for result in own) for key in ("pieces/s", "with start"))
        print(f"workers {workers}: {steady:.0f} pieces/s; {whole:.0f} with the start of the workers")
    print(f"scaling: {median(r['pieces/s'] for r in results[2]) / median(r['pieces/s'] for r in results[1]):.2f}")
    print(f"one of two workers killed: {killed['started']} were started, {killed['pieces/s']:.0f} pieces/s")
    for name, result in (("1 worker", results[1][0]), ("2 workers", results[2][0]), ("one killed", killed)):
        once = sorted(result["ids"]) == list(range(len(texts)))
        scored = zip(result["ids"], result["scores"], strict=True)
        furthest = max(abs(alone[i] - score) for i, score in scored)
        print(f"{name}: every row once: {once}; errors: {len(result['errors'])}; ", end="")
        print(f"largest difference from the single process: {furthest:.1e}")


if __name__ == "__main__":
    main()
