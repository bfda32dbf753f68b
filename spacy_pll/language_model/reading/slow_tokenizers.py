"""From a tokenizer of transformers to one that gives the place of each piece in the text.

Those in `MARKS` give no positions, and may rewrite the text. `text_alignment` finds out where their pieces stand.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerBase

from ...errors import PLLError
from ...scoring.wordpieces import in_full
from .text_alignment import Offsets, align


def backend_of(tokenizer: PreTrainedTokenizerBase, source: str) -> Tokenizer:
    """What turns text into ids with their places, special tokens included: the whole text, and each time the same ids.
    A tokenizer may have been saved, or be in memory, as it was for training.

    RAISES (ValueError): The tokenizer does not give the place of a piece, and it is not known how to find it.
    """
    if type(tokenizer).__name__ in MARKS:
        return SlowTokenizer(tokenizer)  # type: ignore[return-value]  # it has all that is used
    if not tokenizer.is_fast:
        raise PLLError(
            f"The tokenizer of {source!r} ({type(tokenizer).__name__}) has no fast version, so it does not give the "
            "position of a piece in the text. Choose a model with a tokenizer.json, or with one of these tokenizers: "
            f"{', '.join(MARKS)}."
        )
    backend = in_full(tokenizer.backend_tokenizer)
    if getattr(backend.model, "dropout", None):
        backend.model.dropout = None  # with it, a text is divided in another way each time
    backend.encode_special_tokens = tokenizer.split_special_tokens  # its copies do not have this
    return backend


class Marks(NamedTuple):
    """How a tokenizer marks which pieces are one word."""

    continues: str = ""  # begins a piece that continues a word
    ends: str = ""  # ends the last piece of a word
    goes_on: str = ""  # ends each piece but the last of a word
    begins: str = ""  # begins the first piece of a word

    def text(self, piece: str) -> str:
        """A piece without its marks."""
        without_first = piece.removeprefix(self.continues).removeprefix(self.begins)
        return without_first.removesuffix(self.ends).removesuffix(self.goes_on)

    def begin(self, piece: str, before: str) -> bool:
        """Whether a piece begins a word, after another one."""
        if self.ends:
            return before.endswith(self.ends)
        if self.goes_on:
            return not before.endswith(self.goes_on)
        if self.begins:
            return piece.startswith(self.begins)
        return not self.continues or not piece.startswith(self.continues)


class Piece(str):
    """A piece that says of which text it is, which an unknown one does not show."""

    text: str


class TellsTexts:
    """A part of `BertJapaneseTokenizer` that divides words. Its pieces say of which text they are."""

    def __init__(self, divide: Any):
        self.divide = divide

    def tokenize(self, word: str) -> list[Piece]:
        pieces = [Piece(piece) for piece in self.divide.tokenize(word)]
        characters = unicodedata.normalize("NFKC", word)
        # A word of which a part is unknown is one unknown piece, or each unknown character is one.
        for piece, text in zip(pieces, [word] if len(pieces) == 1 else characters):
            if len(pieces) in (1, len(characters)):
                piece.text = text
        return pieces


MARKS = {
    "BertJapaneseTokenizer": Marks(continues="##"),
    "BertweetTokenizer": Marks(goes_on="@@"),
    "EsmTokenizer": Marks(),
    "FlaubertTokenizer": Marks(ends="</w>"),
    "PhobertTokenizer": Marks(goes_on="@@"),
    "XLMTokenizer": Marks(ends="</w>"),
}


@dataclass(frozen=True)
class Encoding:
    """A text as pieces: what is needed here of `tokenizers.Encoding`."""

    ids: list[int]
    tokens: list[str]
    offsets: list[Offsets]
    special_tokens_mask: list[int]
    word_ids: list[int | None]

    def __len__(self) -> int:
        return len(self.ids)


class SlowTokenizer:
    """A tokenizer written in Python, and where its pieces stand: what is needed here of `tokenizers.Tokenizer`.

    tokenizer (PreTrainedTokenizerBase): One of the classes in `MARKS`.
    """

    decoder = None

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        self.tokenizer = copy(tokenizer)
        is_sentencepiece = bool(getattr(tokenizer, "spm_file", None))
        if hasattr(tokenizer, "subword_tokenizer") and not is_sentencepiece:
            self.tokenizer.subword_tokenizer = TellsTexts(tokenizer.subword_tokenizer)
        if is_sentencepiece:
            vars(tokenizer.subword_tokenizer.sp_model).update(_enable_sampling=False)  # the same as BPE's dropout
        if hasattr(tokenizer, "merges_file"):
            # BERTweet's and PhoBERT's: to save them, transformers copies files, which may be gone by then, or writes
            # others that it reads as something else (5.23).
            names = tokenizer.vocab_files_names
            contents = [
                (names[name], Path(getattr(tokenizer, name)).read_bytes()) for name in ("vocab_file", "merges_file")
            ]
            vars(tokenizer).update(save_vocabulary=partial(write_files, contents))
        self.marks = Marks(begins="\u2581") if is_sentencepiece else MARKS[type(tokenizer).__name__]
        self.model = SimpleNamespace(
            continuing_subword_prefix=self.marks.continues, end_of_word_suffix=self.marks.ends or self.marks.goes_on
        )
        around: list[int] = tokenizer.build_inputs_with_special_tokens([-1])
        of_text = around.index(-1)
        self.before, self.after = around[:of_text], around[of_text + 1 :]

    def encode(self, text: str, add_special_tokens: bool = True) -> Encoding:
        """RAISES (ValueError): It is not certain where a piece stands in the text."""
        pieces: list[str] = self.tokenizer.tokenize(text)
        try:
            offsets = align(text, [getattr(piece, "text", self.marks.text(piece)) for piece in pieces])
        except ValueError as error:
            raise PLLError(
                f"The tokenizer of the model, a {type(self.tokenizer).__name__}, does not say which pieces stand where "
                f"in a text, and for {text[:100]!r} this cannot be found out: {error}. Change the text, or choose a "
                "model with a tokenizer.json."
            ) from None
        word_ids = list(accumulate(map(self.marks.begin, pieces, ["", *pieces]), initial=0))[1:]
        ids: list[int] = self.tokenizer.convert_tokens_to_ids(pieces)  # type: ignore[assignment]
        before_text, after_text = (self.before, self.after) if add_special_tokens else ([], [])
        n, m = len(before_text), len(after_text)
        special: list[str] = self.tokenizer.convert_ids_to_tokens([*before_text, *after_text])  # type: ignore[assignment]
        return Encoding(
            [*before_text, *ids, *after_text],
            [*special[:n], *pieces, *special[n:]],
            [(0, 0)] * n + offsets + [(0, 0)] * m,
            [1] * n + [0] * len(ids) + [1] * m,
            [None] * n + word_ids + [None] * m,
        )

    def encode_batch(self, texts: Iterable[str], add_special_tokens: bool = True) -> list[Encoding]:
        return [self.encode(text, add_special_tokens) for text in texts]

    encode_batch_fast = encode_batch

    def id_to_token(self, i: int) -> str | None:
        return self.tokenizer.convert_ids_to_tokens(i)  # type: ignore[return-value]

    def get_vocab(self) -> dict[str, int]:
        return self.tokenizer.get_vocab()

    def get_vocab_size(self) -> int:
        return len(self.tokenizer)

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        return self.tokenizer.added_tokens_decoder


def write_files(
    files: Sequence[tuple[str, bytes]], save_directory: str, filename_prefix: str | None = None
) -> tuple[str, ...]:
    """Write the files of a tokenizer as they were read, in the place of its own `save_vocabulary`."""
    paths = [Path(save_directory, f"{filename_prefix}-{name}" if filename_prefix else name) for name, _ in files]
    for path, (_, content) in zip(paths, files):
        path.write_bytes(content)
    return tuple(map(str, paths))
