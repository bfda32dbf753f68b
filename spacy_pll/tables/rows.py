"""From a scored doc to the rows of a table: the columns that scoring adds, and the values in them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from spacy.tokens import Doc

from ..analysis.normalised import normalise
from ..analysis.unigrams import Unigrams
from ..arrays import lazy
from ..attributes.names import Names
from ..attributes.record import PieceRecord
from ..attributes.stored import read_record
from ..attributes.values import Sums, perplexity_of, sum_in, sums_of_doc, value_in
from ..errors import InputError
from ..settings import ScoringSettings

Level = Literal["texts", "tokens", "words"]


def columns(names: Names, settings: ScoringSettings, level: Level) -> dict[str, Any]:
    """The columns of scores, and of what the model expected, with the Python types of the values. Each may be None.

    settings (ScoringSettings): Those of the component. `alternatives` and `distribution` have columns.
    level (Literal["texts", "tokens", "words"]): What has a row. The values of words are sums over tokens.
    """
    scores = dict[str, Any].fromkeys(names.metrics.values(), float)
    if level == "texts":
        of_text = {names.top1: float, names.entropy: float} if settings.distribution else {}
        if settings.sample_words is not None:
            estimates = dict[str, Any].fromkeys(
                (estimate for name in scores for estimate in names.estimates[name]), float
            )
            return {**scores, **estimates, names.pieces: int, names.all_pieces: int, **of_text}
        return {**scores, names.pieces: int, names.perplexity: float, **of_text}
    scores["surprisal"] = float
    if level == "words":
        settings.check_whole("a table of words has all of them")
        return scores | ({"entropy": float} if settings.distribution else {})
    expected: dict[str, Any] = {"rank": int, "entropy": float} if settings.distribution else {}
    listed = {"alternatives": list[str], "alternative_log_probs": list[float]} if settings.alternatives else {}
    return {**scores, **expected, **listed}


def token_values(
    record: PieceRecord | None, begin: int, end: int, names: Names, columns: Mapping[str, Any]
) -> dict[str, Any]:
    """The values in the columns of tokens, or of words.

    record (Optional[PieceRecord]): Of the doc, so that it is looked up once for all tokens.
    begin, end (int): Where the token or word begins and ends, in characters.
    """
    values = {name: sum_in(record, metric, "sum", begin, end) for metric, name in names.metrics.items()}
    score = sum_in(record, "", "sum", begin, end)
    values["surprisal"] = None if score is None else 0.0 - score  # 0 without a minus
    if "rank" in columns:
        values["rank"] = value_in(record, "rank", "largest", begin, end)
    if "entropy" in columns:
        values["entropy"] = sum_in(record, "entropy", "sum", begin, end)
    if "alternatives" in columns:
        alternatives = value_in(record, "alternatives", "first", begin, end)
        values["alternatives"] = alternatives and [alternative.text for alternative in alternatives]
        values["alternative_log_probs"] = alternatives and [alternative.log_prob for alternative in alternatives]
    return values


def check_columns(fields: Collection[str], added: Collection[str], source: str, names: Names | None = None) -> None:
    """RAISES (InputError): Scoring would add a column that the input, the source, already has."""
    if clash := [name for name in added if name in fields]:
        named = names and (clash[0] == names.perplexity or clash[0].startswith(names.score))
        raise InputError(
            f"{source} already has a column {clash[0]!r}, which the scores would overwrite. Rename or remove it"
            + (", or give another `attr`." if named else ".")
        )


class ScoredText(NamedTuple):
    """A text with its scores, and with what a file has beside it."""

    number: int  # of the text in the input, from 0
    doc: Doc
    fields: dict[str, Any]  # its other columns
    sums: Sums  # of the doc
    text: str  # as it was read
    fingerprint: str = ""  # of the input up to this text: see `Input.records`
    ends_batch: bool = False  # whether it is the last of a batch: there, a run may be interrupted and go on

    @classmethod
    def of(cls, doc: Doc, names: Names, number: int = 0, fields: dict[str, Any] | None = None) -> "ScoredText":
        """A scored doc, as a text that no file has."""
        return cls(number, doc, fields or {}, sums_of_doc(doc, names), doc.text)


@dataclass(frozen=True)
class TextRows:
    """One row per text: the text, its other columns, and its scores (natural logarithm).

    column (str): That of the text.
    names, settings: Those of the component.
    """

    column: str
    names: Names
    settings: ScoringSettings = ScoringSettings()
    keep_pieces: ClassVar = False
    first: ClassVar[Sequence[str]] = ()  # the columns before that of the texts

    @property
    def types(self) -> dict[str, Any]:
        """The columns that scoring adds, with the Python types of their values. Each may be None."""
        return columns(self.names, self.settings, "texts")

    @lazy
    def _of_text(self) -> list[str]:
        """The attributes of docs that are columns."""
        return [*columns(self.names, self.settings, "texts")]

    def __call__(self, text: ScoredText) -> Iterator[dict[str, Any]]:
        names = self.names
        score, scores, n = text.sums
        known: dict[str, Any] = dict(zip(names.metrics.values(), scores.values()))
        if n:
            known[names.pieces], known[names.perplexity] = n, perplexity_of(score, n)
        yield {
            self.column: text.text,
            **text.fields,
            **{name: known[name] if name in known else text.doc._.get(name) for name in self._of_text},
        }


@dataclass(frozen=True)
class NormalisedRows(TextRows):
    """The same with normalised scores: for each metric and method a column, such as "pll_word_l2r_slor"."""

    methods: Sequence[str] = ()  # of `normalise`
    unigrams: Unigrams | None = None  # for these

    @property
    def types(self) -> dict[str, Any]:
        self.settings.check_whole("whole texts are normalised")
        return super().types | {
            f"{name}_{method}": float for name in self.names.metrics.values() for method in self.methods
        }

    def __call__(self, text: ScoredText) -> Iterator[dict[str, Any]]:
        for row in super().__call__(text):
            for metric, name in self.names.metrics.items():
                for method in self.methods:
                    row[f"{name}_{method}"] = (
                        normalise(text.doc, method, self.unigrams, metric=metric, attr=self.names.score)
                        if row[self.names.pieces]
                        else None
                    )
            yield row


class TokenRows(TextRows):
    """One row per token that is not white space: the numbers of text and token, from 0, its scores and wordpieces, and
    what the model expected.
    """

    keep_pieces = True
    first = ("doc", "token")

    @property
    def types(self) -> dict[str, Any]:
        return {"doc": int, "token": int, "pieces": list[str], **columns(self.names, self.settings, "tokens")}

    def __call__(self, text: ScoredText) -> Iterator[dict[str, Any]]:
        of_token = columns(self.names, self.settings, "tokens")
        record = read_record(text.doc, self.names.score, whole=True)
        places = record.by_token() if record else {}
        for token in text.doc:
            if not token.is_space:
                row = {"doc": text.number, "token": token.i, self.column: token.text, **text.fields}
                row["pieces"] = [record.pieces[i] for i in places[token.i]] if record and record.pieces else []
                yield row | token_values(record, token.idx, token.idx + len(token), self.names, of_token)
