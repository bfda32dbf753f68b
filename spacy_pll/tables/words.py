"""A table of words as studies of reading need it: scores beside length and frequency, and those of the words before."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from spacy.tokens import Doc, Span

from ..advice.words import WordAdvice
from ..attributes.stored import record_of
from ..attributes.values import sum_in
from ..errors import PLLError
from ..requirements import extra
from ..settings import at_least, check_values
from ..span_getters import TEXT_SPAN, named_spans, stored_spans
from ..unspaced import DIVIDED
from ..user_warnings import warn_user
from .rows import ScoredText, TextRows, columns, token_values

Unit = Literal["whitespace", "spacy"]


@dataclass(frozen=True)
class WordTable:
    """Which words have a row of their own, and which columns a table of them has.

    unit (str): With whitespace, a word is the text between white space, with its punctuation. With spacy, it is a token
        of spaCy that is not white space. In both cases, scores are sums over tokens, and a token that contains white
        space is not divided. While "cabinet" in "cabinet," is scored, the model sees the comma, unless
        `words='whitespace'` masks it, too.
    lags (int): Add the wordpieces, length, log frequency and scores of this many words before the word, in columns such
        as surprisal_lag1.
    regions (Optional[str]): A key of doc.spans, of .spacy input or of a pipeline that makes spans. The column `region`
        has the label of the first of these spans in which the word begins.
    log_frequency (Optional[bool]): Whether there is a column `log_frequency`, from the package wordfreq, for the
        language of the pipeline. None: if it is installed and has the language.
    RAISES (ValueError): A value is not valid.
    """

    unit: Unit = "whitespace"
    lags: int = at_least(0, 0)
    regions: str | None = None
    log_frequency: bool | None = None

    def __post_init__(self) -> None:
        check_values(self)

    def known(self, lang: str) -> "WordTable":
        """A copy that says whether there is a column `log_frequency`. If there is none, there is a warning.

        RAISES (ImportError, ValueError): There cannot be one, and `log_frequency` is True.
        """
        if self.log_frequency is False:
            return self
        try:
            log_frequencies(lang)
        except (ImportError, PLLError) as error:
            if self.log_frequency:
                raise
            warn_user(f"The table of words has no log frequencies. {error}")
            return replace(self, log_frequency=False)
        return replace(self, log_frequency=True)


@dataclass(frozen=True)
class WordRows(TextRows):
    """One row per word, with the columns of a `WordTable` that is `known`."""

    table: WordTable = WordTable()
    lang: str = ""  # of docs whose vocabulary has none
    has_sents: bool = True  # whether something sets sentence boundaries: a doc of one token does not show it
    divides: bool = True  # whether the pipeline divides texts in words; otherwise the input has a row for each
    advice: WordAdvice = field(default_factory=WordAdvice, compare=False)
    first = ("doc", "word")

    @property
    def types(self) -> dict[str, Any]:
        in_text = {"start": int, "end": int, "whitespace": str, "sent": int, "word_in_sent": int}
        region = {"region": str} if self.table.regions else {}
        frequency = {"log_frequency": float} if self.table.log_frequency else {}
        lagged = {self.names.pieces: int, "length": int, **frequency, **columns(self.names, self.settings, "words")}
        lags = range(1, self.table.lags + 1)
        again = {f"{name}_lag{lag}": type_ for lag in lags for name, type_ in lagged.items()}
        return {"doc": int, "word": int, **in_text, **region, **lagged, **again}

    def __call__(self, text: ScoredText) -> Iterator[dict[str, Any]]:
        doc = text.doc
        for row in self.of(named_spans(doc, TEXT_SPAN)[0] if TEXT_SPAN in doc.spans else doc):
            first = {"doc": text.number, "word": row.pop("word"), self.column: row.pop("text")}
            yield {**first, **text.fields, **row}

    def of(self, tokens: Doc | Span) -> list[dict[str, Any]]:
        """The rows of a scored text. Words and characters are counted from its beginning."""
        names, regions = self.names, self.table.regions
        words, text = self._words(tokens), tokens.text_with_ws
        starts = [word.start_char - tokens[0].idx for word in words]
        ends = [start + len(word.text) for start, word in zip(starts, words)]
        by_column: dict[str, list[Any]] = {  # in the order of the columns
            "word": list(range(len(words))),
            "text": [word.text for word in words],
            "start": starts,
            "end": ends,
            "whitespace": [text[end:start] for end, start in zip(ends, [*starts[1:], len(text)])],
        }
        by_column["sent"], by_column["word_in_sent"] = _sentences(tokens, words, self.has_sents)
        if regions:
            if regions not in tokens.doc.spans:
                warn_user(
                    f"A doc has no spans under `regions`, doc.spans[{regions!r}], so its words are in none. "
                    f"It has spans under these keys: {list(tokens.doc.spans)}."
                )
            # By characters: spaCy does not move spans where tokens are merged.
            spans = stored_spans(tokens.doc, regions)[::-1] if regions in tokens.doc.spans else []
            region = {i: label for *_, label, start, end in spans for i in range(start, end)}
            labels = [region.get(word.start_char) for word in words]
            by_column["region"] = [tokens.doc.vocab.strings[label] if label else None for label in labels]
        record, places = record_of(tokens.doc, names.data), [(word.start_char, word.end_char) for word in words]
        is_scored = bool(sum_in(record, "", "count"))
        by_column[names.pieces] = [
            sum_in(record, "", "count", *characters) if is_scored else 0 for characters in places
        ]
        by_column["length"], lang = [len(word.text) for word in words], tokens.doc.lang_ or self.lang
        self._advise_of_clauses(lang, zip(by_column["text"], by_column[names.pieces]))
        if self.table.log_frequency:
            by_column["log_frequency"] = list(map(log_frequencies(lang), by_column["text"]))
            if lang == "en":
                self.advice.of_english(zip(by_column["text"], by_column["log_frequency"]))
        scores = columns(names, self.settings, "words")
        values = [token_values(record, *characters, names, scores) for characters in places]
        by_column |= {name: [row[name] for row in values] for name in scores}
        for name in self.types:
            if name not in by_column and name != "doc":
                source, _, lag = name.rpartition("_lag")
                by_column[name] = [None] * int(lag) + by_column[source]
        return [dict(zip(by_column, row)) for row in zip(*by_column.values())]

    def _advise_of_clauses(self, lang: str, words: Iterable[tuple[str, int]]) -> None:
        if self.table.unit != "spacy" or lang not in DIVIDED:
            way = "give each word a row of its own" + ", with `score_words`" * self.divides
            beside = "" if self.table.unit == "spacy" else " and `unit='spacy'`"
            self.advice.of_clauses(words, way, beside if self.divides else None)

    def _words(self, tokens: Doc | Span) -> list[Span]:
        bounds: list[list[int]] = []
        after_space = True
        for token in tokens:
            if not token.is_space:
                if self.table.unit == "spacy" or after_space or token.text[0].isspace():
                    bounds.append([token.i, token.i])
                bounds[-1][1] = token.i + 1
            after_space = token.text_with_ws[-1].isspace()
        return [tokens.doc[start:end] for start, end in bounds]


def _sentences(tokens: Doc | Span, words: list[Span], has_sents: bool) -> tuple[list[int | None], list[int | None]]:
    """For each word: the number of its sentence, and its own number there. None without sentence boundaries."""
    if not tokens.doc.has_annotation("SENT_START") or len(tokens.doc) == 1 and not has_sents:
        return [None] * len(words), [None] * len(words)
    sents = tokens.sents  # type: ignore[union-attr]  # spaCy's stub leaves out that of Span
    sentence = {token.i: number for number, sent in enumerate(sents) for token in sent}
    numbers, seen = [sentence[word.start] for word in words], defaultdict[int, Iterator[int]](count)
    return [*numbers], [next(seen[number]) for number in numbers]


def log_frequencies(lang: str) -> Callable[[str], float | None]:
    """From a word to the natural logarithm of its share of all words of a language; None if it is not known.

    RAISES (ImportError): wordfreq is not installed, or what it needs for the language.
    RAISES (ValueError): It does not know the language.
    """
    with extra("reading", "`log_frequency` needs the package wordfreq", ". Or give `log_frequency=False`."):
        import wordfreq
    try:
        wordfreq.word_frequency("a", lang)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"`log_frequency` needs the package {error.name}, with which wordfreq divides text of the language "
            f'{lang!r}. Install it with: pip install "wordfreq[cjk]". Or give `log_frequency=False`.'
        ) from None
    except LookupError:
        raise PLLError(
            f"The package wordfreq has no word frequencies for the language {lang!r}.",
            "Choose another language, or give `log_frequency=False`.",
        ) from None

    def look_up(word: str) -> float | None:
        frequency = wordfreq.word_frequency(word, lang)
        return math.log(frequency) if frequency else None

    return look_up
