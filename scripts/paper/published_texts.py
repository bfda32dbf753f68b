"""Data sets of the field, read from their published files: the Brown corpus, EventsAdapt, LibriSpeech's references.

BLiMP is read by `spacy_pll.read_pairs`. A row that cannot be read is an error that gives its file and line.
"""

import json
import random
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spacy_pll import Pair
from spacy_pll.corpus.readers import read_rows

from .errors import InputError

# BLiMP's column of phenomena.
PHENOMENON = "linguistics_term"
# Where each data set lies in a folder of data sets.
BLIMP_PATH = "blimp"
BROWN_PATH = "brown/brown.zip"
EVENTSADAPT_PATH = "eventsadapt/clean_EventsAdapt_SentenceSet.csv"
LIBRISPEECH_PATH = "librispeech/test-clean.am.json"

Sentence = list[str]  # its words and punctuation marks


def data_sets_folder(folder: str | Path) -> Path:
    """The folder of data sets in a folder that may hold tokenizers and training text as well.

    folder (str | Path): What the environment variable SPACY_PLL_DATA names, with the data sets in the subfolder
        `data`; or a folder that holds the data sets themselves, such as the project's `assets`.
    """
    inner = Path(folder) / "data"
    return inner if inner.is_dir() else Path(folder)


def by_paradigm(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs of each paradigm of BLiMP, in the order in which they come."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.paradigm, []).append(pair)
    return groups


def sample_pairs(pairs: Iterable[Pair], n: int) -> list[Pair]:
    """A sample of at most `n` pairs of each paradigm. The seed is its name, so the sample is the same each time."""
    groups = by_paradigm(pairs).items()
    return [pair for name, group in groups for pair in random.Random(name).sample(group, min(n, len(group)))]


def read_eventsadapt(path: str | Path) -> list[str]:
    """The sentences of EventsAdapt (Kauf et al. 2022), in the order of the file.

    path (str | Path): The file clean_EventsAdapt_SentenceSet.csv.
    RAISES (InputError): The file is missing, or a row cannot be read; the message gives the line.
    """
    path = _existing(path)
    return [_text_in(row, "Sentence", place) for place, row in read_rows(path)]


def eventsadapt_items(path: str | Path) -> dict[str, str]:
    """The item of each sentence of EventsAdapt. The four sentences of an item have the same words.

    RAISES (InputError): As for `read_eventsadapt`.
    """
    path = _existing(path)
    return {_text_in(row, "Sentence", place): _text_in(row, "ItemNum", place) for place, row in read_rows(path)}


def read_librispeech(path: str | Path) -> list[str]:
    """The references of LibriSpeech's test-clean, as sentences: capitalised, with a full stop (Salazar et al. 2020).

    path (str | Path): One JSON object, {utterance: {"ref": text}}.
    RAISES (InputError): The file is missing, or something in it is no reference; the message names the utterance.
    """
    path = _existing(path)
    try:
        utterances = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not isinstance(utterances, dict):
        raise InputError(f"{path}: a JSON {type(utterances).__name__}, where an object is expected, {{...}}.")
    return [f"{_text_in(row, 'ref', f'{path}, {name}').capitalize()}." for name, row in utterances.items()]


def read_brown(path: str | Path) -> list[list[Sentence]]:
    """The Brown corpus: its 500 files in the order of their names, their sentences, and the words of those.

    path (str | Path): NLTK's archive brown.zip. In its files a line is a sentence, and a word is "word/tag".
    RAISES (InputError): The archive is missing or damaged, or a word has no tag; the message gives file and line.
    """
    path = _existing(path)
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(name for name in archive.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
            files = [list(_brown_sentences(archive.read(name), f"{path}, {name}")) for name in names]
    except zipfile.BadZipFile as error:
        raise InputError(f"{path}: not a zip archive ({error}). Download it again.") from None
    if not files:
        raise InputError(f"{path}: it holds no file of the Brown corpus (brown/ca01 ...). Download it again.")
    return files


def _brown_sentences(content: bytes, name: str) -> Iterator[Sentence]:
    for number, line in enumerate(content.decode("utf8").split("\n"), 1):
        tokens = line.split()
        for token in tokens:
            if "/" not in token[1:]:
                raise InputError(f"{name}, line {number}: {token!r} is no word with a tag, such as 'the/at'.")
        if tokens:
            yield [token.rsplit("/", 1)[0] for token in tokens]


def join_words(words: Sequence[str]) -> str:
    """A sentence of the Brown corpus as it is printed: no space before marks or inside quotes and brackets."""
    text, after_opening = "", True
    for word in words:
        before = "" if after_opening or re.fullmatch(r"[,;:?!.)]|''", word) else " "
        # Word by word: in "locatin'" and the quotation mark '' after it, the mark is not the first two of three.
        text += before + word.replace("``", '"').replace("''", '"')
        after_opening = word in ("``", "(")
    return text


def kauf_ivanova_sentences(files: Sequence[Sequence[Sentence]]) -> list[str]:
    """The sentences of the Brown corpus that Kauf & Ivanova (2023) score: 26,997, with all but 21 of their 26,954.

    The authors publish their sentences, and not how they chose them. These rules were found by comparing: a sentence
    begins with a letter, has 5 to 20 words (tokens that begin with a letter), holds none of ( ) $ * / % & { } [ ],
    and closes the quotes it opens. A semicolon at its end becomes a full stop.
    """
    sentences = (re.sub(r";+$", ".", join_words(words)) for file in files for words in file if _is_plain(words))
    return [sentence[0].upper() + sentence[1:] for sentence in sentences]


def _is_plain(words: Sentence) -> bool:
    return (
        words[0][0].isalpha()
        and 5 <= sum(word[0].isalpha() for word in words) <= 20
        and not re.search(r"[()$*/%&{}\[\]]", "".join(words))
        and words.count("``") == words.count("''")
    )


def brown_paragraphs(files: Sequence[Sequence[Sentence]], n: int, tokenizer: Any, n_pieces: int = 400) -> list[str]:
    """Long texts from evenly spread files of the Brown corpus, each a run of sentences from the beginning of a file.

    n (int): How many. A file that is too short gives none.
    tokenizer (tokenizers.Tokenizer): Counts the wordpieces. It must not truncate.
    n_pieces (int): Each text ends with the sentence that brings it to this number of wordpieces.
    """
    texts = []
    for i in range(min(n, len(files))):
        sentences, pieces = [], 0
        for words in files[i * len(files) // min(n, len(files))]:
            sentences.append(join_words(words))
            pieces += len(tokenizer.encode(sentences[-1], add_special_tokens=False).ids)
            if pieces >= n_pieces:
                texts.append(" ".join(sentences))
                break
    return texts


def _existing(path: str | Path) -> Path:
    if not Path(path).is_file():
        raise InputError(f"There is no file {str(path)!r}.")
    return Path(path)


def _text_in(row: Any, key: str, place: str) -> str:
    value = row.get(key) if isinstance(row, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{place}: {key!r} must hold text; it is {value!r}. Download the file again.")
    return value
