"""What a context costs the host: texts after a context, beside texts of as many wordpieces without one.

    python benchmarks/contexts.py

All that is done before the model reads: the check of the texts, their docs, tokenizing and planning, under the built-in
model. No text is scored. On two cores (AVX2), in microseconds a text, the best of five:

| texts | check | docs | tokenizing and planning | all |
| --- | ---: | ---: | ---: | ---: |
| without a context | 79 | 44 | 190 | 313 |
| after a context | 96 | 67 | 190 | 353 |
"""

import time
from collections.abc import Callable, Iterable

from spacy.tokens import Doc

from spacy_pll.component import get_scorer
from spacy_pll.pipelines import make_pipeline
from spacy_pll.prediction.batches import batches_of
from spacy_pll.stream.contexts import Placed, check_places, place

SENTENCES = (
    "The keys to the cabinet in the hall are on the table, where she left them.",
    "He paid for the house with money that his brother had lent him in the spring.",
    "When the lights went out, nobody in the theater knew whether the play was over.",
    "Some of the letters that she wrote to her sister can't be read any more.",
)
N = 2000


def microseconds(work: Callable[..., object], *arguments: object) -> float:
    """The best of five, a text."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        work(*arguments)
        best = min(best, time.perf_counter() - began)
    return best / N * 1e6


def main() -> None:
    nlp = make_pipeline(None, targets="pll_text")
    scorer = get_scorer(nlp)
    predictor, loaded = scorer.predictor, scorer.predictor.prepare()
    pairs = [(SENTENCES[i % 4], SENTENCES[(i // 4 + i + 1) % 4] + f" {i}.") for i in range(N)]

    def make_docs(places: Iterable[Placed]) -> list[Doc]:
        return [place(nlp, *one) for one in places]

    def plan(docs: Iterable[Doc]) -> None:
        for batch in batches_of(docs, predictor.ends_of_batches(1024)):
            for batches, _ in predictor.asking.plans(predictor.tokenize(batch).contexts, loaded):
                list(batches)

    for name, places in (
        ("without a context", [(f"{before} {text}", "", "") for before, text in pairs]),
        ("after a context", [(text, f"{before} ", "") for before, text in pairs]),
    ):
        check = microseconds(check_places, scorer, places)
        make, rest = microseconds(make_docs, places), microseconds(plan, make_docs(places))
        print(f"| {name} | {check:.0f} | {make:.0f} | {rest:.0f} | {check + make + rest:.0f} |")


if __name__ == "__main__":
    main()
