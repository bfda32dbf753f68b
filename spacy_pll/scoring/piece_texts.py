"""Wordpieces as people read them: without the marks that tokenizers use for word boundaries."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# How the marks for the space before a word are written, and which of `tokenizers.decoders` turns them into spaces.
DECODERS = {"Ġ": "ByteLevel", "▁": "Metaspace"}


def space_marker(tokenizer: "Tokenizer") -> tuple[str | None, list[str]]:
    """How a tokenizer writes the space before a word: a key of `DECODERS`, or None; and the pieces of "a a"."""
    pieces = tokenizer.encode("a a", add_special_tokens=False).tokens
    return next((piece[:1] for piece in pieces[1:] if piece[:1] in DECODERS), None), pieces


class PieceText(NamedTuple):
    """A piece of the vocabulary, for people."""

    text: str
    begins_word: bool | None  # whether it stands at the beginning of a word; None if the tokenizer does not say


class PieceTexts(dict[int, PieceText]):
    """The readable text of each id of a tokenizer. Computed when it is looked up.

    WordPiece marks the pieces that continue a word ("##er"). Byte-level and SentencePiece tokenizers mark the space
    before a word ("Ġare", "▁are"). So there, a word without a space before it does not count as the beginning of a
    word. A piece that is only a space is shown as one, and part of a character as "�". Special tokens are shown as they
    are.

    tokenizer (Tokenizer): The backend of a fast tokenizer.
    """

    def __init__(self, tokenizer: "Tokenizer"):
        from tokenizers import decoders  # every `spacy.Language()` imports this module

        self.tokenizer = tokenizer
        self.continues: str = getattr(tokenizer.model, "continuing_subword_prefix", None) or ""
        self.ends: str = getattr(tokenizer.model, "end_of_word_suffix", None) or ""
        self.special = {i for i, token in tokenizer.get_added_tokens_decoder().items() if token.special}
        marker, two_words = space_marker(tokenizer)
        self.decoder: Any = marker and (tokenizer.decoder or getattr(decoders, DECODERS[marker])())
        self.before = two_words[-1:]  # stands before a piece, so that the decoder shows whether it begins a word

    def __missing__(self, i: int) -> PieceText:
        piece: str | None = self.tokenizer.id_to_token(i)
        if piece is None:  # some models have more embeddings than their tokenizer has pieces
            self[i] = PieceText(f"[id {i}]", None)
        elif i in self.special:
            self[i] = PieceText(piece, None)
        elif self.continues:
            self[i] = PieceText(piece.removeprefix(self.continues), not piece.startswith(self.continues))
        elif self.decoder:
            text = self.decoder.decode([*self.before, piece]).removeprefix(self.decoder.decode(self.before))
            self[i] = PieceText(text.removeprefix(" ") or text, text.startswith(" "))
        else:
            self[i] = PieceText(piece.removesuffix(self.ends), None)
        return self[i]
