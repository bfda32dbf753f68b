"""What a model is asked about candidates in gaps, and how probable it finds them there.

Under `word_l2r`, what a model says of a piece of a candidate depends on the pieces before it and on how many follow. So
a gap needs one masked row for each number of pieces and each beginning, however many candidates share them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from spacy.language import Language
from spacy.util import minibatch

from ..arrays import FloatArray, Groups, IntArray, lazy
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..prediction.asking import Asking, PendingLogProbs
from ..prediction.batches import with_next_ahead
from ..prediction.reading import DocReading
from ..scoring.piece_texts import PieceTexts
from ..scoring.windows import Context, Contexts
from ..span_getters import TEXT_SPAN, get_doc_spans
from ..stream.contexts import SHARED_ADVICE, doc_in_context, read_places
from ..user_warnings import warn_user
from .gaps import Slot
from .piece_words import known_words

# The most texts that are scored together, on a CPU and on a GPU: what is found of them is kept when all are scored. The
# most candidates of texts, and log-probabilities in memory.
MAX_TEXTS, MAX_CANDIDATES, MAX_ANSWERS = (250, 8000), 2**22, 2**24
# What stands beside a gap, up to the next white space. Tokenizers divide words there.
BEFORE, AFTER = re.compile(r"(?<=\S)\s+\S*\Z"), re.compile(r"\S*\s+(?=\S)")
T = TypeVar("T")
Pieces = tuple[int, ...]  # ids
Reading = tuple[Pieces, Pieces, Pieces]  # what stands before a candidate, its pieces, and what stands behind them
Sides = tuple[Pieces, Pieces]  # what stands before it, and behind it
AskedRow = tuple[int, int, Pieces]  # what is asked: between which sides, for how many pieces, and those that are known


class Filler(NamedTuple):
    """A candidate in a gap. Scores are natural logarithms, under `word_l2r`."""

    text: str
    score: float | None  # the sum over its wordpieces; None if the tokenizer does not know a character of it
    pieces: int
    model_probability: float | None  # exp(score), where one wordpiece makes the word: among the whole vocabulary
    probability: float | None  # exp(score), normalised so that the candidates' probabilities sum to 1
    rank: int | None  # 1 if no candidate is more probable
    is_gold: bool | None = None  # None if no candidate is known to be right


class SpelledCandidates(NamedTuple):
    """Candidates as a model reads them in a gap."""

    pieces: list[Pieces]  # of each candidate; none if the tokenizer does not know it
    n_pieces: IntArray  # int, shape (candidates,)
    sides: list[Sides]  # what is read before and behind a candidate; it may differ between them
    longest: list[int]  # for each of these, the candidate with the most pieces
    rows: list[AskedRow]
    # For each piece of each candidate, by rows. int arrays, shape (pieces,).
    row: IntArray
    piece: IntArray
    owner: IntArray  # its candidate

    @classmethod
    def of(cls, read: Sequence[Reading]) -> "SpelledCandidates":
        """read (Sequence[Reading]): How each candidate is read; one without pieces is not known."""
        sides, rows = dict[Sides, int](), dict[AskedRow, int]()
        longest, entries = list[int](), list[tuple[int, int, int]]()
        for number, (before, own, behind) in enumerate(read):
            if own and (side := sides.setdefault((before, behind), len(sides))) == len(longest):
                longest.append(number)
            for i, piece in enumerate(own):
                entries.append((rows.setdefault((side, len(own), own[:i]), len(rows)), piece, number))
                longest[side] = max(longest[side], number, key=lambda candidate: len(read[candidate][1]))
        columns = np.array(sorted(entries), dtype=np.int64).reshape(-1, 3).T
        pieces = [own for _, own, _ in read]
        return cls(pieces, np.array([*map(len, pieces)]), list(sides), longest, list(rows), *columns)


@dataclass(frozen=True)
class _Block(Generic[T]):
    """The candidates of some gaps that are asked for together."""

    key: T  # what the gaps belong to
    spelled: Sequence[SpelledCandidates]
    ids: IntArray  # int, shape (ids,): those that are asked for
    column: IntArray  # int, shape (vocabulary,): where each id is among these
    starts: IntArray  # int, shape (gaps,): the number of each gap's first row
    n_rows: int
    scores: list[FloatArray]  # of each gap, float64, shape (candidates,): what is known of them so far

    @classmethod
    def of(cls, key: T, spelled: Sequence[SpelledCandidates]) -> "_Block[T]":
        # Slots with the same candidates share these arrays, which may be long.
        wanted = (
            np.bincount(np.concatenate([*{id(spelling.piece): spelling.piece for spelling in spelled}.values()])) > 0
        )
        rows_of = Groups.of([spelling.rows for spelling in spelled])
        scores: list[FloatArray] = [np.zeros(len(spelling.pieces)) for spelling in spelled]
        ids, column = np.flatnonzero(wanted), np.cumsum(wanted) - 1
        return cls(key, spelled, ids, column, rows_of.starts, int(rows_of.edges[-1]), scores)

    def add(self, first: int, log_probs: FloatArray) -> None:
        """Add what the model says in some rows. first (int): The number of the first one."""
        for spelling, sums, start in zip(self.spelled, self.scores, (self.starts - first).tolist()):
            own = slice(*np.searchsorted(spelling.row, [-start, log_probs.shape[1] - start]))
            if own.start < own.stop:
                said = log_probs[self.column[spelling.piece[own]], spelling.row[own] + start]
                sums += np.bincount(spelling.owner[own], said, len(sums))


class Slots:
    """Asks the model of a component for candidates in gaps.

    nlp, shared_pieces: See `slots.slots`.
    RAISES (PLLError): The component's metric is not word_l2r.
    """

    def __init__(self, nlp: Language, shared_pieces: bool = False):
        scorer = get_scorer(nlp)
        if (metric := scorer.settings.metrics[0]) != "word_l2r":
            raise PLLError(
                f"Candidates in a gap are scored under word_l2r: {metric!r} would cost passes for each candidate.",
                "Set `metrics` to word_l2r, with a masked model, or use score_continuations, which takes any metric.",
            )
        self.nlp, self.shared_pieces = nlp, shared_pieces
        # What a context asks for is masked as one word.
        self.asking = Asking(scorer.model, ["whole_word"], scorer.settings.max_batch_tokens)
        self.reading = DocReading(self.asking, get_doc_spans, scorer.settings.words, TEXT_SPAN, TEXT_SPAN)
        self.loaded = self.asking.prepare()
        if self.loaded.prompts:
            raise PLLError(
                "Candidates in a gap are scored without guidance, and the model has `cfg`.",
                "Leave out `cfg`, which is in a config, or use score_continuations.",
            )
        self.max_texts = MAX_TEXTS[self.loaded.on_gpu]
        self.alike = dict[str, str]()  # candidates, and others of which the tokenizer makes the same
        self.texts = PieceTexts(self.loaded.tokenizer)
        two_words = " ".join([self.known_word] * 2)
        numbers = self.loaded.tokenizer.encode(two_words, add_special_tokens=False).word_ids
        self.divides_at_spaces = bool(numbers) and numbers[0] != numbers[-1]
        self.spell = lru_cache(1000)(self._spell)

    @property
    def n_ids(self) -> int:
        """How many ids have both a piece and an embedding."""
        return min(self.loaded.tokenizer.get_vocab_size(), self.loaded.n_ids)

    @lazy
    def known_word(self) -> str:
        """A word of one piece, which stands for any other one."""
        return next(known_words(self.texts, self.n_ids), "a")

    def fill(
        self, slots: Sequence[Slot], keep: int | None = None, done: int = 0, warns: bool = True
    ) -> Iterator[list[list[Filler]]]:
        """The candidates of each slot, as `slots.slots` returns them, in batches.

        done (int): The slots of the first batches, which are known. What is wrong with their candidates is said again.
        warns (bool): Of unknown candidates.
        """
        most, unknown = MAX_CANDIDATES // max((len(slot.candidates) for slot in slots), default=1), dict[str, str]()
        blocks = [*minibatch(slots, max(1, min(self.max_texts, most)))]

        def spelled() -> Iterator[tuple[list[tuple[Slot, SpelledCandidates]], list[SpelledCandidates]]]:
            for block, end in zip(blocks, accumulate(map(len, blocks))):
                spellings = self.spelled(block)
                for slot, spelling in zip(block, spellings):
                    for number in np.flatnonzero(spelling.n_pieces == 0).tolist():
                        unknown.setdefault(slot.candidates[number], f"{slot.place}, candidate {number + 1}")
                if end > done:
                    yield [*zip(block, spellings)], spellings

        for block, scores in self.scores(spelled()):
            yield [fillers(slot, spelling, sums, keep) for (slot, spelling), sums in zip(block, scores)]
        if unknown and warns:
            (text, where), n = next(iter(unknown.items())), len(unknown)
            warn_user(
                f"{n:,} candidate{'s have' if n > 1 else ' has'} a character that the tokenizer does not know, such as "
                f"{text!r:.100} ({where}). There is no score, probability or rank for {'them' if n > 1 else 'it'}."
            )
        if self.alike and warns:
            text, other = next(iter(self.alike.items()))
            warn_user(
                f"To the tokenizer, {len(self.alike):,} of the candidates are equal to others, such as {text!r:.100} "
                f"to {other!r:.100}. They share a rank, and each counts in the probabilities. Leave one of them out."
            )

    def spelled(self, block: Sequence[Slot]) -> list[SpelledCandidates]:
        """How candidates are read in their texts. RAISES (InputError): One cannot be scored there."""
        spellings, near = list[SpelledCandidates](), [self.near(slot) for slot in block]
        read = iter(self.read([(slot, n) for slot, spelling in zip(block, near) for n in spelling.longest]))
        for slot, spelling in zip(block, near):
            readings = [*islice(read, len(spelling.longest))]
            if [own for _, own, _ in readings] == [spelling.pieces[number] for number in spelling.longest]:
                spellings.append(spelling._replace(sides=[(before, behind) for before, _, behind in readings]))
            else:  # the tokenizer looks further than to the next white space
                each = zip(self.read([(slot, n) for n in range(len(slot.candidates))]), spelling.pieces)
                spellings.append(SpelledCandidates.of([reading if own else ((), (), ()) for reading, own in each]))
        return spellings

    def beside(self, slot: Slot) -> tuple[str, str]:
        """What stands close to the gap, before and after it. Behind white space, any word may stand."""
        before, after = slot.before, slot.after
        if self.divides_at_spaces:
            before = f"{self.known_word}{touching[0]}" if (touching := BEFORE.search(before)) else before
            after = f"{touching[0]}{self.known_word}" if (touching := AFTER.match(after)) else after
        return before, after

    def near(self, slot: Slot) -> SpelledCandidates:
        """How candidates are read between what stands close to the gap."""
        try:
            spelling = self.spell(slot.candidates, *self.beside(slot))
        except InputError as error:
            raise InputError(f"{slot.place}: {error.problem}", error.advice) from None
        if not spelling.rows:
            raise InputError(f"{slot.place}: the tokenizer knows no candidate, such as {slot.candidates[0]!r:.100}.")
        return spelling

    def _spell(self, candidates: tuple[str, ...], before: str, after: str) -> SpelledCandidates:
        """RAISES (InputError): A candidate cannot be scored there."""
        encoded, scored, states = read_places(self.loaded, [(text, before, after) for text in candidates])
        ids, own, readings = encoded.ids.tolist(), scored.tolist(), list[Reading]()
        most = self.loaded.max_length - self.loaded.tokenizer.num_special_tokens_to_add(False)
        for text, (has_own, shared), of_text in zip(candidates, states, encoded.pieces_of):
            n = sum(own[of_text])
            if shared and not self.shared_pieces:
                raise InputError(f"The candidate {text!r:.100} {shared}", SHARED_ADVICE)
            if not has_own or n > most:
                problem = f"more wordpieces than the model reads ({most})" if n > most else "no wordpiece of its own"
                raise InputError(f"The candidate {text!r:.100} has {problem}. Leave it out.")
            first = own.index(True, of_text.start)
            pieces = tuple(ids[first : first + n])
            known = self.loaded.unknown_id not in pieces
            readings.append(
                (tuple(ids[of_text.start : first]), pieces if known else (), tuple(ids[first + n : of_text.stop]))
            )
        first_with = dict[Pieces, str]()
        for text, (_, pieces, _) in zip(candidates, readings):
            if pieces and first_with.setdefault(pieces, text) != text:
                self.alike.setdefault(text, first_with[pieces])
        return SpelledCandidates.of(readings)

    def read(self, candidates: Sequence[tuple[Slot, int]]) -> list[Reading]:
        """How some candidates are read in their texts, each given by its slot and its number there."""
        docs = [
            doc_in_context(self.nlp, slot.candidates[number], slot.before, slot.after) for slot, number in candidates
        ]
        readings = list[Reading]()
        for context in self.reading.read(docs, self.loaded).contexts if docs else ():
            ids, scored = context.ids.tolist(), (context.first + np.flatnonzero(context.scored)).tolist()
            first, end = scored[0], scored[-1] + 1
            readings.append((tuple(ids[:first]), tuple(ids[first:end]), tuple(ids[end:])))
        if len(readings) != len(docs):
            raise InputError("A candidate, with the words whose pieces it shares, is longer than the model reads.")
        return readings

    def scores(self, blocks: Iterable[tuple[T, Sequence[SpelledCandidates]]]) -> Iterator[tuple[T, list[FloatArray]]]:
        """Of some blocks of gaps, each with what it belongs to, the scores of the candidates in each gap; 0 for unknown
        ones. float64, shape (candidates,).

        RAISES (ValueError): One is not finite.
        """

        def asked() -> Iterator[tuple["_Block[T]", Sequence[tuple[Sides, int, Pieces]], IntArray]]:
            for key, spelled in blocks:
                block = _Block.of(key, spelled)
                yield (
                    block,
                    [(spelling.sides[side], n, begun) for spelling in spelled for side, n, begun in spelling.rows],
                    block.ids,
                )

        for block, first, log_probs in self.answers(asked()):
            block.add(first, log_probs)
            if first + log_probs.shape[1] == block.n_rows:
                self.asking.check_finite(np.concatenate(block.scores))
                yield block.key, block.scores

    def answers(
        self, asked: Iterable[tuple[T, Sequence[tuple[Sides, int, Pieces]], IntArray]]
    ) -> Iterator[tuple[T, int, FloatArray]]:
        """The log-probabilities of ids as the next piece, in batches of bounded size: what asks, the number of the
        first row among its own, and an array of shape (ids, rows). On a GPU, the next batch is ahead.

        asked (Iterable[Tuple[T, Sequence[Tuple[Sides, int, Pieces]], IntArray]]): What asks; for each row what stands
            beside the gap, the number of pieces in it, and the first of them; and the ids.
        """

        def read(sides: Sides, n: int, begun: Pieces) -> Context:
            first, masks = len(sides[0]) + len(begun), n - len(begun)
            row = np.array([*sides[0], *begun, *[self.loaded.mask_id] * masks, *sides[1]], dtype=np.int32)
            return Context.asking(row, first, np.arange(masks) == 0, np.ones(masks, dtype=bool))

        def submitted() -> Iterator[tuple[T, int, PendingLogProbs]]:
            for key, rows, ids in asked:
                longest = max(len(before) + n + len(behind) for (before, behind), n, _ in rows)
                size = max(1, min(self.loaded.ids_at_once // longest, MAX_ANSWERS // len(ids)))
                for first in range(0, len(rows), size):
                    contexts = Contexts.of([read(*asked_row) for asked_row in rows[first : first + size]])
                    yield key, first, self.asking.submit_ids(contexts, self.loaded, ids.tolist())

        for key, first, pending in with_next_ahead(submitted(), self.loaded.on_gpu):
            yield key, first, pending.result()


def fillers(slot: Slot, spelling: SpelledCandidates, scores: FloatArray, keep: int | None = None) -> list[Filler]:
    """The candidates of a slot with their scores, as `slots` returns them. Equal ones keep their order."""
    costs = np.where(spelling.n_pieces > 0, -scores, np.inf)
    kept, least = np.arange(len(costs)), costs.min()
    total = math.log(np.exp(least - costs).sum()) - least  # np.logaddexp.reduce takes three times as long
    if keep is not None and keep < len(costs):
        kept = np.flatnonzero(costs <= min(np.partition(costs, keep - 1)[keep - 1], np.finfo(np.float64).max))
    kept = kept[np.argsort(costs[kept], kind="stable")]
    ranks = dict(zip(kept.tolist(), (1 + np.searchsorted(costs[kept], costs[kept])).tolist()))
    if slot.gold is not None and (right := slot.candidates.index(slot.gold)) not in ranks:
        ranks[right] = 1 + int((costs < costs[right]).sum())
    made = list[Filler]()
    for i, rank in ranks.items():
        text, n, score = slot.candidates[i], int(spelling.n_pieces[i]), float(scores[i])
        is_gold = None if slot.gold is None else text == slot.gold
        filler = Filler(text, None, 0, None, None, None, is_gold)  # the tokenizer does not know it
        if n:
            of_model = math.exp(score) if n == 1 else None
            filler = Filler(text, score, n, of_model, math.exp(score - total), rank, is_gold)
        made.append(filler)
    return made
