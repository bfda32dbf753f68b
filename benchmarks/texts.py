"""The texts that are measured, and the folder in which they are found.

Texts are short (sentences of BLiMP), medium (sentences of Brown) or long (sentences of Brown, joined to paragraphs of
400 wordpieces).
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language

from spacy_pll import get_scorer, read_pairs

sys.path.append(str(Path(__file__).parents[1]))  # for `scripts`
from scripts.paper import published_texts  # noqa: E402

VARIABLE = "SPACY_PLL_DATA"
PARADIGMS = 67


class RequireGPU(argparse.Action):
    """A flag that makes all models be loaded on the GPU."""

    def __init__(self, option_strings, dest, **options):
        super().__init__(option_strings, dest, nargs=0, default=False, **options)

    def __call__(self, parser, namespace, values, option_string=None):
        spacy.require_gpu()
        setattr(namespace, self.dest, True)


def make_parser(description: str, gpu: bool = True) -> argparse.ArgumentParser:
    """A parser with the option `--data`, which all functions of this module take, and `--gpu`.

    description (str): The docstring of the script.
    gpu (bool): Whether it can measure on a GPU.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get(VARIABLE),
        required=VARIABLE not in os.environ,
        help="Folder with data/ (data sets) and tokenizers/. Or the project's `assets`, which has data sets only. "
        f"Default: the environment variable {VARIABLE}",
    )
    if gpu:
        parser.add_argument("--gpu", action=RequireGPU, help="Measure on the GPU")
    return parser


def count_anew(nlp: Language) -> Any:
    """Count the work of a pipeline from 0 on. RETURNS: The counts, as they are at any time."""
    counts = get_scorer(nlp).predictor.counts
    vars(counts).update(dict.fromkeys(vars(counts), 0))
    return counts


def find_tokenizer(data: Path, name: str) -> Path:
    """The folder of a tokenizer: DATA/tokenizers/NAME, or the folder NAME."""
    folder = data / "tokenizers" / name
    return folder if folder.is_dir() else Path(name)


def blimp_sentences(data: Path, n: int) -> list[str]:
    """n sentences, both of each pair, spread evenly over the paradigms; n must be at least twice their number."""
    pairs = read_pairs(str(published_texts.data_sets_folder(data) / published_texts.BLIMP_PATH))
    paradigms = published_texts.by_paradigm(pairs).values()
    chosen = [pair for group in paradigms for pair in group[: n // (2 * PARADIGMS) + 1]]
    return [sentence for pair in chosen for sentence in (pair.good, pair.bad)][:n]


def brown_files(data: Path) -> list[list[published_texts.Sentence]]:
    """The files of the Brown corpus."""
    return published_texts.read_brown(published_texts.data_sets_folder(data) / published_texts.BROWN_PATH)


def brown_sentences(data: Path, n: int | None = None) -> list[str]:
    """n sentences, evenly spread over the corpus, or all of them."""
    sentences = [published_texts.join_words(words) for file in brown_files(data) for words in file]
    return sentences if n is None else sentences[:: max(1, len(sentences) // n)][:n]


def brown_paragraphs(data: Path, n: int, tokenizer) -> list[str]:
    """n texts of at least 400 wordpieces, from evenly spread files."""
    return published_texts.brown_paragraphs(brown_files(data), n, tokenizer)
