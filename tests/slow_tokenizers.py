"""Tiny tokenizers of the classes of transformers that give no positions, trained on the sentences of the tests."""

import json

import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from .conftest import ODD_PIECES, SENTENCES

TEXTS = [
    *SENTENCES,
    "L'Été, il a acheté des œufs.",
    "Tôi là sinh_viên trường đại_học.",
    "吾輩は猫である。名前はまだ無い。",
]
SPECIAL = {"FlaubertTokenizer": ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{i}>" for i in range(10))]}
SPECIAL["XLMTokenizer"] = SPECIAL["FlaubertTokenizer"]


def byte_pairs(texts=TEXTS):
    """Merges, and the pieces: those that end a word end in </w>."""
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=320, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.train_from_iterator([*texts, *map(str.lower, texts)] * 3, trainer)
    saved = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in saved["merges"]]
    return merges, list(saved["vocab"])


def make_slow_tokenizer(folder, name, **settings):
    """A tokenizer of the class `name`; for BertJapaneseTokenizer see its settings."""
    if name == "BertJapaneseTokenizer":
        characters = sorted(set("".join(TEXTS) + "".join(TEXTS).lower()) - {" "})
        words = ["吾輩", "猫", "名前", "##前", "##a", "##e", "##r", "##s", "the", "##か", "##る"]
        vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters[::2], *words]
        (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(vocabulary)), encoding="utf8")
        return hf.BertJapaneseTokenizer(str(folder / "vocab.txt"), **settings)
    merges, pieces = byte_pairs()
    if name in SPECIAL:
        vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys([*SPECIAL[name], *pieces]))}
        (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf8")
        (folder / "merges.txt").write_text("".join(f"{merge} 1\n" for merge in merges), encoding="utf8")
        return getattr(hf, name)(str(folder / "vocab.json"), str(folder / "merges.txt"), **settings)
    marked = (piece.removesuffix("</w>") if piece.endswith("</w>") else f"{piece}@@" for piece in pieces)
    (folder / "vocab.txt").write_text("".join(f"{piece} 1\n" for piece in marked), encoding="utf8")
    (folder / "bpe.codes").write_text("".join(f"{merge} 1\n" for merge in merges), encoding="utf8")
    return getattr(hf, name)(str(folder / "vocab.txt"), str(folder / "bpe.codes"), **settings)


def odd_texts(draw, n):
    """Texts of the tests' sentences, with whatever has broken aligners between their words."""
    words = [
        *" ".join(TEXTS).split(),
        *ODD_PIECES,
        '".',
        '",',
        "«",
        "»",
        "…",
        "“",
        "”",
        "’s",
        "½",
        "10\u00a0000",
        "--",
        "。",
    ]
    separators = [" ", " ", " ", "", "\u00a0"]
    return ["".join(draw.choice(words) + draw.choice(separators) for _ in range(draw.randint(0, 12))) for _ in range(n)]
