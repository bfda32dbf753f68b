"""From a scored doc to the rows of a table."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from spacy.tokens import Doc

from ..analysis.normalised import NOT_NORMALISED
from ..attributes.names import Names
from ..attributes.piece_record import read_record
from ..component import PLLScorer
from ..contexts import TEXT_SPAN
from ..errors import InputError
from .columns import token_columns, token_spans, token_values
from .words import WordTable

AnyRows = TypeVar("AnyRows", bound="TextRows")


class TextRows:
    """One row per text: the text, its other columns, and its scores (natural logarithm)."""

    keep_pieces = False
    first: Sequence[str] = ()  # the columns before that of the texts
    normaliser = NOT_NORMALISED  # what makes more columns of scores

    def __init__(self, column: str, names: Names, alternatives: bool = False, distribution: bool = False):
        self.column, self.names = column, names
        self.alternatives, self.distribution = alternatives, distribution

    @classmethod
    def of(cls: type[AnyRows], scorer: PLLScorer, column: str) -> AnyRows:
        """The rows of the docs that a component scores."""
        return cls(column, scorer.names, scorer.settings.alternatives > 0, scorer.settings.distribution)

    @property
    def attributes(self) -> dict[str, Any]:
        """The columns that have attributes of the doc, with the Python types of their values."""
        scores = dict.fromkeys(self.names.metrics.values(), float)
        return {**scores, self.names.pieces: int, self.names.perplexity: float, **self.expected}

    @property
    def expected(self) -> dict[str, Any]:
        """The attributes among them that say how far the model expected the text."""
        return {self.names.top1: float, self.names.entropy: float} if self.distribution else {}

    @property
    def types(self) -> dict[str, Any]:
        """The columns that scoring adds, with the Python types of their values. Each may be None."""
        return {**self.attributes, **dict.fromkeys(self.normaliser.columns, float)}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        scores = {name: doc._.get(name) for name in self.attributes}
        yield {self.column: doc.text, **fields, **scores, **self.normaliser(doc)}


class TokenRows(TextRows):
    """One row per token that is not white space: the numbers of text and token, from 0, its scores and wordpieces, and
    what the model expected.
    """

    keep_pieces = True
    first = ("doc", "token")

    @property
    def token_columns(self) -> dict[str, Any]:
        return token_columns(self.names, self.alternatives, self.distribution)

    @property
    def types(self) -> dict[str, Any]:
        return {"doc": int, "token": int, "pieces": list[str], **self.token_columns}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        record, columns = read_record(doc, self.names.score), self.token_columns
        places = record.by_token() if record else {}
        for token in token_spans(doc):
            if not token[0].is_space:
                row = {"doc": number, "token": token.start, self.column: token.text, **fields}
                row["pieces"] = [record.pieces[i] for i in places[token.start]] if record else []
                yield row | token_values(token, self.names, columns)


class WordRows(TokenRows):
    """One row per word: see `WordTable`."""

    keep_pieces = False
    first = ("doc", "word")
    table, lang, has_sents = WordTable(), "", True

    @property
    def types(self) -> dict[str, Any]:
        of_word = self.table.types(self.names, self.distribution)
        return {"doc": int, **{name: type_ for name, type_ in of_word.items() if name != "text"}}

    def __call__(self, number: int, doc: Doc, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        text = doc.spans[TEXT_SPAN][0] if TEXT_SPAN in doc.spans else doc
        for row in self.table.rows(text, self.names, self.distribution, self.lang, self.has_sents):
            first = {"doc": number, "word": row.pop("word"), self.column: row.pop("text")}
            yield {**first, **fields, **row}


def check_columns(fields: list[str], added: list[str], source: str, names: Names | None = None) -> None:
    """RAISES (InputError): Scoring would add a column that the input, the source, already has."""
    if clash := [name for name in added if name in fields]:
        named = names and (clash[0] == names.perplexity or clash[0].startswith(names.score))
        raise InputError(
            f"{source} already has a column {clash[0]!r}, which the scores would overwrite. Rename or remove it"
            + (", or give another `attr`." if named else ".")
        )
