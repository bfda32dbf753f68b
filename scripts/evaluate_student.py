"""The numbers of docs/one-pass.md and of a student's card: approximate scores beside the exact ones of the teacher.

    python scripts/evaluate_student.py CORPUS BROWN.zip BLIMP_FOLDER EVENTSADAPT.csv [--scorer NAME=SCORER ...]
        [--exact builtin] [--pairs 100] [--texts 300] [--times FILE.json] [--output FILE.json] [--write FILE.md ...]

CORPUS is the training text; only lines that `pll distill` holds out are read. BROWN.zip is NLTK's archive of the Brown
corpus. BLIMP_FOLDER holds BLiMP, in 67 files. EVENTSADAPT.csv has the sentences of Kauf et al. (2022). SCORER is
as for `pll agree`, for example "mask_spacing 16=builtin,mask_spacing=16". Without --scorer, the built-in student is
measured. --times takes what `benchmarks/one_pass.py --output` wrote for the same scorers. Prints Markdown tables.
--write also puts them into pages (see `replace_tables`), such as docs/one-pass.md and the model card of the built-in
student. Needs the extra `[project]`.
"""

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from evaluate_beyond import CONTEXT, correlation, half_width, pair_outcomes, units, with_interval
from markdown_tables import print_table, replace_tables
from paper.data import lower_case_words
from spacy.language import Language
from spacy.tokens import Doc
from training_data import read_lines

from spacy_pll.distillation.texts import is_held_out
from spacy_pll.evaluation.minimal_pairs import read_pairs, sample_pairs
from spacy_pll.evaluation.published_texts import brown_paragraphs, join_words, read_brown, read_eventsadapt
from spacy_pll.language_model.student_card import StudentCard
from spacy_pll.pipelines import BUILTIN_NAME, get_scorer, make_pipeline, parse_settings

EXACT = "exact"
BLIMP, BROWN, PARAGRAPHS = "sentences of BLiMP", "sentences of Brown", "paragraphs of Brown (400 pieces)"


def agreement(docs: list[Doc], exact: list[Doc]) -> dict[str, str]:
    """How the scores of some texts agree with exact ones. Differences are in nats."""
    row = {}
    found, wanted = units(docs), units(exact)
    for unit in ("piece", "word"):
        row[f"r by {unit}"] = f"{correlation(found[unit], wanted[unit]):.4f}"
    per_piece = [np.array([doc._.pll / doc._.pll_pieces for doc in some]) for some in (docs, exact)]
    several = len(docs) > 20  # r of a few texts says nothing
    row["r by text, mean per piece"] = f"{correlation(*per_piece):.4f}" if several else ""
    row["r by text"] = f"{correlation(found['text'], wanted['text']):.4f}" if several else ""
    difference = found["piece"] - wanted["piece"]
    row["mean difference"] = f"{difference.mean():+.3f}"
    row["mean absolute difference"] = f"{np.abs(difference).mean():.3f}"
    return row


def blimp_table(outcomes: dict[str, np.ndarray], phenomena: list[str]) -> list[dict[str, str]]:
    """Accuracy in percent by phenomenon, and the change against the exact scores with its 95 % interval."""
    groups = defaultdict(list)
    for i, phenomenon in enumerate(phenomena):
        groups["overall"].append(i)
        groups[phenomenon].append(i)
    table = []
    for name in sorted(groups, key=lambda name: (name != "overall", name)):
        mine = {scorer: values[groups[name]] for scorer, values in outcomes.items()}
        row = {"phenomenon": name, EXACT: f"{mine[EXACT].mean():.1f}"}
        for scorer in list(mine)[1:]:
            change = mine[scorer] - mine[EXACT]
            row[scorer] = f"{mine[scorer].mean():.1f} ({change.mean():+.1f} ± {half_width(change):.1f})"
        table.append(row)
    return table


def summary_table(tables: dict[str, list[dict[str, str]]]) -> list[dict[str, str]]:
    """Accuracy, speed and agreement of each scorer: a choice of the other tables. Without times, no speed."""
    total = tables["blimp"][0]
    summary = []
    for name in list(total)[1:]:
        row = {"scores": name, "accuracy on BLiMP, in percent": total[name]}
        for kind, short in {BLIMP: "BLiMP", BROWN: "Brown", PARAGRAPHS: "paragraphs"}.items():
            for times in tables.get("time", []):
                if times["texts"].endswith(kind):
                    row[f"{short}: times as fast"] = "1" if name == EXACT else times[name].split(" (")[0]
            for one in tables["agreement"]:
                if one["texts"].endswith(kind) and name in (EXACT, one["scorer"]):
                    row[f"{short}: *r*"] = "1" if name == EXACT else one["r by piece"]
        summary.append(row)
    return summary


def training_table(card: StudentCard) -> list[dict[str, str]]:
    """The measurements on held-out pieces during the training of a student."""
    return [
        {
            "step": f"{one['step']:,}",
            "million pieces": f"{one['pieces'] / 1e6:.1f}",
            "r": f"{one['r']:.4f}",
            "mean difference": f"{one['mean_difference']:+.3f}",
            "mean absolute difference": f"{one['mean_absolute_difference']:.3f}",
        }
        for one in card.training["curve"]
    ]


def word_scores(nlp: Language, words: list[str]) -> np.ndarray:
    """The score of each word in "My word is _."."""
    position = CONTEXT.split().index("{}.")
    return np.array([doc[position]._.pll for doc in nlp.pipe([CONTEXT.format(word) for word in words])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("brown", type=Path)
    parser.add_argument("blimp", type=Path)
    parser.add_argument("eventsadapt", type=Path)
    parser.add_argument("--scorer", action="append", metavar="NAME=SCORER")
    parser.add_argument("--exact", default=BUILTIN_NAME, help="the exact scorer (default: the built-in model)")
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each paradigm of BLiMP")
    parser.add_argument("--texts", type=int, default=300, help="texts of each other kind")
    parser.add_argument("--times", type=Path, help="output of benchmarks/one_pass.py for the same scorers")
    parser.add_argument("--output", type=Path, help="write the tables to this .json file")
    parser.add_argument("--write", type=Path, nargs="+", default=[], metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    import wordfreq

    scorers = {}
    for item in [f"{EXACT}={args.exact}", *(args.scorer or [f"one pass={BUILTIN_NAME},one_pass"])]:
        name, scorer = item.split("=", 1)
        settings = parse_settings(scorer, keep_pieces=True)
        scorers[name] = make_pipeline(settings)

    brown = read_brown(args.brown)
    sentences = [join_words(words) for file in brown for words in file]
    events = read_eventsadapt(args.eventsadapt)
    pairs = sample_pairs(read_pairs(str(args.blimp)), args.pairs)
    tokenizer = get_scorer(scorers[EXACT]).model.tokenizer
    held_out = [line for line in read_lines(args.corpus) if is_held_out(line)]
    kinds = {
        "held-out lines": held_out[:: max(1, len(held_out) // args.texts)][: args.texts],
        BROWN: sentences[:: max(1, len(sentences) // args.texts)][: args.texts],
        PARAGRAPHS: brown_paragraphs(brown, max(1, args.texts // 50), tokenizer),
        "sentences of EventsAdapt": events,
        BLIMP: [sentence for pair in pairs for sentence in (pair.good, pair.bad)],
    }
    tables: dict[str, list[dict[str, str]]] = {"agreement": []}
    docs = {}
    for kind, texts in kinds.items():
        docs = {name: list(nlp.pipe(texts, batch_size=256)) for name, nlp in scorers.items()}
        for name in list(scorers)[1:]:
            row = {"texts": f"{len(texts):,} {kind}", "scorer": name}
            tables["agreement"].append(row | agreement(docs[name], docs[EXACT]))
            print(tables["agreement"][-1], flush=True)
        if texts is events:
            length = [doc._.pll_pieces for doc in docs[EXACT]]
            by_length = {name: with_interval(length, [-doc._.pll for doc in some]) for name, some in docs.items()}
    outcomes = {name: pair_outcomes(some) for name, some in docs.items()}
    tables["blimp"] = blimp_table(outcomes, [pair.phenomenon for pair in pairs])

    frequency = {word: wordfreq.word_frequency(word, "en") for text in events for word in lower_case_words(text)}
    words = sorted(word for word, f in frequency.items() if f)
    log_frequency = np.array([math.log(frequency[word]) for word in words])
    tables["findings"] = []
    for name, nlp in scorers.items():
        by_frequency = with_interval(log_frequency, word_scores(nlp, words))
        row = {"scorer": name, "negative score, length": by_length[name], "word score, log frequency": by_frequency}
        tables["findings"].append(row)

    if args.times:
        tables["time"] = json.loads(args.times.read_text())
    tables["summary"] = summary_table(tables)

    words_ = f"{len(words):,} words in {CONTEXT.format('_')!r}"
    titles = {
        "agreement": "Agreement with the exact scores of the teacher (differences in nats per piece)",
        "blimp": f"BLiMP accuracy in percent, {len(pairs):,} pairs (in brackets: change against exact scores)",
        "findings": f"Pearson's r: negative score and length in pieces of {len(events):,} sentences of EventsAdapt; "
        f"score and log frequency (wordfreq) of {words_}",
        "summary": "Summary (r: Pearson's correlation with the exact scores)",
    }
    for name, title in titles.items():
        print_table(title, tables[name])
    for name, nlp in scorers.items():
        if card := get_scorer(nlp).student_card():
            tables[f"training of {name}"] = training_table(card)
            print_table(f"Training of {name}: agreement on held-out pieces", tables[f"training of {name}"])
    for path in args.write:
        replace_tables(path, tables)
    if args.output:
        args.output.write_text(json.dumps(tables, indent=2) + "\n")


if __name__ == "__main__":
    main()
