"""Sentences of BLiMP per second through lm-evaluation-harness's model spacy-pll, or through the fork's scorer.

    python benchmarks/harness.py [--data FOLDER] [--pairs 200] [--minicons]

Without --minicons, it needs lm-eval: three settings of `spacy_pll.lm_eval.PLL` are measured. With it, it needs
minicons, and so transformers 4: the function that the fork of the harness of BabyLM's 2024 pipeline calls, with that
fork's text for an empty context, is measured twice, one sentence at a time and in batches of 32. The model is the
built-in one.
"""

import time

from texts import make_parser

from scripts.paper.names import BUILTIN_FOLDER
from spacy_pll import read_pairs


def report(name: str, n: int, seconds: float):
    print(f"{name}: {n / seconds:.0f} sentences per second")


def measure_ours(texts: list[str]):
    from lm_eval.api.instance import Instance

    from spacy_pll.lm_eval import PLL

    requests = [Instance("loglikelihood", {}, ("", text), 0, ("task", 0, 1)) for text in texts]
    for settings in ({"metric": "original"}, {"metric": "word_l2r"}, {"mask_margin": 0}):
        model = PLL(show_progress=False, **settings)
        model.loglikelihood(requests[:40])
        begin = time.perf_counter()
        model.loglikelihood(requests)
        report(str(settings), len(texts), time.perf_counter() - begin)


def measure_theirs(texts: list[str]):
    from minicons.scorer import MaskedLMScorer
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    model = AutoModelForMaskedLM.from_pretrained(BUILTIN_FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(BUILTIN_FOLDER)
    scorer = MaskedLMScorer(model.float().eval(), "cpu", tokenizer=tokenizer)
    empty = tokenizer.eos_token or tokenizer.sep_token
    for size in (1, 32):
        begin = time.perf_counter()
        for first in range(0, len(texts), size):
            batch = texts[first : first + size]
            scorer.conditional_score([empty] * len(batch), batch)
        report(f"minicons, batches of {size}", len(texts), time.perf_counter() - begin)


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("--pairs", type=int, default=200, help="pairs of the paradigm adjunct_island (default: 200)")
    parser.add_argument("--minicons", action="store_true", help="measure the fork's scorer")
    args = parser.parse_args()
    pairs = read_pairs(str(args.data / "data" / "blimp" / "adjunct_island.jsonl"))[: args.pairs]
    texts = [sentence for pair in pairs for sentence in (pair.good, pair.bad)]
    (measure_theirs if args.minicons else measure_ours)(texts)


if __name__ == "__main__":
    main()
