"""What the analyses read: the data sets of the paper, its example sentences, contexts and names of phenomena."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spacy_pll import Pair, read_pairs

from .errors import InputError
from .published_texts import (
    BROWN_PATH,
    EVENTSADAPT_PATH,
    LIBRISPEECH_PATH,
    PHENOMENON,
    eventsadapt_items,
    kauf_ivanova_sentences,
    read_brown,
    read_eventsadapt,
    read_librispeech,
    sample_pairs,
)

# K&I appendices B and E: the word stands in each of these. "{}" alone is no context.
CONTEXTS = {
    "my word": "My word is {}.",
    "dictionary": "I opened the dictionary and randomly picked a word. It was {}.",
    "none": "{}",
}
# The sentences of K&I's figures 2, 5, 6 and 17, from EventsAdapt. Wordpieces are kept for these alone.
EXAMPLES = "examples"
EXAMPLE_SENTENCES = [
    "The traveler lost the souvenir.",
    "The carnivore ate the steak.",
    "The hooligan wrecked the vehicle.",
]
# BLiMP's names of its phenomena, in the order and by the names of K&I's Table 3.
PHENOMENA = {
    "anaphor_agreement": "ANA. AGR",
    "argument_structure": "ARG STR.",
    "s-selection": "ARG STR.",
    "binding": "BINDING",
    "control_raising": "CTRL. RAIS.",
    "determiner_noun_agreement": "D-N AGR",
    "ellipsis": "ELLIPSIS",
    "filler_gap_dependency": "FILLER GAP",
    "irregular_forms": "IRREGULAR",
    "island_effects": "ISLAND",
    "npi_licensing": "NPI",
    "quantifiers": "QUANTIFIERS",
    "subject_verb_agreement": "S-V AGR",
}
# name: (reader, path below the folder of assets)
DATASETS = {
    "eventsadapt": (read_eventsadapt, EVENTSADAPT_PATH),
    "brown": (lambda path: kauf_ivanova_sentences(read_brown(path)), BROWN_PATH),
    "librispeech": (read_librispeech, LIBRISPEECH_PATH),
}
# The collection of BLiMP's sentences.
BLIMP = "blimp"


def read_dataset(name: str, assets: Path) -> list[str]:
    """The sentences of a data set.

    RAISES (InputError): There is no such data set, its file is missing, or a row of it cannot be read.
    """
    if name not in DATASETS:
        raise InputError(f"Unknown data set {name!r}. Known ones: {', '.join(DATASETS)}.")
    read, path = DATASETS[name]
    if not (assets / path).is_file():
        how = "Get it with: python -m spacy project run data"
        if name == "librispeech":
            how = (
                "It is optional: get it with `python -m spacy project assets --extra`, or leave librispeech out of the "
                "var that names the data sets."
            )
        raise InputError(f"There is no {assets / path}. {how}")
    return read(assets / path)


def read_items(name: str, assets: Path, texts: list[str]) -> list[str]:
    """The item of each distinct sentence of a data set. Where there are no items, it is the sentence itself."""
    items = eventsadapt_items(assets / EVENTSADAPT_PATH) if name == "eventsadapt" else {}
    return [items.get(text, text) for text in dict.fromkeys(texts)]


def read_blimp(folder: Path, per_paradigm: int) -> list[Pair]:
    """Minimal pairs of BLiMP, with the phenomena of K&I's Table 3. The sample is the same each time.

    folder (Path): BLiMP's data files.
    per_paradigm (int): How many of each paradigm's 1,000 pairs.
    RAISES (InputError): There are no pairs, or one of them cannot be read.
    """
    if not any(folder.glob("*.jsonl")):
        raise InputError(f"There is no .jsonl file in {folder}. Get them with: python -m spacy project run data")
    pairs = read_pairs(str(folder))  # without a column of paradigms, each file is one
    for pair in pairs:
        if pair.phenomenon not in PHENOMENA:
            raise InputError(
                f"{folder}, paradigm {pair.paradigm!r}: the phenomenon {pair.phenomenon!r} is none of BLiMP's: "
                f"{', '.join(PHENOMENA)}."
            )
    return [
        pair._replace(fields={**pair.fields, PHENOMENON: PHENOMENA[pair.phenomenon]})
        for pair in sample_pairs(pairs, per_paradigm)
    ]


def pair_outcomes(scores: Sequence[float]) -> np.ndarray:
    """The outcome of each pair: 1 where the good sentence scores higher, 0.5 on a tie, 0 otherwise. Shape (pairs,).

    scores (Sequence[float]): Of good and bad sentences in turns.
    RAISES (ValueError): A score is not a number.
    """
    good, bad = np.reshape(np.asarray(scores, dtype=np.float64), (-1, 2)).T
    if np.isnan([good, bad]).any():
        raise ValueError("A score is not a number (NaN), so its pair has no outcome.")
    return (good > bad) + (good == bad) / 2


def lower_case_words(sentence: str) -> list[str]:
    """The words that K&I count: lower-cased, split at white space, of letters alone, without the final full stop."""
    return [word for word in sentence.lower().rstrip(".").split() if word.isalpha()]
