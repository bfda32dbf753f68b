"""The numbers of docs/experiments.md: which figure finds a word that was replaced by another one.

    python -m scripts.experiments.find_replaced_words BROWN.zip [--sentences 1000] [--seed 0] [--model FOLDER]
        [--output FILE.json] [--write docs/experiments.md]

BROWN.zip is NLTK's archive of the Brown corpus. In each sentence, one word is replaced by another word of the corpus:
once by one of similar frequency, once by any. Prints Markdown tables of the area under the ROC curve; --write also puts
them into a page (see `replace_tables`).
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc

from scripts.docs_site.markdown_tables import print_table, replace_tables
from scripts.paper.published_texts import kauf_ivanova_sentences, read_brown
from spacy_pll import make_pipeline

N_NEIGHBOURS = 50  # words that stand nearest to a word when all are sorted by frequency
N_RESAMPLES = 1000

# The higher, the more suspicious. From surprisal (nats), pieces, rank and entropy (nats).
FIGURES: dict[str, Callable[..., np.ndarray]] = {
    "score": lambda surprisal, pieces, rank, entropy: surprisal,
    "score per piece": lambda surprisal, pieces, rank, entropy: surprisal / pieces,
    "rank": lambda surprisal, pieces, rank, entropy: rank,
    "surprisal − entropy": lambda surprisal, pieces, rank, entropy: surprisal - entropy,
    "surprisal / entropy": lambda surprisal, pieces, rank, entropy: surprisal / np.maximum(entropy, 1e-6),
}


class Vocabulary:
    """The words of a corpus, in lower case, sorted by frequency.

    words (Iterable[str]): Every word of the corpus, as often as it occurs.
    """

    def __init__(self, words: Sequence[str], seed: int):
        self.counts = Counter(words)
        by_name = sorted(self.counts)
        random.Random(seed).shuffle(by_name)  # so that equally frequent words are in no order
        self.words = sorted(by_name, key=lambda word: self.counts[word])
        self.place = {word: i for i, word in enumerate(self.words)}

    def any(self, word: str, draw: random.Random) -> str:
        """Another word. All words are equally probable, so most are rare."""
        return draw.choice([other for other in draw.sample(self.words, 2) if other != word])

    def similar(self, word: str, draw: random.Random) -> str:
        """One of the other words whose frequencies are nearest."""
        start = min(max(self.place[word] - N_NEIGHBOURS // 2, 0), len(self.words) - N_NEIGHBOURS - 1)
        return draw.choice([other for other in self.words[start : start + N_NEIGHBOURS + 1] if other != word])


@dataclass
class Scored:
    """The words of all sentences of one condition. Arrays of the shape (words,)."""

    sentence: np.ndarray  # its number
    replaced: np.ndarray  # bool
    figures: dict[str, np.ndarray]


def words_of(doc: Doc) -> list[int]:
    """The tokens that are words in lower case, so that most names and the first word stay as they are."""
    return [token.i for token in doc if token.text.isalpha() and token.text.islower() and len(token) > 1]


def replace_word(doc: Doc, target: int, other: str) -> Doc:
    """The same tokens with one other word."""
    words = [other if token.i == target else token.text for token in doc]
    return Doc(doc.vocab, words=words, spaces=[bool(token.whitespace_) for token in doc])


def score(nlp: Language, docs: list[Doc], targets: list[int]) -> Scored:
    """Score docs in which one word each was replaced. All words are compared, but not the punctuation marks."""
    rows = []
    for number, (doc, target) in enumerate(zip(nlp.pipe(docs, batch_size=64), targets, strict=True)):
        for token in doc:
            if token._.pll_pieces and token.text[0].isalpha():
                values = (-token._.pll, token._.pll_pieces, token._.pll_rank, token._.pll_entropy)
                rows.append((number, token.i == target, *values))
    columns = np.array(rows, dtype=float).T
    return Scored(columns[0].astype(int), columns[1] > 0, {name: f(*columns[2:]) for name, f in FIGURES.items()})


def pooled_area(values: np.ndarray, replaced: np.ndarray, weights: np.ndarray) -> float:
    """The share of pairs of a replaced word and another word in which the replaced one has the higher value.

    values (float array, shape (words,)): Sorted.
    weights (float array, shape (words,)): How often each word counts.
    """
    _, group = np.unique(values, return_inverse=True)
    yes, no = (np.bincount(group, weights * which) for which in (replaced, ~replaced))
    below = np.cumsum(no) - no
    return float((yes * (below + no / 2)).sum() / (yes.sum() * no.sum()))


def areas_in_sentences(values: np.ndarray, scored: Scored) -> np.ndarray:
    """For each sentence, the share of its other words whose value is lower than that of the replaced one."""
    replaced = np.zeros(scored.sentence.max() + 1)
    replaced[scored.sentence[scored.replaced]] = values[scored.replaced]
    other = ~scored.replaced
    difference = replaced[scored.sentence[other]] - values[other]
    won = np.bincount(scored.sentence[other], (difference > 0) + (difference == 0) / 2, len(replaced))
    return won / np.bincount(scored.sentence[other], minlength=len(replaced))


def interval(samples: Sequence[float] | np.ndarray, digits: int, sign: str = "") -> str:
    low, high = np.percentile(samples, [2.5, 97.5])
    return f"[{low:{sign}.{digits}f}, {high:{sign}.{digits}f}]"


def table_of(scored: Scored, seed: int) -> list[dict[str, str]]:
    """A row for each figure, with 95 % percentile bootstrap intervals over the sentences."""
    n = int(scored.sentence.max()) + 1
    draws = np.random.default_rng(seed).integers(0, n, (N_RESAMPLES, n))
    pooled: dict[str, list[float]] = {}
    mean: dict[str, list[float]] = {}
    for name, values in scored.figures.items():
        order = np.argsort(values)
        ordered, replaced, sentence = values[order], scored.replaced[order], scored.sentence[order]
        areas = areas_in_sentences(values, scored)
        pooled[name] = [
            pooled_area(ordered, replaced, weights[sentence])
            for weights in (np.ones(n), *(np.bincount(draw, minlength=n) for draw in draws))
        ]
        mean[name] = [areas.mean(), *areas[draws].mean(axis=1)]
    rows = []
    for name in scored.figures:
        row = {"figure": name}
        for heading, found in (("in its sentence", mean), ("in all sentences", pooled)):
            change = [one - other for one, other in zip(found[name], found["score"], strict=True)]
            row[heading] = f"{found[name][0]:.3f} {interval(found[name][1:], 3)}"
            same = name == "score"
            row[f"{heading}, minus score"] = "" if same else f"{change[0]:+.3f} {interval(change[1:], 3, '+')}"
        rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("brown", type=Path, help="NLTK's archive of the Brown corpus")
    parser.add_argument("--sentences", type=int, default=1000, help="how many sentences (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="for everything that is drawn (default: 0)")
    parser.add_argument("--model", help="folder or hub name (default: the built-in model)")
    parser.add_argument("--output", type=Path, help="write the tables to this .json file")
    parser.add_argument("--write", type=Path, metavar="FILE.md", help="put the tables there")
    args = parser.parse_args()
    nlp = make_pipeline(model=args.model, distribution=True)
    files = read_brown(args.brown)
    corpus = [word for file in files for sentence in file for word in sentence if word.isalpha() and word.islower()]
    vocabulary = Vocabulary(corpus, args.seed)
    draw = random.Random(args.seed)
    sentences = sorted(set(kauf_ivanova_sentences(files)))
    docs, targets = [], []
    for doc in map(nlp.make_doc, draw.sample(sentences, len(sentences))):
        words = [i for i in words_of(doc) if doc[i].text in vocabulary.place]
        if words and len(docs) < args.sentences:
            docs.append(doc)
            targets.append(draw.choice(words))
    results = {}
    for condition, choose in (("a word of similar frequency", vocabulary.similar), ("any word", vocabulary.any)):
        others = [choose(doc[target].text, draw) for doc, target in zip(docs, targets)]
        changed = [replace_word(*item) for item in zip(docs, targets, others)]
        scored = score(nlp, changed, targets)
        table = f"replaced by {condition}"
        results[table] = table_of(scored, args.seed)
        print_table(f"{table}: {len(docs):,} sentences, {len(scored.replaced):,} words", results[table])
        for doc in changed[:3]:
            print(f"\n    {doc.text}")
    if args.output:
        args.output.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf8")
    if args.write:
        replace_tables(args.write, results)


if __name__ == "__main__":
    main()
