"""From a scored doc to the rows of a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spacy.tokens import Doc

from ..analysis.normalised import normalise
from ..analysis.unigrams import Unigrams
from ..attributes.names import Names
from ..attributes.piece_record import read_record
from ..places import TEXT_SPAN
from ..settings import ScoringSettings
from .columns import columns, token_spans, token_values
from .words import WordTable


@dataclass(frozen=True)
class TextRows:
    """One row per text: the text, its other columns, and its scores (natural logarithm).

    column (str): That of the text.
    names, settings: Those of the component.
    """

    column: str
    names: Names
    settings: ScoringSettings = ScoringSettings()
    methods: Sequence[str] = ()  # of `normalise`, each with a column for each metric
    unigrams: Unigrams | None = None  # for these
    keep_pieces: ClassVar = False
    first: ClassVar[Sequence[str]] = ()  # the columns before that of the texts

    @property
    def types(self) -> dict[str, Any]:
        """The columns that scoring adds, with the Python types of their values. Each may be None."""
        return {**columns(self.names, self.settings, "texts"), **dict.fromkeys(self.normalised, float)}

    @property
    def normalised(self) -> dict[str, tuple[str, str]]:
        """The metric and the method of each column of normalised scores, such as "pll_word_l2r_slor"."""
        metrics = self.names.metrics.items()
        return {f"{name}_{method}": (metric, method) for metric, name in metrics for method in self.methods}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        scores = {name: doc._.get(name) for name in columns(self.names, self.settings, "texts")}
        for column, (metric, method) in self.normalised.items():
            scored, how = scores[self.names.pieces], {"metric": metric, "attr": self.names.score}
            scores[column] = normalise(doc, method, self.unigrams, **how) if scored else None
        yield {self.column: doc.text, **fields, **scores}


class TokenRows(TextRows):
    """One row per token that is not white space: the numbers of text and token, from 0, its scores and wordpieces, and
    what the model expected.
    """

    keep_pieces = True
    first = ("doc", "token")

    @property
    def types(self) -> dict[str, Any]:
        return {"doc": int, "token": int, "pieces": list[str], **columns(self.names, self.settings, "tokens")}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        record, of_token = read_record(doc, self.names.score), columns(self.names, self.settings, "tokens")
        places = record.by_token() if record else {}
        for token in token_spans(doc):
            if not token[0].is_space:
                row = {"doc": number, "token": token.start, self.column: token.text, **fields}
                row["pieces"] = [record.pieces[i] for i in places[token.start]] if record else []
                yield row | token_values(token, self.names, of_token)


@dataclass(frozen=True)
class WordRows(TextRows):
    """One row per word: see `WordTable`."""

    table: WordTable = WordTable()
    lang: str = ""
    has_sents: bool = True
    first = ("doc", "word")

    @property
    def types(self) -> dict[str, Any]:
        of_word = self.table.types(self.names, self.settings)
        return {"doc": int, **{name: type_ for name, type_ in of_word.items() if name != "text"}}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        text = doc.spans[TEXT_SPAN][0] if TEXT_SPAN in doc.spans else doc
        for row in self.table.rows(text, self.names, self.settings, self.lang, self.has_sents):
            first = {"doc": number, "word": row.pop("word"), self.column: row.pop("text")}
            yield {**first, **fields, **row}
