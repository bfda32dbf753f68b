"""The training text of the built-in model: lines, vocabulary, held-out lines, batches and prediction targets.

    python -m scripts.builtin.data CORPUS OUTPUT

writes the lines that are not held out to the file OUTPUT/train.txt.

Needs torch, transformers, tokenizers and numpy, but not spaCy: it runs where only those are installed.
"""

import lzma
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
MAX_PIECES = 256  # the longest context, [CLS] and [SEP] included: the corpus has hardly a longer line
HELD_OUT_ONE_IN = 1000
# In a line with few masks, the rate of masks is this number times the square of a random one.
MOST_OF_FEW = 0.3


# The wordpieces of some lines: their ids in one flat array, and the offsets at which lines begin and end.
Pieces = tuple[np.ndarray, np.ndarray]


def read_lines(folder: Path) -> Iterator[str]:
    """The lines of the corpus that are not empty, files in the order of their names."""
    files = sorted(p for p in folder.glob("*") if p.name.endswith((".txt", ".txt.xz")))
    if not files:
        raise SystemExit(f"No .txt or .txt.xz file in {folder}: give the folder that holds the training text.")
    for path in files:
        opener = lzma.open if path.suffix == ".xz" else open
        with opener(path, "rt", encoding="utf8") as file:
            for line in file:
                if line.strip():
                    yield line.strip()


def is_held_out(line: str) -> bool:
    """Whether a line is one of the 0.1 % that are never trained on. The choice depends on its text alone."""
    return zlib.crc32(line.encode("utf8")) % HELD_OUT_ONE_IN == 0


# How punctuation is written that is made for print, which the training text has in plain forms: see `normalizer`.
PLAIN_FORMS = {
    "'": "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u00b4\uff07",  # quotation marks, apostrophes, primes
    '"': "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u301d\u301e\uff02",
    "...": "\u2026",
    "..": "\u2025",
    "-": "\u2010\u2011\u2012\u2212\ufe63\uff0d",  # hyphens, the dash between digits, the minus sign
    "\u2014": "\u2015\u2e3a",  # dashes
    "ff": "\ufb00",
    "fi": "\ufb01",
    "fl": "\ufb02",
    "ffi": "\ufb03",
    "ffl": "\ufb04",
}


def normalizer() -> normalizers.Normalizer:
    """BERT's, after composed accents and plain forms: no text of ASCII characters is read in another way by these two.

    The training text has straight quotation marks, three dots for an ellipsis, and composed accents. Without this, a
    typographic apostrophe would be unknown, and an "e" with a combining accent would make its word so.
    """
    plain = [normalizers.Replace(Regex(f"[{written}]"), form) for form, written in PLAIN_FORMS.items()]
    return normalizers.Sequence(
        [normalizers.NFC(), *plain, normalizers.BertNormalizer(lowercase=False, strip_accents=False)]
    )


def train_tokenizer(lines: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a cased WordPiece vocabulary, with BERT's normalisation and pre-tokens."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, limit_alphabet=200, special_tokens=list(SPECIAL.values()), show_progress=False
    )
    tokenizer.train_from_iterator(lines, trainer)
    cls, sep = (tokenizer.token_to_id(piece) for piece in ("[CLS]", "[SEP]"))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_PIECES, **SPECIAL)


def prepare(corpus: Path, output: Path, vocab_size: int) -> tuple[PreTrainedTokenizerFast, Pieces, Pieces]:
    """The tokenizer, the training pieces and the held-out pieces. Those that an earlier run saved are used again."""
    pieces_path = output / "pieces.npz"
    if not pieces_path.exists():
        if (output / "tokenizer").exists():
            tokenizer = PreTrainedTokenizerFast.from_pretrained(output / "tokenizer")
        else:
            tokenizer = train_tokenizer((line for line in read_lines(corpus) if not is_held_out(line)), vocab_size)
        arrays = {}
        for part, held_out in (("train", False), ("held_out", True)):
            lines = [line for line in read_lines(corpus) if is_held_out(line) == held_out]
            rows = []
            for start in range(0, len(lines), 20_000):
                batch = tokenizer(lines[start : start + 20_000], truncation=True)["input_ids"]
                rows += [np.asarray(ids, dtype=np.uint16) for ids in batch]
            arrays[part] = np.concatenate(rows)
            arrays[part + "_offsets"] = np.cumsum([0] + [len(row) for row in rows])
        tokenizer.save_pretrained(output / "tokenizer")
        np.savez(pieces_path, **arrays)  # type: ignore[arg-type]  # numpy takes none of these for an option
    tokenizer = PreTrainedTokenizerFast.from_pretrained(output / "tokenizer")
    data = np.load(pieces_path)
    return tokenizer, (data["train"], data["train_offsets"]), (data["held_out"], data["held_out_offsets"])


def pack(ids: np.ndarray, offsets: np.ndarray, length: int) -> np.ndarray:
    """The offsets of contexts, each of as many consecutive whole lines as fit into `length` pieces.

    Each line keeps its own [CLS] and [SEP], so that the model knows where it ends.
    """
    out = [0]
    for end, following in zip(offsets[1:-1], offsets[2:]):
        if following - out[-1] > length:
            out.append(end)
    return np.array([*out, offsets[-1]])


def epoch_batches(offsets: np.ndarray, batch_pieces: int, seed: tuple) -> list[np.ndarray]:
    """All lines once, in batches of lines of similar length. The batches are in random order."""
    rng = np.random.default_rng(seed)
    lengths = np.diff(offsets)
    # Sorting by length plus noise keeps padding low, and gives a line other neighbours in each epoch.
    order = np.argsort(lengths + rng.uniform(0, 4, len(lengths)), kind="stable")
    batches, start = [], 0
    while start < len(order):
        end = start + max(1, batch_pieces // (lengths[order[start]] + 4))
        while end > start + 1 and lengths[order[start:end]].max() * len(order[start:end]) > batch_pieces:
            end -= 1
        batches.append(order[start:end])
        start = end
    return [batches[i] for i in rng.permutation(len(batches))]


def collate(ids: np.ndarray, offsets: np.ndarray, rows: np.ndarray, pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The padded ids of some lines, and a mask that is False in the padding. Shape of both: (rows, longest)."""
    lengths = offsets[rows + 1] - offsets[rows]
    out = np.full((len(rows), lengths.max()), pad, dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : lengths[i]] = ids[offsets[row] : offsets[row + 1]]
    return torch.from_numpy(out), torch.from_numpy(np.arange(out.shape[1])[None] < lengths[:, None])


def choose_targets(
    ids: torch.Tensor,
    n_special: int,
    rate: float,
    seed: int,
    begins_word: torch.Tensor,
    word_share: float = 0.0,
    few_share: float = 0.0,
) -> torch.Tensor:
    """A mask of the pieces to predict: a random share `rate` of those that are not special.

    In a random `word_share` of the lines, words are chosen in place of pieces, at the same rate, and masked as
    `word_l2r` masks them: a random piece of the word, and those behind it. In a random `few_share` of the lines, the
    rate is from 0 to `MOST_OF_FEW`, mostly near 0, and one piece or word at least is chosen: scoring masks one alone.

    ids (int tensor, shape (lines, longest)): The padded ids.
    begins_word (bool tensor, shape (vocabulary,)): Whether a piece begins a word. Special pieces and padding do.
    RETURNS (bool tensor, shape (lines, longest)): The mask.
    """
    n, length = ids.shape
    generator = torch.Generator().manual_seed(seed)
    few, by_word, square_root = torch.rand(3, n, 1, generator=generator)
    few, by_word = few < few_share, by_word < word_share
    rates = torch.full((n, 1), rate).where(~few, MOST_OF_FEW * square_root**2)
    # Each word has a number of its own in the batch, and a special piece begins each line.
    word = begins_word[ids].flatten().cumsum(0).view(n, length) - 1
    sizes = torch.bincount(word.flatten())
    place = torch.arange(n * length).view(n, length) - (sizes.cumsum(0) - sizes)[word]
    of_word, first = torch.rand(2, len(sizes), generator=generator)
    chance = torch.rand(n, length, generator=generator).where(~by_word, of_word[word]).masked_fill(ids < n_special, 2)
    chosen = (chance < rates) | (few & (chance == chance.min(dim=1, keepdim=True).values))
    hidden = ~by_word | (place >= (first * sizes).long()[word])
    return chosen & hidden & (ids >= n_special)


def main():
    output = Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    with open(output / "train.txt", "w", encoding="utf8") as file:
        file.writelines(f"{line}\n" for line in read_lines(Path(sys.argv[1])) if not is_held_out(line))


if __name__ == "__main__":
    main()
