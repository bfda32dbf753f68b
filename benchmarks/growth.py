"""Whether the memory of a long run grows: the resident size after each few thousand sentences of Brown (Linux).

    python benchmarks/growth.py [--data FOLDER] [--precision bfloat16] [--mask-margin 0] [--texts 30000] [--every 3000]
        [--threads 1]

It scores with the built-in model, by `nlp.pipe`, and keeps no doc.
"""

import torch
from memory import status
from texts import brown_sentences, make_parser

from spacy_pll import make_pipeline


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--precision", choices=["float32", "tf32", "bfloat16", "float16"], default="float32")
    parser.add_argument("--mask-margin", type=int)
    parser.add_argument("--texts", type=int, default=30_000)
    parser.add_argument("--every", type=int, default=3_000)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    nlp = make_pipeline(precision=args.precision, mask_margin=args.mask_margin)
    sentences = brown_sentences(args.data, args.texts)
    print("| sentences | resident MB |\n| ---: | ---: |")
    for n, _ in enumerate(nlp.pipe(sentences), start=1):
        if n % args.every == 0:
            print(f"| {n:,} | {status('VmRSS'):.0f} |", flush=True)


if __name__ == "__main__":
    main()
