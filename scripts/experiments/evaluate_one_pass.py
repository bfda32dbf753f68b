"""The tables of docs/one-pass.md: how close approximate scores are to exact ones, and what they change.

    python -m scripts.experiments.evaluate_one_pass DATA_FOLDER [--corpus FOLDER] [--pairs 10] [--items 2000]
        [--model FOLDER] [--label tuned] [--write docs/one-pass.md]
    python -m scripts.experiments.evaluate_one_pass TEXTS.txt --model FOLDER --label NAME [--write docs/one-pass.md]

DATA_FOLDER holds BLiMP, EventsAdapt and the Brown corpus: the project's folder `assets`, or what SPACY_PLL_DATA names.
The texts that are scored with each setting are sentences and paragraphs of Brown and, with --corpus, held-out lines of
the training text; or the lines of TEXTS.txt alone. Needs the group `project`. Prints Markdown tables; --write also
puts them into a page (see `replace_tables`), at "NAME, LABEL" if there is a label.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from scripts.builtin.data import is_held_out, read_lines
from scripts.docs_site.markdown_tables import Rows, print_table, replace_tables
from scripts.experiments.evaluate_beyond import (
    CONTEXT,
    correlation,
    log_frequencies,
    outcomes,
    percent,
    shown,
    timed,
    units,
)
from scripts.paper.correlation import paired_difference, pearson
from scripts.paper.published_texts import (
    BLIMP_PATH,
    BROWN_PATH,
    EVENTSADAPT_PATH,
    brown_paragraphs,
    data_sets_folder,
    eventsadapt_items,
    kauf_ivanova_sentences,
    read_brown,
    sample_pairs,
)
from spacy_pll import get_scorer, make_pipeline, read_pairs

EXACT = "exact"
SETTINGS: dict[str, dict[str, Any]] = {
    EXACT: {},
    **{f"`mask_margin = {margin}`": {"mask_margin": margin} for margin in (0, 1, 2, 4)},
    "`mask_spacing = 16`": {"mask_spacing": 16},
}
# A paragraph ends with the sentence that brings it to so many pieces.
PARAGRAPH_PIECES = 150


def sample(texts: list[str], n: int) -> list[str]:
    """The same `n` texts each time."""
    return random.Random(0).sample(texts, min(n, len(texts)))


def texts_to_score(args: argparse.Namespace, nlp: Language) -> Iterator[tuple[str, list[str]]]:
    """What the texts are, and the texts."""
    if args.data.is_file():
        yield "lines", [line for line in args.data.read_text(encoding="utf8").splitlines() if line.strip()]
        return
    brown = read_brown(data_sets_folder(args.data) / BROWN_PATH)
    yield "sentences", sample(kauf_ivanova_sentences(brown), args.lines)
    if args.corpus:
        yield "held-out lines", sample([line for line in read_lines(args.corpus) if is_held_out(line)], args.lines)
    tokenizer = get_scorer(nlp).model.load().tokenizer
    yield "paragraphs", brown_paragraphs(brown, args.paragraphs, tokenizer, PARAGRAPH_PIECES)


def text_means(docs: list[Doc]) -> np.ndarray:
    return np.array([doc._.pll / doc._.pll_pieces for doc in docs])


def agreement_table(nlps: dict[str, Language], texts: Iterator[tuple[str, list[str]]]) -> Rows:
    """How close the scores of each setting are to the exact ones, and how many ids the model reads for a piece."""
    table = []
    for kind, own in texts:
        scored = {name: timed(nlp, own) for name, nlp in nlps.items()}
        exact = units(scored[EXACT][0])
        n_pieces = len(exact["piece"])
        about = f"{len(own)} {kind} of {n_pieces / len(own):.0f} pieces"
        for name, (docs, _, ids) in scored.items():
            found = units(docs)
            is_exact = name == EXACT
            of_means = correlation(text_means(docs), text_means(scored[EXACT][0]))
            by_unit = {unit: correlation(found[unit], exact[unit]) for unit in ("piece", "word")}
            difference = np.abs(found["piece"] - exact["piece"]).mean()
            table.append(
                {
                    "texts": about if is_exact else "",
                    "setting": name,
                    **{f"*r* by {unit}": "1" if is_exact else f"{r:.4f}" for unit, r in by_unit.items()},
                    "*r* of text means": "1" if is_exact else f"{of_means:.4f}",
                    "mean absolute difference": "" if is_exact else f"{difference:.2f}",
                    "ids per piece": f"{ids / n_pieces:.1f}",
                }
            )
    return table


def results_table(nlps: dict[str, Language], folder: Path, n_pairs: int, n_items: int) -> Rows:
    """What comes out with each setting: accuracy on BLiMP in percent, and the two findings of Kauf & Ivanova (2023).

    n_items (int): The most sentences and the most words for the findings.
    """
    pairs = sample_pairs(read_pairs(str(folder / BLIMP_PATH)), n_pairs)
    pair_sentences = [sentence for pair in pairs for sentence in pair[:2]]
    items = eventsadapt_items(folder / EVENTSADAPT_PATH)
    sentences = list(items)
    frequency = log_frequencies(sentences)
    frequency = {word: frequency[word] for word in sample(list(frequency), n_items)}
    sentences = sample(sentences, n_items)
    position = CONTEXT.split().index("{}.")
    table = []
    for name, nlp in nlps.items():
        docs, _, _ = timed(nlp, pair_sentences)
        right = outcomes(docs)
        within_pairs = np.array([good._.pll - bad._.pll for good, bad in zip(docs[::2], docs[1::2])])
        if name == EXACT:
            exact_right, exact_within_pairs = right, within_pairs
        change = right - exact_right
        is_exact = name == EXACT
        scored, _, _ = timed(nlp, sentences)
        in_context, _, _ = timed(nlp, [CONTEXT.format(word) for word in frequency])
        words = [doc[position]._.pll for doc in in_context]
        table.append(
            {
                "setting": name,
                f"BLiMP, {len(pairs):,} pairs": f"{100 * right.mean():.1f}",
                "change": "" if is_exact else percent(paired_difference(change), "+"),
                "*r* within pairs": "1" if is_exact else f"{correlation(within_pairs, exact_within_pairs):.3f}",
                f"length, {len(sentences):,} sentences": shown(
                    pearson(
                        [doc._.pll_pieces for doc in scored],
                        [-doc._.pll for doc in scored],
                        [items[sentence] for sentence in sentences],
                    )
                ),
                f"frequency, {len(frequency):,} words": shown(pearson(list(frequency.values()), words)),
            }
        )
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of data sets, or a file with one text per line")
    parser.add_argument("--corpus", type=Path, help="folder of the training text, for held-out lines")
    parser.add_argument("--lines", type=int, default=300, help="number of sentences and of lines (default: 300)")
    parser.add_argument("--paragraphs", type=int, default=40, help="number of paragraphs (default: 40)")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of each of BLiMP's paradigms (default: 10)")
    parser.add_argument("--items", type=int, default=2000, help="most sentences, and most words, for the findings")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--label", help="follows the names of the tables, such as `tuned`")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    spacy.prefer_gpu()
    nlps = {
        name: make_pipeline(args.model, ["word_l2r"], keep_pieces=True, **settings)
        for name, settings in SETTINGS.items()
    }

    def show(name: str, title: str, table: Rows):
        print_table(title, table)
        if args.write:
            replace_tables(args.write, {f"{name}, {args.label}" if args.label else name: table})

    title = "Agreement with exact scores, `word_l2r` (differences in nats)"
    show("agreement", title, agreement_table(nlps, texts_to_score(args, nlps[EXACT])))
    if args.data.is_dir():
        table = results_table(nlps, data_sets_folder(args.data), args.pairs, args.items)
        show("results", "Accuracy on BLiMP, its change, and the two findings", table)


if __name__ == "__main__":
    main()
