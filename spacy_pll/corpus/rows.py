"""From a scored doc to the rows of a table."""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from spacy.tokens import Doc

from ..analysis.normalised import NOT_NORMALISED
from ..analysis.words import WordTable
from ..attributes.columns import token_columns, token_values
from ..attributes.names import Names
from ..attributes.records import pieces_by_token
from ..attributes.values import table_value
from ..component import PLLScorer
from .readers import InputError, Record


class ScoredText(NamedTuple):
    """A text of the input with its scores."""

    number: int  # of the text in the input, from 0
    doc: Doc
    record: Record  # its text is left out, since the doc has it
    pieces: int  # scored wordpieces


TEXT_SPAN = "pll_text"  # where the text is in a doc that has its context, too: a key of `doc.spans`
AnyRows = TypeVar("AnyRows", bound="BaseRows")


class BaseRows:
    """What all kinds of rows have."""

    keep_pieces = False
    normaliser = NOT_NORMALISED  # what makes more columns of scores, in rows of texts

    def __init__(self, column: str, names: Names, alternatives: bool = False, distribution: bool = False):
        self.column, self.names = column, names
        self.alternatives, self.distribution = alternatives, distribution

    @classmethod
    def of(cls: type[AnyRows], scorer: PLLScorer, column: str) -> AnyRows:
        """The rows of the docs that a component scores."""
        return cls(column, scorer.names, scorer.settings.alternatives > 0, scorer.settings.distribution)

    @property
    def types(self) -> dict[str, Any]:
        """The columns that scoring adds, with the Python types of their values. Each may be None."""
        return {}

    @property
    def columns(self) -> list[str]:
        """Their names."""
        return list(self.types)

    @property
    def expected_of_text(self) -> list[str]:
        """The attributes of a doc that say how far the model expected its text."""
        return [self.names.top1, self.names.entropy] if self.distribution else []


class TextRows(BaseRows):
    """One row per text: the text, its other columns, and its scores (natural logarithm)."""

    @property
    def attributes(self) -> dict[str, Any]:
        """The columns that have attributes of the doc, with the Python types of their values."""
        scores = dict.fromkeys(self.names.metrics.values(), float)
        expected = dict.fromkeys(self.expected_of_text, float)
        return {**scores, self.names.pieces: int, self.names.perplexity: float, **expected}

    @property
    def types(self) -> dict[str, Any]:
        return {**self.attributes, **dict.fromkeys(self.normaliser.columns, float)}

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict[str, Any]]:
        scores = {name: table_value(doc, name, self.names) for name in self.attributes}
        yield {self.column: doc.text, **record.fields, **scores, **self.normaliser(doc)}


class TokenRows(BaseRows):
    """One row per token that is not white space: the numbers of text and token, from 0, its scores and wordpieces, and
    what the model expected.
    """

    keep_pieces = True
    number = "token"  # the column that counts the rows of a text

    @property
    def types(self) -> dict[str, Any]:
        of_token = token_columns(self.names, self.alternatives, self.distribution)
        return {"doc": int, "token": int, "pieces": list[str], **of_token}

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict[str, Any]]:
        groups, pieces = pieces_by_token(doc, self.names), (doc._.get(self.names.data) or {"pieces": []})["pieces"]
        columns = self.types
        for token in doc:
            if not token.is_space:
                row = {"doc": number, "token": token.i, self.column: token.text, **record.fields}
                row["pieces"] = [pieces[i] for i in groups.get(token.i, [])]
                yield row | token_values(token, self.names, columns)


class WordRows(TokenRows):
    """One row per word: see `WordTable`."""

    keep_pieces = False
    number = "word"
    table, lang = WordTable(), ""

    @property
    def types(self) -> dict[str, Any]:
        of_word = self.table.types(self.names, self.distribution)
        return {"doc": int, **{name: type_ for name, type_ in of_word.items() if name != "text"}}

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict[str, Any]]:
        text = doc.spans[TEXT_SPAN][0] if TEXT_SPAN in doc.spans else doc
        for row in self.table.rows(text, self.names, self.distribution, self.lang):
            first = {"doc": number, "word": row.pop("word"), self.column: row.pop("text")}
            yield {**first, **record.fields, **row}


class ProdigyRows(BaseRows):
    """One task per text, as Prodigy reads it. `meta.score` is the first of the normalised scores, or else the mean
    score per wordpiece. `ProdigyTasks` replaces it with its rank.

    The sum would mainly rank texts by their length.
    """

    columns = ["text", "tokens"]

    @property
    def meta_columns(self) -> list[str]:
        """What scoring adds to `meta`."""
        return ["score", *self.attributes, *self.normaliser.columns]

    @property
    def attributes(self) -> list[str]:
        return [*self.names.metrics.values(), *self.expected_of_text]

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict[str, Any]]:
        meta = record.fields.get("meta", {})
        if not isinstance(meta, dict):
            meta = {"meta": meta}
        tokens = [
            {"text": token.text, "start": token.idx, "end": token.idx + len(token), "id": token.i,
             "ws": bool(token.whitespace_)}
            for token in doc
        ]  # fmt: skip
        score, n = doc._.get(self.names.score), doc._.get(self.names.pieces)
        normalised = self.normaliser(doc)
        rank_by = next(iter(normalised.values()), score / n if n else None)
        scores = {name: table_value(doc, name, self.names) for name in self.attributes}
        meta = {**meta, "score": rank_by, **scores, **normalised}
        yield {"text": doc.text, **record.fields, "tokens": tokens, "meta": meta}


def column_order(rows: TextRows | TokenRows, fields: list[str]) -> list[str]:
    """The columns of a table in their order: those of the input, with the texts first, then those that scoring adds."""
    first = [rows.column, *fields] if isinstance(rows, TextRows) else ["doc", rows.number, rows.column, *fields]
    return [*first, *(name for name in rows.columns if name not in first)]


def check_columns(fields: list[str], added: list[str], source: str) -> None:
    """RAISES (InputError): Scoring would add a column that the input, the source, already has."""
    if clash := [name for name in added if name in fields]:
        raise InputError(
            f"{source} already has a column {clash[0]!r}, which the scores would overwrite. Rename or remove it."
        )
