"""How soon the first doc leaves `nlp.pipe`, and what it costs that docs leave after a few seconds of work.

    python benchmarks/first_doc.py [--data FOLDER] [--rounds 3] [--lines 400] [--paragraphs 60]

Lines are sentences of Brown, and paragraphs nine of them. spaCy's batches of 1,000 docs are read as they are (`whole`),
and in batches of some work, as `nlp.pipe` does. The two take turns. Prints Markdown: medians in seconds, of the clock
and of the processor.
"""

import statistics
import time
from dataclasses import replace
from typing import Any

from texts import brown_sentences, make_parser

from spacy_pll import make_pipeline
from spacy_pll.component import get_scorer


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int, default=400)
    parser.add_argument("--paragraphs", type=int, default=60)
    args = parser.parse_args()
    sentences = brown_sentences(args.data, max(args.lines, 9 * args.paragraphs))
    paragraphs = [" ".join(sentences[9 * n : 9 * n + 9]) for n in range(args.paragraphs)]
    print("| texts | `mask_margin` | first doc | whole | all docs | whole | CPU | whole |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for margin, share in ((None, 10), (0, 1), (1, 1)):
        nlp = make_pipeline(mask_margin=margin)
        list(nlp.pipe(sentences[:20]))  # what is done once is done
        for kind, texts in (("lines", sentences[: args.lines]), ("paragraphs", paragraphs)):
            texts = texts[: len(texts) // share] if kind == "paragraphs" else texts
            rounds = [[measure(nlp, texts, whole) for whole in (False, True)] for _ in range(args.rounds)]
            # Of each measure, the median with and without batches of some work.
            cells = [f"{statistics.median(one[way][n] for one in rounds):.2f}" for n in range(3) for way in (0, 1)]
            print(
                f"| {len(texts)} {kind} | {'exact' if margin is None else margin} | {' | '.join(cells)} |", flush=True
            )


def measure(nlp, texts: list[str], whole: bool) -> tuple[float, float, float]:
    """The seconds until the first doc is there, until all are, and those of the processor."""
    model: Any = get_scorer(nlp).model
    before = model.load()
    model.loaded = replace(before, ids_at_once=10**12) if whole else before
    began, cpu = time.perf_counter(), time.process_time()
    docs = nlp.pipe(texts, batch_size=1000)
    next(docs)
    first = time.perf_counter() - began
    sum(1 for _ in docs)
    model.loaded = before
    return first, time.perf_counter() - began, time.process_time() - cpu


if __name__ == "__main__":
    main()
