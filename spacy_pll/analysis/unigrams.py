"""How probable each wordpiece of a model is by itself, for scores that are relative to it."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc
from spacy.util import minibatch

from ..component import get_scorer
from ..documentation import page
from ..errors import PLLError
from ..language_model import BUILTIN_UNIGRAMS
from ..progress import with_progress
from ..scoring.wordpieces import in_full, read_text
from ..texts import plain_texts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TEXTS_AT_ONCE = 1000


def _how_to_make() -> str:
    address = page("normalised-scores.md#unigrams")
    return f"Count the wordpieces of a corpus with this model ({address}), and give the file as `unigrams`."


class Unigrams:
    """The log-probability of each wordpiece, from its count in a corpus. One is added to each count, so that a piece
    that does not occur has a probability, too.

    pieces (Sequence[Optional[str]]): The vocabulary in the order of its ids. None for an id that has no piece.
    counts (Sequence[int]): How often each piece occurs.
    """

    def __init__(self, pieces: Sequence[str | None], counts: Sequence[int]):
        self.pieces, self.counts = list(pieces), list(counts)
        smoothed = np.array(self.counts, dtype=np.float64) + 1
        self.log_probs = np.log(smoothed / smoothed.sum())  # shape (ids,), natural log

    @classmethod
    def count(cls, tokenizer: "Tokenizer", texts: Iterable[str | Doc], *, show_progress: bool = False) -> "Unigrams":
        """Count the wordpieces of a corpus.

        tokenizer (tokenizers.Tokenizer): The tokenizer of the model: `get_scorer(nlp).model.load().tokenizer`.
        show_progress (bool): Show how many texts have been counted.
        RAISES (ValueError): There is no wordpiece.
        """
        pieces = vocabulary(tokenizer)
        strings = (read_text(text if isinstance(text, str) else text.text) for text in plain_texts(texts))
        encode, counts = partial(in_full(tokenizer).encode_batch_fast, add_special_tokens=False), Counter[int]()
        encodings = chain.from_iterable(map(encode, minibatch(strings, TEXTS_AT_ONCE)))
        for encoding in with_progress(encodings, show=show_progress):
            counts.update(encoding.ids)
        if not counts:
            raise PLLError("No text has a wordpiece, so there is nothing to count. Give other texts.")
        return cls(pieces, [counts[i] for i in range(len(pieces))])

    @classmethod
    def read(cls, path: str | Path) -> "Unigrams":
        """Read a table that `spacy-pll unigrams` wrote.

        RAISES (ValueError): The file is no such table.
        """
        try:
            table = json.loads(Path(path).read_text(encoding="utf8"))
            return cls(table["pieces"], [count for _, count in zip(table["pieces"], table["counts"], strict=True)])
        except (KeyError, TypeError, ValueError):
            raise PLLError(f"{str(path)!r} is no table of unigrams.", _how_to_make()) from None

    def to_json(self) -> dict[str, Any]:
        """What `read` reads."""
        return {"pieces": self.pieces, "counts": self.counts}

    def sum(self, ids: Sequence[int], pieces: Sequence[str | None]) -> float:
        """The log-probability of some wordpieces, each by itself.

        RAISES (ValueError): The wordpieces are not in this vocabulary.
        """
        ids = [*ids]
        for i, piece in zip(ids, pieces, strict=True):
            if i >= len(self.pieces) or self.pieces[i] != piece:
                raise PLLError(
                    f"The wordpiece {piece!r}, id {i}, is not in the table of unigrams. The table is for another "
                    "vocabulary.",
                    _how_to_make(),
                )
        return float(self.log_probs[ids].sum())


def vocabulary(tokenizer: "Tokenizer") -> list[str | None]:
    """The pieces of a tokenizer by their ids; None for an id without a piece."""
    by_id = {i: piece for piece, i in tokenizer.get_vocab().items()}
    return [by_id.get(i) for i in range(max(by_id) + 1)]


def load_unigrams(nlp: Language, path: str | Path | None = None) -> Unigrams:
    """The table of unigrams for the model of a pipeline.

    nlp (Language): A pipeline with a `pll` component.
    path (Optional[Union[str, Path]]): A file that `spacy-pll unigrams` wrote. None: the table of the built-in model,
        for models that have its vocabulary.
    RAISES (OSError): There is no such file.
    RAISES (ValueError): The table is for another vocabulary.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline(keep_pieces=True)
    doc = nlp("The traveler lost the souvenir.")
    spacy_pll.normalise(doc, "slor", spacy_pll.load_unigrams(nlp))  # 4.03
    ```
    """
    model = get_scorer(nlp).model
    unigrams = Unigrams.read(path or BUILTIN_UNIGRAMS)
    if unigrams.pieces != vocabulary(model.load().tokenizer):
        which = f"The table of unigrams {str(path)!r}" if path else "The built-in table of unigrams"
        raise PLLError(f"{which} is for another vocabulary than that of {model.describe().title}.", _how_to_make())
    return unigrams
