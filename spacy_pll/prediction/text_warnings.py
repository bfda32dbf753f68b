"""What about texts is worth a warning, each once. It is not in `advice`, since it looks at the wordpieces of each batch
as they are read, and counts over all batches.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from spacy.tokens import Doc

from ..arrays import BoolArray
from ..documentation import page
from ..language_model.protocol import LanguageModel, Loaded
from ..unspaced import DIVIDED, UNSPACED_CHARACTER, UNSPACED_PIECES, language_that_divides, script_of
from ..user_warnings import TextWarning, warn_user
from .tokenized import TokenizedDocs

# Pieces of the longest text that is taken for one word; and of the longest word in a text that is scored exactly
# without a warning.
LONGEST_WORD, LONGEST_EXACT = 30, 100
# How many unknown pieces with a character are many, and how many such characters a warning names.
MANY, MOST_CHARACTERS = 10, 10
# How many of the first words tell the language, at least and at most; the share of them that is split in three or more
# pieces, and the characters of a piece. (Under the built-in model, English has .06 and 3.4 to 5, that of physicians up
# to .7 and 3.1; German, French, Dutch and Finnish have .37 to .9 and 1.8 to 2.3.)
FIRST_WORDS, SPLIT_WORDS, CHARACTERS = (50, 200), 1 / 4, 2.6


@dataclass
class TextWarnings:
    """The warnings of a predictor."""

    warned: set[str] = field(default_factory=set)  # what has been warned of
    unknown: Counter[str] = field(default_factory=Counter)  # how many unknown pieces have had a character
    known: set[str] = field(default_factory=set)  # characters of such pieces that are known themselves
    words: list[tuple[int, int]] = field(default_factory=list)  # of the first words, the characters and the pieces

    def of_left_out(self, docs: list[Doc], batch: TokenizedDocs, left_out: BoolArray) -> None:
        """Warn where tokens that should be scored lie in no span. Those of white space have no score to lose."""
        places, tokens_of = np.flatnonzero(left_out), batch.read.tokens_of
        owner = tokens_of.owner[places]
        for d in np.unique(owner).tolist() if "left out" not in self.warned else ():
            doc, first = docs[d], int(tokens_of.starts[d])
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

    def of_split_words(self, docs: list[Doc], model: LanguageModel, loaded: Loaded) -> None:
        """Warn where the first words are split as those of another language than the model's, if that is known."""
        title, _, known = model.describe()
        if not known:
            return
        # Names and text in capitals are split in any language.
        words = (token.text for doc in docs for token in doc if token.is_alpha and token.is_lower)
        for word in islice(words, FIRST_WORDS[1] - len(self.words)):
            self.words.append((len(word), len(loaded.tokenizer.encode(word, add_special_tokens=False).ids)))
        split, (characters, pieces) = sum(n > 2 for _, n in self.words), np.sum([(0, 0), *self.words], axis=0)
        enough = len(self.words) >= FIRST_WORDS[0] and split >= SPLIT_WORDS * len(self.words)
        if enough and characters < CHARACTERS * pieces:
            self._once(
                "language",
                f"{split} of the first {len(self.words)} words are split in three or more wordpieces, as words of "
                f"another language than {known!r}, that of {title}. Scores of such texts mean little. Give a `model` "
                "that was trained on their language, or on many, such as xlm-roberta-base.",
            )

    def of_unknown(self, batch: TokenizedDocs, model: LanguageModel, loaded: Loaded) -> None:
        """Warn where more than a tenth of the pieces of some docs are unknown to the tokenizer, and of characters that
        are so, once one of them is again and again, in however many docs.
        """
        pieces, title = batch.wordpieces, model.describe().title
        unknown = np.flatnonzero(pieces.ids == loaded.unknown_id)
        places = zip(*(of[unknown].tolist() for of in (batch.pieces_of.owner, pieces.start, pieces.end)))
        texts = [batch.read.texts[d][start:end] for d, start, end in places]
        if len(texts) > len(pieces) / 10:
            self._once(
                "unknown",
                f"{len(texts)} of {len(pieces)} wordpieces are unknown to the tokenizer of {title}, such as "
                f"{texts[0][:50]!r}. Their scores say nothing about the text. Give a `model` that was trained on text "
                "like this.",
            )
        self.unknown.update(character for text in texts for character in {*text} - self.known)
        if self.warned & {"unknown", "characters"} or max(self.unknown.values(), default=0) < MANY:
            return
        for character in list(self.unknown):  # of a word that is unknown, some letters may be known
            if loaded.unknown_id not in loaded.tokenizer.encode(character, add_special_tokens=False).ids:
                self.known.add(character)
                del self.unknown[character]
        characters = self.unknown.most_common()
        if characters and characters[0][1] >= MANY:
            named = [f"{character!r} (U+{ord(character):04X})" for character, _ in characters[:MOST_CHARACTERS]]
            others = len(characters) - len(named)
            self._once(
                "characters",
                f"Characters are unknown to the tokenizer of {title}: {', '.join(named)}"
                f"{f' and {others} others' if others else ''}; the first of them in {characters[0][1]} wordpieces so "
                "far. The scores of such pieces, and of those beside them, say little about the text. Write other "
                "characters in their place, leave such texts out, or give a `model` that knows them.",
            )

    def of_special(self, batch: TokenizedDocs, loaded: Loaded) -> None:
        """Warn where a text that is scored has the mask in it, or a special token that stands around each text."""
        pieces = batch.wordpieces
        if "special" in self.warned or not len(pieces):
            return
        special = [loaded.mask_id, *pieces.encoded.prefix.tolist(), *pieces.encoded.suffix.tolist()]
        at_special = np.flatnonzero(np.isin(pieces.ids, special))
        for wordpiece in at_special[batch.scored[pieces.token[at_special]]][:1].tolist():
            text = batch.read.texts[batch.pieces_of.owner[wordpiece]]
            token = text[pieces.start[wordpiece] : pieces.end[wordpiece]]
            what = "a mask" if pieces.ids[wordpiece] == loaded.mask_id else "the special token"
            self._once(
                "special",
                f"The model reads {token!r} in the text {text[:100]!r} as {what}, and it is scored as a part of the "
                "text. If it is not the text's own, leave it out. To score what could stand in the place of a mask, "
                f"write it there ({page('analysis.md#candidates-in-context')}).",
            )

    def of_unspaced(self, docs: list[Doc], batch: TokenizedDocs, words: str, of_words: Sequence[str]) -> None:
        """Warn where a word of a script that is written without spaces has so many pieces that it is a clause.

        of_words (Sequence[str]): The metrics to which it matters which pieces are one word.
        """
        pieces = batch.wordpieces
        counts = np.bincount(pieces.word) if of_words and "unspaced" not in self.warned else ()
        for word in np.flatnonzero(np.greater_equal(counts, UNSPACED_PIECES)).tolist():
            first, last = np.searchsorted(pieces.word, (word, word + 1)).tolist()
            d = int(batch.pieces_of.owner[first])
            text, starts = batch.read.texts[d], pieces.start[first:last].tolist()
            word_text = text[starts[0] : pieces.end[last - 1]]
            if not UNSPACED_CHARACTER.search(word_text) or words == "spacy" and docs[d].lang_ in DIVIDED:
                continue
            n = sum(UNSPACED_CHARACTER.match(text, start) is not None for start in starts)
            if n < UNSPACED_PIECES:
                continue
            setting = language_that_divides(text) if words == "spacy" else ""
            as_lang = f"{setting}, or " * bool(setting)
            self._once(
                "unspaced",
                f"{word_text[:40]!r} is read as one word of {len(starts)} wordpieces, since {script_of(text)} has no "
                f"spaces between words. Under {of_words[0]}, the rest of it is masked while one of them is scored. Set "
                f"{as_lang}"
                f"`words='piece'`: each wordpiece is a word, and {of_words[0]} the same as original.",
            )
            self.warned.add("words")  # which would say less of the same text
            return

    def of_long_words(self, batch: TokenizedDocs, of_words: Sequence[str], exact: bool) -> None:
        """Warn where a text is one long word, as a protein is: metrics that mask within words would hide most of it.
        And where a word in a text is very long, as a URL may be. of_words: See `of_unspaced`.
        """
        if not of_words:
            return
        pieces, spans = batch.wordpieces, batch.wordpieces.encoded.pieces_of
        for span in np.flatnonzero(spans.lengths > LONGEST_WORD).tolist() if "words" not in self.warned else ():
            own = spans[span]
            if pieces.word[own.start] == pieces.word[own.stop - 1]:
                self._once(
                    "words",
                    f"A text of {own.stop - own.start} wordpieces is one word, so under {of_words[0]} much of it is "
                    "masked while one of them is scored. If it has no words, as a protein, set `words` to 'piece'.",
                )
        sizes = np.bincount(pieces.word) if exact and not self.warned & {"words", "long word"} else ()
        for word in np.flatnonzero(np.greater(sizes, LONGEST_EXACT)).tolist()[:1]:
            first = int(np.searchsorted(pieces.word, word))
            text = batch.read.texts[batch.pieces_of.owner[first]]
            self._once(
                "long word",
                f"{text[pieces.start[first] :][:40]!r} begins a word of {sizes[word]} wordpieces. The text is read for "
                f"each of them, and under {of_words[0]} up to {sizes[word] - 1} others are masked. `mask_margin=0` "
                "reads no more than a few masks for each piece, and gives another score "
                f"({page('one-pass.md#long-words')}). With `words='piece'` each wordpiece is a word, and "
                f"{of_words[0]} the same as original. Or leave such words out.",
            )

    def _once(self, kind: str, message: str) -> None:
        if kind not in self.warned:
            warning = TextWarning(message)
            warning.kind = kind
            warn_user(warning)  # first: a filter may make it an error, which says it where it is caught
            self.warned.add(kind)
