"""The data sets, read row by row; a malformed row is an error that gives its file and line."""

import json
import random
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spacy_pll.corpus.readers import InputError, read_csv_rows, read_json_rows

# K&I appendices B and E: the word stands in each of these. "{}" alone is no context.
CONTEXTS = {
    "my word": "My word is {}.",
    "dictionary": "I opened the dictionary and randomly picked a word. It was {}.",
    "none": "{}",
}
# Those of K&I's figures 2, 5, 6 and 17; they are in EventsAdapt. Wordpieces are kept for these alone.
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


class Pair(NamedTuple):
    """A minimal pair of BLiMP."""

    good: str
    bad: str
    phenomenon: str  # as in K&I's Table 3
    paradigm: str


def _filled(row: dict, key: str, place: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}: {key!r} must hold text; it is {value!r}. Get the file anew: spacy project assets.")
    return value


def _open(path: Path):
    if not path.is_file():
        raise InputError(f"There is no {path}. Get it with: python -m spacy project run data")
    return path.open("rb")


def read_eventsadapt(path: Path) -> list[str]:
    """The sentences of EventsAdapt (Kauf et al. 2022), in the order of the file."""
    with _open(path) as file:
        return [_filled(row, "Sentence", place) for place, row in read_csv_rows(file, str(path), ",")]


def read_librispeech(path: Path) -> list[str]:
    """The references of LibriSpeech's test-clean, as sentences: capitalised, with a full stop (Salazar et al. 2020).

    path (Path): One JSON object, {utterance: {"ref": text}}.
    """
    with _open(path) as file:
        try:
            utterances = json.load(file)
        except ValueError as error:
            raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(utterances, dict):
        raise InputError(f"{path}: a JSON {type(utterances).__name__}, where an object is expected, {{...}}.")
    return [f"{_filled(row, 'ref', f'{path}, {name}').capitalize()}." for name, row in utterances.items()]


def read_brown(path: Path) -> list[str]:
    """Sentences of the Brown corpus, from NLTK's archive: 26,997, all but 21 of K&I's 26,954 among them.

    K&I publish their sentences, not how they were chosen; these rules were found by comparing. A
    sentence begins with a letter, has 5 to 20 words (tokens that begin with a letter), holds
    none of ( ) $ * / % & { } [ ], and closes the quotes it opens.
    """
    with _open(path) as file:
        try:
            archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile as error:
            raise InputError(f"{path}: not a zip archive ({error}). Get it anew: spacy project assets.") from None
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
        if not names:
            raise InputError(f"{path}: no text in it (brown/ca01 ...). Get it anew: spacy project assets.")
        sentences = [tokens for name in names for tokens in _brown_sentences(archive.read(name), f"{path}, {name}")]
    return [_joined(tokens) for tokens in sentences if _is_plain(tokens)]


def _brown_sentences(content: bytes, name: str) -> Iterator[list[str]]:
    """A line is a sentence, a token is "word/tag"."""
    for number, line in enumerate(content.decode("utf8").split("\n"), 1):
        tokens = line.split()
        for token in tokens:
            if "/" not in token[1:]:
                raise InputError(f"{name}, line {number}: {token!r} is no word with a tag, such as 'the/at'.")
        if tokens:
            yield [token.rsplit("/", 1)[0] for token in tokens]


def _is_plain(tokens: list[str]) -> bool:
    n_words = sum(token[0].isalpha() for token in tokens)
    return (
        tokens[0][0].isalpha()
        and 5 <= n_words <= 20
        and not re.search(r"[()$*/%&{}\[\]]", "".join(tokens))
        and tokens.count("``") == tokens.count("''")
    )


def _joined(tokens: list[str]) -> str:
    """The sentence as it is written: no space around marks, a full stop for a semicolon at its end."""
    text = ""
    for token in tokens:
        after_opening = text.endswith("“")
        closes = re.fullmatch(r"[,;:?!.]|''", token)
        text += ("" if not text or closes or after_opening else " ") + {"``": "“", "''": "”"}.get(token, token)
    text = re.sub(r";+$", ".", text)
    return text[0].upper() + text[1:].replace("“", '"').replace("”", '"')


def lower_case_words(sentence: str) -> list[str]:
    """The words that K&I count: lower-cased, split at white space, of letters alone; the final full stop is off."""
    return [word for word in sentence.lower().rstrip(".").split() if word.isalpha()]


def read_blimp(folder: Path, per_paradigm: int) -> list[Pair]:
    """Minimal pairs of BLiMP, the same each time: drawn per paradigm with a seed that is the paradigm's name.

    per_paradigm (int): How many of each paradigm's 1,000 pairs.
    """
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise InputError(f"There is no .jsonl file in {folder}. Get them with: python -m spacy project run data")
    pairs = []
    for path in paths:
        with path.open("rb") as file:
            rows = [_pair(row, place, path.stem) for place, row in read_json_rows(file, str(path))]
        pairs += random.Random(path.stem).sample(rows, min(per_paradigm, len(rows)))
    return pairs


def _pair(row: dict, place: str, paradigm: str) -> Pair:
    good, bad, term = (_filled(row, key, place) for key in ("sentence_good", "sentence_bad", "linguistics_term"))
    if term not in PHENOMENA:
        raise InputError(f"{place}: the phenomenon {term!r} is none of BLiMP's: {', '.join(PHENOMENA)}.")
    return Pair(good, bad, PHENOMENA[term], paradigm)


# name: (reader, path below the folder of assets)
DATASETS = {
    "eventsadapt": (read_eventsadapt, "eventsadapt/clean_EventsAdapt_SentenceSet.csv"),
    "brown": (read_brown, "brown/brown.zip"),
    "librispeech": (read_librispeech, "librispeech/test-clean.am.json"),
}
BLIMP = "blimp"


def read_dataset(name: str, assets: Path) -> list[str]:
    """The sentences of a data set.

    RAISES (InputError): There is no such data set, its file is missing, or a row of it is malformed.
    """
    if name not in DATASETS:
        raise InputError(f"Unknown data set {name!r}. Known ones: {', '.join(DATASETS)}.")
    reader, path = DATASETS[name]
    if name == "librispeech" and not (assets / path).is_file():
        raise InputError(
            f"There is no {assets / path}. It is optional: get it with `python -m spacy project assets --extra`, "
            "or leave librispeech out of the var that names the data sets."
        )
    return reader(assets / path)
