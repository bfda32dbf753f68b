"""What is read for some docs, and what about it is worth a warning, each once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from spacy.tokens import Doc

from .arrays import BoolArray, IntArray
from .language_model.protocol import LanguageModel, Loaded
from .metrics import Metric, looks_at_words
from .scoring.windows import Contexts
from .scoring.wordpieces import DocTexts, Wordpieces
from .user_warnings import warn_user

# Pieces of the longest word that is taken for one.
LONGEST_WORD = 30
# How many unknown pieces with a character are many, and how many such characters are warned of at most.
MANY, MOST_CHARACTERS = 10, 10


@dataclass(frozen=True)
class TokenizedDocs:
    """The docs of a batch, with what is read for them."""

    read: DocTexts
    first_pieces: IntArray  # int, shape (docs + 1,): the number of each doc's first piece among all pieces
    wordpieces: Wordpieces  # of all spans
    scored: BoolArray  # bool, shape (tokens,)
    contexts: Contexts


@dataclass
class TextWarnings:
    """The warnings of a predictor."""

    warned: set[str] = field(default_factory=set)  # what has been warned of
    unknown: Counter[str] = field(default_factory=Counter)  # how many unknown pieces have had a character

    def of_left_out(self, batch: TokenizedDocs, left_out: BoolArray) -> None:
        """Warn where tokens that should be scored lie in no span. Those of white space have no score to lose."""
        places = np.flatnonzero(left_out)
        owner = np.searchsorted(batch.read.first_tokens, places, side="right") - 1
        for d in np.unique(owner).tolist() if "left out" not in self.warned else ():
            doc, first = batch.read.docs[d], int(batch.read.first_tokens[d])
            tokens = [doc[i - first] for i in places[owner == d].tolist() if not doc[i - first].is_space]
            if not tokens:
                continue
            self._once(
                "left out",
                f"{len(tokens)} of {len(doc)} tokens of the text {doc.text[:50]!r} lie in none of the spans that are "
                f"read, such as {tokens[0].text[:50]!r} at token {tokens[0].i}. They have no score, and the text's "
                "score is the sum of the others. This may be so in other texts, too. Set `spans` (in a config, "
                "get_spans) to one whose spans hold every token, such as sents; to choose what is scored, set "
                "`targets`.",
            )

    def of_language(self, docs: list[Doc], model: LanguageModel) -> None:
        """Warn where the model was trained on another language than the docs' one."""
        title, _, known = model.describe()
        others = {doc.lang_ for doc in docs} - {known, "xx", ""} if known else None
        if others:
            self._once(
                "language",
                f"The language of the pipeline is {min(others)!r}, and that of {title} is {known!r}. The scores of "
                "texts in other languages mean nothing. Give a `model` that was trained on this language, or on many, "
                "such as xlm-roberta-base.",
            )

    def of_unknown(self, batch: TokenizedDocs, model: LanguageModel, loaded: Loaded) -> None:
        """Warn where more than a tenth of the pieces of some docs are unknown to the tokenizer, and of each character
        that is so again and again, in however many docs.
        """
        pieces, title = batch.wordpieces, model.describe().title
        unknown = np.flatnonzero(pieces.ids == loaded.unknown_id)
        docs = (np.searchsorted(batch.first_pieces, unknown, side="right") - 1).tolist()
        places = zip(docs, pieces.start[unknown].tolist(), pieces.end[unknown].tolist())
        texts = [batch.read.texts[d][start:end] for d, start, end in places]
        if len(texts) > len(pieces) / 10:
            self._once(
                "unknown",
                f"{len(texts)} of {len(pieces)} wordpieces are unknown to the tokenizer of {title}, such as "
                f"{texts[0][:50]!r}. Their scores say nothing about the text. Give a `model` that was trained on text "
                "like this.",
            )
        for character in (character for text in texts for character in sorted({*text})):
            self.unknown[character] += 1
            named = sum(len(kind) == 1 for kind in self.warned)
            if self.unknown[character] != MANY or "unknown" in self.warned or named == MOST_CHARACTERS:
                continue
            if loaded.unknown_id in loaded.tokenizer.encode(character, add_special_tokens=False).ids:
                self._once(
                    character,
                    f"The character {character!r} (U+{ord(character):04X}) is unknown to the tokenizer of {title}, and "
                    f"{MANY} wordpieces have had it so far. The scores of such pieces, and of those beside them, say "
                    "little about the text. Write another character in its place, leave such texts out, or give a "
                    "`model` that knows it.",
                )

    def of_long_words(self, pieces: Wordpieces, metrics: Mapping[str, Metric]) -> None:
        """Warn where a text is one long word, as a protein is: metrics that mask within words would hide most of it."""
        n = np.diff(pieces.first)
        for span in np.flatnonzero(n > LONGEST_WORD).tolist() if "words" not in self.warned else ():
            if pieces.word[pieces.first[span]] == pieces.word[pieces.first[span + 1] - 1]:
                if of_words := [name for name, rows in metrics.items() if looks_at_words(rows)]:
                    self._once(
                        "words",
                        f"A text of {n[span]} wordpieces is one word, so under {of_words[0]} much of it is masked "
                        "while one of them is scored. If it has no words, as a protein, set `words` to 'piece'.",
                    )

    def _once(self, kind: str, message: str) -> None:
        if kind not in self.warned:
            self.warned.add(kind)
            warn_user(message)
