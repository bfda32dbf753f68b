"""How many times as fast as exact scores are those with all masks in one pass (`mask_margin`)?

    python benchmarks/one_pass.py [--data FOLDER] [--bert-base [TOKENIZER]] [--margins 0 1 2] [--spacing 16]
        [--texts 134] [--paragraphs 3] [--rounds 3] [--threads 1] [--cpu-time] [--profile MARGIN]
        [--write FILE.md]

Measures the built-in model on sentences of BLiMP, sentences of Brown, and paragraphs of 400 pieces; a model of the size
of BERT-base (random weights) on sentences of BLiMP, lines of 33 pieces and paragraphs of 260. Exact and approximate
scores take turns, and ratios are taken within a round. Prints medians with least and most. With `--cpu-time`, the time
of the processor is measured instead of the clock, for a machine that has other work.
"""

import cProfile
import gc
import pstats
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from models import add_size_option, save_random
from spacy.language import Language
from texts import blimp_sentences, brown_paragraphs, brown_sentences, find_tokenizer, make_parser
from transformers import AutoTokenizer

from spacy_pll.component import get_scorer
from spacy_pll.language_model import BUILTIN
from spacy_pll.pipelines import make_pipeline

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from markdown_tables import markdown_table, replace_tables  # noqa: E402


def cut(texts: list[str], tokenizer, n: int) -> list[str]:
    """The beginnings of some texts, of about n pieces."""
    encodings = [tokenizer(text, add_special_tokens=False, return_offsets_mapping=True) for text in texts]
    found = [(text, encoding["offset_mapping"]) for text, encoding in zip(texts, encodings)]
    return [text[: offsets[n - 1][1]] for text, offsets in found if len(offsets) >= n]


def texts_of(data: Path, folder: Path, bert_base: bool, n: int, paragraphs: int) -> dict[str, list[str]]:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    long = brown_paragraphs(data, paragraphs, tokenizer.backend_tokenizer)
    if not bert_base:
        return {
            # As many as in a few batches of a corpus: short texts that share no pass with texts of their length are
            # mostly padding.
            "BLiMP": blimp_sentences(data, 8 * n),
            "Brown sentences": brown_sentences(data, n),
            "paragraphs of 400": long,
        }
    return {
        "BLiMP": blimp_sentences(data, max(n, 134)),
        "lines of 33": cut(brown_sentences(data, 4 * n), tokenizer, 33)[: max(1, n // 4)],
        "paragraphs of 260": cut(long, tokenizer, 260),
    }


def score(nlp: Language, texts: list[str], clock) -> float:
    gc.collect()
    gc.freeze()  # so that no round pays for a search through all that loading has made
    began = clock()
    for doc in nlp.pipe(texts, batch_size=256):
        assert doc._.pll is not None
    return clock() - began


def main():
    parser = make_parser(__doc__)
    add_size_option(parser, "bert-base")
    parser.add_argument("--margins", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--spacing", type=int, help="Also measure this `mask_spacing`")
    parser.add_argument("--texts", type=int, default=134)
    parser.add_argument("--paragraphs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument(
        "--write", type=Path, metavar="FILE.md", help="put the table into this page, at the place `times`"
    )
    parser.add_argument("--profile", type=int, metavar="MARGIN", help="Print where the time of this margin goes")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.cpu_time else time.perf_counter
    with tempfile.TemporaryDirectory() as scratch:
        folder = BUILTIN
        if args.bert_base:
            folder = Path(scratch)
            save_random("bert-base", find_tokenizer(args.data, args.bert_base), folder)
        model = str(folder) if args.bert_base else None
        tiers = {"exact": {}, **{f"`mask_margin = {m}`": {"mask_margin": m} for m in args.margins}}
        if args.spacing:
            tiers[f"`mask_spacing = {args.spacing}`"] = {"mask_spacing": args.spacing}
        pipelines = {name: make_pipeline(model, **settings) for name, settings in tiers.items()}
        texts = texts_of(args.data, folder, bool(args.bert_base), args.texts, args.paragraphs)
    table = []
    for kind, own in texts.items():
        for nlp in pipelines.values():
            score(nlp, own[:2], clock)
            get_scorer(nlp).predictor.counts.clear()
        times = {name: [] for name in pipelines}
        for _ in range(args.rounds):
            for name, nlp in pipelines.items():
                times[name].append(score(nlp, own, clock))
        for name, nlp in pipelines.items():
            counts = get_scorer(nlp).predictor.counts
            ratios = [exact / own_time for exact, own_time in zip(times["exact"], times[name])]
            table.append(
                {
                    "texts": kind,
                    "setting": name,
                    "ids per piece": f"{counts.ids / counts.targets:.1f}",
                    "ms per text": f"{1000 * statistics.median(times[name]) / len(own):.1f}",
                    "times as fast": f"{statistics.median(ratios):.1f}",
                    "least and most": f"{min(ratios):.1f} to {max(ratios):.1f}",
                }
            )
            print(*table[-1].values(), sep="\t", flush=True)
        if args.profile is not None:
            profile = cProfile.Profile()
            profile.runcall(score, pipelines[f"`mask_margin = {args.profile}`"], own, clock)
            pstats.Stats(profile).sort_stats("tottime").print_stats(22)
    print(f"\n{markdown_table(table)}")
    if args.write:
        replace_tables(args.write, {"times": table})


if __name__ == "__main__":
    main()
