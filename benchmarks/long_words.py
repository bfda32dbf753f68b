"""What long words cost in one pass, and how close their scores are to the exact ones, by how far the masks of a piece
reach (`scoring.masks.REACH`).

    python benchmarks/long_words.py [--data FOLDER] [--reaches 4,8,12,16,1000] [--margins 0,1] [--lines 100]

The model is the built-in one. Costs are ids that are read: per piece of lines of 32 pieces of the Brown corpus, of two
of which each is followed by an address of 200 characters and a line of code of 900 without spaces, beside those of the
same lines without; and the most that a text of one kind reads, beside a normal text of as many pieces. The scores are
compared at the pieces of words of more than 16 pieces: addresses in this project's pages, and its code without spaces.
"""

import re
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
from texts import brown_sentences, make_parser

from spacy_pll.pipelines import PipelineSettings, make_pipeline
from spacy_pll.scoring import plan

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from markdown_tables import print_table  # noqa: E402

ROOT = Path(__file__).parents[1]
LONG = 16  # pieces
KINDS = {
    "address": "http://" + "/".join(f"a{i}.b-{i * 37 % 11}" for i in range(60)),
    "dots": "." * 600,
    "letters": "http://" + "a." * 300,
    "cells": ",".join(f"{i * 7919 % 100003}" for i in range(200)),
    "code": re.sub(r"\s", "", (ROOT / "spacy_pll" / "metrics.py").read_text(encoding="utf8"))[:1500],
}


def pipeline(margin: int | None):
    # Tokens without the exceptions and rules of spaCy: what is written without spaces is one word.
    return make_pipeline(PipelineSettings(None, mask_margin=margin, words="whitespace", keep_pieces=True))


def ids_per_piece(nlp, texts: list[str]) -> float:
    predictor = nlp.get_pipe("pll").predictor
    predictor.counts.clear()
    n = sum(doc._.pll_pieces for doc in nlp.pipe(texts))
    return predictor.counts.ids / n


def lines_of(sentences: list[str], pieces: int, tokenizer) -> list[str]:
    """As many texts of about so many pieces, made of sentences."""
    words = " ".join(sentences).split()
    lines, line, n = [], [], 0
    for word in words:
        n += len(tokenizer.encode(word, add_special_tokens=False).ids)
        line.append(word)
        if n >= pieces:
            lines.append(" ".join(line))
            line, n = [], 0
    return lines


def texts_with_long_words() -> list[str]:
    """Addresses of the project's pages in their lines, and lines of its code without spaces."""
    pages = [path.read_text(encoding="utf8") for path in sorted(ROOT.glob("docs/*.md"))]
    with_address = [line for page in pages for line in page.splitlines() if re.search(r"https?://\S{40}", line)]
    code = [path.read_text(encoding="utf8") for path in sorted((ROOT / "spacy_pll").glob("*.py"))]
    joined = ["".join(source.split())[:4000] for source in code]
    cut = [text[i : i + 120 + 40 * (i % 7)] for text in joined for i in range(0, len(text), 1000)]
    return [line[:300] for line in with_address[:30]] + [f"The line {line} is code." for line in cut[:40]]


def of_long_words(nlp, texts: list[str]) -> list[np.ndarray]:
    """The scores of the pieces of long words, text by text."""
    found = []
    for doc in nlp.pipe(texts):
        word, scores = np.array(doc._.pll_data["word"]), np.array(doc._.pll_data["scores"]["word_l2r"])
        found.append(scores[np.bincount(word)[word] > LONG])
    return found


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main():
    parser = make_parser(__doc__, gpu=False)
    parser.add_argument("--reaches", type=numbers, default=numbers("4,8,12,16,1000"))
    parser.add_argument("--margins", type=numbers, default=numbers("0,1"))
    parser.add_argument("--lines", type=int, default=100)
    args = parser.parse_args()
    exact = pipeline(None)
    tokenizer = exact.get_pipe("pll").model.load().tokenizer
    lines = lines_of(brown_sentences(args.data, 400), 32, tokenizer)[: args.lines]
    long = KINDS["address"][:200], KINDS["code"][:900]
    mixed = [f"{line} {long[0]} {long[1]}" if i in (10, 60) else line for i, line in enumerate(lines)]
    texts = texts_with_long_words()
    expected = np.concatenate(of_long_words(exact, texts))
    rows = []
    for margin in args.margins:
        nlp = pipeline(margin)
        for reach in args.reaches:
            with patch.object(plan, "REACH", reach):
                found = np.concatenate(of_long_words(nlp, texts))
                normal, with_long = ids_per_piece(nlp, lines), ids_per_piece(nlp, mixed)
                worst = max(ids_per_piece(nlp, [text]) / normal for text in KINDS.values())
            rows.append(
                {
                    "margin": margin,
                    "reach": reach,
                    "*r* by piece": f"{np.corrcoef(expected, found)[0, 1]:.3f}",
                    "difference": f"{np.abs(expected - found).mean():.2f}",
                    "mean difference": f"{(found - expected).mean():+.2f}",
                    "ids per piece, lines": f"{normal:.2f}",
                    "with long words": f"{with_long:.2f}",
                    "times as many": f"{with_long / normal:.2f}",
                    "worst text": f"{worst:.1f}",
                }
            )
    print_table(f"{len(expected)} pieces of long words in {len(texts)} texts", rows)


if __name__ == "__main__":
    main()
