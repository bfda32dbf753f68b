"""From a scored doc to rows, and from rows to bytes of a file format."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from spacy.tokens import Doc, DocBin

from ..extensions import Names, pieces_by_token
from .readers import FIELDS, InputError, Record


class TextRows:
    """One row a text: the text, what stood beside it, and its scores in natural logarithm."""

    keep_pieces = False

    def __init__(self, column: str, names: Names):
        self.column, self.names = column, names

    @property
    def columns(self) -> list[str]:
        """The columns that scoring adds."""
        return [*self.names.columns.values(), self.names.pieces, self.names.perplexity]

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict]:
        scores = {name: doc._.get(name) for name in self.columns}
        yield {self.column: doc.text, **record.fields, **scores}


class TokenRows:
    """One row a token that is not white space: the numbers of text and token, from 0, its scores and wordpieces."""

    keep_pieces = True

    def __init__(self, column: str, names: Names):
        self.column, self.names = column, names

    @property
    def columns(self) -> list[str]:
        return ["doc", "token", *self.names.columns.values(), "surprisal", "pieces"]

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict]:
        groups, pieces = pieces_by_token(doc, self.names), doc._.get(self.names.data)["pieces"]
        for token in doc:
            if token.is_space:
                continue
            scores = {name: token._.get(name) for name in self.names.columns.values()}
            primary = token._.get(self.names.score)
            surprisal = None if primary is None else -primary / math.log(2)  # bits
            row = {"doc": number, "token": token.i, self.column: token.text, **record.fields, **scores}
            yield {**row, "surprisal": surprisal, "pieces": [pieces[i] for i in groups[token.i]]}


class ListRows(TextRows):
    """One row a text, with its tokens that are not white space in lists: their texts, scores and wordpieces."""

    keep_pieces = True

    @property
    def token_columns(self) -> dict[str, str]:
        """Of the columns that hold lists: the key of `TokenRows` that their entries have."""
        scores = {f"token_{name}": name for name in self.names.columns.values()}
        return {"tokens": self.column, **scores, "token_pieces": "pieces"}

    @property
    def columns(self) -> list[str]:
        return [*super().columns, *self.token_columns]

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict]:
        tokens = list(TokenRows(self.column, self.names)(number, doc, record._replace(fields={})))
        lists = {name: [token[key] for token in tokens] for name, key in self.token_columns.items()}
        for row in TextRows(self.column, self.names)(number, doc, record):
            yield {**row, **lists}


class ProdigyRows:
    """One task a text, as Prodigy reads it. `meta.score` is the mean score of a wordpiece, until `Tasks` ranks it.

    The mean, since the sum would rank texts by their length above all.
    """

    keep_pieces = False
    columns = ["text", "tokens"]

    def __init__(self, column: str, names: Names):
        self.names = names

    def __call__(self, number: int, doc: Doc, record: Record) -> Iterator[dict]:
        meta = record.fields.get("meta", {})
        if not isinstance(meta, dict):
            meta = {"meta": meta}
        tokens = [
            {"text": token.text, "start": token.idx, "end": token.idx + len(token), "id": token.i,
             "ws": bool(token.whitespace_)}
            for token in doc
        ]  # fmt: skip
        score, n = doc._.get(self.names.score), doc._.get(self.names.pieces)
        scores = {name: doc._.get(name) for name in self.names.columns.values()}
        meta = {**meta, "score": score / n if n else None, **scores}
        yield {"text": doc.text, **record.fields, "tokens": tokens, "meta": meta}


class JsonLines:
    """One JSON object a line."""

    def __init__(self, rows: Callable, fields: list[str]):
        self.rows = rows

    def encode(self, scored: Iterable[tuple[int, Doc, Record]]) -> Iterator[bytes]:
        for item in scored:
            for row in self.rows(*item):
                yield json.dumps(row, ensure_ascii=False).encode("utf8") + b"\n"

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        yield from parts


class Tasks(JsonLines):
    """Prodigy's tasks: the scores are replaced by their ranks when all are there, so the parts are read twice."""

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        scores = np.fromiter((_score(task) for part in parts for task in _tasks(part)), dtype=np.float64)
        ranks = iter(rank_shares(scores).tolist())
        for part in parts:
            for task in _tasks(part):
                rank = next(ranks)
                task["meta"]["score"] = None if math.isnan(rank) else round(rank, 6)
                yield json.dumps(task, ensure_ascii=False).encode("utf8") + b"\n"


def _tasks(part: bytes) -> Iterator[dict]:
    return map(json.loads, part.splitlines())


def _score(task: dict) -> float:
    score = task["meta"]["score"]
    return math.nan if score is None else score


def rank_shares(scores: np.ndarray) -> np.ndarray:
    """From 0.0 for the lowest score to 1.0 for the highest, in equal steps; equal scores share the mean of theirs.

    scores (float array, shape (texts,)): NaN where there is none.
    RETURNS (float array, shape (texts,)): NaN there as well; 0.5 where there is one score only.
    """
    known = ~np.isnan(scores)
    _, group, count = np.unique(scores[known], return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count + 1) / 2
    shares = np.full(len(scores), np.nan)
    last = known.sum() - 1
    shares[known] = mean_rank[group] / last if last > 0 else 0.5
    return shares


class Table(JsonLines):
    """Comma-separated values, with a header. A list of wordpieces is joined with spaces."""

    def __init__(self, rows: Callable, fields: list[str]):
        first = [rows.column, *fields] if isinstance(rows, TextRows) else ["doc", "token", rows.column, *fields]
        self.rows = rows
        self.header = [*first, *(name for name in rows.columns if name not in first)]

    def encode(self, scored: Iterable[tuple[int, Doc, Record]]) -> Iterator[bytes]:
        for item in scored:
            yield self._encoded({name: _cell(value) for name, value in row.items()} for row in self.rows(*item))

    def _encoded(self, rows: Iterable[dict]) -> bytes:
        buffer = io.StringIO()
        csv.DictWriter(buffer, self.header, lineterminator="\n").writerows(rows)
        return buffer.getvalue().encode("utf8")

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        yield self._encoded([dict(zip(self.header, self.header))])
        yield from parts


def _cell(value):
    if isinstance(value, list) and all(isinstance(x, str) for x in value):
        return " ".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict | bool) else value


class Docs:
    """spaCy's own format. It is one compressed block, so joining the parts holds all of it in memory."""

    def __init__(self, rows: Callable, fields: list[str]):
        pass

    def encode(self, scored: Iterable[tuple[int, Doc, Record]]) -> Iterator[bytes]:
        docs = DocBin(store_user_data=True)
        for _, doc, record in scored:
            if record.fields:
                doc.user_data[FIELDS] = record.fields
            docs.add(doc)
        yield docs.to_bytes()

    def merge(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        merged = DocBin(store_user_data=True)
        for part in parts:
            merged.merge(DocBin(store_user_data=True).from_bytes(part))
        yield merged.to_bytes()


FORMATS = {".jsonl": JsonLines, ".csv": Table, ".spacy": Docs}


def check_fields(fields: list[str], columns: list[str], path: str):
    """RAISES (InputError): A field of the input has the name of a column that scoring adds."""
    clash = [name for name in columns if name in fields]
    if clash:
        raise InputError(
            f"{path} already has the field {clash[0]!r}, which would be overwritten. Rename it, or take it out."
        )
