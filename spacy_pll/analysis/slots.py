"""Words in a gap: how probable each of many candidates is there, for many texts.

Under `word_l2r`, what a model says of a piece of a candidate depends on the pieces before it and on how many follow. So
a gap needs one masked row for each number of pieces and each beginning, however many candidates share them.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import accumulate, islice
from typing import Any, NamedTuple

import numpy as np
from spacy.language import Language
from spacy.util import minibatch

from ..arrays import FloatArray, Groups, IntArray, lazy
from ..component import get_scorer
from ..errors import InputError, PLLError
from ..prediction.predictor import Predictor
from ..scoring.piece_texts import PieceTexts
from ..scoring.windows import Context
from ..settings import ScoringSettings
from ..span_getters import TEXT_SPAN, get_doc_spans
from ..stream.contexts import SHARED_ADVICE, place, read_places
from ..stream.known import KeptScores, digest_of, find_each
from ..texts import check_texts, plain_text
from ..user_warnings import warn_user
from .gaps import GAP, Slot, distinct_candidates
from .word_search import known_words, search

# The most texts that are scored together, on a CPU and on a GPU: what is found of them is kept when all are scored. The
# most candidates of texts, and log-probabilities in memory.
MAX_TEXTS, MAX_CANDIDATES, MAX_ANSWERS = (250, 8000), 2**22, 2**24
# What stands beside a gap, up to the next white space. Tokenizers divide words there.
BEFORE, AFTER = re.compile(r"(?<=\S)\s+\S*\Z"), re.compile(r"\S*\s+(?=\S)")
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


def slots(
    nlp: Language,
    texts: Iterable[str],
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    *,
    gold: Sequence[str] | None = None,
    gap: str = GAP,
    keep: int | None = None,
    top: int | None = None,
    max_pieces: int = 3,
    shared_pieces: bool = False,
    component: str | None = None,
    show_progress: bool = False,
) -> list[list[Filler]]:
    """Score candidates in the gap of each text, under `word_l2r`. A candidate of several words is one phrase.

    The scores are those of `score_continuations`, and exact whatever `mask_margin` or `mask_spacing` is. A gap costs a
    row of a forward pass for each number of pieces and each beginning that candidates share: one row for all candidates
    of one piece. A text that is too long for the model is read in the window for the longest candidate.

    nlp (Language): A pipeline with a `pll` component and a masked model.
    texts (Iterable[str]): Texts with one gap each, such as "The ___ lost." White space beside it stays as it is.
    candidates (Optional[Union[Sequence[str], Sequence[Sequence[str]]]]): Words or phrases for all texts, or some for
        each text. None: Words are searched, and `top` says how many.
    gold (Optional[Sequence[str]]): The right candidate of each text.
    gap (str): The sign for the gap. If it repeats one character, as ___ does, a longer gap is found, too.
    keep (Optional[int]): Keep only this many of the best candidates of a text (more, if the last of them is as probable
        as others), and the right one. None: all.
    top (Optional[int]): Without candidates: find this many whole words with a beam search from left to right, which
        goes on with this many beginnings. A word with an improbable beginning may be missed.
    max_pieces (int): The most wordpieces of a word that is searched.
    shared_pieces (bool): Score also candidates that share a wordpiece with the text beside them: it belongs to the side
        where it begins. Otherwise it is an error.
    component (Optional[str]): The name of one of several `pll` components. None: the first.
    show_progress (bool): Show a progress bar.
    RETURNS (List[List[Filler]]): The candidates of each text, the best first. Those with a character that the tokenizer
        does not know have no score, are last, and are counted in a warning.
    RAISES (ValueError): A text has no gap or several, a candidate is empty, there twice or cannot be scored, or the
        metric is not word_l2r.

    ```python
    import spacy_pll

    nlp = spacy_pll.make_pipeline()
    texts, drinks = ["She poured ___ into her cup.", "She poured it into her ___."], ["tea", "cup", "hot milk"]
    for fillers in spacy_pll.slots(nlp, texts, drinks):
        print(*(f"{one.text} {one.probability:.1%}" for one in fillers), sep=", ")
    ```

    ```
    tea 97.2%, cup 2.4%, hot milk 0.4%
    cup 96.2%, tea 3.7%, hot milk 0.0%
    ```
    """
    check_texts(texts)
    check_texts(candidates, "candidates")
    check_texts(gold, "gold")
    given, every, some = [*texts], None, None if candidates is None else [*candidates]
    right = None if gold is None else [*gold]  # by their order, whatever index a pandas series has
    if (some is None) != (top is not None):
        raise InputError("Give either `candidates`, or as `top` the number of words to find.")
    for name, value in {"keep": keep, "top": top, "max_pieces": max_pieces}.items():
        if value is not None and value < 1:
            raise InputError(f"`{name}` must be 1 or more. It is {value}.")
    if keep is not None and top is not None:
        raise InputError("`top` says how many words there are. Leave out `keep`.")
    if some is not None and not some:
        raise InputError("There are no `candidates`. Give some, or as `top` the number of words to find.")
    if some is not None and isinstance(some[0], str):
        every = distinct_candidates("Candidate", some)
    of_each = some if some is not None and every is None else given
    if len(of_each) != len(given) or right is not None and len(right) != len(given):
        raise InputError(f"There are {len(given):,} texts. Give as many lists of `candidates`, and as many of `gold`.")
    made = list[Slot]()
    for i, text in enumerate(given):
        at = f"Text {i + 1}"
        own = every if of_each is given else distinct_candidates(f"{at}, candidate", of_each[i])
        made.append(Slot.of(plain_text(text, at), gap, own, None if right is None else right[i], at))
    return Slots(nlp, shared_pieces or top is not None, component).find(made, keep, top, max_pieces, show_progress)


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
                longest[side] = max(longest[side], number, key=lambda one: len(read[one][1]))
        columns = np.array(sorted(entries), dtype=np.int64).reshape(-1, 3).T
        pieces = [own for _, own, _ in read]
        return cls(pieces, np.array([*map(len, pieces)]), list(sides), longest, list(rows), *columns)


class Slots:
    """Asks the model of a component for candidates in gaps.

    nlp, shared_pieces, component: See `slots`.
    RAISES (PLLError): The component's metric is not word_l2r.
    """

    def __init__(self, nlp: Language, shared_pieces: bool = False, component: str | None = None):
        scorer = get_scorer(nlp, component)
        if (metric := scorer.settings.metrics[0]) != "word_l2r":
            raise PLLError(
                f"Candidates in a gap are scored under word_l2r: {metric!r} would cost passes for each candidate.",
                "Set `metrics` to word_l2r, with a masked model, or use score_continuations, which takes any metric.",
            )
        # What a context asks for is masked as one word.
        how: dict[str, Any] = {"words": scorer.settings.words, "max_batch_tokens": scorer.settings.max_batch_tokens}
        settings = ScoringSettings(("whole_word",), targets=TEXT_SPAN, units=TEXT_SPAN, **how)
        self.nlp, self.shared_pieces = nlp, shared_pieces
        self.predictor = Predictor(scorer.model, get_doc_spans, settings)
        self.loaded = self.predictor.prepare()
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
        return next(known_words(self), "a")

    def find(
        self,
        slots: Sequence[Slot],
        keep: int | None = None,
        top: int | None = None,
        max_pieces: int = 3,
        show_progress: bool = False,
        kept: KeptScores | None = None,
    ) -> list[list[Filler]]:
        """See `slots`. kept (Optional[KeptScores]): Has what is found of the first slots already, and gets the rest."""
        digest = lru_cache(digest_of)  # all slots may have the same candidates
        asked = [slot._replace(candidates=(digest(slot.candidates),)) for slot in slots] if kept else slots
        find = partial(self.fill, slots, keep) if top is None else partial(search, self, slots, top, max_pieces)
        found = find_each(asked, find, "texts", kept or KeptScores(), show_progress)
        return [[Filler(*one) for one in some] for some in found]

    def fill(
        self, slots: Sequence[Slot], keep: int | None = None, done: int = 0, warns: bool = True
    ) -> Iterator[list[list[Filler]]]:
        """The candidates of each slot, as `slots` returns them, in batches.

        done (int): The slots of the first batches, which are known. What is wrong with their candidates is said again.
        warns (bool): Of unknown candidates.
        """
        most, unknown = MAX_CANDIDATES // max((len(slot.candidates) for slot in slots), default=1), dict[str, str]()
        blocks = [*minibatch(slots, max(1, min(self.max_texts, most)))]
        for block, end in zip(blocks, accumulate(map(len, blocks))):
            spelled = self.spelled(block)
            for slot, spelling in zip(block, spelled):
                for number in np.flatnonzero(spelling.n_pieces == 0).tolist():
                    unknown.setdefault(slot.candidates[number], f"{slot.place}, candidate {number + 1}")
            if end > done:
                yield [fillers(*one, keep) for one in zip(block, spelled, self.scores(spelled))]
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
        found, near = list[SpelledCandidates](), [self.near(slot) for slot in block]
        read = iter(self.read([(slot, n) for slot, spelling in zip(block, near) for n in spelling.longest]))
        for slot, spelling in zip(block, near):
            there = [*islice(read, len(spelling.longest))]
            if [own for _, own, _ in there] == [spelling.pieces[number] for number in spelling.longest]:
                found.append(spelling._replace(sides=[(before, behind) for before, _, behind in there]))
            else:  # the tokenizer looks further than to the next white space
                each = zip(self.read([(slot, n) for n in range(len(slot.candidates))]), spelling.pieces)
                found.append(SpelledCandidates.of([one if own else ((), (), ()) for one, own in each]))
        return found

    def beside(self, slot: Slot) -> tuple[str, str]:
        """What stands close to the gap, before and after it. Behind white space, any word may stand."""
        before, after = slot.before, slot.after
        if self.divides_at_spaces:
            before = f"{self.known_word}{found[0]}" if (found := BEFORE.search(before)) else before
            after = f"{found[0]}{self.known_word}" if (found := AFTER.match(after)) else after
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
        ids, own, found = encoded.sequence[encoded.place].tolist(), scored.tolist(), list[Reading]()
        most = self.loaded.max_length - self.loaded.tokenizer.num_special_tokens_to_add(False)
        for text, (has_own, shared), some in zip(candidates, states, encoded.pieces_of):
            n = sum(own[some])
            if shared and not self.shared_pieces:
                raise InputError(f"The candidate {text!r:.100} {shared}", SHARED_ADVICE)
            if not has_own or n > most:
                problem = f"more wordpieces than the model reads ({most})" if n > most else "no wordpiece of its own"
                raise InputError(f"The candidate {text!r:.100} has {problem}. Leave it out.")
            first = own.index(True, some.start)
            pieces = tuple(ids[first : first + n])
            known = self.loaded.unknown_id not in pieces
            found.append((tuple(ids[some.start : first]), pieces if known else (), tuple(ids[first + n : some.stop])))
        first_with = dict[Pieces, str]()
        for text, (_, pieces, _) in zip(candidates, found):
            if pieces and first_with.setdefault(pieces, text) != text:
                self.alike.setdefault(text, first_with[pieces])
        return SpelledCandidates.of(found)

    def read(self, some: Sequence[tuple[Slot, int]]) -> list[Reading]:
        """How some candidates are read in their texts, each given by its slot and its number there."""
        docs = [place(self.nlp, slot.candidates[number], slot.before, slot.after) for slot, number in some]
        found = list[Reading]()
        for context in self.predictor.tokenize(docs).contexts if docs else ():
            ids, scored = context.ids.tolist(), (context.first + np.flatnonzero(context.scored)).tolist()
            first, end = scored[0], scored[-1] + 1
            found.append((tuple(ids[:first]), tuple(ids[first:end]), tuple(ids[end:])))
        if len(found) != len(docs):
            raise InputError("A candidate, with the words whose pieces it shares, is longer than the model reads.")
        return found

    def scores(self, spelled: Sequence[SpelledCandidates]) -> list[FloatArray]:
        """The scores of the candidates in each gap; 0 for unknown ones. float64, shape (candidates,).

        RAISES (ValueError): One is not finite.
        """
        # Slots with the same candidates share these arrays, which may be long.
        wanted = np.bincount(np.concatenate([*{id(one.piece): one.piece for one in spelled}.values()])) > 0
        column, starts = np.cumsum(wanted) - 1, Groups.of([one.rows for one in spelled]).starts
        asked = [(spelling.sides[side], n, begun) for spelling in spelled for side, n, begun in spelling.rows]
        found: list[FloatArray] = [np.zeros(len(one.pieces)) for one in spelled]
        for first, log_probs in self.answers(asked, np.flatnonzero(wanted)):
            for one, sums, start in zip(spelled, found, (starts - first).tolist()):
                own = slice(*np.searchsorted(one.row, [-start, log_probs.shape[1] - start]))
                if own.start < own.stop:
                    said = log_probs[column[one.piece[own]], one.row[own] + start]
                    sums += np.bincount(one.owner[own], said, len(sums))
        self.predictor.asking.check_finite(np.concatenate(found))
        return found

    def answers(self, asked: Sequence[tuple[Sides, int, Pieces]], ids: IntArray) -> Iterator[tuple[int, FloatArray]]:
        """The log-probabilities of ids as the next piece, in batches of bounded size: the number of the first row, and
        an array of shape (ids, rows).

        asked (Sequence[Tuple[Sides, int, Pieces]]): For each row what stands beside the gap, the number of pieces in
            it, and the first of them.
        """

        def read(sides: Sides, n: int, begun: Pieces) -> Context:
            first, masks = len(sides[0]) + len(begun), n - len(begun)
            row = np.array([*sides[0], *begun, *[self.loaded.mask_id] * masks, *sides[1]], dtype=np.int32)
            return Context.asking(row, first, np.arange(masks) == 0, np.ones(masks, dtype=bool))

        longest = max(len(before) + n + len(behind) for (before, behind), n, _ in asked)
        size = max(1, min(self.loaded.ids_at_once // longest, MAX_ANSWERS // len(ids)))
        for first in range(0, len(asked), size):
            contexts = [read(*one) for one in asked[first : first + size]]
            yield first, self.predictor.log_probs(contexts, ids.tolist())


def fillers(slot: Slot, spelling: SpelledCandidates, scores: FloatArray, keep: int | None = None) -> list[Filler]:
    """The candidates of a slot with their scores, as `slots` returns them. Equal ones keep their order."""
    costs = np.where(spelling.n_pieces > 0, -scores, np.inf)
    some, least = np.arange(len(costs)), costs.min()
    total = math.log(np.exp(least - costs).sum()) - least  # np.logaddexp.reduce takes three times as long
    if keep is not None and keep < len(costs):
        some = np.flatnonzero(costs <= min(np.partition(costs, keep - 1)[keep - 1], np.finfo(np.float64).max))
    some = some[np.argsort(costs[some], kind="stable")]
    ranks = dict(zip(some.tolist(), (1 + np.searchsorted(costs[some], costs[some])).tolist()))
    if slot.gold is not None and (right := slot.candidates.index(slot.gold)) not in ranks:
        ranks[right] = 1 + int((costs < costs[right]).sum())
    found = list[Filler]()
    for i, rank in ranks.items():
        text, n, score = slot.candidates[i], int(spelling.n_pieces[i]), float(scores[i])
        is_gold = None if slot.gold is None else text == slot.gold
        one = Filler(text, None, 0, None, None, None, is_gold)  # the tokenizer does not know it
        if n:
            of_model = math.exp(score) if n == 1 else None
            one = Filler(text, score, n, of_model, math.exp(score - total), rank, is_gold)
        found.append(one)
    return found
