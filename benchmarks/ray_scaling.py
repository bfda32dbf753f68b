"""Sentences of the Brown corpus scored by one worker, by two, and by two of which one is killed.

    python benchmarks/ray_scaling.py BROWN.zip [--sentences 2000] [--model FOLDER] [--rounds 1]

BROWN.zip is NLTK's archive. Each worker has one thread. Prints pieces/s with one and with two workers, from the first
results on, so without the time to start a cluster and load models, and with it; then whether the run with the killed
worker gave every sentence once, and how far its scores and the others' are from those of a single process.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).parents[1] / "scripts"))

import ray.data
import torch
from evaluate_beyond import brown_files, joined

from spacy_pll.distributed import annotate, cluster
from spacy_pll.pipelines import PipelineSettings, make_pipeline

BATCH = 32


def make_known(folder: str, model: str | None):
    """A pipeline, in a process that leaves its number in a folder."""
    Path(folder, str(os.getpid())).touch()
    if torch.get_num_threads() != 1:
        raise RuntimeError(f"A worker has {torch.get_num_threads()} threads.")
    return make_pipeline(PipelineSettings(model))


def run(texts: list[str], workers: int, model: str | None, kill: bool = False) -> dict:
    """Score texts with so many workers.

    kill (bool): Kill one worker when a third of the texts is done.
    """
    blocks, began = [], time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        dataset = ray.data.from_items([{"id": number, "text": text} for number, text in enumerate(texts)])
        make = partial(make_known, folder, model)
        scored = annotate(dataset, make, workers=workers, batch_size=BATCH, ordered=True)
        for rows in scored.iter_batches(batch_size=None, batch_format="pyarrow"):
            blocks.append((time.perf_counter(), rows))
            if kill and sum(len(rows) for _, rows in blocks) > len(texts) / 3:
                kill = False
                os.kill(int(min(os.listdir(folder))), signal.SIGKILL)
        started = len(os.listdir(folder))
    pieces = [sum(rows["pll_pieces"].to_pylist()) for _, rows in blocks]
    # The first batch of each worker came with the loading of its model.
    steady = sum(pieces[workers:]) / (blocks[-1][0] - blocks[workers - 1][0])
    return {
        "ids": [i for _, rows in blocks for i in rows["id"].to_pylist()],
        "scores": [score for _, rows in blocks for score in rows["pll"].to_pylist()],
        "errors": [error for _, rows in blocks for error in rows["error"].to_pylist() if error],
        "pieces/s": steady,
        "with start": sum(pieces) / (blocks[-1][0] - began),
        "started": started,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brown", type=Path)
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--model")
    parser.add_argument("--rounds", type=int, default=1, help="of one and two workers in turn; medians are printed")
    args = parser.parse_args()
    sentences = [joined(words) for file in brown_files(args.brown) for words in file]
    texts = sentences[:: len(sentences) // args.sentences][: args.sentences]  # from all of the corpus

    torch.set_num_threads(1)
    nlp = make_pipeline(PipelineSettings(args.model))
    began, busy = time.perf_counter(), time.process_time()
    docs = list(nlp.pipe(texts, batch_size=BATCH))
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    alone, pieces = [doc._.pll for doc in docs], sum(doc._.pll_pieces for doc in docs)
    print(f"{len(texts)} sentences, {sum(map(len, docs))} tokens, {pieces} pieces")
    # On a machine that does other things, too, the second figure comes nearer to what a core can do.
    print(f"single process: {pieces / seconds:.0f} pieces/s, {pieces / busy:.0f} in a second of CPU time", flush=True)
    with cluster(2):
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
        once = result["ids"] == list(range(len(texts)))
        furthest = max(abs(a - b) for a, b in zip(alone, result["scores"], strict=True))
        print(f"{name}: every row once and in order: {once}; errors: {len(result['errors'])}; ", end="")
        print(f"largest difference from the single process: {furthest:.1e}")


if __name__ == "__main__":
    main()
