"""The time of one-pass scores, compared with exact ones and with `mask_spacing`, on the same texts, end to end.

    python benchmarks/one_pass.py [--data FOLDER] [--teacher FOLDER] [--student FOLDER] [--rounds 5] [--threads N]
        [--output FILE.json]

The contestants take turns, so that a slow minute of the machine affects all of them, and ratios are taken within a
round. The CPU time of the process is measured, from strings to attributes. How good the student is does not matter.
`scripts/evaluate_student.py --times FILE.json` puts the table into pages.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from texts import blimp_sentences, brown_paragraphs, brown_sentences, make_parser

from spacy_pll.pipelines import PipelineSettings, get_scorer, make_pipeline

SPACINGS = (16, 4)  # a few-pass model for a spacing takes as long as the teacher with that spacing


def cpu_seconds(function: Callable) -> float:
    """The CPU time that a function takes."""
    began = time.process_time()
    function()
    return time.process_time() - began


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--student", help="A one-pass model. Without it, the built-in one")
    parser.add_argument("--teacher", help="Its teacher. Without it, the built-in model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="Write the table to this .json file")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    variants = {
        "exact": PipelineSettings(args.teacher),
        **{f"mask_spacing {n}": PipelineSettings(args.teacher, mask_spacing=n) for n in SPACINGS},
        "one pass": PipelineSettings(args.student, one_pass=True),
        "one pass, bfloat16": PipelineSettings(args.student, one_pass=True, precision="bfloat16"),
    }
    pipelines = {name: make_pipeline(settings) for name, settings in variants.items()}
    tokenizer = get_scorer(pipelines["exact"]).model.tokenizer
    kinds = {
        "sentences of BLiMP": blimp_sentences(args.data, 268),
        "sentences of Brown": brown_sentences(args.data, 67),
        "paragraphs of Brown (400 pieces)": brown_paragraphs(args.data, 2, tokenizer),
    }
    table = []
    for kind, texts in kinds.items():
        # A fast run is repeated, so that it is long enough to be measured.
        repeats = {name: max(1, 100 // len(texts)) if settings.one_pass else 1 for name, settings in variants.items()}
        for nlp in pipelines.values():
            list(nlp.pipe(texts[:10]))
        seconds: dict[str, list[float]] = {name: [] for name in variants}
        in_model = []
        for _ in range(args.rounds):
            for name, nlp in pipelines.items():
                model, spent = get_scorer(nlp).model, []
                submit = type(model).submit

                def timed(batches, model=model, submit=submit, spent=spent):
                    batches = list(batches)
                    began = time.process_time()
                    result = submit(model, batches)
                    spent.append(time.process_time() - began)
                    return result

                model.submit = timed  # what is left is the work of tokenizers, Python and numpy
                total = cpu_seconds(lambda: [list(nlp.pipe(texts)) for _ in range(repeats[name])])  # noqa: B023
                del model.submit
                seconds[name].append(total / repeats[name])
                if name == "one pass":
                    in_model.append(sum(spent) / total)
        each = {name: 1000 * np.median(values) / len(texts) for name, values in seconds.items()}
        row = {
            "texts": f"{len(texts)} {kind}",
            "exact, ms": f"{each['exact']:,.1f}",
            "one pass, ms": f"{each['one pass']:,.2f}",
            "of this in the model": f"{np.median(in_model):.0%}".replace("%", " %"),
        }
        for name in list(variants)[1:]:
            ratios = np.divide(seconds["exact"], seconds[name])
            row[name] = f"{np.median(ratios):.1f} ({ratios.min():.1f}-{ratios.max():.1f})"
        print(row, flush=True)
        table.append(row)
    if args.output:
        args.output.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
