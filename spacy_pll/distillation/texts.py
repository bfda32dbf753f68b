"""The texts of a training run, as wordpieces on the disk: read once, tokenized once, in batches of similar length."""

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from tokenizers import Tokenizer

from ..corpus.files import write_json
from ..corpus.readers import InputError, Record
from ..metrics import IntArray
from ..scoring.windows import Context, get_contexts
from ..scoring.wordpieces import Words, get_wordpieces

# One text in this many is never trained on, but kept to measure the agreement with the teacher.
HELD_OUT_ONE_IN = 50
MARKER = "texts.json"  # written last, so a folder that has it is complete
HELD_OUT = "held_out.jsonl"
# Rows of one batch differ in length by up to this many pieces, so that a text has other neighbours in each epoch.
LENGTH_NOISE = 4


@dataclass(frozen=True)
class TrainingTexts:
    """Contexts, with the special tokens around their pieces. The arrays are read from the disk when they are used."""

    ids: IntArray  # int32, of all contexts
    word: IntArray  # int32, parallel to `ids`: the word of each piece; -1 for a special token
    offsets: IntArray  # int64, shape (contexts + 1,): where each context begins and ends
    train: IntArray  # int64: the contexts to train on
    held_out: IntArray  # int64: the contexts to measure on

    def __getitem__(self, i: int) -> Context:
        """One of the contexts."""
        part = slice(int(self.offsets[i]), int(self.offsets[i + 1]))
        ids, word = np.array(self.ids[part]), np.array(self.word[part])
        own = np.flatnonzero(word >= 0)
        return Context(ids, int(own[0]), word[own], np.ones(len(own), dtype=bool), 0, 0)

    def lengths(self, contexts: IntArray) -> IntArray:
        """How many ids each of some contexts has."""
        return self.offsets[contexts + 1] - self.offsets[contexts]


def is_held_out(text: str) -> bool:
    """Whether a text is never trained on. It depends on the text alone, so equal texts are on the same side."""
    return zlib.crc32(text.encode("utf8", "surrogatepass")) % HELD_OUT_ONE_IN == 0


def write_texts(
    folder: Path,
    records: Iterable[Record],
    nlp: Language,
    tokenizer: Tokenizer,
    words: Words,
    max_length: int,
    identity: dict[str, Any],
) -> None:
    """Tokenize texts and write them to a folder, for `read_texts`.

    nlp (Language): Makes docs from texts.
    tokenizer (tokenizers.Tokenizer): The teacher's.
    words (str): The unit of words.
    max_length (int): The most ids in a context, special tokens included. A longer text is read in windows.
    identity (dict): What the result depends on, for `has_texts`.
    RAISES (InputError): There is nothing to train on, or nothing to measure on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARKER).unlink(missing_ok=True)
    lengths: list[int] = []
    held_out: list[bool] = []
    n = 0
    with (
        open(folder / "ids.bin", "wb") as ids_file,
        open(folder / "word.bin", "wb") as word_file,
        open(folder / HELD_OUT, "w", encoding="utf8") as texts_file,
    ):
        for record in records:
            n += 1
            doc = record.text if isinstance(record.text, Doc) else nlp.make_doc(record.text)
            out = is_held_out(doc.text)
            for context in _contexts(doc, tokenizer, words, max_length):
                word = np.full(len(context), -1, dtype=np.int32)
                word[context.first : context.first + len(context.word)] = context.word
                context.ids.astype(np.int32).tofile(ids_file)
                word.tofile(word_file)
                lengths.append(len(context))
                held_out.append(out)
            if out:
                texts_file.write(json.dumps({"text": doc.text}) + "\n")
    if not lengths or all(held_out):
        raise InputError(f"There is nothing to train on: of the {n} texts, none has a wordpiece and is not held out.")
    if not any(held_out):
        raise InputError(
            f"There is nothing to measure the agreement on: one text in {HELD_OUT_ONE_IN} is held out for that, and "
            f"{n} texts are too few. Give some hundred texts or more."
        )
    np.save(folder / "offsets.npy", np.cumsum([0, *lengths], dtype=np.int64))
    np.save(folder / "held_out.npy", np.array(held_out))
    write_json(folder / MARKER, identity)


def _contexts(doc: Doc, tokenizer: Tokenizer, words: Words, max_length: int) -> list[Context]:
    if not len(doc):
        return []
    span = doc[:]
    return get_contexts([span], [get_wordpieces(span, tokenizer, words)], None, max_length)[0]


def has_texts(folder: Path, identity: dict[str, Any]) -> bool:
    """Whether a folder has all texts of a corpus, from `write_texts` with the same `identity`."""
    path = folder / MARKER
    return path.is_file() and json.loads(path.read_text(encoding="utf8")) == identity


def read_texts(folder: Path) -> TrainingTexts:
    """The texts that `write_texts` wrote."""
    ids, word = (np.memmap(folder / f"{name}.bin", dtype=np.int32, mode="r") for name in ("ids", "word"))
    held_out = np.load(folder / "held_out.npy")
    offsets = np.load(folder / "offsets.npy")
    return TrainingTexts(ids, word, offsets, np.flatnonzero(~held_out), np.flatnonzero(held_out))


def epoch_batches(lengths: IntArray, batch_tokens: int, seed: tuple[int, ...], pads: bool = True) -> list[IntArray]:
    """All contexts once, in batches of contexts of similar length. The batches are in random order.

    lengths (int array, shape (contexts,)): How many ids each context has.
    batch_tokens (int): The most ids in a batch, padding included. A longer context is a batch of its own.
    seed (tuple[int, ...]): The order depends on this and the lengths alone.
    pads (bool): Whether contexts of different lengths may be in one batch.
    RETURNS (list[int array]): The numbers of the contexts of each batch.
    """
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0, LENGTH_NOISE if pads else 0.5, len(lengths))
    order = np.argsort(lengths + noise, kind="stable")
    ordered = lengths[order]
    batches, start = [], 0
    while start < len(order):
        end = start + 1
        longest = ordered[start]
        while end < len(order):
            longest = max(longest, ordered[end])
            if longest * (end + 1 - start) > batch_tokens or not pads and longest != ordered[start]:
                break
            end += 1
        batches.append(order[start:end])
        start = end
    return [batches[i] for i in rng.permutation(len(batches))]


def endless_batches(
    lengths: IntArray, batch_tokens: int, seed: int, pads: bool = True, first: int = 0
) -> Iterator[IntArray]:
    """The batches of one epoch after the other, each in another order.

    first (int): The number of the first batch. Those before it are left out.
    """
    epoch = 0
    while True:
        batches = epoch_batches(lengths, batch_tokens, (seed, epoch), pads)
        yield from batches[first:]
        first = max(0, first - len(batches))
        epoch += 1
