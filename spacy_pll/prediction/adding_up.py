"""What the answers of a model add up to: scores by token, and what was expected there."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..arrays import FloatArray, IntArray, begins
from ..attributes.piece_record import PieceRecord, StoredAlternative
from ..language_model.protocol import Loaded
from ..scoring.piece_texts import PieceTexts
from ..scoring.sample import Draw
from ..scoring.scores import Distributions
from ..settings import ScoringSettings
from .asking import Asking, PendingScores
from .tokenized import TokenizedDocs


class DocScores(NamedTuple):
    """The scores of one doc, by token, as Python's numbers."""

    starts: list[int]  # the character with which each token begins
    scored: list[bool]  # where False, the attributes stay None
    pieces: list[int]  # scored wordpieces
    scores: list[list[float]]  # for each metric, natural log
    record: PieceRecord | None = None  # None without `keep_pieces`
    # What the model expected, under the primary metric: a value per token, by the attributes' names in `Names`.
    expected: Mapping[str, list[Any]] = MappingProxyType({})
    draws: Sequence[Draw | None] = ()  # with `sample_words`, how each token was drawn


@dataclass(frozen=True)
class ScoredPieces:
    """The pieces that were scored, or could have been drawn, in the order of docs and spans, each once."""

    place: IntArray  # int, shape (pieces,): index among all wordpieces
    token: IntArray  # int, shape (pieces,): index of the piece's token among the tokens of all docs
    word: IntArray  # int, shape (pieces,): the piece's word; each span has its own
    window: IntArray  # int, shape (pieces,): number of its window in its span, from 0
    scores: FloatArray  # float64, shape (metrics, pieces), natural log
    distributions: Distributions | None  # under the first metric; None if they were not asked for


def add_up(
    batch: TokenizedDocs, answers: PendingScores, settings: ScoringSettings, asking: Asking, loaded: Loaded
) -> Iterator[DocScores]:
    """Wait for the log-probabilities, and sum them up by token. RAISES (ValueError): One is not finite."""
    contexts = batch.contexts
    scores, expected = answers.result()
    here = np.flatnonzero(contexts.scored)
    here = here[np.argsort(contexts.piece[here], kind="stable")]
    place = contexts.piece[here]
    pieces = ScoredPieces(
        place=place,
        token=batch.wordpieces.token[place],
        word=batch.wordpieces.word[place],
        window=contexts.window[contexts.context[here]],
        scores=scores[:, here],
        distributions=expected and expected.at(here),
    )
    _check_finite(batch, pieces, asking, loaded)
    return _of_docs(batch, pieces, settings, loaded)


def _of_docs(
    batch: TokenizedDocs, pieces: ScoredPieces, settings: ScoringSettings, loaded: Loaded
) -> Iterator[DocScores]:
    """One doc after the other: lists that live long are work for Python's garbage collector."""
    starts, n = batch.read.starts, len(batch.read.starts)
    scored, counts = batch.scored.tolist(), np.bincount(pieces.token, minlength=n).tolist()
    # Without a piece, `bincount` gives integers.
    sums = [np.bincount(pieces.token, row, n).astype(np.float64).tolist() for row in pieces.scores]
    edges = np.searchsorted(pieces.place, batch.pieces_of.edges).tolist()
    keeps = settings.keep_pieces or pieces.distributions is not None
    texts = PieceTexts(loaded.tokenizer) if keeps else None  # made once: that takes time
    for d, own in enumerate(batch.read.tokens_of):
        kept = _of_pieces(batch, pieces, d, slice(edges[d], edges[d + 1]), texts, settings) if texts is not None else {}
        of_metrics = [row[own] for row in sums]
        yield DocScores(starts[own], scored[own], counts[own], of_metrics, **kept, draws=batch.draws[own])


def _check_finite(batch: TokenizedDocs, pieces: ScoredPieces, asking: Asking, loaded: Loaded) -> None:
    """RAISES (ValueError): A score is not finite. The message shows its text."""
    finite = np.isfinite(pieces.scores).all(axis=0)
    if not finite.all():
        place = pieces.place[finite.argmin()]
        text = batch.read.texts[batch.pieces_of.owner[place]][:100]
        mask = "It has the mask of the model in it, which this model never predicts. Take it out."
        is_mask = batch.wordpieces.ids[place] == loaded.mask_id
        asking.check_finite(pieces.scores, f", for the text {text!r}. Nothing was stored", mask if is_mask else "")


def _of_pieces(
    batch: TokenizedDocs, pieces: ScoredPieces, d: int, own: slice, texts: PieceTexts, settings: ScoringSettings
) -> dict[str, Any]:
    """The record of a doc's pieces, and what the model expected, by token. own (slice): Its pieces."""
    token = pieces.token[own] - batch.read.tokens_of.starts[d]
    distributions = pieces.distributions and pieces.distributions.at(own)
    alternatives = name_alternatives(distributions, texts) if distributions else []
    found: dict[str, Any] = {}
    if settings.keep_pieces:
        drawn = batch.scored[pieces.token[own]].tolist()

        def of_drawn(values: Iterable[Any]) -> list[Any]:
            return [value if is_drawn else None for value, is_drawn in zip(values, drawn)]

        of_pieces = {name: getattr(batch.wordpieces, name)[pieces.place[own]] for name in ("ids", "start", "end")}
        of_pieces |= {"token": token, "word": np.cumsum(begins(pieces.word[own])) - 1, "window": pieces.window[own]}
        expected = ("rank", "entropy") if distributions and settings.distribution else ()
        found["record"] = PieceRecord(
            pieces=list(map(texts.tokenizer.id_to_token, of_pieces["ids"].tolist())),
            **{name: values.tolist() for name, values in of_pieces.items()},
            **{name: of_drawn(getattr(distributions, name).tolist()) for name in expected},
            scores={metric: of_drawn(row[own].tolist()) for metric, row in zip(settings.metrics, pieces.scores)},
            mask_spacing=settings.mask_spacing,
            mask_margin=settings.mask_margin,
            alternatives=of_drawn(alternatives) if settings.alternatives else None,
        )
    if distributions:
        found["expected"] = _expected(token, distributions, alternatives, len(batch.read.docs[d]), settings)
    return found


def _expected(
    token: IntArray,
    of_pieces: Distributions,
    alternatives: list[list[StoredAlternative]],
    n_tokens: int,
    settings: ScoringSettings,
) -> dict[str, list[Any]]:
    """From pieces to tokens: the largest rank (None without a piece), sums, and the first piece's alternatives."""
    expected: dict[str, list[Any]] = {}
    if settings.distribution:
        rank = np.zeros(n_tokens, dtype=int)
        np.maximum.at(rank, token, of_pieces.rank)
        expected["rank"] = [largest or None for largest in rank.tolist()]
        expected["entropy"] = np.bincount(token, of_pieces.entropy, n_tokens).astype(np.float64).tolist()
        expected["first_choices"] = np.bincount(token[of_pieces.rank == 1], minlength=n_tokens).tolist()
    if settings.alternatives:
        expected["alternatives"] = [[] for _ in range(n_tokens)]
        for number, first in zip(*np.unique(token, return_index=True)):
            expected["alternatives"][number] = alternatives[first]
    return expected


def name_alternatives(distributions: Distributions, texts: PieceTexts) -> list[list[StoredAlternative]]:
    """The most probable pieces at each scored piece. Those whose probability is 0 are left out."""
    return [
        [(texts[i].text, p, texts[i].begins_word) for i, p in zip(ids, log_probs) if p > -math.inf]
        for ids, log_probs in zip(distributions.ids.T.tolist(), distributions.log_probs.T.tolist())
    ]
