"""The sentences that are timed: short (BLiMP), medium (Brown), long (Brown, joined to paragraphs of 400 wordpieces)."""

import json
import re
import zipfile
from itertools import islice
from pathlib import Path

PARAGRAPH = 400  # wordpieces


def blimp_sentences(folder: Path, n: int) -> list[str]:
    """n sentences, both of each pair, spread evenly over the paradigms; n must be at least twice their number."""
    paths = sorted(folder.glob("*.jsonl"))
    out = []
    for path in paths:
        with path.open(encoding="utf8") as file:
            for line in islice(file, n // (2 * len(paths)) + 1):
                pair = json.loads(line)
                out += [pair["sentence_good"], pair["sentence_bad"]]
    return out[:n]


def brown_files(path: Path) -> list[list[str]]:
    """The Brown corpus, from NLTK's archive: its files, their sentences."""
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(r"brown/c[a-r]\d\d", name))
        lines = [archive.read(name).decode("utf8").splitlines() for name in names]
    return [[_sentence(line) for line in file if line.split()] for file in lines]


def _sentence(line: str) -> str:
    words = " ".join(token.rsplit("/", 1)[0] for token in line.split())
    return re.sub(r" ([,;:?!.)]|'')", r"\1", words).replace("``", '"').replace("''", '"')


def brown_sentences(path: Path, n: int) -> list[str]:
    """n sentences, evenly spread."""
    sentences = [sentence for file in brown_files(path) for sentence in file]
    return sentences[:: max(1, len(sentences) // n)][:n]


def brown_paragraphs(path: Path, n: int, tokenizer) -> list[str]:
    """n texts from evenly spread files, each of consecutive sentences with at least `PARAGRAPH` pieces together."""
    files = brown_files(path)
    out = []
    for file in files[:: max(1, len(files) // n)][:n]:
        text = ""
        for sentence in file:
            text = f"{text} {sentence}".strip()
            if len(tokenizer.encode(text, add_special_tokens=False).ids) >= PARAGRAPH:
                break
        out.append(text)
    return out
