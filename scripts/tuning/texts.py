"""What a model is tuned on: a sample of the texts, small enough to be kept in memory however large the corpus is.

The unit is the *passage*: neighbouring texts of a file that together have some 200 wordpieces. Drawn as a whole it is a
paragraph, and each of its texts can be drawn alone. A longer text is cut into passages of one text each.
"""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from tokenizers import Tokenizer

from scripts.paper.errors import InputError
from scripts.paper.passes import Context, Words, read

# The wordpieces of a passage, and what they are estimated from: the characters per wordpiece in so many texts.
PIECES, ESTIMATED_FROM = 200, 200
# The most passages that are kept for training: some 45 MB.
MAX_PASSAGES = 50_000
# The most passages that are kept to measure on; and without texts for that, one in so many is held out.
DEV_PASSAGES, HELD_OUT_ONE_IN = 400, 50

Passage = tuple[str, ...]


class Sample(NamedTuple):
    """Passages drawn from a corpus, each with the same probability."""

    train: list[Passage]
    dev: list[Passage]


def sample_passages(
    records: Iterable[Any], tokenizer: Tokenizer, seed: int, dev_records: Iterable[Any] | None = None
) -> Sample:
    """Read all texts, and keep some passages of them.

    records (Iterable[Any]): What `read_records` yields: each has a `text` and its `location`.
    dev_records (Optional[Iterable[Any]]): The texts to measure on. None: some passages are held out. Which ones
        depends on their text alone, so equal ones are on the same side.
    RAISES (InputError): There is nothing to train on, or nothing to measure on.
    """
    rng = np.random.default_rng(seed)
    train, dev = Reservoir(MAX_PASSAGES, rng), Reservoir(DEV_PASSAGES, rng)
    for passage in read_passages(records, tokenizer):
        (dev if dev_records is None and is_held_out(passage) else train).add(passage)
    for passage in read_passages(dev_records or (), tokenizer):
        dev.add(passage)
    if not train.kept:
        raise InputError("There is nothing to train on: no text has a word. Give other texts.")
    if not dev.kept:
        raise InputError(
            f"There is nothing to measure on: one passage of some {PIECES} wordpieces in {HELD_OUT_ONE_IN} is held out "
            f"for that, and {train.seen} passages are too few. Give more texts, or others to measure on: --dev-texts."
        )
    return Sample(train.kept, dev.kept)


class Reservoir:
    """At most `size` of the passages that were added, drawn at random (Vitter 1985, algorithm R)."""

    def __init__(self, size: int, rng: np.random.Generator):
        self.size, self.rng = size, rng
        self.kept: list[Passage] = []
        self.seen = 0

    def add(self, passage: Passage) -> None:
        self.seen += 1
        if len(self.kept) < self.size:
            self.kept.append(passage)
        elif (place := int(self.rng.integers(self.seen))) < self.size:
            self.kept[place] = passage


def is_held_out(passage: Passage) -> bool:
    """Whether a passage is never trained on."""
    return zlib.crc32("\n".join(passage).encode("utf8", "surrogatepass")) % HELD_OUT_ONE_IN == 0


def read_passages(records: Iterable[Any], tokenizer: Tokenizer) -> Iterator[Passage]:
    """Join neighbouring texts, and cut long ones. An empty text, and the end of a file, end a passage."""
    iterator = iter(records)
    first = list(islice(iterator, ESTIMATED_FROM))
    texts = [text for text in map(_text, first) if text]
    n_pieces = sum(len(encoding.ids) for encoding in tokenizer.encode_batch(texts, add_special_tokens=False))
    size = PIECES * sum(map(len, texts)) // max(1, n_pieces)
    passage: list[str] = []
    length, before = 0, ""
    for record in chain(first, iterator):
        file = record.location.rpartition(", ")[0]
        for text in cut(_text(record), max(1, size)) or [""]:
            if passage and (not text or file != before or length + len(text) > size):
                yield tuple(passage)
                passage, length = [], 0
            if text:
                passage.append(text)
                length += len(text)
        before = file
    if passage:
        yield tuple(passage)


def _text(record: Any) -> str:
    return (record.text.text if isinstance(record.text, Doc) else record.text).strip()


def cut(text: str, size: int) -> list[str]:
    """A text in parts of at most `size` characters, cut at spaces where there are any."""
    parts = []
    while len(text) > size:
        end = text.rfind(" ", 1, size + 1)
        end = size if end < 0 else end
        parts.append(text[:end].rstrip())
        text = text[end:].lstrip()
    return [*parts, text] if text else parts


class ContextMaker:
    """From a text to what a model reads at once."""

    def __init__(self, nlp: Language, tokenizer: Tokenizer, words: Words, max_length: int):
        self.nlp, self.tokenizer, self.words, self.max_length = nlp, tokenizer, words, max_length

    def __call__(self, text: str) -> list[Context]:
        """The windows of a text: one, if the model can read it as a whole; none, if it has no wordpiece."""
        return read(self.nlp.make_doc(text), self.tokenizer, self.words, self.max_length)
