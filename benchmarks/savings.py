"""How much time each optimisation saves, on sentences of BLiMP: each of them is switched off in turn.

    python benchmarks/savings.py [--data FOLDER] [--bert-base [TOKENIZER]] [--sentences 268] [--rounds 5]

Without --bert-base, the model is the built-in one.
"""

import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from models import add_size_option, save_random
from texts import blimp_sentences, find_tokenizer, make_parser

from spacy_pll.component import get_scorer
from spacy_pll.language_model import forward
from spacy_pll.pipelines import make_pipeline


def count(scorer, run) -> dict:
    scorer.predictor.counts.clear()
    run()
    return asdict(scorer.predictor.counts)


def padding_unsorted(lengths: list[int], max_tokens: int) -> float:
    """The share of padding if the rows were batched in their own order, not sorted by length."""
    total, rows, longest = 0, 0, 0
    for length in lengths:
        if rows and max(longest, length) * (rows + 1) > max_tokens:
            total, rows, longest = total + rows * longest, 0, 0
        rows, longest = rows + 1, max(longest, length)
    return 1 - sum(lengths) / (total + rows * longest)


class narrowed:
    """A context in which a model has another narrowing."""

    def __init__(self, run, name: str | None):
        self.run, self.name, self.before = run, name, run.narrowing.name

    def __enter__(self):
        self.run.narrowing.set(self.name)

    def __exit__(self, *error):
        self.run.narrowing.set(self.before)


def main():
    parser = make_parser(__doc__)
    add_size_option(parser, "bert-base")
    parser.add_argument("--sentences", type=int, default=268, help="Number of sentences of BLiMP")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if args.bert_base:
            save_random("bert-base", find_tokenizer(args.data, args.bert_base), Path(folder))
        nlp = make_pipeline(folder if args.bert_base else None)
    scorer = get_scorer(nlp)
    texts = blimp_sentences(args.data, args.sentences)
    docs = [nlp.make_doc(text) for text in texts]
    model: Any = scorer.model
    run = model.load().forward

    def score():
        list(scorer.pipe(docs, batch_size=len(docs)))

    variants: dict[str, list[Any]] = {
        "with all optimisations": [],
        "the last feed-forward at every position": [narrowed(run, "before_head")],
        "head and last feed-forward at every position": [narrowed(run, None)],
        "products as PyTorch computes them": [patch.object(forward, "is_faster_here", lambda: False)],
    }
    score()
    seconds = {name: [] for name in variants}
    in_model = []
    for _ in range(args.rounds):
        for name, patches in variants.items():
            spent, original = [], run.run

            def timed(*arguments, original=original, spent=spent):
                began = time.perf_counter()
                out = original(*arguments)
                spent.append(time.perf_counter() - began)
                return out

            with ExitStack() as stack:
                for each in [*patches, patch.object(run, "run", timed)]:
                    stack.enter_context(each)
                began = time.perf_counter()
                score()
                seconds[name].append(time.perf_counter() - began)
            if name == "with all optimisations":
                in_model.append(sum(spent) / seconds[name][-1])
    print("| without | times the time | least and most |\n| --- | ---: | ---: |")
    for name, values in list(seconds.items())[1:]:
        ratios = sorted(np.divide(values, seconds["with all optimisations"]))
        print(f"| {name} | {statistics.median(ratios):.2f} | {ratios[0]:.2f}-{ratios[-1]:.2f} |")
    print(f"share of the time inside the model: {statistics.median(in_model):.0%}")
    together = count(scorer, score)
    alone = count(scorer, lambda: list(scorer.pipe(docs, batch_size=1)))
    lengths = [len(scorer.model.load().tokenizer.encode(doc.text).ids) for doc in docs for _ in range(doc._.pll_pieces)]
    print(f"forward rows: {together['rows']:,}; if each sentence is scored alone {alone['rows']:,}")
    print(
        f"padding: {together['padding'] / (together['ids'] + together['padding']):.1%} of the ids; in the order of the"
    )
    print(f"texts {padding_unsorted(lengths, scorer.model.load().rows.max_tokens):.1%}")


if __name__ == "__main__":
    main()
