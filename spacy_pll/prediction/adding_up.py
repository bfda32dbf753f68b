"""What the answers of a model add up to: the record of the wordpieces of each doc."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arrays import FloatArray, Groups, IntArray, begins
from ..attributes.joined import piece_checks, text_crc
from ..attributes.record import Stored, StoredAlternative
from ..language_model.protocol import Loaded
from ..scoring.piece_texts import PieceTexts
from ..scoring.scores import Distributions
from ..settings import ScoringSettings
from .asking import Asking, PendingScores
from .tokenized import TokenizedDocs


@dataclass(frozen=True)
class ScoredPieces:
    """The pieces that were scored, or could have been drawn, in the order of the tokens, each once."""

    wordpiece: IntArray  # int, shape (pieces,): index among all wordpieces
    token: IntArray  # int, shape (pieces,): index of the piece's token among the tokens of all docs
    window: IntArray  # int, shape (pieces,): number of its window in its span, from 0
    scores: FloatArray  # float64, shape (metrics, pieces), natural log
    distributions: Distributions | None  # under the first metric; None if they were not asked for


def add_up(
    batch: TokenizedDocs, answers: PendingScores, settings: ScoringSettings, asking: Asking, loaded: Loaded
) -> Iterator[Stored]:
    """Wait for the log-probabilities, and make the record of each doc. RAISES (ValueError): One is not finite."""
    contexts = batch.contexts
    scores, expected = answers.result()
    scored = np.flatnonzero(contexts.scored)
    # Spans may come in any order; the pieces of a token are in one of them.
    scored = scored[np.lexsort((contexts.piece[scored], batch.wordpieces.token[contexts.piece[scored]]))]
    pieces = ScoredPieces(
        wordpiece=contexts.piece[scored],
        token=batch.wordpieces.token[contexts.piece[scored]],
        window=contexts.window[contexts.context[scored]],
        scores=scores[:, scored],
        distributions=expected and expected.at(scored),
    )
    _check_finite(batch, pieces, asking, loaded)
    names = settings.metrics if len(settings.metrics) == len(scores) else [*map(str, range(len(scores)))]
    return _records(batch, pieces, names, settings, loaded)


def _records(
    batch: TokenizedDocs, pieces: ScoredPieces, metrics: Sequence[str], settings: ScoringSettings, loaded: Loaded
) -> Iterator[Stored]:
    """One doc after the other, from arrays of all docs: what is done for each doc alone takes many times as long."""
    pieces_of = Groups(np.diff(np.searchsorted(pieces.token, batch.read.tokens_of.edges)))
    columns, checks = _places(batch, pieces, pieces_of)
    is_drawn = None if batch.drawn is None else batch.drawn.is_drawn[pieces.token].tolist()

    def of_drawn(values: list[Any]) -> list[Any]:
        return values if is_drawn is None else [x if drawn else None for x, drawn in zip(values, is_drawn)]

    scores = {metric: tuple(of_drawn(row.tolist())) for metric, row in zip(metrics, pieces.scores)}
    if pieces.distributions and settings.distribution:
        columns |= {name: of_drawn(getattr(pieces.distributions, name).tolist()) for name in ("rank", "entropy")}
    if pieces.distributions and settings.alternatives:
        columns["alternatives"] = of_drawn(name_alternatives(pieces.distributions, PieceTexts(loaded.tokenizer)))
    if batch.drawn is not None:
        columns["unit"] = batch.drawn.unit[pieces.token].tolist()
    if settings.keep_pieces:
        columns |= _spelled(batch, pieces, pieces_of, loaded)
    approximate = {name: of for name in ("mask_spacing", "mask_margin") if (of := getattr(settings, name)) is not None}
    of_pieces = {name: tuple(values) for name, values in columns.items()}
    for d, (own, scored) in enumerate(zip(pieces_of, _scored_runs(batch))):
        record = {"crc": text_crc(batch.read.texts[d]), "checks": checks[own], "scored": scored, **approximate}
        for name, values in of_pieces.items():
            record[name] = values[own]
        record["scores"] = {metric: values[own] for metric, values in scores.items()}
        if batch.drawn is not None:
            record["drawn"] = ((*batch.drawn.draws[d], 0),)
        yield record


def _places(batch: TokenizedDocs, pieces: ScoredPieces, pieces_of: Groups) -> tuple[dict[str, list[Any]], str]:
    """The gaps between the characters at which pieces begin, and their checks."""
    texts, wordpieces = Groups.of(batch.read.texts), batch.wordpieces
    start, token_start = wordpieces.start[pieces.wordpiece], np.array(batch.read.starts, dtype=np.int64)[pieces.token]
    # A piece without a character of its own belongs to a token all the same.
    begin = np.where(wordpieces.end[pieces.wordpiece] > start, start, token_start) + texts.starts[pieces_of.owner]
    begin = np.maximum.accumulate(begin)
    end = np.append(begin, 0)[1:]
    last = pieces_of.ends[pieces_of.lengths > 0] - 1
    end[last] = texts.ends[pieces_of.owner[last]]
    checks = piece_checks("".join(batch.read.texts), begin, end).tobytes().decode("ascii")
    first = pieces_of.starts[pieces_of.lengths > 0]
    before = np.append(0, begin)[:-1]
    before[first] = texts.starts[pieces_of.owner[first]]
    return {"gaps": (begin - before).tolist()}, checks


def _spelled(batch: TokenizedDocs, pieces: ScoredPieces, pieces_of: Groups, loaded: Loaded) -> dict[str, list[Any]]:
    """What `keep_pieces` keeps."""
    columns = {name: getattr(batch.wordpieces, name)[pieces.wordpiece].tolist() for name in ("ids", "start", "end")}
    word = np.cumsum(begins(batch.wordpieces.word[pieces.wordpiece]))
    columns["word"] = (word - word[pieces_of.starts[pieces_of.owner]]).tolist()
    return columns | {"window": pieces.window.tolist(), "pieces": [*map(loaded.tokenizer.id_to_token, columns["ids"])]}


def _scored_runs(batch: TokenizedDocs) -> Iterator[tuple[int, ...]]:
    """Of each doc, where runs of scored tokens begin and end, in characters."""
    read, n = batch.read, len(batch.scored)
    edge = np.zeros(n + 1, dtype=bool)
    edge[read.tokens_of.edges] = True  # no run goes on in the next doc
    before, after = np.append(False, batch.scored), np.append(batch.scored, False)
    begin, end = np.flatnonzero(after & (edge | ~before)), np.flatnonzero(before & (edge | ~after))
    starts, owner = np.append(read.starts, 0).astype(np.int64), read.tokens_of.owner[begin]
    lengths = np.fromiter(map(len, read.texts), np.int64, len(read.texts))
    ends = np.where(edge[end], lengths[owner], starts[end])
    places = tuple(np.stack([starts[begin], ends], axis=-1).ravel().tolist())
    for own in Groups(2 * Groups.by(owner, len(read.texts)).lengths):
        yield places[own]


def _check_finite(batch: TokenizedDocs, pieces: ScoredPieces, asking: Asking, loaded: Loaded) -> None:
    """RAISES (ValueError): A score is not finite. The message shows its text."""
    finite = np.isfinite(pieces.scores).all(axis=0)
    if not finite.all():
        wordpiece = pieces.wordpiece[finite.argmin()]
        text = batch.read.texts[batch.pieces_of.owner[wordpiece]][:100]
        mask = "It has the mask of the model in it, which this model never predicts. Take it out."
        is_mask = batch.wordpieces.ids[wordpiece] == loaded.mask_id
        asking.check_finite(pieces.scores, f", for the text {text!r}. Nothing was stored", mask if is_mask else "")


def name_alternatives(distributions: Distributions, texts: PieceTexts) -> list[tuple[StoredAlternative, ...]]:
    """The most probable pieces at each scored piece. Those whose probability is 0 are left out."""
    return [
        tuple((texts[i].text, p, texts[i].begins_word) for i, p in zip(ids, log_probs) if p > -math.inf)
        for ids, log_probs in zip(distributions.ids.T.tolist(), distributions.log_probs.T.tolist())
    ]
