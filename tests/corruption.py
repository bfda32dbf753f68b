"""N-best lists as a recogniser might give them, made from sentences by corrupting words; all from a seed."""

import random
from pathlib import Path

from scripts.paper.published_texts import join_words, read_brown


def brown_sentences(archive: Path, n: int, seed: int = 0, words: tuple[int, int] = (6, 14)) -> list[str]:
    """n sentences of the Brown corpus (NLTK's archive), of so many words, commas among them, and a full stop."""
    sentences = [
        join_words(tokens)
        for file in read_brown(archive)
        for tokens in file
        if words[0] < len(tokens) <= words[1] + 1
        and tokens[-1] == "."
        and all(token[0].isalpha() or token in (",", ".") for token in tokens)
    ]
    return random.Random(seed).sample(sentences, n)


def corrupt(words: list[str], vocabulary: list[str], rng: random.Random) -> list[str]:
    """One edit: two neighbours swapped, a word dropped, or a word replaced by another one."""
    words = list(words)
    i = rng.randrange(len(words))
    kind = rng.choice(["swap", "drop", "replace"])
    if kind == "swap" and i + 1 < len(words):
        words[i], words[i + 1] = words[i + 1], words[i]
    elif kind == "drop" and len(words) > 1:
        del words[i]
    else:
        words[i] = rng.choice(vocabulary)
    return words


def n_best_lists(sentences: list[str], n_hypotheses: int = 6, noise: float = 3.0, seed: int = 0) -> list[dict]:
    """An n-best list for each sentence, in the format of `pll rescore`.

    A hypothesis has 0 to 4 edits, and a first-pass score of -2 an edit plus Gaussian noise.
    noise (float): The standard deviation of the first pass; with more than some 2 it often prefers a wrong one.
    """
    rng = random.Random(seed)
    vocabulary = [word for sentence in sentences for word in sentence.split()]  # as frequent as they are
    lists = []
    for i, sentence in enumerate(sentences):
        hypotheses = {}
        while len(hypotheses) < n_hypotheses:
            words, edits = sentence.split(), rng.randint(0, 4)
            for _ in range(edits):
                words = corrupt(words, vocabulary, rng)
            hypotheses.setdefault(" ".join(words), round(-2.0 * edits + rng.gauss(0, noise), 3))
        rows = [{"text": text, "score": score} for text, score in hypotheses.items()]
        rows.sort(key=lambda row: -row["score"])
        lists.append({"id": f"brown-{i}", "hypotheses": rows, "reference": sentence})
    return lists
