"""Scores that depend less on the length of a text and on the frequency of its words (Lau, Clark & Lappin 2017).

They are made from the wordpieces, so the docs must be scored with `keep_pieces`.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spacy.language import Language
from spacy.tokens import Doc, Span

from ..advice.clauses import clause_as_word
from ..advice.giving import advise
from ..attributes.stored import read_record
from ..errors import PLLError
from ..unspaced import DIVIDED
from .unigrams import Unigrams, load_unigrams


class Parts(NamedTuple):
    """What a normalised score is made of. Only wordpieces that were scored count."""

    score: float  # the sum over the wordpieces, natural log
    unigram_score: float  # the same with the probability of each wordpiece by itself; NaN without a table
    pieces: int
    words: int  # spaCy's tokens in which a wordpiece begins
    characters: int  # of the wordpieces, so without white space


NORMALISATIONS: dict[str, Callable[[Parts], float]] = {
    "mean_lp": lambda parts: parts.score / parts.pieces,
    "pen_lp": lambda parts: parts.score / ((5 + parts.pieces) / (5 + 1)) ** 0.8,
    "norm_lp": lambda parts: -parts.score / parts.unigram_score,
    "slor": lambda parts: (parts.score - parts.unigram_score) / parts.pieces,
    "per_word": lambda parts: parts.score / parts.words,
    "per_character": lambda parts: parts.score / max(1, parts.characters),
}
WITH_UNIGRAMS = ("norm_lp", "slor")


def normalise(
    tokens: Doc | Span, method: str, unigrams: Unigrams | None = None, *, metric: str | None = None, attr: str = "pll"
) -> float | None:
    """Normalise the score of a doc or span. Higher is better, as for the score itself.

    tokens (Union[Doc, Span]): Scored with `keep_pieces`.
    method (str): "mean_lp", "pen_lp", "norm_lp", "slor", "per_word" or "per_character".
    unigrams (Optional[Unigrams]): Needed for "norm_lp" and "slor": `load_unigrams(nlp)`.
    metric (Optional[str]): One of the metrics that the doc was scored with. None is the first.
    attr (str): The component's setting of that name.
    RETURNS (Optional[float]): None where no wordpiece was scored.
    RAISES (ValueError): There is no such method or metric, no wordpieces in the record, or no table of unigrams for
        them; or a part of the wordpieces was scored, with `sample_words`.

    ```python
    import spacy_pll

    doc = spacy_pll.make_pipeline(keep_pieces=True)("The traveler lost the souvenir.")
    spacy_pll.normalise(doc, "mean_lp")  # -2.87: the mean per wordpiece
    spacy_pll.normalise(doc[3:5], "per_word")  # -7.99: of "the souvenir"
    ```
    """
    check_method(method, unigrams)
    record = read_record(tokens.doc, attr, whole=True)
    if record is None or record.pieces is None:
        problem = f"The doc {tokens.doc.text[:50]!r} has no wordpieces in its record, _.{attr}_data."
        raise PLLError(f"{problem} Score it with keep_pieces=True.")
    metric = metric or next(iter(record.scores))
    if metric not in record.scores:
        raise PLLError(f"There are no scores under {metric!r}, only under {', '.join(record.scores)}.")
    first, last = (tokens.start, tokens.end) if isinstance(tokens, Span) else (0, len(tokens))
    places = [i for i, token in enumerate(record.token) if first <= token < last]
    drawn = [i for i in places if record.scores[metric][i] is not None]
    if not drawn:
        return None
    if len(drawn) < len(places):
        problem = f"Of the {len(places)} wordpieces of {tokens.text[:50]!r}, {len(drawn)} were drawn by `sample_words`"
        raise PLLError(f"{problem}, and whole texts are normalised.", "Use a pipeline without it.")
    if method == "per_word" and tokens.doc.lang_ not in DIVIDED:
        words = ((tokens.doc[token].text, n) for token, n in Counter(record.token[i] for i in places).items())
        advise(clause_as_word(words, "`per_word`", "use `mean_lp` or `per_character`", is_named=False))
    ids, pieces = [record.ids[i] for i in places], [record.pieces[i] for i in places]
    parts = Parts(
        score=sum(record.scores[metric][i] for i in places),
        unigram_score=unigrams.sum(ids, pieces) if unigrams else math.nan,
        pieces=len(places),
        words=len({record.token[i] for i in places}),
        # Pieces may share a character: each byte of an emoji can be one.
        characters=len({character for i in places for character in range(record.start[i], record.end[i])}),
    )
    return NORMALISATIONS[method](parts)


def check_method(method: str, unigrams: Unigrams | None) -> None:
    """RAISES (ValueError): There is no such method, or it needs a table of unigrams."""
    if method not in NORMALISATIONS:
        raise PLLError(f"There is no way to normalise called {method!r}. Choose from {', '.join(NORMALISATIONS)}.")
    if method in WITH_UNIGRAMS and unigrams is None:
        raise PLLError(f"{method!r} needs a table of unigrams. Give load_unigrams(nlp).")


def unigrams_for(nlp: Language, methods: Sequence[str], path: str | None = None) -> Unigrams | None:
    """The table of unigrams that some methods need, if one does.

    path (Optional[str]): As for `load_unigrams`.
    RAISES (ValueError): There is no such method, or the table is for another vocabulary.
    """
    unigrams = load_unigrams(nlp, path) if path or set(methods) & set(WITH_UNIGRAMS) else None
    for method in methods:
        check_method(method, unigrams)
    return unigrams
